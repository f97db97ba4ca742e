"""What breaks on the Masks page: leaks, rows in which nothing may be attended, masks on the query axis."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from app.masks_run import Masks, Sentences, masks, run
from transformer import (
    MASKED_SOFTMAXES,
    AttentionRecord,
    AttentionSite,
    Trace,
    Transformer,
    causal_mask,
    leak,
    padding_mask,
    weights_and_gradients,
)


def leaks(
    model: Transformer, batch: Sentences, masks: Masks, sentence: int, token: int, own: bool
) -> dict[str, np.ndarray]:
    """Leak matrices (n, n) of one sentence's n real target tokens: with the causal mask, without, with own cells."""
    n, one = int(batch.tgt_lengths[sentence]), slice(sentence, sentence + 1)
    with torch.no_grad():
        memory = model.encode(batch.src[one], masks.encoder[one])
    under = {"causal": causal_mask(n), "open": torch.ones(1, 1, n, n, dtype=torch.bool)}
    under |= {"yours": masks.decoder[one, :, :n, :n]} if own else {}
    found = leak(model, memory, batch.tgt[one, :n], token, torch.cat(list(under.values())), masks.cross[one])
    return {f"leak_{name}": matrix.numpy() for name, matrix in zip(under, found, strict=True)}


def empty_rows(record: AttentionRecord, sentence: int, head: int, row: int) -> dict[str, np.ndarray]:
    """One row of real scores with nothing left to attend to, under each masked softmax.

    empty_weights (n, T_k); empty_numbers (n, 4): sum of the weights, |z|, largest gradient of |z|^2 / 2 for
    the scores and for v. NaN where it is NaN.
    """
    scores, v = record.scores[sentence, head, row : row + 1], record.v[sentence, head]
    weights, numbers = [], []
    for softmax in MASKED_SOFTMAXES.values():
        w, z, *gradients = weights_and_gradients(softmax, scores, torch.zeros_like(scores, dtype=torch.bool), v)
        weights.append(w[0])
        numbers.append(torch.stack([w.sum(), z.norm(), *(gradient.abs().amax() for gradient in gradients)]))
    return {"empty_weights": torch.stack(weights).numpy(), "empty_numbers": torch.stack(numbers).numpy()}


def query_axis(model: Transformer, batch: Sentences, logits: Tensor, trace: Trace) -> dict[str, float | None]:
    """What it does to hide padding on the query axis too; logits and trace are those of the usual masks.

    rows, of them hidden; nan_1, nan_2: rows of NaN after the first and the second attention with -inf: a hidden
    row is NaN at once, and 0 times NaN carries it to every row beside it. nan_2 is None for an encoder of one layer.
    change: with our zeros, the largest change of any logit at a real target position.
    """
    keys = padding_mask(batch.src_lengths, batch.src.shape[1])
    both = keys & keys.transpose(-2, -1)
    first, second = (trace.attention.get(AttentionSite("encoder", layer, "self")) for layer in (0, 1))
    minus_infinity = next(iter(MASKED_SOFTMAXES.values()))
    nan_1 = (minus_infinity(first.scores, both) @ first.v).isnan().any(-1).any(1)  # (B, S)
    nan_2 = None
    if second:
        poisoned = second.v.masked_fill(nan_1[:, None, :, None], torch.nan)
        nan_2 = int((second.weights @ poisoned).isnan().any(-1).any(1).sum())
    hidden_twice = run(model, batch, replace(masks(batch, causal=True), encoder=both))
    real = torch.arange(batch.tgt.shape[1]) < batch.tgt_lengths.unsqueeze(1)
    return {
        "rows": nan_1.numel(),
        "hidden": int((~keys).sum()),
        "nan_1": int(nan_1.sum()),
        "nan_2": nan_2,
        "change": float((hidden_twice - logits).abs().amax(-1)[real].max()),
    }
