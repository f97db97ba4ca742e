"""Two models trained alike, one with the causal mask and one without: what each has learned."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
import torch

from app.masks_run import answer
from app.models import shipped
from transformer import (
    AttentionSite,
    Checkpoint,
    Task,
    Trace,
    causal_mask,
    exact_match,
    greedy_decode,
    teacher_forced_loss,
)
from transformer.train.__main__ import FRESH_SEED
from transformer.zoo import checkpoint_name

FRESH = 256  # sequences measured on the spot


@st.cache_data(show_spinner=False, max_entries=200)
def two_models(task: str, src: tuple[int, ...], draw: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the page says of the model trained with the causal mask and of the one trained without, and arrays."""
    said, arrays = {"fresh": FRESH}, {}
    causal, leaky = shipped(checkpoint_name(task, 64, 4)), shipped(checkpoint_name(task, 64, 4, causal=False))
    right = answer(causal.model, leaky.task, src, leaky.task.max_target)
    for name, checkpoint in {"causal": causal, "open": leaky}.items():
        tokens, numbers = on_one(checkpoint, leaky.task, src, right)
        words = {which: leaky.task.tokenizer.labels(ids) for which, ids in tokens.items()}
        said[name] = {**_fresh(task, name, draw), **words, "trained": checkpoint.metrics}
        arrays |= {f"{name}_{which}": array for which, array in numbers.items()}
    return said, arrays


@st.cache_data(show_spinner=False, max_entries=200)
def _fresh(task: str, name: str, draw: int) -> dict[str, float]:
    leaky = shipped(checkpoint_name(task, 64, 4, causal=False))
    return measured(leaky if name == "open" else shipped(checkpoint_name(task, 64, 4)), leaky.task, draw)


def measured(checkpoint: Checkpoint, task: Task, draw: int) -> dict[str, float]:
    """On FRESH sequences of task: the teacher-forced loss with and without the causal mask, and the exact match."""

    def fresh() -> torch.Generator:
        return torch.Generator().manual_seed(FRESH_SEED + draw)

    return {
        "loss_causal": teacher_forced_loss(checkpoint.model, task, FRESH, fresh(), True),
        "loss_open": teacher_forced_loss(checkpoint.model, task, FRESH, fresh(), False),
        "exact": exact_match(checkpoint.model, task, FRESH, fresh()),
    }


def on_one(
    checkpoint: Checkpoint, task: Task, src: Sequence[int], right: list[int]
) -> tuple[dict[str, list[int]], dict[str, np.ndarray]]:
    """One source, as trained and as used: ids of what the model reads, should write and writes; the attention.

    forced: its most probable token at each position while it reads the right answer under the mask that it was
    trained with; greedy: what it writes by itself. Arrays: the decoder's self-attention while reading,
    weights (L, H, T, T), and ahead (L, H), the mean weight on the next token, which the causal mask would hide.
    """
    model, tokenizer = checkpoint.model, task.tokenizer
    n, limit = len(right) + 1, max(len(right), task.max_target) + 1
    read = [tokenizer.bos_id, *right, *[tokenizer.pad_id] * (limit - n)]  # as wide as in training
    source, trace = torch.tensor([list(src)], dtype=torch.long), Trace()
    with torch.no_grad():
        mask = causal_mask(limit) if is_causal(checkpoint) else None
        logits = model(source, torch.tensor([read]), None, mask, trace)
    greedy = [int(step.token) for step in greedy_decode(model, source, limit)]
    n_layers = checkpoint.config.n_decoder_layers
    weights = torch.cat([trace.attention[AttentionSite("decoder", i, "self")].weights for i in range(n_layers)])
    ahead = weights.diagonal(1, -2, -1)[..., :n].mean(-1) if limit > 1 else torch.zeros(weights.shape[:2])
    tokens = {
        "read": read,
        "right": [*right, tokenizer.eos_id],
        "forced": logits[0, :n].argmax(-1).tolist(),
        "greedy": greedy,
    }
    return tokens, {"weights": weights.numpy(), "ahead": ahead.numpy()}


def is_causal(checkpoint: Checkpoint) -> bool:
    """Whether it was trained with the causal mask, as far as its file says so: own files may say anything."""
    settings = checkpoint.training.get("settings")
    return not isinstance(settings, dict) or settings.get("causal") is not False
