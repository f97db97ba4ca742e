"""The leak detector: change one target token and see which positions' logits move."""

import torch
from torch import Tensor

from .decode import evaluating
from .model import Transformer


@torch.no_grad()
def leak(
    model: Transformer, memory: Tensor, tgt: Tensor, token: int, tgt_masks: Tensor, src_mask: Tensor | None = None
) -> Tensor:
    """How far logits move when one target token is replaced, under each of M masks: (M, T, T).

    Entry (m, p, t) is the largest change of any logit at position t when ``token`` stands at position p of
    tgt (1, T). memory (1, S, d_model); tgt_masks (M, 1, T, T); src_mask (1, 1, 1, S). Under the causal mask
    every entry with t < p is exactly 0: no path leads back (treatise, section 3.1).
    Raises ValueError for more than one target, or for masks of another shape.
    """
    T = tgt.shape[-1]
    if tgt.ndim != 2 or tgt.shape[0] != 1:
        raise ValueError(f"one target is needed, of shape (1, T); got {tuple(tgt.shape)}")
    if tgt_masks.ndim != 4 or tgt_masks.shape[1:] != (1, T, T):
        raise ValueError(f"masks of shape {tuple(tgt_masks.shape)} do not fit a target of {T} tokens: (M, 1, {T}, {T})")
    M = len(tgt_masks)
    rows = tgt.expand(T, T)
    changed = rows.masked_fill(torch.eye(T, dtype=torch.bool), token)  # row p with the token at position p
    memory, tgt_masks = memory.expand(M * T, -1, -1), tgt_masks.repeat_interleave(T, dim=0)
    with evaluating(model):
        # Both passes have the same shape, so that what does not change is computed alike to the last bit.
        before, after = (
            model.project(model.decode(tokens.repeat(M, 1), memory, tgt_masks, src_mask)) for tokens in (rows, changed)
        )
    return (after - before).abs().amax(-1).unflatten(0, (M, T))
