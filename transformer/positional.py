"""How order gets in: sinusoids added to embeddings, or rotations of queries and keys."""

import math

import torch
from torch import Tensor


def angular_frequencies(d_model: int) -> Tensor:
    """omega_i = 10000^(-2i / d_model) for i = 0 .. d_model/2 - 1, radians per position, in double: (d_model/2,).

    Raises ValueError when d_model is odd.
    """
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model {d_model} does not split into sine-cosine pairs; it must be even and at least 2")
    return 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)


def wavelengths(d_model: int) -> Tensor:
    """Positions after which each pair is back where it was, 2 pi / omega_i, in double: (d_model/2,).

    From 2 pi to 10000^((d_model - 2) / d_model) times 2 pi. Raises ValueError when d_model is odd.
    """
    return 2 * math.pi / angular_frequencies(d_model)


def sinusoidal_encoding(T: int, d_model: int, dtype: torch.dtype = torch.float32, offset: int = 0) -> Tensor:
    """PE[p, 2i] = sin(p omega_i), PE[p, 2i+1] = cos(p omega_i): (T, d_model), treatise Eq. 2.5 and 2.6.

    The first row is position ``offset``, which may be negative. Computed in double and rounded once:
    angles taken in float32 lose 4e-5 by position 600.
    """
    positions = torch.arange(offset, offset + T, dtype=torch.float64)
    angles = positions.unsqueeze(1) * angular_frequencies(d_model)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1).to(dtype)


def rotation_blocks(k: float | Tensor, d_model: int) -> Tensor:
    """What an offset k does to each pair, in double: (d_model/2, 2, 2), or (..., d_model/2, 2, 2) for many k.

    The matrix of treatise Eq. 2.8, [[cos, sin], [-sin, cos]] of k omega_i. It acts on (sin, cos), and in the
    plane with sin to the right and cos upwards it turns clockwise for positive k.
    """
    angles = torch.as_tensor(k, dtype=torch.float64).unsqueeze(-1) * angular_frequencies(d_model)
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((torch.stack((cos, sin), -1), torch.stack((-sin, cos), -1)), -2)


def rotation(k: float, d_model: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """R_k with R_k PE(p) = PE(p + k) for every p: block-diagonal (d_model, d_model), treatise Eq. 2.8.

    Its blocks are those of ``rotation_blocks``: each pair (sin, cos) is turned by its own angle k omega_i.
    """
    return torch.block_diag(*rotation_blocks(k, d_model)).to(dtype)


def rotate(x: Tensor, offset: int = 0) -> Tensor:
    """Rotary positions: turn each pair (x_2i, x_2i+1) at position p by p omega_i (Su et al. 2021, Eq. 34).

    x is (..., T, d_head), its first row at position ``offset``. Scores of rotated queries and keys
    depend on positions only through their difference.
    """
    T, d_head = x.shape[-2:]
    positions = torch.arange(offset, offset + T, dtype=torch.float64)
    angles = positions.unsqueeze(1) * angular_frequencies(d_head)
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
