"""Merging by hand, and against the library that cuts the model's own input."""

import json

import pytest

from tests.transformer.test_translation_subwords import ODD
from tests.transformer.translations import sentences, tokenizer
from transformer import EOS, MergeStep, NumberTask, PieceTokenizer, SubwordTokenizer, merge_steps

TOKENIZER = tokenizer()


def test_what_was_learned_first_is_merged_first():
    ranks = {("b", "c"): 0, ("a", "b"): 1, ("a", "bc"): 2, ("x", "y"): 3}
    assert merge_steps("abc", ranks) == [
        MergeStep(("a", "b", "c")),
        MergeStep(("a", "bc"), rank=0, at=1),
        MergeStep(("abc",), rank=2, at=0),
    ]


def test_of_equal_merges_the_leftmost_is_first():
    assert merge_steps("aaaaa", {("a", "a"): 0, ("aa", "aa"): 1}) == [
        MergeStep(("a", "a", "a", "a", "a")),
        MergeStep(("aa", "a", "a", "a"), rank=0, at=0),
        MergeStep(("aa", "aa", "a"), rank=0, at=1),
        MergeStep(("aaaa", "a"), rank=1, at=0),
    ]


@pytest.mark.parametrize("symbols", [[], ["a"], ["a", "z"]])
def test_where_no_neighbours_ever_became_one_nothing_is_merged(symbols):
    assert merge_steps(symbols, {("a", "b"): 0}) == [MergeStep(tuple(symbols))]


TEXTS = [*ODD.values(), *(text for one in sentences()[::7] for text in (one.english, *one.french))]


@pytest.mark.parametrize("text", TEXTS)
def test_merges_end_in_the_models_own_input(text):
    pieces = [piece for stretch in TOKENIZER.stretches(text) for piece in TOKENIZER.merges(stretch)[-1].pieces]
    assert pieces == TOKENIZER.pieces(TOKENIZER.encode(text))


def test_every_piece_of_the_vocabulary_comes_by_its_merges():
    """From single characters, by a rising rank: a piece is made of what was learned before it."""
    n = 0
    for piece in json.loads(TOKENIZER.definition)["model"]["vocab"]:
        if piece.startswith("<"):
            continue
        steps = TOKENIZER.merges(piece)
        assert steps[0].pieces == tuple(piece)
        assert steps[-1].pieces == (piece,)
        ranks = [step.rank for step in steps[1:]]
        assert ranks == sorted(ranks)
        n += len(steps) > 3
    assert n > 50


def test_a_character_too_rare_starts_as_its_bytes():
    assert TOKENIZER.spelled("t") == ["t"]
    assert TOKENIZER.merges("😀") == [MergeStep(("<0xF0>", "<0x9F>", "<0x98>", "<0x80>"))]


def test_stretches_are_the_whole_text():
    assert TOKENIZER.stretches("l'homme a 24 ans.") == [" l'", "homme", " a", " 2", "4", " ans", "."]
    assert TOKENIZER.stretches("  The   cat! ") == [" The", " cat", "!"]
    assert TOKENIZER.stretches(" ") == []


def test_the_number_of_merges_is_what_the_vocabulary_grew_by():
    characters = {character for piece in TOKENIZER.vocabulary()[259:] for character in piece} - {"·"} | {" "}
    assert TOKENIZER.n_merges == TOKENIZER.vocab_size - 259 - len(characters)


def test_pieces_keep_their_spaces():
    ids = TOKENIZER.encode("The cat! 猫")
    assert TOKENIZER.pieces(ids) == [" The", " cat", "!", " ", "<0xE7>", "<0x8C>", "<0xAB>"]
    with pytest.raises(ValueError, match="token id -1 is outside the vocabulary"):
        TOKENIZER.pieces([-1])


def test_symbols_have_no_spaces():
    words = NumberTask.tokenizer
    assert words.pieces(words.encode("forty two")) == ["forty", "two"]


def test_pieces_of_a_converted_model_keep_theirs():
    learned = [("▁", -3.0), ("▁cat", -1.0), ("s", -2.0)]
    definition = PieceTokenizer.define(learned, b"", True, True, ["<unk>", *(piece for piece, _ in learned)])
    cats = PieceTokenizer(definition, 9)
    ids = cats.encode("cats s é")
    assert cats.pieces(ids) == [" cat", "s", " ", "s", " ", "<unk>", "<eos>"]
    assert ids[-1] == EOS


def test_a_definition_that_cuts_nothing_first_is_one_stretch():
    definition = json.loads(TOKENIZER.definition) | {"pre_tokenizer": None}
    uncut = SubwordTokenizer(json.dumps(definition), 64)
    assert uncut.stretches("the cat") == [" the cat"]
    assert uncut.merges(" the cat")[-1].pieces == tuple(uncut.pieces(uncut.encode("the cat")))
