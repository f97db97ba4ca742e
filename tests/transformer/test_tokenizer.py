import re

import pytest

from transformer import BOS, EOS, PAD, SymbolTokenizer
from transformer.tokenizer import shorten

TOKENIZER = SymbolTokenizer(("a", "b", "ü", "7"))


def test_special_tokens_come_first():
    assert (PAD, BOS, EOS) == (0, 1, 2)
    assert (TOKENIZER.pad_id, TOKENIZER.bos_id, TOKENIZER.eos_id) == (0, 1, 2)
    assert tuple(TOKENIZER.vocabulary()) == ("<pad>", "<bos>", "<eos>", "a", "b", "ü", "7")
    assert TOKENIZER.vocab_size == 7


@pytest.mark.parametrize("text", ["a b ü 7", "a, b; ü,7", "[a b] (ü 7)", "  a\tb\nü   7 ", "a,,b;;ü;,7"])
def test_symbols_may_be_parted_in_many_ways(text):
    assert TOKENIZER.encode(text) == [3, 4, 5, 6]


@pytest.mark.parametrize("text", ["", "   ", ",;()[]"])
def test_nothing_written_is_no_tokens(text):
    assert TOKENIZER.encode(text) == []


def test_decoding_undoes_encoding():
    assert TOKENIZER.decode(TOKENIZER.encode("7 a a ü")) == "7 a a ü"


def test_decoding_leaves_special_tokens_out():
    assert TOKENIZER.decode([BOS, 3, 6, EOS, PAD, PAD]) == "a 7"
    assert TOKENIZER.decode([EOS]) == ""


def test_labels_name_every_token():
    assert TOKENIZER.labels([BOS, 3, EOS, PAD]) == ["<bos>", "a", "<eos>", "<pad>"]
    assert TOKENIZER.labels(iter([4, 4])) == ["b", "b"]


@pytest.mark.parametrize("special", ["<pad>", "<bos>", "<eos>"])
def test_text_never_becomes_a_special_token(special):
    with pytest.raises(ValueError, match=f"“{special}” is not a symbol of this task"):
        TOKENIZER.encode(f"a {special}")


def test_unknown_symbols_are_named_once_each_with_those_allowed():
    with pytest.raises(ValueError, match=re.escape("“x”, “A” are not symbols of this task. Its symbols are a b ü 7.")):
        TOKENIZER.encode("a x A x b")


def test_a_long_list_of_unknown_symbols_is_cut():
    with pytest.raises(ValueError, match="“0”, “1”, “2”, “3”, “4” and 3 more are not symbols"):
        TOKENIZER.encode("0 1 2 3 4 5 6 8")


def test_a_long_unknown_symbol_is_cut():
    with pytest.raises(ValueError, match=f"“{'x' * 23}…” is not a symbol"):
        TOKENIZER.encode("x" * 1_000)


def test_shortening_keeps_what_fits():
    assert shorten("x" * 24) == "x" * 24
    assert shorten("x" * 25) == "x" * 23 + "…"


@pytest.mark.parametrize("wrong", [7, -1])
def test_an_unknown_id_is_refused(wrong):
    for ask in (TOKENIZER.decode, TOKENIZER.labels):
        with pytest.raises(ValueError, match=f"token id {wrong} is outside the vocabulary of 7"):
            ask([3, wrong])


def test_symbols_are_words_by_themselves():
    assert TOKENIZER.words([3, 4, 2]) == [range(0, 1), range(1, 2), range(2, 3)]
    assert TOKENIZER.words([]) == []
    assert TOKENIZER.unfamiliar([3, 4, 2]) == 0


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (("un", "·break", "·able"), ["un·break·able"]),
        (("l'", "·homme", "·,"), ["l'", "·homme", "·,"]),
        (("a", "·-t", "·-il"), ["a", "·-t", "·-il"]),
        (("2", "·0", "·?"), ["2·0", "·?"]),
        (("· ", "·x", "y"), ["· ·x", "y"]),
        (("▁", "·X", "y"), ["▁·X", "y"]),
        (("homme", "homme"), ["homme", "homme"]),
    ],
)
def test_what_a_word_is(pieces, words):
    tokenizer = SymbolTokenizer(tuple(dict.fromkeys(pieces)))
    ids = [3 + tokenizer.symbols.index(piece) for piece in pieces]
    assert ["".join(pieces[i] for i in word) for word in tokenizer.words(ids)] == words
