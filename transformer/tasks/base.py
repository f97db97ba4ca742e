"""What a task is: where batches come from and what the right answer is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..masks import causal_mask, padding_mask
from ..tokenizer import BOS, EOS, PAD, Tokenizer


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

    @classmethod
    def of(cls, src: Tensor, lengths: Tensor, target: Tensor, target_lengths: Tensor) -> "Batch":
        """From sources and targets (B, L) padded with PAD, without BOS and EOS."""
        row = torch.full((target.shape[0], 1), PAD)
        tgt_in = torch.cat((torch.full_like(row, BOS), target), dim=1)
        tgt_out = torch.cat((target, row), dim=1).scatter(1, target_lengths.unsqueeze(1), EOS)
        return cls(src, lengths, tgt_in, tgt_out)

    @property
    def src_mask(self) -> Tensor:
        return padding_mask(self.lengths, self.src.shape[1])

    @property
    def tgt_mask(self) -> Tensor:
        return causal_mask(self.tgt_in.shape[1])


class Task(ABC):
    """What a model was trained for: sources and targets over one vocabulary.

    name     as on the command line and in file names.
    title    a word or two for a person.
    answer   what the target is to the source, as it fits after "✓" and before "is ...".
    prompt   how a source is written.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    answer: ClassVar[str]

    @property
    @abstractmethod
    def prompt(self) -> str: ...

    @property
    @abstractmethod
    def examples(self) -> Mapping[str, str]:
        """Sources worth a look, by a short name; the first one is shown first."""

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer: ...

    @property
    @abstractmethod
    def max_source(self) -> int:
        """Most source tokens in training."""

    @property
    @abstractmethod
    def max_target(self) -> int:
        """Most target tokens in training, BOS and EOS not counted."""

    @abstractmethod
    def target(self, src: Sequence[int]) -> list[int]:
        """The right answer for one source, without BOS and EOS.

        Raises ValueError for no source of this task, and where there is no single right answer.
        """


class GeneratedTask(Task):
    """A task that makes its own pairs, as many as one likes, and knows the answer to each."""

    @abstractmethod
    def batch(self, batch_size: int, generator: torch.Generator, held_out: bool = False) -> Batch:
        """Random pairs. Where the pairs can be counted, a tenth is held out of training for measuring."""


class EnumeratedTask(GeneratedTask):
    """A task whose pairs can be counted: pair i is made from the number i."""

    @property
    @abstractmethod
    def n_pairs(self) -> int: ...

    @abstractmethod
    def pair(self, i: int) -> tuple[list[int], list[int]]:
        """Source and target ids of pair i, 0 <= i < n_pairs."""

    def batch(self, batch_size: int, generator: torch.Generator, held_out: bool = False) -> Batch:
        drawn = torch.empty(0, dtype=torch.long)
        while drawn.numel() < batch_size:
            fresh = torch.randint(self.n_pairs, (2 * batch_size,), generator=generator)
            drawn = torch.cat((drawn, fresh[is_held_out(fresh) == held_out]))
        sources, targets = zip(*(self.pair(i) for i in drawn[:batch_size].tolist()), strict=True)
        return Batch.of(*padded(sources), *padded(targets))


def is_held_out(i: Tensor) -> Tensor:
    """Whether a pair belongs to the tenth that training never sees; scattered evenly by a multiplicative hash."""
    return (i * 2_654_435_761 % 2**32) * 10 // 2**32 == 0


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """(B, longest) filled up with PAD, and the lengths (B,)."""
    tensors = [torch.tensor(row, dtype=torch.long) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=PAD), torch.tensor([len(row) for row in rows])
