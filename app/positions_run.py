"""The sinusoids and their rotations as the Positions page shows them: computed in double, one width at a time."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from app.positions_state import REACH, TABLE
from transformer import (
    angular_frequencies,
    diagonals,
    float32_encoding,
    nearest_positions,
    rotation_blocks,
    sinusoidal_encoding,
    wavelengths,
)

FAR = 600  # positions over which rounding is shown
OFFSETS = torch.arange(-REACH, REACH + 1)


@lru_cache(maxsize=64)
def encoding(d_model: int) -> dict[str, np.ndarray]:
    """What depends on the width alone. P = TABLE positions, K = 2 REACH + 1 offsets, n = d_model / 2 pairs.

    table (P + 2 REACH, d_model), rows from position -REACH on; turns (K, n, 2), the cos and sin of k omega_i;
    determinant (K,), |det R_k - 1|; orthogonality (K,), the largest entry of |R_k^T R_k - I|;
    omega, wavelength (n,); products (P, P), PE(p)·PE(q); mean, spread (2 P - 1,), along its diagonals;
    cosines (2 P - 1,), the sum of cos((p - q) omega_i); square (P,), |PE(p)|^2.
    """
    table = sinusoidal_encoding(TABLE + 2 * REACH, d_model, torch.float64, offset=-REACH)
    blocks = rotation_blocks(OFFSETS, d_model)
    shown = table[REACH : REACH + TABLE]
    products = shown @ shown.T
    mean, spread = diagonals(products)
    omega = angular_frequencies(d_model)
    return _arrays(
        table=table,
        turns=blocks[:, :, 0],
        determinant=(torch.linalg.det(blocks).prod(-1) - 1).abs(),
        orthogonality=(blocks.mT @ blocks - torch.eye(2, dtype=torch.float64)).abs().amax((1, 2, 3)),
        omega=omega,
        wavelength=wavelengths(d_model),
        products=products,
        mean=mean,
        spread=spread,
        cosines=torch.cos(torch.arange(1 - TABLE, TABLE).unsqueeze(1) * omega).sum(1),
        square=shown.square().sum(1),
    )


@lru_cache(maxsize=64)
def nearest(d_model: int) -> tuple[int, int, float]:
    """The two nearest of the positions drawn, and their distance."""
    return nearest_positions(sinusoidal_encoding(TABLE, d_model, torch.float64))


def turned(d_model: int, p: int, k: int) -> dict[str, np.ndarray]:
    """R_k PE(p) beside PE(p + k): for this p and every k, and for this k and every p.

    by_k (K, d_model), by_p (P, d_model): R_k PE(p); apart_k (K,), apart_p (P,): its largest difference from
    PE(p + k), in double.
    """
    table = sinusoidal_encoding(TABLE + 2 * REACH, d_model, torch.float64, offset=-REACH)
    pairs = table.unflatten(1, (-1, 2)).unsqueeze(-1)  # (rows, n, 2, 1)
    by_k = (rotation_blocks(OFFSETS, d_model) @ pairs[REACH + p]).flatten(1)
    by_p = (rotation_blocks(k, d_model) @ pairs[REACH : REACH + TABLE]).flatten(1)
    return _arrays(
        by_k=by_k,
        by_p=by_p,
        apart_k=(by_k - table[p : p + 2 * REACH + 1]).abs().amax(1),
        apart_p=(by_p - table[REACH + k : REACH + k + TABLE]).abs().amax(1),
    )


@lru_cache(maxsize=64)
def rounding(d_model: int, k: int) -> dict[str, np.ndarray]:
    """What arithmetic costs, for positions 0 to FAR - 1: three lines (FAR,), each the largest over dimensions.

    identity: |R_k PE(p) - PE(p + k)| in double; once: the double table rounded to float32; steps: a table with
    every step in float32.
    """
    exact = sinusoidal_encoding(FAR, d_model, torch.float64)
    pairs = exact.unflatten(1, (-1, 2)).unsqueeze(-1)
    moved = (rotation_blocks(k, d_model) @ pairs).flatten(1)
    return _arrays(
        identity=(moved - sinusoidal_encoding(FAR, d_model, torch.float64, offset=k)).abs().amax(1),
        once=(sinusoidal_encoding(FAR, d_model).double() - exact).abs().amax(1),
        steps=(float32_encoding(FAR, d_model).double() - exact).abs().amax(1),
    )


def _arrays(**tensors: Tensor) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}
