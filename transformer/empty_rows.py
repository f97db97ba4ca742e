"""Other ways to mask a softmax. They agree with ours, except in a row in which nothing may be attended."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from .attention import attention_weights


def softmax_of_minus_infinity(scores: Tensor, mask: Tensor) -> Tensor:
    """Masked scores become -inf, as treatise Eq. 1.2 is written: an empty row is 0/0 = NaN."""
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def softmax_of_minus_1e9(scores: Tensor, mask: Tensor) -> Tensor:
    """Masked scores become -1e9: in an empty row all are equal again, and the weights uniform over what is hidden."""
    return scores.masked_fill(~mask, -1e9).softmax(dim=-1)


def softmax_then_nan_to_zero(scores: Tensor, mask: Tensor) -> Tensor:
    """-inf is added and NaN repaired afterwards: an empty row is zeros, but its gradient still passes 0/0."""
    bias = torch.zeros_like(scores).masked_fill(~mask, -math.inf)
    return (scores + bias).softmax(dim=-1).nan_to_num(0.0)


# The last one is the project's own.
MASKED_SOFTMAXES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "−∞, then softmax": softmax_of_minus_infinity,
    "−1e9, then softmax": softmax_of_minus_1e9,
    "−∞, softmax, NaN to 0": softmax_then_nan_to_zero,
    "ours": attention_weights,
}


def weights_and_gradients(
    softmax: Callable[[Tensor, Tensor], Tensor], scores: Tensor, mask: Tensor, v: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weights, z = weights v, and the gradients of |z|^2 / 2 for scores and v, under one masked softmax.

    scores and mask (..., T_q, T_k), v (..., T_k, d_v) -> (..., T_q, T_k), (..., T_q, d_v), and shapes as given.
    """
    with torch.enable_grad():
        leaves = scores.detach().clone().requires_grad_(), v.detach().clone().requires_grad_()
        weights = softmax(leaves[0], mask)
        z = weights @ leaves[1]
        gradients = torch.autograd.grad(z.square().sum() / 2, leaves)
    return weights.detach(), z.detach(), *gradients
