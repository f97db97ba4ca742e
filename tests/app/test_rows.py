"""How text becomes rows: pieces, merges and rows, against tensors looked up by hand and the model's own input."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from app.models import shipped
from app.rows_run import MOST_SYMBOLS, merging, rows
from app.rows_view import DIGITS, panel_data
from tests.app.test_decoding import unpack
from tests.transformer.small import CHOICES, small_config, small_model
from tests.transformer.translations import task
from transformer import (
    TASKS,
    Checkpoint,
    PieceTokenizer,
    ResidualSite,
    SubwordTokenizer,
    Trace,
    Transformer,
    sinusoidal_encoding,
)
from transformer.zoo import checkpoint_name

SRC = [5, 16, 0, 5, 3]
TRANSLATION = task()
SENTENCE = "The cat sees the 😀 today!"


def translator(**changes) -> Checkpoint:
    """An untrained one."""
    size = TRANSLATION.tokenizer.vocab_size
    config = small_config(src_vocab_size=size, tgt_vocab_size=size, max_len=64, **changes)
    model = Transformer(config, torch.Generator().manual_seed(0)).eval()
    return Checkpoint(model, config, TRANSLATION, TRANSLATION.tokenizer, {}, {})


# rows


@pytest.mark.parametrize("choice", CHOICES)
def test_rows_are_those_of_the_matrix_and_add_up_to_what_the_encoder_is_given(choice: str) -> None:
    model = small_model(**CHOICES[choice])
    found, config, trace = rows(model, SRC), model.config, Trace()
    model.encode(torch.tensor([SRC]), trace=trace)
    given = trace.residual[ResidualSite("encoder", 0, "embedding")][0].detach().numpy()
    scale = math.sqrt(config.d_model) if config.scale_embeddings else 1
    matrix = model.src_embedding.token.weight.detach().numpy()
    np.testing.assert_allclose(found.tokens, scale * matrix[SRC], rtol=1e-6)
    expected = {
        "sinusoidal": lambda: sinusoidal_encoding(len(SRC), config.d_model).numpy(),
        "learned": lambda: model.src_embedding.position.weight[: len(SRC)].detach().numpy(),
    }.get(config.positional, lambda: None)()
    if expected is None:
        assert found.positions is None
    else:
        np.testing.assert_array_equal(found.positions, expected)
    np.testing.assert_array_equal(found.stream, given)
    np.testing.assert_allclose(found.tokens + (0 if expected is None else expected), given, rtol=1e-6, atol=1e-6)
    assert found.residual == 0


def test_what_the_encoder_adds_besides_is_told() -> None:
    """A model that is given something else than the sum shows by how much."""
    model = small_model()
    model.src_embedding.dropout = torch.nn.Identity()
    model.src_embedding.dropout.forward = lambda x: x + 0.25
    assert rows(model, SRC).residual == pytest.approx(0.25, abs=1e-6)


@pytest.mark.parametrize("src", [[], [7]])
def test_short_sources_have_rows_too(src: list[int]) -> None:
    found = rows(small_model(), src)
    assert found.tokens.shape == found.positions.shape == found.stream.shape == (len(src), 14)
    assert found.residual == 0


def test_equal_pieces_have_equal_rows_until_positions_are_added() -> None:
    found = rows(small_model(), SRC)
    np.testing.assert_array_equal(found.tokens[0], found.tokens[3])
    assert np.abs(found.stream[0] - found.stream[3]).max() > 0.1


# merging


def test_every_word_ends_in_its_own_pieces() -> None:
    tokenizer = TRANSLATION.tokenizer
    src = tokenizer.encode(SENTENCE)
    pieces, words = tokenizer.pieces(src), merging(tokenizer, src)
    assert words[0]["first"] == 0
    assert all(before["end"] == after["first"] for before, after in pairwise(words))
    assert words[-1]["end"] == len(src)
    for word in words:
        assert list(word["steps"][-1]["pieces"]) == pieces[word["first"] : word["end"]]
        assert len(word["steps"][0]["pieces"]) == word["symbols"]
        assert word["symbols"] - len(word["steps"]) + 1 == word["end"] - word["first"]
        for before, after in pairwise(word["steps"]):
            at = after["at"]
            joined = before["pieces"][at] + before["pieces"][at + 1]
            assert after["pieces"] == (*before["pieces"][:at], joined, *before["pieces"][at + 2 :])


def test_characters_are_told_apart_from_their_bytes() -> None:
    tokenizer = TRANSLATION.tokenizer
    plain, rare = merging(tokenizer, tokenizer.encode("cat 😀"))
    assert plain["spelled"] == []
    assert rare["spelled"] == [(" ", 1), ("😀", 4)]
    assert rare["steps"][-1]["pieces"] == (" ", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>")


def test_a_word_too_long_is_not_told_letter_by_letter() -> None:
    tokenizer = TRANSLATION.tokenizer
    for length, told in ((MOST_SYMBOLS - 1, True), (MOST_SYMBOLS, False)):  # and the space before it
        (word,) = merging(tokenizer, tokenizer.encode("t" * length))
        assert (word["symbols"], bool(word["steps"])) == (length + 1, told)


def test_ids_that_no_text_gives_have_no_merges() -> None:
    tokenizer = TRANSLATION.tokenizer
    letters = [tokenizer.encode("c")[0], *(tokenizer.vocabulary().index(label) for label in ("·a", "·t"))]
    assert tokenizer.decode(letters) == "cat"
    assert merging(tokenizer, letters) == []
    assert merging(tokenizer, [1, *tokenizer.encode("cat"), 2]) == []


def test_symbols_and_pieces_of_others_have_no_merges() -> None:
    symbols = TASKS["reverse"]().tokenizer
    assert merging(symbols, symbols.encode("3 11 7")) == []
    learned = [("▁", -3.0), ("▁cat", -1.0)]
    others = PieceTokenizer(PieceTokenizer.define(learned, b"", True, True, ["<unk>", "▁", "▁cat"]), 9)
    assert merging(others, others.encode("cat")) == []


# the block


def test_the_block_holds_the_rows_and_their_shapes() -> None:
    checkpoint = translator()
    src = checkpoint.tokenizer.encode(SENTENCE)
    header, arrays = unpack(panel_data(checkpoint, src))
    found = rows(checkpoint.model, src)
    for name in ("tokens", "positions", "stream"):
        np.testing.assert_array_equal(arrays[name], getattr(found, name))
    matrix = checkpoint.model.src_embedding.token.weight.detach().numpy()
    np.testing.assert_array_equal(arrays["looked_up"], matrix[src, :DIGITS])
    assert header["ids"] == src
    assert header["pieces"] == checkpoint.tokenizer.pieces(src)
    assert [tuple(word) for word in header["words"]] == [(w.start, w.stop) for w in checkpoint.tokenizer.words(src)]
    assert (header["vocabulary"], header["width"], header["max_len"]) == (checkpoint.tokenizer.vocab_size, 14, 64)
    assert header["scale"] == pytest.approx(math.sqrt(14))
    assert header["merges"] == checkpoint.tokenizer.n_merges > 0


def test_a_narrow_model_without_scale_and_positions() -> None:
    checkpoint = translator(d_model=6, scale_embeddings=False, positional="none")
    src = checkpoint.tokenizer.encode("The cat")
    header, arrays = unpack(panel_data(checkpoint, src))
    assert (header["scale"], header["digits"], header["positional"]) == (None, 6, "none")
    assert "positions" not in arrays
    np.testing.assert_array_equal(arrays["tokens"], arrays["stream"])
    np.testing.assert_array_equal(arrays["tokens"], arrays["looked_up"])


def test_pieces_of_a_converted_model_show_their_spaces_and_no_merges() -> None:
    learned = [("▁", -3.0), ("▁cat", -1.0), ("s", -2.0)]
    definition = PieceTokenizer.define(learned, b"", True, True, ["<unk>", *(piece for piece, _ in learned)])
    checkpoint = replace(translator(), tokenizer=PieceTokenizer(definition, 64))
    header, arrays = unpack(panel_data(checkpoint, checkpoint.tokenizer.encode("cats")))
    assert header["pieces"] == [" cat", "s", "<eos>"]
    assert header["words"] == [[0, 2], [2, 3]]
    assert (header["merging"], header["merges"]) == ([], 0)
    assert arrays["stream"].shape == (3, 14)


@pytest.mark.parametrize("task_name", TASKS)
def test_every_task_has_a_block(task_name: str) -> None:
    checkpoint = shipped(checkpoint_name(task_name, 64, 4))
    for src in ([], *map(checkpoint.tokenizer.encode, checkpoint.task.examples.values())):
        header, arrays = unpack(panel_data(checkpoint, src))
        assert arrays["stream"].shape == (len(src), 64)
        assert header["residual"] == 0
        assert header["merging"] == []


# the section


def section() -> None:
    import streamlit as st

    from app import rows_view

    rows_view.show(*st.session_state.shown)


def shown(checkpoint: Checkpoint, src: list[int]) -> AppTest:
    at = AppTest.from_function(section)
    at.session_state.shown = (checkpoint, src)
    at.run(timeout=30)
    assert not at.exception
    return at


@pytest.mark.parametrize(
    ("changes", "equation"),
    [
        ({}, r"X^{(0)} = \mathrm{Embed}(x)\cdot\sqrt{D} + PE \qquad (2.7)"),
        ({"positional": "learned", "scale_embeddings": False}, r"X^{(0)} = \mathrm{Embed}(x) + PE"),
        ({"positional": "none"}, r"X^{(0)} = \mathrm{Embed}(x)\cdot\sqrt{D}"),
    ],
)
def test_the_equation_is_what_the_model_does(changes: dict, equation: str) -> None:
    checkpoint = translator(**changes)
    at = shown(checkpoint, checkpoint.tokenizer.encode(SENTENCE))
    assert at.expander[0].label == "How text becomes rows"
    assert equation in at.latex[0].value
    assert ("What tells places apart" in at.markdown[0].value) == (changes.get("positional") != "none")
    assert [caption.value for caption in at.caption] == [
        "`transformer.merging.merge_steps`",
        "`transformer.model.Embedding.parts`",
    ]


@pytest.mark.parametrize("src", [[], [3, 11, 7]])
def test_symbols_have_no_code_for_merges(src: list[int]) -> None:
    at = shown(shipped("reverse-d64-h4"), src)
    assert [caption.value for caption in at.caption] == ["`transformer.model.Embedding.parts`"]


def test_a_definition_with_other_rules_is_shown_without_merges() -> None:
    """An own model's file may hold any subwords: these drop every merge."""
    definition = json.loads(TRANSLATION.subwords)
    definition["model"]["dropout"] = 1.0
    tokenizer = SubwordTokenizer(json.dumps(definition), 64)
    src = tokenizer.encode("The cat")
    assert len(src) == len(" The cat")
    header, _ = unpack(panel_data(replace(translator(), tokenizer=tokenizer), src))
    assert header["merging"] == []
