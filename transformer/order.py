"""What can be measured of positions: how they compare, what they weigh, what is left without them."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from .attention import attention_scores
from .config import TransformerConfig
from .model import Transformer
from .positional import rotate


def diagonals(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and spread (largest minus smallest) along each diagonal of (N, N): two of (2N - 1,).

    Entry N - 1 + d belongs to the cells whose row minus column is d. A matrix that depends on that difference
    only, a Toeplitz matrix, has spread 0. Raises ValueError for a matrix that is not square.
    """
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"diagonals are those of a square matrix; got shape {tuple(matrix.shape)}")
    n = matrix.shape[0]
    lines = [matrix.diagonal(-d) for d in range(1 - n, n)]
    return torch.stack([line.mean() for line in lines]), torch.stack([line.max() - line.min() for line in lines])


def nearest_positions(table: Tensor) -> tuple[int, int, float]:
    """The two rows of (T, d_model) that are nearest to one another, T at least 2, and their Euclidean distance.

    Of pairs that differ by less than 1e-9, which is rounding, the first one.
    """
    # Without matrix products, which would take the difference of two large squares.
    distances = torch.cdist(table, table, compute_mode="donot_use_mm_for_euclid_dist")
    distances = distances.masked_fill(~torch.ones_like(distances, dtype=torch.bool).triu(1), math.inf)
    p, q = (distances <= distances.min() + 1e-9).nonzero()[0].tolist()
    return p, q, distances[p, q].item()


def float32_encoding(T: int, d_model: int) -> Tensor:
    """The sinusoids with every step in float32, frequencies and angles too, as listings have it: (T, d_model).

    ``sinusoidal_encoding`` rounds once, at the end; compare them to see what is lost (treatise 4.1).
    """
    frequencies = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    angles = torch.arange(T).float().unsqueeze(1) * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def added_scores(q: Tensor, k: Tensor, table: Tensor) -> Tensor:
    """Scores of one query and one key (d,) put at all positions by adding a table (T, d): (T, T).

    q·k + q·PE(r) + PE(p)·k + PE(p)·PE(r), over sqrt(d): the terms in the middle depend on p and r apart.
    """
    return attention_scores(q + table, k + table)


def rotary_scores(q: Tensor, k: Tensor, T: int) -> Tensor:
    """Scores of one query and one key (d,) put at T positions by turning them: (T, T), free of all but p - r."""
    return attention_scores(rotate(q.expand(T, -1)), rotate(k.expand(T, -1)))


def without_positions(model: Transformer) -> Transformer:
    """A model with the same weights and no positions of any kind, in eval mode; it shares no tensor with the first."""
    bare = Transformer(replace(model.config, positional="none"), torch.Generator())
    bare.load_state_dict({name: w for name, w in model.state_dict().items() if ".position." not in name})
    return bare.eval()


@torch.no_grad()
def permuted_outputs(model: Transformer, src: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """The encoder's outputs for ids (S,), reordered; and its outputs for the reordered ids: two of (S, d_model).

    P f(X) and f(P X) of document 001: without positions they are equal (equivariance), row for row.
    """
    return model.encode(src.unsqueeze(0))[0, order], model.encode(src[order].unsqueeze(0))[0]


@torch.no_grad()
def embedding_rms(model: Transformer, ids: Tensor) -> tuple[float, float]:
    """Root mean square of the two summands of treatise Eq. 2.7, as the encoder adds them for ids (B, T).

    The scaled embeddings first, then the positions; 0 where the model adds none.
    """
    tokens, positions = model.src_embedding.parts(ids, 0, model.positions)
    return _rms(tokens), 0.0 if positions is None else _rms(positions)


def expected_token_rms(config: TransformerConfig) -> float:
    """What the scaled embeddings' root mean square is expected to be before training (document 001, Embeddings)."""
    deviation = {
        "normal": 1.0,
        "scaled": config.d_model**-0.5,
        "xavier": math.sqrt(2 / (config.src_vocab_size + config.d_model)),
    }[config.embedding_init]
    return deviation * (math.sqrt(config.d_model) if config.scale_embeddings else 1.0)


def _rms(x: Tensor) -> float:
    return x.square().mean(dtype=torch.float64).sqrt().item()
