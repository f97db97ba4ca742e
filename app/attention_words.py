"""What the Attention page says beside its pictures."""

import math

import numpy as np
import torch

from app.attention_state import View
from app.models import TRANSLATION, kind_of, measured
from transformer import Checkpoint, Task, Transformer, row_entropy

_SOURCES = {
    "encoder": "the source's own rows",
    "decoder": "the target's own rows",
    "cross": "the memory, the encoder's output",
}


def status(checkpoint: Checkpoint | None, model: Transformer, task: Task, view: View) -> str:
    """Whether the model has learned anything, and how to train it if not."""
    n_parameters = sum(p.numel() for p in model.parameters())
    if checkpoint:
        right, of = (checkpoint.metrics.get(name) for name in ("exact_match", "exact_match_of"))
        if type(right) is int and type(of) is int:
            return f"Trained: {right:,} of {of:,} fresh sequences right. {n_parameters:,} parameters."
        return f"Trained, {measured(checkpoint)}. {n_parameters:,} parameters."
    if kind_of(task) == TRANSLATION:
        return (
            f"Untrained: random weights, {n_parameters:,} parameters. Hours of one core and a file of sentence pairs "
            f"would train it: python -m transformer.translation train PAIRS --d-model {view.d_model} "
            f"--heads {view.heads} --out FOLDER"
        )
    apart = "" if view.d_k is None else f" --d-head {view.d_k}"
    return (
        f"Untrained: random weights, {n_parameters:,} parameters. One to three minutes of one core would train it: "
        f"python -m transformer.train {task.name} --layers 2 --steps 4000 --d-model {view.d_model} "
        f"--heads {view.heads}{apart}"
    )


def whose(own: Checkpoint | None, shown: Checkpoint | None, name: str = "your model") -> str:
    """Whether the model that was chosen is on screen, and where it would be; "" if none is chosen."""
    if own is None:
        return ""
    config = own.config
    sizes = f"d_model {config.d_model}, {config.n_heads} heads, d_k {config.head_width}"
    return f"{name[0].upper()}{name[1:]}. " if shown is own else f"Not {name}, which has {sizes}. "


def shape_of_weights(shape: tuple[int, ...]) -> str:
    """From the shape (L, H, T_q, T_k) of all layers' weights."""
    _, n_heads, n_queries, n_keys = shape
    return f"In each layer (B, H, T_q, T_k) = (1, {n_heads}, {n_queries}, {n_keys}). Row: query, column: key."


def stages(view: View, shape: tuple[int, ...], row: np.ndarray) -> list[str]:
    """One sentence or two for each stage of the slow motion, with its shapes; row (T_k,) holds the query's weights."""
    _, n_heads, n_queries, n_keys = shape
    d_model, d_k, wide = view.d_model, view.head_width, n_heads * view.head_width
    hidden = (
        "Keys after the query are set to −∞ by the causal mask (1, 1, T, T), the same for every head (Eq. 1.2)."
        if view.kind == "decoder"
        else "Nothing is hidden here: one sequence alone has no padding, and every key may be attended."
    )
    return [
        f"W_Q takes (B, T_q, d_model) = (1, {n_queries}, {d_model}) to (1, {n_queries}, H·d_k = {wide}); split into "
        f"heads, the head axis before time: q (1, {n_heads}, {n_queries}, {d_k}). This query is one row, ({d_k},).",
        f"Keys the same way from {_SOURCES[view.kind]}: k (1, {n_heads}, {n_keys}, {d_k}), one row a key.",
        f"One inner product a key: ({n_keys},). For all queries and heads at once q kᵀ is "
        f"(1, {n_heads}, {n_queries}, {n_keys}).",
        f"Divided by √d_k = √{d_k} = {math.sqrt(d_k):.3f}: the scores.",
        hidden,
        f"Softmax over the {n_keys} keys: weights from 0 to 1 that sum to 1. Largest {row.max(initial=0):.3f}, entropy "
        f"{row_entropy(torch.from_numpy(row)):.3f} nats.",
        f"Values, again from {_SOURCES[view.kind]}: v (1, {n_heads}, {n_keys}, {d_k}). Each counts by its weight.",
        f"z = Σ weight · v, ({d_k},). All heads side by side, (1, {n_queries}, {wide}), go through W_O to "
        f"(1, {n_queries}, {d_model}).",
    ]
