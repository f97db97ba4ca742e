"""Numbers that sum up attention weights."""

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


def answer_share(weights: Tensor, src: Tensor, tgt_out: Tensor) -> Tensor:
    """How much of its weight each head puts on the source tokens equal to the one about to be written.

    Cross-attention weights (..., T, S), source ids (S,), target ids (T,) -> (...): the mean over those target
    tokens that stand in the source; 0 if none does. 1: the head only ever looks at what is to be copied.
    """
    equal = (tgt_out.unsqueeze(1) == src.unsqueeze(0)).to(weights.dtype)  # (T, S)
    rows = equal.any(dim=1).sum().clamp(min=1)
    return (weights * equal).sum(dim=(-2, -1)) / rows
