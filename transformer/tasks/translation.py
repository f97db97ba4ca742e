"""English to French. Its pairs come from a file, so only a trained model knows its vocabulary and its lengths."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..subwords import SubwordTokenizer
from .base import Task


@dataclass(frozen=True)
class TranslationTask(Task):
    """Translate an English sentence into French.

    subwords        the definition of the tokenizer, see ``SubwordTokenizer``.
    max_positions   most tokens of a source, the model's max_len.
    longest_source  most source tokens in training; longest_target likewise, without BOS and EOS.
    """

    name = "en-fr"
    title = "English to French"
    answer = "a translation"
    prompt = "an English sentence of up to ten words or so"
    examples = {  # noqa: RUF012 (a class constant of the task)
        "The cat": "The cat is sleeping on the chair.",
        "A question": "Where did you buy this book?",
        "Not": "I don't know what he wants.",
        "White house": "They live in a small white house.",
        "It": "She lost her key and cannot find it.",
    }

    subwords: str
    max_positions: int
    longest_source: int
    longest_target: int

    @cached_property
    def tokenizer(self) -> SubwordTokenizer:
        return SubwordTokenizer(self.subwords, self.max_positions)

    @property
    def max_source(self) -> int:
        return self.longest_source

    @property
    def max_target(self) -> int:
        return self.longest_target

    def target(self, src: Sequence[int]) -> list[int]:
        """Always raises ValueError: a sentence has many good translations."""
        raise ValueError("a sentence has many good translations, so none is marked as the right one")
