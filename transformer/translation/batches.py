"""Batches of about the same number of tokens, of sentences of about the same length."""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch

from ..subwords import SubwordTokenizer
from ..tasks import Batch
from ..tasks.base import padded
from .pairs import Sentence

Ids = tuple[list[int], list[int]]  # source and target of one pair, without BOS and EOS


def encode_pairs(sentences: Iterable[Sentence], tokenizer: SubwordTokenizer, longest: int) -> list[Ids]:
    """One pair of ids for each translation; those with a side of more than ``longest`` tokens are left out."""
    tokenizer = replace(tokenizer, max_tokens=sys.maxsize)  # too long here is no error
    pairs = (
        (source, tokenizer.encode(french))
        for sentence in sentences
        for source in [tokenizer.encode(sentence.english)]
        for french in sentence.french
    )
    return [pair for pair in pairs if max(map(len, pair)) <= longest]


def digest(pairs: Iterable[Ids]) -> str:
    """A name for these pairs in this order: other pairs have another."""
    total = hashlib.sha256()
    for pair in pairs:
        total.update(repr(pair).encode())
    return total.hexdigest()[:16]


def epoch_batches(pairs: Sequence[Ids], budget: int, seed: int, epoch: int) -> Iterator[list[Ids]]:
    """Every pair once, in batches of at most ``budget`` tokens a side, in an order that seed and epoch decide.

    Padding counts, and BOS or EOS does: rows times the longest source, and rows times one more than the longest
    target, are within the budget. Raises ValueError for a pair that is over it by itself.
    """
    order = torch.Generator().manual_seed((seed << 32) + epoch)
    shuffled = torch.randperm(len(pairs), generator=order).tolist()
    # A stable sort: pairs of equal lengths stay shuffled, so batches differ from epoch to epoch.
    shuffled.sort(key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    batches = list(_cut(pairs, shuffled, budget))
    for b in torch.randperm(len(batches), generator=order).tolist():
        yield [pairs[i] for i in batches[b]]


def _cut(pairs: Sequence[Ids], order: Sequence[int], budget: int) -> Iterator[list[int]]:
    batch: list[int] = []
    widest = 0
    for i in order:
        width = max(len(pairs[i][0]), len(pairs[i][1]) + 1)
        if width > budget:
            raise ValueError(f"a pair of {width} tokens does not fit into batches of {budget} tokens")
        widest = max(widest, width)
        if (len(batch) + 1) * widest > budget:
            yield batch
            batch, widest = [], width
        batch.append(i)
    if batch:
        yield batch


def collate(pairs: Sequence[Ids]) -> Batch:
    """Pairs of ids as one padded batch for teacher forcing."""
    sources, targets = zip(*pairs, strict=True)
    return Batch.of(*padded(sources), *padded(targets))
