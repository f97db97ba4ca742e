"""What the Attention page shows for one choice of model, sequence, head and query: tensors in, one block out."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer import (
    AttentionRecord,
    Task,
    Trace,
    Transformer,
    attention_weights,
    causal_mask,
    head_similarity,
    join_pieces,
    row_entropy,
    with_means,
)

KINDS = {"encoder": ("encoder", "self"), "decoder": ("decoder", "self"), "cross": ("decoder", "cross")}


@dataclass(frozen=True)
class WhatIf:
    """A change to the picked head's formula, computed beside the true weights and used nowhere else."""

    scaled: bool = True
    masked: bool = True
    temperature: float = 1.0

    @property
    def changes(self) -> bool:
        return not (self.scaled and self.masked and self.temperature == 1.0)

    def weights(self, record: AttentionRecord) -> Tensor:
        """softmax of the scores with the change: (B, H, T_q, T_k)."""
        scores = record.scores if self.scaled else record.scores * record.q.shape[-1] ** 0.5
        return attention_weights(scores / self.temperature, record.mask if self.masked else None)


def right_answer(task: Task, src: list[int]) -> list[int]:
    """A source's target; of a source without one, nothing."""
    try:
        return task.target(src)
    except ValueError:
        return []


def teacher_forced(
    model: Transformer, task: Task, src: list[int], answer: list[int] | None = None
) -> tuple[Trace, list[int], list[int]]:
    """One pass over a source and an answer: the trace, the target tokens read and those to be written.

    The decoder reads the right answer, or the one that is given, so that its rows mean the same whatever model is
    shown; without any it has only BOS to read.
    """
    tokenizer = task.tokenizer
    if answer is None:
        answer = right_answer(task, src)
    read, written = [tokenizer.bos_id, *answer], [*answer, tokenizer.eos_id]
    trace = Trace()
    with torch.no_grad():
        model(torch.tensor([src], dtype=torch.long), torch.tensor([read]), None, causal_mask(len(read)), trace)
    return trace, read, written


def records(trace: Trace, kind: str) -> list[AttentionRecord]:
    """The records of one kind of attention, layer by layer."""
    stack, which = KINDS[kind]
    sites = [site for site in trace.attention if (site.stack, site.kind) == (stack, which)]
    return [trace.attention[site] for site in sorted(sites)]


def in_words(shown: dict[str, np.ndarray], rows: list[range], columns: list[range]) -> dict[str, np.ndarray]:
    """Weights of the picture between words: word-weights (L, H, words, words) and word-changed (1, 1, words, words)."""
    return {
        f"word-{name}": join_pieces(torch.from_numpy(shown[name]), rows, columns).numpy()
        for name in ("weights", "changed")
    }


def line_weights(weights: np.ndarray, layer: int, head: int, mean: str) -> np.ndarray:
    """What is drawn as lines, (T_q, T_k) of (L, H, T_q, T_k): a head's weights or a mean, of its layer's or of all."""
    means = with_means(torch.from_numpy(weights))
    place = {"head": (layer, head), "layer": (layer, -1), "all": (-1, -1)}[mean]
    return means[place].numpy()


def arrays(of_kind: list[AttentionRecord], layer: int, head: int, what_if: WhatIf) -> dict[str, np.ndarray]:
    """All layers' weights with their sums, and all of the picked head, batch axis dropped.

    weights (L, H, T_q, T_k); entropy, maximum (L, H), means over queries; alike (L H, L H);
    q (T_q, d_k), k and v (T_k, d_k), dots (T_q, T_k) = q k^T, scores = dots / sqrt(d_k), z (T_q, d_k);
    changed (1, 1, T_q, T_k), the what-if's weights.
    """
    weights = torch.cat([record.weights for record in of_kind])
    picked = of_kind[layer]
    some = weights.shape[-1] > 0
    shown = {
        "weights": weights,
        "entropy": row_entropy(weights).mean(-1),
        "maximum": weights.amax(-1).mean(-1) if some else torch.zeros(weights.shape[:2]),
        "alike": head_similarity(weights.flatten(0, 1))[None, None],
        "q": picked.q[0, head],
        "k": picked.k[0, head],
        "v": picked.v[0, head],
        "dots": picked.q[0, head] @ picked.k[0, head].T,
        "scores": picked.scores[0, head],
        "z": picked.z[0, head],
        "changed": what_if.weights(picked)[:, head : head + 1],
    }
    # Means over no query at all, for an empty source, are shown as 0.
    return {name: tensor.nan_to_num(0.0).numpy() for name, tensor in shown.items()}
