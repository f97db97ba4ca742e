"""Byte pair encoding of one word, merge after merge (Sennrich et al. 2016)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class MergeStep:
    """A word after one merge: its pieces, which of them is the new one, and the merge's rank, 0 for the first learned.

    Before the first merge rank and at are None.
    """

    pieces: tuple[str, ...]
    rank: int | None = None
    at: int | None = None


def merge_steps(symbols: Sequence[str], ranks: Mapping[tuple[str, str], int]) -> list[MergeStep]:
    """From single symbols to the pieces of a word, one step a merge; the last step has the pieces that remain.

    ranks  the pairs that became pieces in training, by the order in which they did.

    Of all neighbours that ever became one, those whose merge was learned first are merged next, the leftmost where
    there are several; it ends where no neighbours ever did.
    """
    pieces = tuple(symbols)
    steps = [MergeStep(pieces)]
    while known := [(ranks[pair], i) for i, pair in enumerate(pairwise(pieces)) if pair in ranks]:
        rank, at = min(known)
        pieces = (*pieces[:at], pieces[at] + pieces[at + 1], *pieces[at + 2 :])
        steps.append(MergeStep(pieces, rank, at))
    return steps
