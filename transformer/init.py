"""Initial values for every parameter, all drawn from one generator."""

import math

import torch
from torch import nn

from .attention import MultiHeadAttention
from .config import TransformerConfig
from .layers import UnbiasedLayerNorm


@torch.no_grad()
def init_parameters(model: nn.Module, config: TransformerConfig, generator: torch.Generator | None) -> None:
    """Fill every parameter of the model in place, as ``config.init`` and ``config.embedding_init`` say.

    "xavier": U(-a, a) with a = sqrt(6 / (fan_in + fan_out)) (treatise 4.7); "default" is torch's own,
    U(-a, a) with a = 1 / sqrt(fan_in), for weights and biases alike.
    """
    in_attention = {id(m) for a in model.modules() if isinstance(a, MultiHeadAttention) for m in a.children()}
    for module in model.modules():
        if isinstance(module, nn.Linear):
            xavier_attention = config.init == "xavier_attention" and id(module) in in_attention
            _init_linear(module, config.init == "xavier" or xavier_attention, xavier_attention, generator)
        elif isinstance(module, nn.LayerNorm | UnbiasedLayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
    # After the linear maps: a tied output projection is an embedding first.
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            _init_embedding(module, config, generator)


def _init_linear(linear: nn.Linear, xavier: bool, zero_bias: bool, generator: torch.Generator | None) -> None:
    bound = 1 / math.sqrt(linear.in_features)
    if xavier:
        nn.init.xavier_uniform_(linear.weight, generator=generator)
    else:
        nn.init.uniform_(linear.weight, -bound, bound, generator=generator)
    if linear.bias is not None and zero_bias:
        nn.init.zeros_(linear.bias)
    elif linear.bias is not None:
        nn.init.uniform_(linear.bias, -bound, bound, generator=generator)


def _init_embedding(embedding: nn.Embedding, config: TransformerConfig, generator: torch.Generator | None) -> None:
    if config.embedding_init == "xavier":
        nn.init.xavier_uniform_(embedding.weight, generator=generator)
    else:
        std = 1.0 if config.embedding_init == "normal" else 1 / math.sqrt(config.d_model)
        nn.init.normal_(embedding.weight, std=std, generator=generator)
