import gzip
import re

import pytest

from tests.transformer.translations import sentences, tsv
from transformer.translation.pairs import Sentence, hash_of, read_sentences, side_of, split, without_near_twin


def written(tmp_path, content: str | bytes, name: str = "pairs.tsv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# reading


def test_translations_of_one_sentence_are_brought_together(tmp_path):
    path = written(tmp_path, "Go.\tVa !\nHi.\tSalut !\nGo.\tAllez !\nGo.\tVa !\n")
    assert read_sentences(path) == [Sentence("Go.", ("Va !", "Allez !")), Sentence("Hi.", ("Salut !",))]


def test_text_is_normalised_before_it_is_compared(tmp_path):
    path = written(tmp_path, "I’m  in.\tJ’y suis\u202f!\r\nI'm in. \tJ'y suis !\n")
    assert read_sentences(path) == [Sentence("I'm in.", ("J'y suis !",))]


def test_further_columns_are_ignored(tmp_path):
    assert read_sentences(written(tmp_path, "Go.\tVa !\tCC-BY 2.0\t#1\n")) == [Sentence("Go.", ("Va !",))]


def test_a_compressed_file_is_the_same(tmp_path):
    plain, packed = written(tmp_path, tsv()), written(tmp_path, gzip.compress(tsv().encode()), "pairs.tsv.gz")
    assert read_sentences(plain) == read_sentences(str(packed)) == sentences()


@pytest.mark.parametrize("line", ["Go. Va !", "", "Go.\t", "\tVa !", "Go.\t \t#1", "Go.,Va !"])
def test_a_line_that_is_no_pair_is_named(line, tmp_path):
    path = written(tmp_path, f"Hi.\tSalut !\n{line}\nRun!\tCours !\n")
    with pytest.raises(ValueError, match=re.escape(f"line 2 of {path} is not a pair")):
        read_sentences(path)


def test_files_of_another_kind_are_refused(tmp_path):
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        read_sentences(written(tmp_path, "été\té".encode("latin-1")))
    with pytest.raises(ValueError, match="holds no pair"):
        read_sentences(written(tmp_path, ""))
    with pytest.raises(OSError, match="gzip"):
        read_sentences(written(tmp_path, tsv(), "pairs.tsv.gz"))
    with pytest.raises(FileNotFoundError):
        read_sentences(tmp_path / "none.tsv")


# the split


def test_sides_depend_on_the_english_sentence_only():
    # The first 16 digits of SHA-256, as any other program gives them.
    assert hash_of("Go.") == 0xC48CB036011BFEB2
    assert hash_of("Sentence 75.") == 0x0436C8490B1A9EA4
    sides = {text: side_of(text) for text in ("Sentence 75.", "Sentence 74.", "Go.")}  # 0, 1 and 46 modulo 100
    assert sides == {"Sentence 75.": "test", "Sentence 74.": "validation", "Go.": "train"}


def test_every_sentence_is_on_one_side_with_all_its_translations():
    everything = [Sentence(f"Sentence {i}.", (f"Phrase {i}.", f"Ligne {i}.")) for i in range(3_000)]
    sides = split(everything, 10)
    assert sorted(s.english for side in sides.values() for s in side) == sorted(s.english for s in everything)
    assert all(len(sentence.french) == 2 for side in sides.values() for sentence in side)
    assert 15 <= len(sides["test"]) <= 45
    assert 15 <= len(sides["validation"]) <= 45


def test_held_out_sentences_stand_in_the_order_of_their_hash_whatever_the_file():
    everything = [Sentence(f"Sentence {i}.", ("Phrase.",)) for i in range(3_000)]
    sides, turned = split(everything, 10), split(reversed(everything), 10)
    assert sides["test"] == turned["test"]
    hashes = [hash_of(sentence.english) for sentence in sides["test"]]
    assert hashes == sorted(hashes)


def test_long_sentences_are_left_out():
    three, four = Sentence("One two three.", ("x",)), Sentence("One two three four.", ("x",))
    assert [sentence for side in split([three, four], 3).values() for sentence in side] == [three]


# near twins


@pytest.mark.parametrize(
    "twin",
    ["I like your cat", "i like Your cat!", "I like your dog.", "We like your cat.", "I like cat.",
     "I like your big cat.", "So I like your cat.", "I like your cat too.", "Like your cat."],
)  # fmt: skip
def test_near_twins_are_found(twin):
    asked = [Sentence("I like your cat.", ("x",)), Sentence("She has seen him.", ("x",))]
    assert without_near_twin(asked, [Sentence(twin, ("y",))]) == asked[1:]


@pytest.mark.parametrize(
    "other",
    ["I like my dog.", "I like.", "Your cat I like.", "I like your big fat cat.", "We like cat.", "I cat your like."],
)
def test_sentences_two_words_apart_are_no_twins(other):
    asked = [Sentence("I like your cat.", ("x",))]
    assert without_near_twin(asked, [Sentence(other, ("y",))]) == asked
