"""What the player is sent, against the model itself."""

import json
import struct

import numpy as np
import pytest
import torch

from app.decoding import frames, run_decoding
from app.models import CHECKPOINTS
from tests.transformer import translations
from tests.transformer.small import seeded
from transformer import (
    AttentionSite,
    Checkpoint,
    Trace,
    Transformer,
    TransformerConfig,
    causal_mask,
    load_checkpoint,
)


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


def test_what_the_cache_holds_is_told_for_each_step(checkpoint: Checkpoint) -> None:
    """Two layers, four heads of 16: keys and values of 3 source positions, and of one more target position a step."""
    header, _ = unpack(frames(run_decoding(checkpoint, [3, 11, 7], [], 8), checkpoint))
    assert header["cached"] == [[2 * 2 * 64 * 3, 2 * 2 * 64 * t] for t in (1, 2, 3, 4)]
    assert header["memory"] == [1, 3, 64]


def test_the_encoder_runs_once_for_a_source_whatever_is_decoded_from_it(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, encode = [], Transformer.encode
    monkeypatch.setattr(Transformer, "encode", lambda *args, **more: ran.append(1) or encode(*args, **more))
    first, branch = (run_decoding(checkpoint, [9, 4, 9, 10, 5, 6, 3], forced, 12) for forced in ([], [9]))
    assert len(ran) == 1
    assert first.tokens != branch.tokens
    assert first.encoder is branch.encoder


def test_symbols_have_no_text_and_no_words_and_open_at_the_first_token(checkpoint: Checkpoint) -> None:
    header, _ = unpack(frames(run_decoding(checkpoint, [3, 11, 7], [], 8), checkpoint))
    assert header["texts"] == []
    assert "words" not in header
    assert header["step"] == header["opens"] == 1


@pytest.fixture(scope="module")
def translator() -> Checkpoint:
    """Random weights: what stands on the axes is the same whatever was learned."""
    task = translations.task()
    n = task.tokenizer.vocab_size
    sizes = {"src_vocab_size": n, "tgt_vocab_size": n, "d_model": 20, "n_heads": 2, "d_ff": 12}
    model = Transformer(TransformerConfig(n_encoder_layers=2, n_decoder_layers=3, max_len=64, **sizes), seeded()).eval()
    return Checkpoint(model, model.config, task, task.tokenizer, {}, {})


def test_a_translation_opens_at_its_end_and_its_text_grows_by_pieces(translator: Checkpoint) -> None:
    encode, decode = translator.tokenizer.encode, translator.tokenizer.decode
    forced = [*encode("Le chat voit le thé."), 2]
    header, _ = unpack(frames(run_decoding(translator, encode("The cat sees the tea."), forced, 30), translator))
    assert header["step"] == header["opens"] == len(forced)
    assert header["texts"] == [decode(forced[: t + 1]) for t in range(len(forced))]
    assert header["texts"][-1] == "Le chat voit le thé."


def test_weights_between_words_are_those_between_their_pieces(translator: Checkpoint) -> None:
    tokenizer = translator.tokenizer
    source, forced = tokenizer.encode("unbreakable tea"), [*tokenizer.encode("le homme imbuvable"), 2]
    header, arrays = unpack(frames(run_decoding(translator, source, forced, 30), translator))
    words, heard = header["words"], tokenizer.words(forced)
    assert words["source"] == ["unbreakable", "tea"]
    assert words["written"] == ["le", "homme", "imbuvable", "<eos>"]
    assert words["read"] == ["<bos>", "le", "homme", "imbuvable"]
    assert words["complete"] == [word.stop for word in heard]
    assert arrays["word-cross"].shape == (3, 2, 4, 2)
    n_first = len(tokenizer.words(source)[0])
    assert n_first > 1  # else nothing would be joined
    third = arrays["cross"][:, :, heard[2].start : heard[2].stop]
    np.testing.assert_allclose(arrays["word-cross"][:, :, 2, 0], third[..., :n_first].sum(-1).mean(-1), atol=1e-6)
    np.testing.assert_allclose(arrays["word-lines"][-1, -1], arrays["word-cross"].mean((0, 1)), atol=1e-6)
    np.testing.assert_allclose(arrays["word-self"].sum(-1), 1, atol=1e-5)
    assert arrays["word-self"][:, :, 1, 3].max() == 0  # a word that comes later


def test_the_cache_changes_nothing(checkpoint: Checkpoint) -> None:
    assert run_decoding(checkpoint, list(range(3, 11)), [], 12).cache_difference < 1e-4
