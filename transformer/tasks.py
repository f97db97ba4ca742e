"""Tasks to learn: where batches come from and what the right answer is."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from .masks import causal_mask, padding_mask
from .tokenizer import BOS, EOS, PAD, SymbolTokenizer


@dataclass(frozen=True)
class Batch:
    """Padded sources and the two shifted rows of teacher forcing (document 001, Training).

    src (B, S); lengths (B,), real source tokens; tgt_in (B, T), BOS and then the target; tgt_out (B, T),
    the target and then EOS; src_mask (B, 1, 1, S); tgt_mask (1, 1, T, T), causal. Target padding stands
    at the end, where causality hides it, and the loss leaves it out.
    """

    src: Tensor
    lengths: Tensor
    tgt_in: Tensor
    tgt_out: Tensor

    @property
    def src_mask(self) -> Tensor:
        return padding_mask(self.lengths, self.src.shape[1])

    @property
    def tgt_mask(self) -> Tensor:
        return causal_mask(self.tgt_in.shape[1])


@dataclass(frozen=True)
class ReversalTask:
    """Write a sequence of symbols backwards (document 001). Symbols have ids 3, 4, ... and are written so.

    The decoder at step t needs source position L - 1 - t, so the cross-attention must find the length L.
    """

    n_symbols: int = 9
    min_len: int = 0
    max_len: int = 8
    name: str = field(default="reverse", init=False)

    def __post_init__(self) -> None:
        if not (self.n_symbols >= 1 and 0 <= self.min_len <= self.max_len and self.max_len >= 1):
            raise ValueError(
                f"a reversal task of {self.n_symbols} symbols and lengths {self.min_len} to {self.max_len} cannot be: "
                "it needs at least one symbol and 0 <= min_len <= max_len"
            )

    @property
    def tokenizer(self) -> SymbolTokenizer:
        return SymbolTokenizer(tuple(str(i) for i in range(EOS + 1, EOS + 1 + self.n_symbols)))

    def target(self, src: list[int]) -> list[int]:
        """The right answer for one source, without BOS and EOS."""
        return src[::-1]

    def batch(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Fresh random sequences, lengths uniform from min_len to max_len; S = max_len, T = max_len + 1."""
        first = EOS + 1
        lengths = torch.randint(self.min_len, self.max_len + 1, (batch_size,), generator=generator)
        symbols = torch.randint(first, first + self.n_symbols, (batch_size, self.max_len), generator=generator)
        position = torch.arange(self.max_len)
        real = position < lengths.unsqueeze(1)  # (B, S)
        src = symbols.where(real, PAD)
        backwards = (lengths.unsqueeze(1) - 1 - position).clamp(min=0)
        target = symbols.gather(1, backwards).where(real, PAD)
        row = torch.full((batch_size, 1), PAD)
        tgt_in = torch.cat((torch.full_like(row, BOS), target), dim=1)
        tgt_out = torch.cat((target, row), dim=1).scatter(1, lengths.unsqueeze(1), EOS)
        return Batch(src, lengths, tgt_in, tgt_out)


TASKS = {"reverse": ReversalTask}
