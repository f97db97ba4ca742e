"""Number words to digits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..tokenizer import Tokenizer
from .base import EnumeratedTask

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(n: int) -> list[str]:
    """A number from 0 to 9,999 as English words, without "and"."""
    if n < 20:
        return [_SMALL[n]]
    if n < 100:
        return [_TENS[n // 10 - 2], *(in_words(n % 10) if n % 10 else [])]
    unit, word = (100, "hundred") if n < 1000 else (1000, "thousand")
    return [*in_words(n // unit), word, *(in_words(n % unit) if n % unit else [])]


class NumberTokenizer(Tokenizer):
    """One token a word, one token a digit. Hyphens, commas and "and" only stand between words."""

    symbols = (*_SMALL, *_TENS, "hundred", "thousand", *"0123456789")

    def split(self, text: str) -> list[str]:
        return [piece for piece in re.findall(r"[0-9]|[^\s,0-9-]+", text.lower()) if piece != "and"]


@dataclass(frozen=True)
class NumberTask(EnumeratedTask):
    """Write a number from 0 to 9,999, given in words, in digits: "hundred" supplies the zeros."""

    name = "number"
    title = "Number words"
    answer = "the number"
    prompt = "a number in words, zero to nine thousand nine hundred ninety nine"
    examples = {  # noqa: RUF012 (a class constant of the task)
        "205": "two hundred five",
        "3,047": "three thousand forty seven",
        "9,999": "nine thousand nine hundred ninety nine",
        "8,000": "eight thousand",
        "0": "zero",
    }
    tokenizer = NumberTokenizer()
    max_source = 7
    max_target = 4
    n_pairs = 10_000

    def pair(self, i: int) -> tuple[list[int], list[int]]:
        return self.tokenizer.encode(" ".join(in_words(i))), self.tokenizer.encode(str(i))

    def target(self, src: Sequence[int]) -> list[int]:
        words = self.tokenizer.labels(src)
        n = _value(words)
        if n is None or in_words(n) != words:
            raise ValueError(f"“{' '.join(words)}” is not a number from zero to nine thousand nine hundred ninety nine")
        return self.tokenizer.encode(str(n))


def _value(words: list[str]) -> int | None:
    """What the words add up to, however they are ordered; None for words that are no number words."""
    total, current = 0, 0
    for word in words:
        if word in _SMALL:
            current += _SMALL.index(word)
        elif word in _TENS:
            current += 10 * _TENS.index(word) + 20
        elif word == "hundred":
            current *= 100
        elif word == "thousand":
            total, current = 1000 * current, 0
        else:
            return None
    value = total + current
    return value if value < 10_000 else None
