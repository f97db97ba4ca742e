"""The leak detector: change one target token and see which positions' logits move."""

import torch
from torch import Tensor

from .decode import evaluating
from .model import Transformer


@torch.no_grad()
def leak(
    model: Transformer,
    memory: Tensor,
    tgt: Tensor,
    token: int,
    tgt_mask: Tensor | None = None,
    src_mask: Tensor | None = None,
) -> Tensor:
    """How far logits move when one target token is replaced: (T, T), row = the changed position.

    Entry (p, t) is the largest change of any logit at position t when ``token`` stands at position p of
    tgt (1, T). memory (1, S, d_model); tgt_mask fits (1, 1, T, T), src_mask (1, 1, 1, S). Under the causal
    mask every entry with t < p is exactly 0: no path leads back (treatise, section 3.1).
    Raises ValueError for more than one target.
    """
    if tgt.ndim != 2 or tgt.shape[0] != 1:
        raise ValueError(f"one target is needed, of shape (1, T); got {tuple(tgt.shape)}")
    T = tgt.shape[1]
    rows = tgt.expand(T, T)
    changed = rows.masked_fill(torch.eye(T, dtype=torch.bool), token)  # row p with the token at position p
    # Both passes have the same shape, so what does not change is computed in the same order, to the last bit.
    before, after = (_logits(model, tokens, memory, tgt_mask, src_mask) for tokens in (rows, changed))
    return (after - before).abs().amax(-1)


def _logits(
    model: Transformer, rows: Tensor, memory: Tensor, tgt_mask: Tensor | None, src_mask: Tensor | None
) -> Tensor:
    with evaluating(model):
        return model.project(model.decode(rows, memory.expand(len(rows), -1, -1), tgt_mask, src_mask))
