"""The order experiment of the Positions page: the same tokens in another order, with and without positions."""

from functools import lru_cache

import numpy as np
import torch

from transformer import Transformer, permuted_outputs, without_positions


@lru_cache(maxsize=16)
def bare(model: Transformer) -> Transformer:
    """The same weights with the positions left out. Both are shared and only read."""
    return without_positions(model)


def reordered(model: Transformer, src: list[int], order: list[int]) -> dict[str, np.ndarray]:
    """For a model without its positions (index 0) and with them (1) both ways round, S tokens.

    outputs (2, S, d_model), the encoder's outputs put into the new order; again (2, S, d_model), its outputs for
    the tokens in the new order; apart (2,), the largest difference between the two.
    """
    ids, places = torch.tensor(src, dtype=torch.long), torch.tensor(order, dtype=torch.long)
    pairs = [permuted_outputs(which, ids, places) for which in (bare(model), model)]
    outputs, again = (torch.stack(of_both) for of_both in zip(*pairs, strict=True))
    apart = (outputs - again).abs().flatten(1)
    most = apart.amax(1) if apart.numel() else torch.zeros(2)
    return {"outputs": outputs.numpy(), "again": again.numpy(), "apart": most.numpy()}
