"""Converted Marian models against the library that they come from."""

import re
from pathlib import Path

import pytest
import torch
from transformers import MarianMTModel

from tests.transformer.marian import ENGLISH, copy, fresh_model, read_tokenizer, teach, unsettle, write_tokenizer
from tests.transformer.translations import tsv
from transformer import (
    EOS,
    PAD,
    Checkpoint,
    MarianTask,
    Trace,
    TranslationTask,
    causal_mask,
    greedy_decode,
    load_checkpoint,
    padding_mask,
    sinusoidal_encoding,
)
from transformer.convert.__main__ import main
from transformer.convert.folder import read_folder
from transformer.convert.settings import id_order
from transformer.convert.weights import stream_order
from transformer.tasks.base import padded
from transformer.translation.__main__ import main as measure
from transformer.translation.evaluate import translate

NEAR = {"rtol": 0, "atol": 1e-4}
TEXTS = ["The cat sees the tea.", "My friend likes bread? 12 345 œ 😀", "A", ""]
CHOICES = {
    "one matrix": {},
    "ReLU": {"activation_function": "relu"},
    "GELU": {"activation_function": "gelu"},
    "embeddings not scaled": {"scale_embedding": False},
    "two matrices": {"share_encoder_decoder_embeddings": False},
    "three matrices": {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    "one layer, other sizes": {"encoder_layers": 1, "decoder_layers": 1, "d_model": 22, "encoder_attention_heads": 11,
                               "decoder_attention_heads": 11, "encoder_ffn_dim": 9, "decoder_ffn_dim": 9},
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """The folder of a model that translates."""
    return tmp_path_factory.mktemp("marian") / "opus-mt-en-fr"


@pytest.fixture(scope="module")
def taught(base) -> MarianMTModel:
    """That model."""
    base.mkdir()
    fresh = fresh_model(write_tokenizer(base), encoder_layers=1, decoder_layers=2)
    model = teach(fresh, read_tokenizer(base), steps=160)
    model.save_pretrained(base)
    return model


def converted(folder: Path, out: Path, *options: str) -> Checkpoint:
    assert main([str(folder), str(out), *options]) == 0
    return load_checkpoint(out)


def ids_of(folder: Path) -> torch.Tensor:
    return torch.tensor(id_order(read_folder(folder)))


def sources(checkpoint: Checkpoint, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    src, lengths = padded([checkpoint.tokenizer.encode(text) for text in texts])
    return src, padding_mask(lengths, src.shape[1])


# one pass


@pytest.mark.parametrize("changes", CHOICES.values(), ids=CHOICES)
def test_a_pass_gives_the_same_numbers(changes, tmp_path):
    theirs = unsettle(fresh_model(write_tokenizer(tmp_path), **changes))
    theirs.save_pretrained(tmp_path)
    tokenizer = read_tokenizer(tmp_path)
    checkpoint = converted(tmp_path, tmp_path / "out.safetensors", "--float32")
    ours, ids = checkpoint.model, ids_of(tmp_path)

    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    src, src_mask = sources(checkpoint, TEXTS)
    assert torch.equal(ids[src], batch.input_ids)
    assert batch.attention_mask.sum(1).unique().numel() > 2  # so that there is padding

    tgt = torch.randint(EOS, ours.config.tgt_vocab_size, (len(TEXTS), 11), generator=torch.Generator().manual_seed(1))
    tgt[:, 0] = 1
    trace = Trace()
    with torch.no_grad():
        expected = theirs(**batch, decoder_input_ids=ids[tgt], output_attentions=True)
        logits = ours(src, tgt, src_mask, causal_mask(11), trace)
        memory = ours.encode(src, src_mask)
    order = stream_order(ours.config.d_model)
    torch.testing.assert_close(memory, expected.encoder_last_hidden_state[..., order], **NEAR)
    torch.testing.assert_close(logits[..., EOS:], expected.logits[..., ids[EOS:]], **NEAR)
    assert logits[..., :EOS].max() < -5_000
    shown = {"encoder self": expected.encoder_attentions, "decoder self": expected.decoder_attentions,
             "decoder cross": expected.cross_attentions}  # fmt: skip
    for site, record in trace.attention.items():
        weights = shown[f"{site.stack} {site.kind}"][site.layer]
        torch.testing.assert_close(record.weights, weights, **NEAR)
    assert len(trace.attention) == sum(map(len, shown.values()))


def test_the_streams_order_turns_halves_into_pairs():
    assert stream_order(6).tolist() == [0, 3, 1, 4, 2, 5]
    table = fresh_model(9).model.encoder.embed_positions.weight  # Marian's: sines, then cosines
    torch.testing.assert_close(table[:, stream_order(14)], sinusoidal_encoding(61, 14), rtol=0, atol=1e-5)


# a whole translation


def test_greedy_translations_are_the_same_ids_and_the_same_text(base, taught, tmp_path):
    checkpoint = converted(base, tmp_path / "out.safetensors", "--float32")
    tokenizer, ids = read_tokenizer(base), ids_of(base)
    texts = [*ENGLISH[::3], "bread", "The book sees My cat… 12", "Élodie!", ""]
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    expected = taught.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=40)[:, 1:]
    src, src_mask = sources(checkpoint, texts)
    for use_cache in (True, False):
        steps = list(greedy_decode(checkpoint.model, src, 40, src_mask=src_mask, use_cache=use_cache))
        written = torch.stack([step.token for step in steps], dim=1)
        assert torch.equal(ids[written], expected)
    texts_of = [checkpoint.tokenizer.decode(row) for row in written.tolist()]
    assert texts_of == tokenizer.batch_decode(expected, skip_special_tokens=True)
    assert texts_of[0].startswith("Le chat ")
    assert len(set(texts_of)) > 10
    assert len({row.index(EOS) for row in written.tolist() if EOS in row}) > 3


def test_16_bits_translate_alike_in_half_the_space(base, taught, tmp_path):
    full = converted(base, tmp_path / "full.safetensors", "--float32")
    half = converted(base, tmp_path / "half.safetensors")
    assert translate(half.model, half.task, ENGLISH[:9]) == translate(full.model, full.task, ENGLISH[:9])
    weights = sum(p.numel() for p in full.model.parameters())
    saved = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("full", "half")]
    assert saved[0] - saved[1] == pytest.approx(2 * weights, abs=500)


def test_a_file_of_torchs_gives_the_same_model(base, taught, tmp_path):
    expected = converted(base, tmp_path / "one.safetensors").model.state_dict()
    folder = copy(base, tmp_path / "opus-mt-en-fr", "model.safetensors")
    # As older folders have it: with every tied matrix and the tables of sinusoids.
    torch.save(taught.state_dict(), folder / "pytorch_model.bin")
    assert {"lm_head.weight", "model.encoder.embed_positions.weight"} <= taught.state_dict().keys()
    found = converted(folder, tmp_path / "two.safetensors").model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_what_the_settings_forbid_is_never_written(base, taught, tmp_path):
    folder = copy(base, tmp_path / "opus-mt-en-fr")
    pad = taught.config.pad_token_id
    first = converted(base, tmp_path / "one.safetensors")
    src, src_mask = sources(first, ENGLISH[:1])
    ours = int(next(greedy_decode(first.model, src, 1, src_mask=src_mask)).token)
    theirs = int(ids_of(base)[ours])
    taught.generation_config.bad_words_ids = [[pad], [theirs]]
    taught.generation_config.save_pretrained(folder)
    second = converted(folder, tmp_path / "two.safetensors")
    steps = list(greedy_decode(second.model, src, 20, src_mask=src_mask))
    taught.generation_config.bad_words_ids = [[pad]]
    assert ours not in [int(step.token) for step in steps]
    assert PAD not in [int(step.token) for step in steps]
    assert steps[0].probabilities[0, -3:].tolist() == [0, 0, 0]  # PAD, BOS and the forbidden one


# the checkpoint


def test_the_task_says_which_languages(base, taught, tmp_path, capsys):
    checkpoint = converted(base, tmp_path / "a.safetensors", "--attribution", "Somebody, CC BY 4.0")
    assert "English to French: 1 + 2 layers, d_model 14, 7 heads, 69 symbols" in capsys.readouterr().out
    task = checkpoint.task
    assert isinstance(task, MarianTask)
    assert isinstance(task, TranslationTask)
    assert (task.name, task.title, task.prompt) == ("marian", "English to French", "a sentence in English")
    assert list(task.examples.values()) == list(TranslationTask.examples.values())
    assert (task.max_source, task.max_target, task.max_positions) == (29, 29, 61)
    assert 2 * task.max_target + 3 <= checkpoint.config.max_len
    assert checkpoint.training == {
        "converted_from": "Marian model opus-mt-en-fr", "attribution": "Somebody, CC BY 4.0"
    }  # fmt: skip
    assert checkpoint.tokenizer == task.tokenizer
    named = converted(base, tmp_path / "b.safetensors", "--title", "anglais-français", "--longest", "7").task
    assert (named.title, named.max_source, named.max_target) == ("anglais-français", 7, 7)


@pytest.mark.parametrize(
    ("name", "title", "prompt"),
    [
        ("opus-mt-de-fr", "German to French", "a sentence in German"),
        ("opus-mt-tc-big-fin-eng", "Finnish to English", "a sentence in Finnish"),
        ("opus-mt-et-ROMANCE", "et to ROMANCE", "a sentence in the source language"),
        ("my model", "my model", "a sentence in the source language"),
    ],
)
def test_else_the_folders_name_says_it(name, title, prompt, base, taught, tmp_path):
    folder = copy(base, tmp_path / name, "tokenizer_config.json", "target.spm")
    (folder / "source.spm").rename(folder / "spm.spm")  # one for both
    task = converted(folder, tmp_path / "out.safetensors").task
    assert (task.title, task.prompt) == (title, prompt)
    assert all(task.tokenizer.encode(text) for text in task.examples.values())


def test_a_converted_model_can_be_measured(base, taught, tmp_path, capsys):
    out = tmp_path / "out.safetensors"
    converted(base, out)
    (tmp_path / "pairs.tsv").write_text(tsv(), encoding="utf-8")
    assert measure(["evaluate", str(out), str(tmp_path / "pairs.tsv"), "--show", "1"]) == 0
    assert re.search(r"all +BLEU \d+\.\d", capsys.readouterr().out)
    checkpoint = load_checkpoint(out)
    assert translate(checkpoint.model, checkpoint.task, [" ", "bread"])[0] == ""
