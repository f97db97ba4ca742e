import json
import unicodedata

import pytest

from tests.transformer.translations import tokenizer
from transformer import BOS, EOS, PAD, SubwordTokenizer
from transformer.subwords import normalise, train_subwords

TOKENIZER = tokenizer()

ODD = {
    "plain": "The cat sees the tea.",
    "characters never seen": "Ελληνικά 猫 ʒ",
    "emoji": "I 😀 you 👩‍👩‍👧",
    "special tokens": "<eos> <pad><bos>",
    "a byte's name": "<0x41> <0xF0>",
    "a marker of others": "▁the ▁cat Ġdog",
    "our marker": "· ·s the ·",
    "digits": "12 345,67",
    "punctuation": "«Quoi ?!» … -- (a-t-il) l'ami",
    "apostrophes": "don't 'tis l'homme aujourd'hui '",
    "controls": "a\x00b\x7f\x1bc",
    "right to left": "שלום עליכם",
    "joined by nothing": "thecatseesthetea",
    "one letter": "é",
    "markup": "<b>$a__b$</b>",
}


# normalisation


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("", ""),
        (" \t\n ", ""),
        ("  a   b ", "a b"),
        ("Quoi\u202f?", "Quoi ?"),
        ("Quoi\u00a0!", "Quoi !"),
        ("l’ami ‘x’", "l'ami 'x'"),
        ("e\u0301te\u0301", "été"),
        ("\ud83d", "\ufffd"),
        ("Déjà vu!", "Déjà vu!"),
    ],
)
def test_normalisation(text, clean):
    assert normalise(text) == clean
    assert normalise(clean) == clean


# there and back


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_any_text_comes_back(text):
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == normalise(text)
    assert all(3 <= i < TOKENIZER.vocab_size for i in ids)


@pytest.mark.parametrize("text", ["  The   cat ", "The cat\u202f!", unicodedata.normalize("NFD", "le thé"), "l’ami"])
def test_what_comes_back_is_normalised(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == normalise(text)


@pytest.mark.parametrize("text", ["", " ", "\u00a0\n"])
def test_no_text_is_no_token(text):
    assert TOKENIZER.encode(text) == []
    assert TOKENIZER.decode([]) == ""


def test_equal_texts_in_other_forms_are_equal_tokens():
    assert TOKENIZER.encode("le the\u0301\u00a0!") == TOKENIZER.encode("le thé !")


def test_frequent_words_are_one_token_and_rare_characters_their_bytes():
    assert TOKENIZER.labels(TOKENIZER.encode("The cat sees 猫")) == [
        "The", "cat", "sees", "· ", "<0xE7>", "<0x8C>", "<0xAB>",
    ]  # fmt: skip


def test_special_tokens_are_left_out_of_text():
    ids = TOKENIZER.encode("the tea")
    assert TOKENIZER.decode([BOS, *ids, EOS, PAD, PAD]) == "the tea"


def test_tokens_that_no_text_gives_are_still_some_text():
    assert TOKENIZER.decode([3 + 0xE7, *TOKENIZER.encode("cat")]) == "\ufffd cat"


def test_a_text_too_long_is_refused_with_both_lengths():
    assert len(TOKENIZER.encode("cat " * 64)) == 64
    with pytest.raises(ValueError, match="65 tokens are too many: this model takes at most 64"):
        TOKENIZER.encode("cat " * 65)


@pytest.mark.parametrize("wrong", [-1, 10_000])
def test_an_unknown_id_is_refused(wrong):
    for ask in (TOKENIZER.decode, TOKENIZER.labels):
        with pytest.raises(ValueError, match=f"token id {wrong} is outside the vocabulary of {TOKENIZER.vocab_size}"):
            ask([5, wrong])


# labels


def test_labels_tell_what_a_space_stands_before():
    assert TOKENIZER.labels(TOKENIZER.encode("Le thé! Le thé !")) == ["Le", "thé", "·!", "Le", "thé", "!"]
    assert TOKENIZER.split("Le thé!") == ["Le", "thé", "·!"]


@pytest.mark.parametrize("text", ["unbreakable", "the tea", "x 😀", "2024"])
def test_pieces_join_into_words(text):
    ids = TOKENIZER.encode(text)
    places = TOKENIZER.words(ids)
    assert [TOKENIZER.decode(ids[word.start : word.stop]).strip() for word in places] == text.split()
    assert [i for word in places for i in word] == list(range(len(ids)))
    assert len(places) < len(ids) or text == "the tea"


def test_special_tokens_are_words():
    ids = [1, *TOKENIZER.encode("the tea"), 2]
    assert [len(word) for word in TOKENIZER.words(ids)][::3] == [1, 1]


def test_bytes_are_unfamiliar():
    assert TOKENIZER.unfamiliar(TOKENIZER.encode("😀")) == 4
    assert TOKENIZER.unfamiliar(TOKENIZER.encode("the tea")) == 0


def test_labels_differ():
    assert len(set(TOKENIZER.vocabulary())) == TOKENIZER.vocab_size
    assert TOKENIZER.vocabulary()[:4] == ("<pad>", "<bos>", "<eos>", "<0x00>")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("don't", ["don't"]),
        ("l'homme", ["l'", "·homme"]),
        ("a-t-il", ["a", "·-t", "·-il"]),
        ("2024", ["2", "·0", "·2", "·4"]),
        ("thé ?!", ["thé", "?!"]),
    ],
)
def test_what_a_merge_never_crosses(text, pieces):
    learned = SubwordTokenizer(train_subwords([f"{text} {text}"] * 9, 500), 64)
    assert learned.labels(learned.encode(text)) == pieces


# learning them


def test_the_same_texts_give_the_same_subwords():
    assert tokenizer() == TOKENIZER
    assert hash(tokenizer()) == hash(TOKENIZER)


def test_a_vocabulary_has_the_size_asked_for_at_most():
    texts = ["".join(chr(97 + (i * j) % 26) for j in range(9)) for i in range(200)]
    assert SubwordTokenizer(train_subwords(texts, 400), 64).vocab_size == 400
    assert SubwordTokenizer(train_subwords(["ab"], 400), 64).vocab_size == 259 + 3 + 2  # bytes; " ", a, b; two merges


def test_too_small_a_vocabulary_is_refused():
    with pytest.raises(ValueError, match="a vocabulary of 387 subwords is too small; it must have more than 387"):
        train_subwords(["a"], 387)


@pytest.mark.parametrize("definition", ["", "{", "[]", json.dumps({"model": {"type": "BPE"}})])
def test_a_damaged_definition_is_refused(definition):
    with pytest.raises(ValueError, match="the definition of the subwords cannot be read"):
        SubwordTokenizer(definition, 64)


def test_subwords_of_others_are_refused():
    definition = json.loads(TOKENIZER.definition)
    definition["model"] |= {"vocab": {"a": 0, "b": 1}, "merges": []}
    with pytest.raises(ValueError, match="starts with <pad>, <bos>, <eos> and 256 bytes"):
        SubwordTokenizer(json.dumps(definition), 64)
