"""Small models whose sizes differ and do not divide one another, so that axes mixed up do not fit."""

import torch
from torch import Tensor

from transformer import Transformer, TransformerConfig

B, S, T = 2, 7, 5
LENGTHS = torch.tensor([7, 3])

SIZES = {
    "src_vocab_size": 17, "tgt_vocab_size": 19, "d_model": 14, "n_heads": 3, "d_head": 5, "d_ff": 23,
    "n_encoder_layers": 2, "n_decoder_layers": 3, "max_len": 13,
}  # fmt: skip

# Every choice a config offers that changes the forward pass.
CHOICES = {
    "as the paper": {},
    "pre-LN": {"norm": "pre"},
    "pre-LN without a final norm": {"norm": "pre", "final_norm": False},
    "post-LN with a final norm": {"final_norm": True},
    "GELU": {"activation": "gelu"},
    "SiLU": {"activation": "silu"},
    "no biases": {"bias": False},
    "no biases in attention": {"attention_bias": False},
    "no biases in the feed-forward network": {"ffn_bias": False},
    "biases in attention only": {"bias": False, "attention_bias": True},
    "learned positions": {"positional": "learned"},
    "rotary positions": {"positional": "rotary", "d_head": 4},
    "no positions": {"positional": "none"},
    "embeddings not scaled": {"scale_embeddings": False},
    "one matrix for all words": {"tie_embeddings": True, "src_vocab_size": 19},
    "scores not divided": {"scale_scores": False},
    "no residual connections": {"residual": False},
    "pre-LN, no residual connections": {"norm": "pre", "residual": False},
    "no feed-forward networks": {"ffn": False},
    "large eps": {"norm_eps": 0.1},
    "unbiased norm, large eps": {"layer_norm": "unbiased", "norm_eps": 0.1},
    "log-probabilities": {"output": "log_probs"},
    "d_head from d_model": {"d_model": 12, "d_head": None},
    "one wide head": {"n_heads": 1, "d_head": 17},
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_config(**changes) -> TransformerConfig:
    return TransformerConfig(**(SIZES | changes))


def small_model(seed: int = 0, **changes) -> Transformer:
    """A model in eval mode in which every parameter matters."""
    return unsettle(Transformer(small_config(**changes), seeded(seed)).eval())


@torch.no_grad()
def unsettle(model: Transformer) -> Transformer:
    """Move gains away from 1 and shifts away from 0, where a forgotten one would not show."""
    for p in model.parameters():
        if p.ndim == 1:
            p.add_(0.3 * torch.randn(p.shape, generator=model.generator))
    return model


def sources(rows: int = B, length: int = S, seed: int = 1) -> Tensor:
    return torch.randint(0, SIZES["src_vocab_size"], (rows, length), generator=seeded(seed))


def targets(rows: int = B, length: int = T, seed: int = 2) -> Tensor:
    return torch.randint(0, SIZES["tgt_vocab_size"], (rows, length), generator=seeded(seed))
