"""How a softmax saturates, and what is left of its gradient (treatise 1.2)."""

import math

import torch
from torch import Tensor

from .analysis import row_entropy
from .attention import attention_weights


def softmax_jacobian(weights: Tensor) -> Tensor:
    """ds_i / dz_j = s_i (delta_ij - s_j): weights s (..., n) -> (..., n, n). Treatise Eq. 1.4a.

    Symmetric, and each column sums to 0: what one weight gains the others lose.
    """
    return torch.diag_embed(weights * _complement(weights)) - _off_diagonal(weights)


def jacobian_trace(weights: Tensor) -> Tensor:
    """1 - |s|^2, the trace of the softmax Jacobian: weights s (..., n) -> (...). Treatise Eq. 1.4b.

    1 - 1/n when all keys weigh the same, 0 when one has it all.
    """
    return (weights * _complement(weights)).sum(dim=-1)


def _complement(weights: Tensor) -> Tensor:
    """1 - s_i for each i; that of the largest is the sum of the others, since 1 - s loses all digits as s nears 1."""
    largest = torch.zeros_like(weights, dtype=torch.bool)
    largest.scatter_(-1, weights.argmax(dim=-1, keepdim=True), True)
    others = weights.masked_fill(largest, 0.0).sum(dim=-1, keepdim=True)
    return torch.where(largest, others, 1 - weights)


def _off_diagonal(weights: Tensor) -> Tensor:
    """s_i s_j for i other than j, 0 on the diagonal."""
    same = torch.eye(weights.shape[-1], dtype=torch.bool, device=weights.device)
    return (weights.unsqueeze(-1) * weights.unsqueeze(-2)).masked_fill(same, 0.0)


def sigmoid_slope(gap: Tensor) -> Tensor:
    """sigma'(gap) = sigma(gap) sigma(-gap), of any shape: with two keys, the gradient that a logit gap leaves.

    At most 1/4, and about exp(-|gap|) for a wide gap (treatise 1.2).
    """
    return torch.sigmoid(gap) * torch.sigmoid(-gap)


def typical_gap(d_k: int, scaled: bool = True) -> float:
    """One standard deviation of the gap between two keys' logits: sqrt(2 d_k), or sqrt(2) scaled. Treatise Eq. 1.4c."""
    return math.sqrt(2.0 if scaled else 2.0 * d_k)


def head_saturation(scores: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
    """How spread out a head's logits are and how saturated its rows: (B, H, T_q, T_k) -> five numbers a head, (H,).

    variance   of all scores that may be attended, about their mean.
    gap        mean square of z_i - z_j over all pairs of keys of a row, then over rows.
    entropy    in nats, largest weight and trace of the Jacobian: means over rows.

    Only rows with at least two open keys count, since one key leaves nothing to choose; NaN where there are none.
    """
    everything = torch.ones_like(scores, dtype=torch.bool)
    seen = everything if mask is None else everything & mask
    seen = seen & (seen.sum(dim=-1, keepdim=True) >= 2)
    weights = attention_weights(scores, seen)
    keys = seen.sum(dim=-1)  # (B, H, T_q)
    rows = (keys > 0).sum(dim=(0, 2))  # (H,)

    def over_keys(values: Tensor) -> Tensor:
        return values.masked_fill(~seen, 0.0).sum(dim=-1)

    def over_rows(values: Tensor) -> Tensor:
        return values.masked_fill(keys == 0, 0.0).sum(dim=(0, 2)) / rows

    mean = over_keys(scores).sum(dim=(0, 2)) / keys.sum(dim=(0, 2))
    variance = over_keys((scores - mean[:, None, None]) ** 2).sum(dim=(0, 2)) / keys.sum(dim=(0, 2))
    row_mean = over_keys(scores) / keys.clamp(min=1)
    # Over the pairs of n numbers (z_i - z_j)^2 averages to twice their variance over n - 1.
    gap = 2 * over_keys((scores - row_mean.unsqueeze(-1)) ** 2) / (keys - 1).clamp(min=1)
    return {
        "variance": variance,
        "gap": over_rows(gap),
        "entropy": over_rows(row_entropy(weights)),
        "largest": over_rows(weights.amax(dim=-1)) if scores.shape[-1] else over_rows(gap),
        "trace": over_rows(jacobian_trace(weights)) if scores.shape[-1] else over_rows(gap),
    }
