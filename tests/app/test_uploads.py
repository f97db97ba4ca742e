"""What a person's own file may hold, and what is said of any other."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from app.models import CHECKPOINTS, chosen
from app.uploads import MOST_MEGABYTES, read_upload
from tests.transformer import translations
from tests.transformer.small import seeded
from transformer import CopyTask, ReversalTask, Transformer, TranslationTask, save_checkpoint
from transformer.train.__main__ import QUICK_CONFIG

SMALL = replace(QUICK_CONFIG, d_model=8, n_heads=2, d_ff=12)


def saved(tmp_path: Path, **changes: object) -> bytes:
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, Transformer(replace(SMALL, **changes), seeded()), ReversalTask())
    return path.read_bytes()


def forged(tmp_path: Path, **header: object) -> bytes:
    """A file that says of itself what no honest one says."""
    path = tmp_path / "x.safetensors"
    said = {"config": asdict(SMALL), "task": {"name": "reverse"}, "training": {}, "metrics": {}} | header
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in said.items()}
    save_file({"model/x": torch.zeros(1)}, path, metadata={"format": "transformer-workbench 1", **texts})
    return path.read_bytes()


def test_what_was_downloaded_comes_back() -> None:
    contents = (CHECKPOINTS / "copy-d64-h4.safetensors").read_bytes()
    checkpoint, shipped = read_upload(contents, "copy.safetensors"), chosen("copy")
    assert checkpoint.task == CopyTask()
    assert checkpoint.metrics == shipped.metrics
    pairs = zip(checkpoint.model.parameters(), shipped.model.parameters(), strict=True)
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"model.pt is refused: only .safetensors files are read"):
        read_upload(saved(tmp_path), "model.pt")


def test_a_large_file_is_refused_unread() -> None:
    with pytest.raises(ValueError, match=r"big.safetensors is 20.0 MB; up to 20 MB are read"):
        read_upload(b"x" * (MOST_MEGABYTES * 10**6 + 1), "big.safetensors")


@pytest.mark.parametrize("contents", [b"", b"PK\x03\x04", b"\xff" * 100, b"\x80\x04\x95" + b"0" * 50], ids=str)
def test_what_is_no_safetensors_is_refused_by_its_own_name(contents: bytes) -> None:
    with pytest.raises(ValueError, match=r"^mine\.safetensors is not a safetensors file"):
        read_upload(contents, "mine.safetensors")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"config": {**asdict(SMALL), "src_vocab_size": 10**6}}, "has a vocabulary of over 100,000"),
        ({"task": {"name": "knit"}}, "was trained on the task 'knit'"),
        ({"task": {}}, "was trained on the task 'None'"),
        ({"config": {**asdict(SMALL), "d_model": 10**9}}, "has d_model 1,000,000,000; models up to 256 are shown"),
        ({"config": {**asdict(SMALL), "n_encoder_layers": 10**6}}, "has n_encoder_layers 1,000,000"),
        ({"config": {**asdict(SMALL), "max_len": 10**9}}, "has max_len 1,000,000,000"),
        ({"config": {**asdict(SMALL), "d_head": 10**6}}, "has head_width 1,000,000"),
        ({"config": {**asdict(SMALL), "max_len": 18}}, "has max_len 18; the pages of this task need at least 19"),
        ({"config": {**asdict(SMALL), "n_decoder_layers": 0}}, "is an encoder alone"),
        ({"config": {**asdict(SMALL), "d_model": "wide"}}, "d_model is 'wide'; it must be a whole number"),
        ({"config": {**asdict(SMALL), "colour": "red"}}, "unknown TransformerConfig fields: colour"),
        ({"task": {"name": "reverse", "n_symbols": 10**9}}, "has n_symbols 1000000000 in its task"),
        ({"task": {"name": "reverse", "max_len": 8.5}}, "has max_len 8.5 in its task"),
        ({"config": "[" * 100_000}, "is damaged"),
        ({"config": "[]"}, "config is not a JSON object"),
        ({}, "lacks 50 of the model's tensors"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_header_that_does_not_fit_is_refused_before_anything_is_built(
    tmp_path: Path, header: dict[str, object], said: str
) -> None:
    with pytest.raises(ValueError, match=r"own\.safetensors") as refusal:
        read_upload(forged(tmp_path, **header), "own.safetensors")
    assert said in str(refusal.value)
    assert str(tmp_path) not in str(refusal.value)


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="knows 12 symbols in its task, 13 in sources and 12 in targets"):
        read_upload(saved(tmp_path, src_vocab_size=13), "x.safetensors")


def test_numbers_that_overflow_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    model = Transformer(SMALL, seeded())
    with torch.no_grad():
        model.output.weight.fill_(3e38)
    save_checkpoint(path, model, ReversalTask())
    with pytest.raises(ValueError, match=r"x\.safetensors answers with numbers that are not finite"):
        read_upload(path.read_bytes(), "x.safetensors")


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    model = Transformer(SMALL, seeded())
    model.config = replace(SMALL, d_ff=20)
    save_checkpoint(path, model, ReversalTask())
    with pytest.raises(ValueError, match=r"x\.safetensors: .* has shape .*, its config needs"):
        read_upload(path.read_bytes(), "x.safetensors")


def translator(tmp_path: Path, task: TranslationTask, **changes: object) -> bytes:
    n = task.tokenizer.vocab_size
    sizes = {"src_vocab_size": n, "tgt_vocab_size": n, "d_model": 20, "n_heads": 2, "max_len": 64} | changes
    path = tmp_path / "x.safetensors"
    save_checkpoint(path, Transformer(replace(SMALL, **sizes), seeded()), task)
    return path.read_bytes()


def test_a_translator_brings_its_own_pieces(tmp_path: Path) -> None:
    checkpoint = read_upload(translator(tmp_path, translations.task()), "mine.safetensors")
    assert checkpoint.task == translations.task()
    assert checkpoint.config.d_model == 20


@pytest.mark.parametrize(
    ("task", "changes", "said"),
    [
        ({}, {"src_vocab_size": 999}, "knows 420 pieces, but the model has 999 for sources and 420 for targets"),
        ({"longest_source": "many"}, {}, "has longest_source 'many'; it must be a number from 1 to its max_len, 64"),
        ({"longest_target": 0}, {}, "has longest_target 0"),
        ({"max_positions": 65}, {}, "has max_positions 65"),
        ({}, {"d_model": 514}, "has d_model 514; models up to 512 are shown"),
    ],
)
def test_a_translator_that_does_not_fit_itself_is_refused(tmp_path: Path, task: dict, changes: dict, said: str) -> None:
    contents = translator(tmp_path, replace(translations.task(), **task), **changes)
    with pytest.raises(ValueError, match=r"mine\.safetensors") as refusal:
        read_upload(contents, "mine.safetensors")
    assert said in str(refusal.value)


def test_a_translator_that_answers_nothing_finite_is_refused(tmp_path: Path) -> None:
    task = translations.task()
    n = task.tokenizer.vocab_size
    sizes = {"src_vocab_size": n, "tgt_vocab_size": n, "max_len": 64}
    model = Transformer(replace(SMALL, **sizes), seeded())
    with torch.no_grad():
        model.src_embedding.token.weight.fill_(3e38)
    save_checkpoint(tmp_path / "x.safetensors", model, task)
    with pytest.raises(ValueError, match=r"x\.safetensors answers with numbers that are not finite"):
        read_upload((tmp_path / "x.safetensors").read_bytes(), "x.safetensors")
