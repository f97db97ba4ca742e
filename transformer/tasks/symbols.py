"""Sequences of symbols: reversed, copied, sorted."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..tokenizer import EOS, PAD, SymbolTokenizer
from .base import Batch, GeneratedTask


@dataclass(frozen=True)
class SymbolTask(GeneratedTask):
    """Random sequences of symbols, their lengths uniform from min_len to max_len.

    Symbols have ids 3, 4, ... and are written as these numbers. Raises ValueError for sizes that cannot be.
    """

    n_symbols: int = 9
    min_len: int = 0
    max_len: int = 8

    def __post_init__(self) -> None:
        if not (self.n_symbols >= 1 and 0 <= self.min_len <= self.max_len and self.max_len >= 1):
            raise ValueError(
                f"a task of {self.n_symbols} symbols and lengths {self.min_len} to {self.max_len} cannot be: "
                "it needs at least one symbol and 0 <= min_len <= max_len"
            )

    @property
    def tokenizer(self) -> SymbolTokenizer:
        return SymbolTokenizer(tuple(str(i) for i in range(EOS + 1, EOS + 1 + self.n_symbols)))

    @property
    def prompt(self) -> str:
        symbols = self.tokenizer.symbols
        return f"symbols {symbols[0]} to {symbols[-1]}, spaces between"

    @property
    def examples(self) -> dict[str, str]:
        symbols = self.tokenizer.symbols

        def pick(*places: int) -> str:
            return " ".join(symbols[place % self.n_symbols] for place in places[: self.max_len])

        return {
            "Mixed": pick(0, 8, 4, 1, 2, 3),
            "Repeats": pick(2, 2, 5, 2, 5),
            "Longest": pick(*range(self.max_len)),
            "One symbol": pick(4),
            "Nothing": "",
        }

    @property
    def max_source(self) -> int:
        return self.max_len

    @property
    def max_target(self) -> int:
        return self.max_len

    def batch(self, batch_size: int, generator: torch.Generator, held_out: bool = False) -> Batch:
        """Fresh random sequences, S = max_len and T = max_len + 1; there are too many to hold any out."""
        first = EOS + 1
        lengths = torch.randint(self.min_len, self.max_len + 1, (batch_size,), generator=generator)
        symbols = torch.randint(first, first + self.n_symbols, (batch_size, self.max_len), generator=generator)
        real = torch.arange(self.max_len) < lengths.unsqueeze(1)  # (B, S)
        src = symbols.where(real, PAD)
        return Batch.of(src, lengths, self._arrange(src, lengths).where(real, PAD), lengths)

    @abstractmethod
    def _arrange(self, src: Tensor, lengths: Tensor) -> Tensor:
        """Targets (B, S) of sources (B, S); what stands beyond the lengths does not matter."""


@dataclass(frozen=True)
class ReversalTask(SymbolTask):
    """Write the sequence backwards (document 001).

    The decoder at step t needs source position L - 1 - t, so the cross-attention must find the length L.
    """

    name = "reverse"
    title = "Reverse"
    answer = "the source backwards"

    def target(self, src: Sequence[int]) -> list[int]:
        return list(src)[::-1]

    def _arrange(self, src: Tensor, lengths: Tensor) -> Tensor:
        backwards = lengths.unsqueeze(1) - 1 - torch.arange(src.shape[1])
        return src.gather(1, backwards.clamp(min=0))


@dataclass(frozen=True)
class CopyTask(SymbolTask):
    """Write the sequence again: position t looks at position t."""

    name = "copy"
    title = "Copy"
    answer = "the source"

    def target(self, src: Sequence[int]) -> list[int]:
        return list(src)

    def _arrange(self, src: Tensor, lengths: Tensor) -> Tensor:
        return src


@dataclass(frozen=True)
class SortTask(SymbolTask):
    """Write the symbols in ascending order: where to look depends on all of them."""

    name = "sort"
    title = "Sort"
    answer = "the source in order"

    def target(self, src: Sequence[int]) -> list[int]:
        return sorted(src)

    def _arrange(self, src: Tensor, lengths: Tensor) -> Tensor:
        beyond = EOS + 1 + self.n_symbols  # sorts behind every symbol
        return src.masked_fill(src == PAD, beyond).sort(dim=1).values
