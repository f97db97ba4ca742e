"""What a forward pass leaves behind when asked to: an argument of the call, never state on a module."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

Stack = Literal["encoder", "decoder"]
AttentionKind = Literal["self", "cross"]


@dataclass(frozen=True, order=True)
class AttentionSite:
    """One attention sublayer of the model; layers count from 0."""

    stack: Stack
    layer: int
    kind: AttentionKind


@dataclass(frozen=True)
class AttentionRecord:
    """The tensors of one attention sublayer, the very ones that made its output.

    q (B, H, T_q, d_k); k, v (B, H, T_k, d_k), after rotary positions where the model has them;
    scores (B, H, T_q, T_k), q k^T / sqrt(d_k) before the mask; mask, boolean, True = may attend, or None;
    weights (B, H, T_q, T_k), before dropout; z (B, H, T_q, d_k), each head's output before W_O.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor
    mask: Tensor | None
    weights: Tensor
    z: Tensor


@dataclass(frozen=True, order=True)
class ResidualSite:
    """A place on the residual stream: after the embedding (layer 0), a sublayer or the final norm (last layer)."""

    stack: Stack
    layer: int
    after: Literal["embedding", "self", "cross", "ffn", "norm"]


@dataclass
class Trace:
    """Collects one pass. With a KV cache use one Trace per step: a later record at a site replaces the earlier.

    attention  by AttentionSite, in the order in which the sites ran.
    residual   by ResidualSite, (B, T, d_model): the stream after each sublayer (with post-LN: after its norm).
    """

    attention: dict[AttentionSite, AttentionRecord] = field(default_factory=dict)
    residual: dict[ResidualSite, Tensor] = field(default_factory=dict)
