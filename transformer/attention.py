"""Scaled dot-product attention as three pure functions, and the module that gives them heads."""

import math

import torch
from torch import Tensor, nn

from .cache import KVCache
from .dropout import Dropout
from .maps import Linear
from .masks import check_mask
from .positional import rotate
from .trace import AttentionRecord, AttentionSite, Trace


def attention_scores(q: Tensor, k: Tensor, scaled: bool = True) -> Tensor:
    """q k^T / sqrt(d_k), before any mask: (..., T_q, d_k), (..., T_k, d_k) -> (..., T_q, T_k). Paper Eq. 1.

    With scaled = False the division is left out. Raises ValueError when the widths differ.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries of width {q.shape[-1]} cannot be compared with keys of width {k.shape[-1]}")
    dots = q @ k.transpose(-2, -1)
    return dots / math.sqrt(q.shape[-1]) if scaled else dots


def attention_weights(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys that may be attended: (..., T_q, T_k) -> the same shape. Treatise Eq. 1.2.

    Rows sum to 1. A row in which nothing may be attended is all zeros, with zero gradients, where
    -inf would give 0/0. Raises ValueError for a mask that is not boolean or does not fit.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    check_mask(mask, scores.shape)
    # The lowest finite number, not -inf: exp() of it is exactly 0 beside any ordinary score, and a row
    # that holds nothing else stays finite until it is zeroed below.
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    open_rows = mask.any(dim=-1, keepdim=True)
    return weights if bool(open_rows.all()) else weights.masked_fill(~open_rows, 0.0)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """softmax(q k^T / sqrt(d_k)) v: z (..., T_q, d_v) and the weights (..., T_q, T_k). Paper Eq. 1."""
    weights = attention_weights(attention_scores(q, k), mask)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """H heads side by side, then W_O: treatise Eq. 1.5 and 1.6.

    The heads' matrices stand in one: rows h d_k .. (h + 1) d_k of w_q.weight are head h's W_Q, transposed.
    H d_k need not be d_model (paper, Table 3 B).
    """

    def __init__(
        self,
        site: AttentionSite,
        *,
        d_model: int,
        n_heads: int,
        d_head: int,
        bias: bool = True,
        dropout: float = 0.0,
        rotary: bool = False,
        scaled: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.site = site
        self.n_heads = n_heads
        self.rotary = rotary
        self.scaled = scaled
        self.w_q = Linear(d_model, n_heads * d_head, bias=bias)
        self.w_k = Linear(d_model, n_heads * d_head, bias=bias)
        self.w_v = Linear(d_model, n_heads * d_head, bias=bias)
        self.w_o = Linear(n_heads * d_head, d_model, bias=bias)
        self.dropout = Dropout(dropout, generator)

    def forward(
        self,
        x: Tensor,
        source: Tensor,
        mask: Tensor | None = None,
        trace: Trace | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Queries from x (B, T_q, d_model), keys and values from source (B, T_k, d_model) -> (B, T_q, d_model).

        mask fits (B, H, T_q, T_k). With a cache, self-attention attends to the cached positions and
        then to those of source; cross-attention projects source once and keeps it.
        """
        offset = cache.length(self.site) if cache is not None and self.site.kind == "self" else 0
        q = self._split_heads(self.w_q(x))  # (B, H, T_q, d_k)
        if self.rotary:
            q = rotate(q, offset)
        k, v = self._keys_and_values(source, offset, cache)  # (B, H, T_k, d_k)

        scores = attention_scores(q, k, self.scaled)  # (B, H, T_q, T_k)
        weights = attention_weights(scores, mask)
        z = self.dropout(weights) @ v  # (B, H, T_q, d_k)
        if trace is not None:
            trace.attention[self.site] = AttentionRecord(q, k, v, scores, mask, weights, z)
        return self.w_o(z.transpose(1, 2).flatten(2))  # (B, T_q, H d_k) -> (B, T_q, d_model)

    def _keys_and_values(self, source: Tensor, offset: int, cache: KVCache | None) -> tuple[Tensor, Tensor]:
        if cache is not None and self.site.kind == "cross" and self.site in cache:
            return cache[self.site]
        k = self._split_heads(self.w_k(source))
        v = self._split_heads(self.w_v(source))
        if self.rotary:
            k = rotate(k, offset)
        return (k, v) if cache is None else cache.append(self.site, k, v)

    def _split_heads(self, x: Tensor) -> Tensor:
        """(B, T, H d_k) -> (B, H, T, d_k)."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
