"""Numbers that sum up attention weights."""

from collections.abc import Sequence

import torch
from torch import Tensor


def row_entropy(weights: Tensor) -> Tensor:
    """Entropy of each row in nats: (..., T_q, T_k) -> (..., T_q). 0 when one key has it all, ln T_k when uniform.

    A row of zeros, in which nothing may be attended, has entropy 0.
    """
    return torch.special.entr(weights).sum(dim=-1)


def head_similarity(weights: Tensor) -> Tensor:
    """How much of their weight each two heads put on the same keys: (N, T_q, T_k) -> (N, N).

    1 minus the total variation distance between their rows, averaged over queries: 1 for equal heads,
    0 for heads that share no key.
    """
    distance = (weights.unsqueeze(0) - weights.unsqueeze(1)).abs().sum(dim=-1) / 2  # (N, N, T_q)
    return 1 - distance.mean(dim=-1)


def join_pieces(weights: Tensor, rows: Sequence[range], columns: Sequence[range]) -> Tensor:
    """Weights between words from weights between their pieces: (..., T_q, T_k) -> (..., words, words).

    rows and columns hold each word's positions. What goes to a word is the sum over its pieces, what comes from
    one the mean over its pieces, so rows still sum to 1 (Clark et al. 2019, section 4.1).
    """
    kept = weights.new_zeros(len(columns), weights.shape[-1])
    for i, places in enumerate(columns):
        kept[i, places.start : places.stop] = 1
    shared = weights.new_zeros(len(rows), weights.shape[-2])
    for i, places in enumerate(rows):
        shared[i, places.start : places.stop] = 1 / len(places)
    return shared @ weights @ kept.T


def with_means(weights: Tensor) -> Tensor:
    """(L, H, ...) -> (L + 1, H + 1, ...): beside the heads of a layer their mean, below the layers the mean of them."""
    of_heads = torch.cat((weights, weights.mean(dim=1, keepdim=True)), dim=1)
    return torch.cat((of_heads, of_heads.mean(dim=0, keepdim=True)))


def answer_share(weights: Tensor, src: Tensor, tgt_out: Tensor) -> Tensor:
    """How much of its weight each head puts on the source tokens equal to the one about to be written.

    Cross-attention weights (..., T, S), source ids (S,), target ids (T,) -> (...): the mean over those target
    tokens that stand in the source; 0 if none does. 1: the head only ever looks at what is to be copied.
    """
    equal = (tgt_out.unsqueeze(1) == src.unsqueeze(0)).to(weights.dtype)  # (T, S)
    rows = equal.any(dim=1).sum().clamp(min=1)
    return (weights * equal).sum(dim=(-2, -1)) / rows
