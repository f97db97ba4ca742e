"""Other ways to put positions in, and how positions weigh against tokens: tensors in, arrays out."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from transformer import (
    Checkpoint,
    Transformer,
    TransformerConfig,
    added_scores,
    diagonals,
    embedding_rms,
    expected_token_rms,
    rotary_scores,
    rotate,
    sinusoidal_encoding,
)

SHOWN = 40  # positions, if the learned table has as many
SCHEMES = [(init, scale) for init in ("normal", "scaled", "xavier") for scale in (True, False)]


def schemes(learned: Tensor, draw: int) -> dict[str, np.ndarray]:
    """One random query and key at T positions, three ways: sinusoids added, a learned table added, rotary.

    From a learned table (max_len, d), d even; T is SHOWN, or max_len if that is less. added (2, T, d), the two
    tables; turned (T, d), the query as rotary positions turn it; scores (3, T, T); spread (3,), the scores' largest
    spread along a diagonal; alone (2,), that of the tables' own products.
    """
    T, d = min(SHOWN, len(learned)), learned.shape[1]
    q, k = torch.randn(2, d, generator=torch.Generator().manual_seed(draw), dtype=torch.float64)
    tables = torch.stack((sinusoidal_encoding(T, d, torch.float64), learned[:T].double()))
    scores = torch.stack([*(added_scores(q, k, table) for table in tables), rotary_scores(q, k, T)])
    shown = {
        "added": tables,
        "turned": rotate(q.expand(T, -1)),
        "scores": scores,
        "spread": torch.stack([diagonals(matrix)[1].max() for matrix in scores]),
        "alone": torch.stack([diagonals(table @ table.T)[1].max() for table in tables]),
    }
    return {name: tensor.numpy() for name, tensor in shown.items()}


@lru_cache(maxsize=16)
def sizes(width: int, words: int) -> dict[str, np.ndarray]:
    """Root mean squares of fresh embeddings for each of SCHEMES: expected, measured and positions, (6,) each.

    Measured over all words of one embedding of each kind, drawn by the model's own initialisation.
    """
    expected, measured, positions = [], [], []
    for init, scale in SCHEMES:
        config = TransformerConfig(
            src_vocab_size=words,
            tgt_vocab_size=words,
            d_model=width,
            n_heads=1,
            d_ff=1,
            n_encoder_layers=1,
            n_decoder_layers=0,
            embedding_init=init,
            scale_embeddings=scale,
        )
        model = Transformer(config, torch.Generator().manual_seed(0))
        token, position = embedding_rms(model, torch.arange(words).view(-1, min(words, 100)))
        expected.append(expected_token_rms(config))
        measured.append(token)
        positions.append(position)
    return {"expected": np.array(expected), "measured": np.array(measured), "positions": np.array(positions)}


def trained_sizes(checkpoint: Checkpoint) -> tuple[float, float]:
    """Root mean squares of a trained encoder's two summands: over its symbols, and over the positions it was taught."""
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    symbols = torch.arange(tokenizer.eos_id + 1, tokenizer.vocab_size).unsqueeze(1)
    places = torch.zeros(1, taught(checkpoint), dtype=torch.long)
    return embedding_rms(model, symbols)[0], embedding_rms(model, places)[1]


def taught(checkpoint: Checkpoint) -> int:
    """How many source positions its training reached, as far as its file says so: own files may say anything."""
    return min(int(checkpoint.task.max_source), checkpoint.config.max_len)
