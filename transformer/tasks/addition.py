"""Adding two numbers, least digit first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..tokenizer import Tokenizer, shorten
from .base import EnumeratedTask

_DIGITS = 3


class AdditionTokenizer(Tokenizer):
    """ "123+456" as the encoder takes it: digits in pairs from the least on, 3 6 2 5 1 4; answers least digit first."""

    symbols = (*"0123456789",)

    def split(self, text: str) -> list[str]:
        """Raises ValueError for anything but two numbers of one to three digits with a plus sign between."""
        found = re.fullmatch(r"\s*([0-9]{1,3})\s*\+\s*([0-9]{1,3})\s*", text)
        if not found:
            raise ValueError(f"“{shorten(text)}” is not a sum of two numbers from 0 to 999, such as 58+67.")
        a, b = (number.zfill(_DIGITS)[::-1] for number in found.groups())
        return [digit for pair in zip(a, b, strict=True) for digit in pair]

    def decode(self, ids: Sequence[int]) -> str:
        """An answer read the usual way round, without leading zeros."""
        return super().decode(ids)[::-1].lstrip("0") or "0"


@dataclass(frozen=True)
class AdditionTask(EnumeratedTask):
    """Add two numbers from 0 to 999. Digits come in pairs, least first, so a carry moves the way the model writes."""

    name = "addition"
    title = "Addition"
    answer = "the sum, least digit first"
    prompt = "a sum such as 58+67, each number up to 999"
    examples = {  # noqa: RUF012 (a class constant of the task)
        "58+67": "58+67",
        "999+1": "999+1",
        "123+456": "123+456",
        "0+0": "0+0",
    }
    tokenizer = AdditionTokenizer()
    max_source = 2 * _DIGITS
    max_target = _DIGITS + 1
    n_pairs = 10 ** (2 * _DIGITS)

    def pair(self, i: int) -> tuple[list[int], list[int]]:
        a, b = divmod(i, 10**_DIGITS)
        src = self.tokenizer.encode(f"{a}+{b}")
        return src, self.target(src)

    def target(self, src: Sequence[int]) -> list[int]:
        digits = self.tokenizer.labels(src)
        if len(digits) != 2 * _DIGITS:
            raise ValueError(f"{len(digits)} digits are not two numbers of {_DIGITS} digits each")
        a, b = (int("".join(digits[which::2])[::-1]) for which in (0, 1))
        first = self.tokenizer.vocab_size - 10  # the id of "0"
        return [first + int(digit) for digit in str(a + b).zfill(_DIGITS + 1)[::-1]]
