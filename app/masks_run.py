"""What the Masks page shows for one batch: sentences and masks in, one pass of the model, arrays out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer import (
    AttentionRecord,
    Task,
    Trace,
    Transformer,
    causal_mask,
    greedy_decode,
    padding_mask,
)

KINDS = {"encoder": ("encoder", "self"), "decoder": ("decoder", "self"), "cross": ("decoder", "cross")}
B = 3  # sentences in the batch
TOP = 3  # candidates for each next token
Flip = tuple[str, int, int, int]  # which mask by its first letter, sentence, query (0 where there is no such axis), key


@dataclass(frozen=True)
class Sentences:
    """A padded batch as the model reads it.

    src (B, S) and tgt (B, T), BOS first, each as wide as at full length, so that the rectangle stays while
    lengths change; lengths count real tokens; written (B, T), the right tokens to be written, PAD beyond.
    """

    src: Tensor
    src_lengths: Tensor
    tgt: Tensor
    tgt_lengths: Tensor
    written: Tensor


@dataclass(frozen=True)
class Masks:
    """True = may attend.

    encoder, cross (B, 1, 1, S); padding (B, 1, 1, T); causal (1, 1, T, T); decoder (B, 1, T, T), their AND.
    """

    encoder: Tensor
    padding: Tensor
    causal: Tensor
    decoder: Tensor
    cross: Tensor


def with_companions(task: Task, own: list[int], draw: int) -> list[list[int]]:
    """The person's own source and two fresh ones: the longest of a draw, and one about half as long."""
    batch = task.batch(32, torch.Generator().manual_seed(draw), held_out=True)
    fresh = [row[:n].tolist() for row, n in zip(batch.src, batch.lengths.tolist(), strict=True) if n]
    longest = max(fresh, key=len)
    others = [row for row in fresh if len(row) not in (len(own), len(longest))] or fresh
    return [own, longest, min(others, key=lambda row: abs(len(row) - len(longest) / 2))]


def answer(model: Transformer, task: Task, src: Sequence[int], limit: int) -> list[int]:
    """The right answer; where a piece of a source has none, what the model itself writes, at most limit tokens."""
    try:
        return task.target(src)
    except ValueError:
        tokens = [int(step.token) for step in greedy_decode(model, torch.tensor([src], dtype=torch.long), limit)]
        return [token for token in tokens if token != task.tokenizer.eos_id]


def sentences(model: Transformer, task: Task, full: list[list[int]], lengths: Sequence[int]) -> Sentences:
    """The batch in which of each source only its first tokens are real."""
    S = max(len(src) for src in full)
    cut = [src[:n] for src, n in zip(full, lengths, strict=True)]
    whole = [answer(model, task, src, task.max_target) for src in full]
    most = max(len(target) for target in whole)
    targets = [
        target if src == all_of_it else answer(model, task, src, max(1, most))[:most]
        for src, all_of_it, target in zip(cut, full, whole, strict=True)
    ]
    pad, bos, eos = task.tokenizer.pad_id, task.tokenizer.bos_id, task.tokenizer.eos_id

    def rows(parts: list[list[int]], width: int) -> Tensor:
        return torch.tensor([[*part, *[pad] * (width - len(part))] for part in parts], dtype=torch.long)

    return Sentences(
        src=rows(cut, S),
        src_lengths=torch.tensor(lengths),
        tgt=rows([[bos, *target] for target in targets], most + 1),
        tgt_lengths=torch.tensor([len(target) + 1 for target in targets]),
        written=rows([[*target, eos] for target in targets], most + 1),
    )


def masks(batch: Sentences, causal: bool, flips: Sequence[Flip] = ()) -> Masks:
    """The masks of a batch; each flip turns one cell of the encoder's, the decoder's or the cross mask."""
    S, T = batch.src.shape[1], batch.tgt.shape[1]
    source, padding = padding_mask(batch.src_lengths, S), padding_mask(batch.tgt_lengths, T)
    before = causal_mask(T) if causal else torch.ones(1, 1, T, T, dtype=torch.bool)
    made = {"encoder": source.clone(), "decoder": padding & before, "cross": source.clone()}
    for which, sentence, query, key in flips:
        mask = next(mask for name, mask in made.items() if name.startswith(which))
        mask[sentence, 0, query, key] ^= True
    return Masks(padding=padding, causal=before, **made)


def run(model: Transformer, batch: Sentences, masks: Masks, trace: Trace | None = None) -> Tensor:
    """Logits (B, T, V) with each of the three masks in its place."""
    with torch.no_grad():
        memory = model.encode(batch.src, masks.encoder, trace)
        return model.project(model.decode(batch.tgt, memory, masks.decoder, masks.cross, trace))


def records(trace: Trace, kind: str) -> list[AttentionRecord]:
    """The records of one kind of attention, layer by layer."""
    stack, which = KINDS[kind]
    return [trace.attention[site] for site in sorted(trace.attention) if (site.stack, site.kind) == (stack, which)]


def attention_arrays(of_kind: list[AttentionRecord], sentence: int) -> dict[str, np.ndarray]:
    """For one sentence scores and weights (L, H, T_q, T_k), and the mask (T_q, T_k) that stood between them."""
    scores = torch.stack([record.scores[sentence] for record in of_kind])
    mask = of_kind[0].mask.expand(-1, -1, *scores.shape[-2:])[sentence, 0]
    weights = torch.stack([record.weights[sentence] for record in of_kind])
    return {"scores": scores.numpy(), "weights": weights.numpy(), "mask": mask.numpy()}


def next_tokens(logits: Tensor) -> dict[str, np.ndarray]:
    """The most probable next tokens at each position of (T, V) logits: ids and probabilities (T, TOP)."""
    probabilities, ids = logits.softmax(-1).topk(TOP, dim=-1)
    return {"next": ids.numpy(), "probability": probabilities.numpy()}
