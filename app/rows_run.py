"""From pieces to the encoder's input: the rows of a source, and how its words came by their pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from transformer import SubwordTokenizer, Tokenizer, Transformer

MOST_SYMBOLS = 40  # of a word whose merges are told


@dataclass(frozen=True)
class Rows:
    """The two summands of Eq. 2.7 for a source of S pieces, and what the encoder was given.

    tokens     (S, d_model), rows of the embedding matrix, scaled as the model does.
    positions  (S, d_model), or None where the model adds none.
    stream     (S, d_model), x_0 as the encoder is given it.
    residual   the largest difference between their sum and x_0.
    """

    tokens: np.ndarray
    positions: np.ndarray | None
    stream: np.ndarray
    residual: float


@torch.no_grad()
def rows(model: Transformer, src: Sequence[int]) -> Rows:
    """The encoder's input for a source, and the two rows of each piece looked up beside it."""
    ids = torch.tensor([src], dtype=torch.int64)
    stream = model.src_embedding(ids, 0, model.positions, None)[0]
    tokens, positions = model.src_embedding.parts(ids, 0, model.positions)
    summed = tokens[0] if positions is None else tokens[0] + positions
    residual = (summed - stream).abs().max().item() if src else 0.0
    return Rows(tokens[0].numpy(), None if positions is None else positions.numpy(), stream.numpy(), residual)


def merging(tokenizer: Tokenizer, src: Sequence[int]) -> list[dict[str, Any]]:
    """How each word of a source came by its pieces, in order; [] where words are not put together by merges.

    Of a word: "first" and "end", its pieces' places in the source; "symbols", how many it began with; "spelled", its
    characters with the number of symbols of each, where one is written in bytes; and "steps", the pieces after each
    merge, [] for a word of more than MOST_SYMBOLS.
    """
    if not isinstance(tokenizer, SubwordTokenizer):
        return []
    pieces, first, found = tokenizer.pieces(src), 0, []
    for stretch in tokenizer.stretches(tokenizer.decode(src)):
        steps = tokenizer.merges(stretch)
        end = first + len(steps[-1].pieces)
        if list(steps[-1].pieces) != pieces[first:end]:
            return []  # these ids are not how the tokenizer writes a text
        spelled = [(character, len(tokenizer.spelled(character))) for character in stretch]
        n_symbols = len(steps[0].pieces)
        found.append(
            {
                "first": first,
                "end": end,
                "symbols": n_symbols,
                "spelled": spelled if any(n > 1 for _, n in spelled) else [],
                "steps": [vars(step) for step in steps] if n_symbols <= MOST_SYMBOLS else [],
            }
        )
        first = end
    return found if first == len(src) else []
