"""Who may attend to whom. Masks are boolean and True means: may attend. Combine them with ``&``."""

import torch
from torch import Tensor


def causal_mask(T: int, *, device: torch.device | None = None) -> Tensor:
    """Each position may attend to itself and to earlier ones: (1, 1, T, T), treatise Eq. 3.1."""
    return torch.ones(T, T, dtype=torch.bool, device=device).tril().view(1, 1, T, T)


def padding_mask(lengths: Tensor, T: int) -> Tensor:
    """Every query may attend to the real tokens only: (B, 1, 1, T) from lengths (B,).

    Only keys are masked. A padded query keeps its real keys, so its row stays a distribution.
    Raises ValueError when a length is negative or longer than T.
    """
    if lengths.ndim != 1:
        raise ValueError(f"lengths must have one axis, (B,); got shape {tuple(lengths.shape)}")
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= T:
        raise ValueError(
            f"lengths run from {int(lengths.min())} to {int(lengths.max())}; they must lie between 0 and T = {T}"
        )
    positions = torch.arange(T, device=lengths.device)
    return (positions < lengths.unsqueeze(1)).view(lengths.shape[0], 1, 1, T)


def check_mask(mask: Tensor, scores_shape: torch.Size) -> None:
    """Refuse a mask that is not boolean or does not fit scores of this shape axis by axis.

    Each axis of the mask is 1 or that of the scores. Fewer axes are refused although torch would
    broadcast them: a (B, T_k) mask silently lands on (T_q, T_k) when B = T_q.
    Raises ValueError naming the dtype or both shapes.
    """
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask must be boolean, True = may attend; got {mask.dtype}")
    fits = mask.ndim == len(scores_shape) and all(m in (1, s) for m, s in zip(mask.shape, scores_shape, strict=True))
    if not fits:
        raise ValueError(f"a mask of shape {tuple(mask.shape)} does not fit scores of shape {tuple(scores_shape)}")
