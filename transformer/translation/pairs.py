"""Sentence pairs: reading them, and the split into training, validation and test by the English sentence."""

import gzip
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..subwords import normalise

Side = Literal["train", "validation", "test"]


Sides = dict[Side, list["Sentence"]]


@dataclass(frozen=True)
class Sentence:
    """An English sentence and all its French translations, in the order of the file, each once."""

    english: str
    french: tuple[str, ...]

    @property
    def n_words(self) -> int:
        return len(self.english.split())


def read_sentences(path: str | Path) -> list[Sentence]:
    """Read a .tsv or .tsv.gz file: English, tab, French, and columns that are ignored; normalised, in file order.

    Raises ValueError naming the line that is not so, and for a file that is not UTF-8 or holds no pair.
    """
    path = Path(path)
    found: dict[str, dict[str, None]] = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                columns = [normalise(column) for column in line.split("\t")]
                if len(columns) < 2 or not columns[0] or not columns[1]:
                    raise ValueError(
                        f"line {number} of {path} is not a pair: it must be an English sentence, a tab and a French one"
                    )
                found.setdefault(columns[0], {})[columns[1]] = None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from error
    if not found:
        raise ValueError(f"{path} holds no pair")
    return [Sentence(english, tuple(french)) for english, french in found.items()]


def hash_of(english: str) -> int:
    """A number of 64 bits that depends on the normalised sentence only."""
    return int.from_bytes(hashlib.sha256(english.encode()).digest()[:8], "big")


def side_of(english: str) -> Side:
    """One English sentence in a hundred is for testing and another for validation, whatever else is in the file."""
    return {0: "test", 1: "validation"}.get(hash_of(english) % 100, "train")


def split(sentences: Iterable[Sentence], max_words: int) -> Sides:
    """The sentences of at most so many English words, by side; validation and test in the order of their hash."""
    sides: Sides = {"train": [], "validation": [], "test": []}
    for sentence in sentences:
        if sentence.n_words <= max_words:
            sides[side_of(sentence.english)].append(sentence)
    for side in ("validation", "test"):
        sides[side].sort(key=lambda sentence: hash_of(sentence.english))
    return sides


def without_near_twin(sentences: Iterable[Sentence], training: Iterable[Sentence]) -> list[Sentence]:
    """Those that are not, and are not one word away from, a training sentence; case and punctuation aside.

    One word away: one word replaced, added or left out.
    """
    sentences = list(sentences)
    wanted = {key for sentence in sentences for key in _twin_keys(sentence.english)}
    seen = {key for sentence in training for key in _twin_keys(sentence.english) if key in wanted}
    return [sentence for sentence in sentences if seen.isdisjoint(_twin_keys(sentence.english))]


def _twin_keys(english: str) -> set[tuple[str | None, ...]]:
    """The words with a gap (None) in place of each, and with a gap put between any two or at an end.

    Two sentences have one of these in common exactly when they are at most one word apart.
    """
    words = tuple(re.findall(r"[\w']+", english.casefold()))
    replaced = {(*words[:i], None, *words[i + 1 :]) for i in range(len(words))}
    return replaced | {(*words[:i], None, *words[i:]) for i in range(len(words) + 1)}
