"""What the player is sent, against the model itself."""

import json
import struct

import numpy as np
import pytest
import torch

from app.decoding import frames, run_decoding
from app.models import CHECKPOINTS
from transformer import AttentionSite, Checkpoint, Trace, causal_mask, load_checkpoint


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load_checkpoint(CHECKPOINTS / "reverse-d64-h4.safetensors")


def unpack(block: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    (length,) = struct.unpack_from("<I", block)
    header = json.loads(block[4 : 4 + length])
    numbers = np.frombuffer(block[4 + length :], "<f4")
    arrays = {}
    for name, place in header["arrays"].items():
        size = int(np.prod(place["shape"]))
        arrays[name] = numbers[place["start"] : place["start"] + size].reshape(place["shape"])
    return header, arrays


@pytest.mark.parametrize("src", [[3, 11, 7], [5], list(range(3, 11))], ids=len)
def test_weights_are_those_of_one_teacher_forced_pass(checkpoint: Checkpoint, src: list[int]) -> None:
    decoding = run_decoding(checkpoint, src, [], 20)
    _, arrays = unpack(frames(decoding, checkpoint))
    read = torch.tensor([[checkpoint.tokenizer.bos_id, *decoding.tokens[:-1]]])
    trace = Trace()
    with torch.no_grad():
        checkpoint.model(torch.tensor([src]), read, None, causal_mask(read.shape[1]), trace)
    for name, stack, kind in [
        ("encoder", "encoder", "self"),
        ("self", "decoder", "self"),
        ("cross", "decoder", "cross"),
    ]:
        for layer in range(2):
            expected = trace.attention[AttentionSite(stack, layer, kind)].weights[0]
            torch.testing.assert_close(torch.tensor(arrays[name][layer]), expected, atol=1e-5, rtol=0)


def test_header_tells_the_story(checkpoint: Checkpoint) -> None:
    header, arrays = unpack(frames(run_decoding(checkpoint, [3, 11, 7], [], 8), checkpoint))
    assert header["source"] == ["3", "11", "7"]
    assert header["written"] == ["7", "11", "3", "<eos>"]
    assert header["read"] == ["<bos>", "7", "11", "3"]
    assert header["stopped"] == "eos"
    assert header["right"] is True
    assert arrays["probabilities"].shape == (4, 6)
    np.testing.assert_allclose(np.log(arrays["taken"]).cumsum(), arrays["log_probability"], atol=1e-5)


def test_rows_sum_to_one(checkpoint: Checkpoint) -> None:
    _, arrays = unpack(frames(run_decoding(checkpoint, [4, 4, 9, 10], [], 12), checkpoint))
    for name in ("encoder", "self", "cross"):
        np.testing.assert_allclose(arrays[name].sum(-1), 1, atol=1e-5)


def test_a_forced_token_is_taken_and_its_own_probability_told(checkpoint: Checkpoint) -> None:
    header, arrays = unpack(frames(run_decoding(checkpoint, [3, 11, 7], [9], 8), checkpoint))
    assert header["written"][0] == "9"
    assert header["forced"] == 1
    assert header["right"] is False
    assert arrays["taken"][0] < 0.5


def test_the_limit_is_told(checkpoint: Checkpoint) -> None:
    header, _ = unpack(frames(run_decoding(checkpoint, [3, 11, 7], [], 2), checkpoint))
    assert header["stopped"] == "limit"
    assert header["right"] is False


def test_an_empty_source_has_rows_without_columns(checkpoint: Checkpoint) -> None:
    header, arrays = unpack(frames(run_decoding(checkpoint, [], [], 4), checkpoint))
    assert header["written"] == ["<eos>"]
    assert arrays["cross"].shape == (2, 4, 1, 0)
    assert arrays["encoder"].shape == (2, 4, 0, 0)


def test_the_cache_changes_nothing(checkpoint: Checkpoint) -> None:
    assert run_decoding(checkpoint, list(range(3, 11)), [], 12).cache_difference < 1e-4
