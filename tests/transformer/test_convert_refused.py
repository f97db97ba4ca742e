"""Folders that cannot be converted are refused with what is wrong in them."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.transformer.marian import ENGLISH, copy, fresh_model, spm, write_tokenizer
from transformer.convert.__main__ import main

Change = Callable[[Path], object]


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("marian")
    fresh_model(write_tokenizer(path)).save_pretrained(path)
    return path


def without(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def says(name: str, **values) -> Change:
    """These values in a JSON file; None takes one out."""

    def change(folder: Path) -> None:
        found = json.loads((folder / name).read_text()) | values
        (folder / name).write_text(json.dumps({key: value for key, value in found.items() if value is not None}))

    return change


def holds(name: str, text: str | bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Change:
    def changed(folder: Path) -> None:
        found = load_file(folder / "model.safetensors")
        change(found)
        save_file(found, folder / "model.safetensors")

    return changed


def renamed(old: str, new: str) -> Change:
    """A symbol of the vocabulary under another name."""

    def change(folder: Path) -> None:
        symbols = json.loads((folder / "vocab.json").read_text())
        symbols[new] = symbols.pop(old)
        (folder / "vocab.json").write_text(json.dumps(symbols))

    return change


def of_torchs(value: object) -> Change:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        torch.save(value, folder / "pytorch_model.bin")

    return change


class Dangerous:
    def __reduce__(self):
        return os.mkdir, ("was-run",)


LAYER = "model.encoder.layers.1.fc1.weight"
WRONG: dict[str, tuple[Change, str]] = {
    # files
    "no config": (without("config.json"), "has no config.json"),
    "no JSON": (holds("config.json", "{"), "config.json is not JSON"),
    "a list": (holds("config.json", "[1]"), "config.json is not a JSON object"),
    "no text": (holds("vocab.json", b"\xff"), "vocab.json is not JSON"),
    "no vocabulary": (without("vocab.json"), "has no vocab.json"),
    "no weights": (without("model.safetensors"), "has no weights; they must be in model.safetensors or pytorch_model"),
    "no .spm": (lambda f: [path.unlink() for path in f.glob("*.spm")], "has no source.spm, nor one .spm file for both"),
    "two others": (lambda f: (f / "source.spm").rename(f / "a.spm"), "has no source.spm, nor one .spm file for both"),
    # settings
    "another model": (says("config.json", model_type="bart"), "config.json is of a 'bart' model; it must be 'marian'"),
    "no type": (says("config.json", model_type=None), "is of a None model; it must be 'marian'"),
    "pre-LN": (says("config.json", normalize_before=True), "says normalize_before True; it must be False"),
    "embedding norm": (says("config.json", normalize_embedding=True), "says normalize_embedding True; it must be"),
    "learned positions": (
        says("config.json", static_position_embeddings=False), "says static_position_embeddings False; it must be True"
    ),
    "activation": (
        says("config.json", activation_function="tanh"),
        "has activation_function 'tanh'; allowed are relu, gelu, swish, silu",
    ),
    "odd activation": (says("config.json", activation_function=["relu"]), "has activation_function ['relu']; allowed"),
    "two widths": (says("config.json", decoder_ffn_dim=29), "has encoder_ffn_dim 23 and decoder_ffn_dim 29; here both"),
    "two heads": (
        says("config.json", decoder_attention_heads=2),
        "has encoder_attention_heads 7 and decoder_attention_heads 2; here both stacks share one number",
    ),
    "a size missing": (says("config.json", d_model=None), "config.json lacks d_model"),
    "a size as text": (says("config.json", d_model="14"), "d_model is '14'; it must be a whole number of at least 1"),
    "odd width": (says("config.json", d_model=21), "d_model 21 is odd"),
    "no decoder": (says("config.json", decoder_layers=0), "has decoder_layers 0; a translator has a decoder"),
    "an own projection": (says("config.json", tie_word_embeddings=False), "but not with the output projection"),
    "start": (says("generation_config.json", decoder_start_token_id=69), "decoder_start_token_id 69 is none of 69"),
    "bad words": (says("generation_config.json", bad_words_ids=[[3, 4]]), "only single symbols can be forbidden"),
    # vocabulary
    "no pad": (renamed("<pad>", "<p>"), "vocab.json has no <pad>, which it needs as pad_token"),
    "no end": (renamed("</s>", "</p>"), "vocab.json has no </s>, which it needs as eos_token"),
    "no unknown": (renamed("<unk>", "<u>"), "vocab.json has no <unk>, which it needs as unk_token"),
    "another pad": (says("generation_config.json", pad_token_id=7), "gives pad_token the id 68, the config 7"),
    "another end": (says("generation_config.json", eos_token_id=[0, 4]), "gives eos_token the id 0, the config [0, 4]"),
    "numbers twice": (says("vocab.json", more=3), "vocab.json must number its 70 symbols from 0 on, each once"),
    "no numbers": (says("vocab.json", more="x"), "vocab.json must number its 70 symbols from 0 on, each once"),
    "one more": (says("vocab.json", more=69), "vocab.json has 70 symbols, but vocab_size in config.json is 69"),
    "two vocabularies": (holds("target_vocab.json", "{}"), "has one vocabulary for each language"),
    "two, said": (says("tokenizer_config.json", separate_vocabs=True), "has one vocabulary for each language"),
    # sentencepiece
    "no model": (holds("source.spm", b"\x0a\x05abc"), "source.spm is not a sentencepiece model: it ends in the middle"),
    "text": (holds("source.spm", "hello"), "source.spm is not a sentencepiece model"),
    "empty": (holds("source.spm", b""), "source.spm is not a sentencepiece model: it has no pieces"),
    "BPE": (holds("source.spm", spm(ENGLISH, model_type="bpe")), "of type bpe; only unigram models can be converted"),
    "bytes": (holds("source.spm", spm(ENGLISH, 400, byte_fallback=True)), "writes unknown characters as bytes"),
    "own pieces": (holds("source.spm", spm(ENGLISH, user_defined_symbols=["x"])), "has user-defined pieces"),
    "suffix": (holds("source.spm", spm(ENGLISH, treat_whitespace_as_suffix=True)), "puts spaces after words"),
    # weights
    "no safetensors": (holds("model.safetensors", "hello"), "model.safetensors cannot be read as tensors"),
    "missing": (tensors(lambda t: t.pop(LAYER)), f"lacks the tensor {LAYER}"),
    "no embedding": (tensors(lambda t: t.pop("model.shared.weight")), "lacks the tensor model.shared.weight or model"),
    "extra": (
        tensors(lambda t: t.update(more=torch.ones(1))), "has 1 tensors that Marian has no place for, the first is more"
    ),
    "shape": (
        tensors(lambda t: t.update({LAYER: torch.ones(14, 23)})),
        f"{LAYER} has shape (14, 23), its config needs (23, 14)",
    ),
    "not a number": (tensors(lambda t: t[LAYER].fill_(torch.nan)), f"{LAYER} holds numbers that are not finite"),
    "too large": (
        tensors(lambda t: t[LAYER].fill_(1e5)),
        "holds numbers beyond 65,504, the most that 16 bits hold; use --float32",
    ),
    "untied": (
        tensors(lambda t: t.update({"lm_head.weight": torch.ones(69, 14)})),
        "model.shared.weight and lm_head.weight differ, but the config makes one matrix of them",
    ),
    "other positions": (
        tensors(lambda t: t.update({"model.encoder.embed_positions.weight": torch.ones(61, 14)})),
        "model.encoder.embed_positions.weight does not hold Marian's sinusoids",
    ),
    "code": (of_torchs(Dangerous()), "pytorch_model.bin cannot be read as tensors and nothing else"),
    "no tensors": (of_torchs([1, 2]), "pytorch_model.bin holds something else than tensors by name"),
    "odd tensors": (of_torchs({"a": 1}), "pytorch_model.bin holds something else than tensors by name"),
    "no file of torch's": (
        lambda f: (without("model.safetensors")(f), holds("pytorch_model.bin", "hello")(f)),
        "pytorch_model.bin cannot be read as tensors and nothing else",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_folder_is_named(change, said, good, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = copy(good, tmp_path / "opus-mt-en-fr")
    change(folder)
    assert main([str(folder), "out.safetensors"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("transformer.convert: ")
    assert said in error
    assert not Path("out.safetensors").exists()
    assert not Path("was-run").exists()


@pytest.mark.parametrize(
    ("folder", "options", "said"),
    [
        ("nowhere", ["out.safetensors"], "nowhere is not a folder; give the one that holds config.json"),
        ("good", ["out.bin"], "out.bin must end in .safetensors"),
        ("good", ["nowhere/out.safetensors"], "there is no folder nowhere to write to"),
        ("good", ["out.safetensors", "--longest", "30"], "--longest 30 is too long: this model has 61 positions"),
    ],
)
def test_a_wrong_request_is_refused(folder, options, said, good, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, "good")
    assert main([folder, *options]) == 2
    assert said in capsys.readouterr().err


def test_the_good_folder_is_not_refused(good, tmp_path):
    assert main([str(good), str(tmp_path / "out.safetensors")]) == 0


def test_help_tells_what_there_is(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert re.search(r"MARIAN_FOLDER OUT\.safetensors", capsys.readouterr().out)
