"""The translator on the Attention page, and among the models that can be chosen."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app import models
from app.attention_state import View
from app.attention_view import at_sizes_of, panel_block, panel_data
from app.decoding import frames, run_decoding
from app.models import TRANSLATION, added, attribution, chosen, describe, measured, task_of, translation
from app.source import doubts
from tests.transformer.marian import fresh_model, unsettle, write_tokenizer
from transformer import Checkpoint, Trace, causal_mask, save_checkpoint
from transformer.convert.__main__ import main as convert
from transformer.translation.evaluate import translate

SENTENCE = "They live in a small white house."


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return chosen(TRANSLATION)


def shown(wish: dict[str, Any], text: str = SENTENCE, model_id: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    task = task_of(TRANSLATION, model_id)
    block = panel_block(task, task.tokenizer.encode(text), wish, model_id)
    (length,) = struct.unpack_from("<I", block)
    header, numbers = json.loads(block[4 : 4 + length]), np.frombuffer(block[4 + length :], "<f4")
    arrays = {
        name: numbers[place["start"] : place["start"] + int(np.prod(place["shape"]))].reshape(place["shape"])
        for name, place in header["arrays"].items()
    }
    return header, arrays


def test_the_decoder_reads_the_models_own_translation(checkpoint: Checkpoint) -> None:
    src = checkpoint.tokenizer.encode(SENTENCE)
    answer = translation(checkpoint, src)
    assert [checkpoint.tokenizer.decode(answer)] == translate(checkpoint.model, checkpoint.task, [SENTENCE])
    header, arrays = shown({})
    assert header["rows"] == [*checkpoint.tokenizer.labels(answer), "<eos>"]
    trace = Trace()
    with torch.no_grad():
        read = torch.tensor([[1, *answer]])
        checkpoint.model(torch.tensor([src]), read, None, causal_mask(read.shape[1]), trace)
    weights = [
        r.weights[0].numpy() for s, r in sorted(trace.attention.items()) if (s.stack, s.kind) == ("decoder", "cross")
    ]
    np.testing.assert_allclose(arrays["weights"], np.stack(weights), atol=1e-6)
    np.testing.assert_allclose(arrays["lines"], weights[header["view"]["layer"]][0], atol=1e-6)


def test_it_opens_at_the_models_own_sizes(checkpoint: Checkpoint) -> None:
    usual = at_sizes_of(checkpoint.config, View())
    assert (usual.d_model, usual.heads, usual.d_k, usual.layer) == (192, 4, None, 2)
    assert usual.link(usual) == {}
    header, _ = shown({})
    assert header["trained"]
    assert header["most"] == {"d_model": 192, "heads": 8}
    assert "BLEU" in header["status"]


def test_elsewhere_it_is_untrained_and_the_slider_reaches_back() -> None:
    header, arrays = shown({"d_model": 48, "heads": 3})
    assert not header["trained"]
    assert "python -m transformer.translation train PAIRS --d-model 48 --heads 3" in header["status"]
    assert header["most"]["d_model"] == 192
    assert arrays["weights"].shape[:2] == (3, 3)


def test_words_stand_for_their_pieces() -> None:
    text = "The grasshopper is unhappy."
    pieces, apart = shown({}, text)
    header, arrays = shown({"words": True, "mean": "layer"}, text)
    assert header["words"]["columns"] == ["The", "grasshopper", "is", "unhappy", "."]
    assert len(pieces["columns"]) > 5
    assert arrays["weights"].shape == apart["weights"].shape  # the slow motion stays with pieces
    np.testing.assert_allclose(arrays["word-weights"].sum(-1), 1, atol=1e-5)
    layer = header["view"]["layer"]
    np.testing.assert_allclose(arrays["lines"], arrays["word-weights"][layer].mean(0), atol=1e-6)
    assert header["words"]["starts"][:2] == [0, 1]


@pytest.mark.parametrize("mean", ["<b>", 7, None])
def test_nonsense_for_the_lines_is_this_head(mean: Any) -> None:
    header, arrays = shown({"mean": mean, "words": "yes"})
    assert header["view"]["mean"] == "head"
    assert header["words"] is None
    np.testing.assert_allclose(arrays["lines"], arrays["weights"][2, 0], atol=1e-6)


@pytest.mark.parametrize("text", ["", "a", "😀"])
def test_any_text_has_a_picture(text: str) -> None:
    for kind in ("encoder", "decoder", "cross"):
        header, _ = shown({"kind": kind, "words": True}, text)
        assert header["view"]["kind"] == kind


def test_its_figures_and_whose_sentences(checkpoint: Checkpoint) -> None:
    bleu = checkpoint.metrics["short"]["bleu"]
    assert f"BLEU {bleu:.1f}" in measured(checkpoint)
    assert measured(checkpoint) in describe(checkpoint)
    assert "Tatoeba" in attribution(checkpoint)


@pytest.mark.parametrize("scores", [None, 7, {}, {"bleu": "<b>", "chrf": 1, "exact_match": 1, "exact_match_of": 1}])
def test_scores_of_an_own_file_may_be_anything(checkpoint: Checkpoint, scores: Any) -> None:
    other = Checkpoint(
        checkpoint.model,
        checkpoint.config,
        checkpoint.task,
        checkpoint.tokenizer,
        {"short": scores},
        {"attribution": 7},
    )
    assert measured(other) == "not measured"
    assert attribution(other) == ""


def test_what_to_doubt(checkpoint: Checkpoint) -> None:
    task = checkpoint.task

    def of(text: str) -> list[str]:
        return doubts(task, text, task.tokenizer.encode(text))

    assert of(SENTENCE) == []
    assert of("a " * 10) == []
    assert "11 words" in of("a " * 11)[0]
    assert "stand for characters" in of("漢字")[0]


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another folder of checkpoints, read anew."""
    monkeypatch.setattr(models, "CHECKPOINTS", tmp_path)
    added.clear()
    models.shipped.clear()
    yield tmp_path
    added.clear()
    models.shipped.clear()


def test_a_model_beside_the_shipped_ones_can_be_chosen(beside: Path, checkpoint: Checkpoint) -> None:
    save_checkpoint(beside / "opus.safetensors", checkpoint.model, checkpoint.task)
    (beside / "broken.safetensors").write_bytes(b"nothing")
    assert added(TRANSLATION) == ("opus",)
    assert added("reverse") == ()
    assert measured(chosen(TRANSLATION, "opus")) == "not measured"


def test_a_converted_model_is_shown_like_the_shipped_one(beside: Path, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("marian")
    unsettle(fresh_model(write_tokenizer(folder))).save_pretrained(folder)
    assert convert([str(folder), str(beside / "opus.safetensors"), "--title", "English to French"]) == 0
    task, text = task_of(TRANSLATION, "opus"), "The cat sees the tea."
    header, arrays = shown({"d_model": 14, "heads": 7, "words": True}, text, "opus")
    assert header["status"].startswith("Opus. Trained, not measured.")
    assert "".join(header["words"]["columns"]).replace("<eos>", "") == text.replace(" ", "")
    assert len(header["words"]["columns"]) < len(task.tokenizer.encode(text))
    src = task.tokenizer.encode(text)
    assert arrays["weights"].shape[:2] == (3, 7)
    assert arrays["weights"].shape[3] == len(src)
    written = chosen(TRANSLATION, "opus")
    block = frames(run_decoding(written, src, [], 20), written)
    (length,) = struct.unpack_from("<I", block)
    assert json.loads(block[4 : 4 + length])["words"]["source"] == header["words"]["columns"]
    assert doubts(task, text, src, "opus") == []


def test_view_is_kept_for_the_next_run(checkpoint: Checkpoint) -> None:
    _, view = panel_data(checkpoint.task, checkpoint.tokenizer.encode(SENTENCE), {"words": True, "mean": "all"})
    assert (view.words, view.mean) == (True, "all")
