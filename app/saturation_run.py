"""What the Saturation page shows: random q and k of every width, and the q and k of a model. Tensors in, arrays out."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from app.attention_run import KINDS, records, teacher_forced
from transformer import (
    Task,
    Trace,
    Transformer,
    attention_scores,
    attention_weights,
    expected_entropy,
    expected_largest,
    expected_slope,
    expected_trace,
    head_saturation,
    jacobian_trace,
    median_slope,
    row_entropy,
    sigmoid_slope,
    softmax_jacobian,
    typical_gap,
)

WIDTHS = sorted({round(2 ** (quarter / 4)) for quarter in range(41)})  # 1 to 1,024, four to an octave
KEYS = (2, 4, 8, 16, 32)
LOGITS = 8_192  # dot products measured at each width
BATCHES = 16  # the spread of an average is that of this many averages
BATCH_SIZE, BATCH_SEED = 128, 11
NUMBERS = ("variance", "gap", "entropy", "largest", "trace")
QUANTITIES = (*NUMBERS, "typical", "median", "mean")


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator)


def _uniform(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return (2 * torch.rand(shape, generator=generator) - 1) * math.sqrt(3)


def _sign(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return 2.0 * torch.randint(2, shape, generator=generator) - 1


# All of mean 0 and variance 1.
DISTRIBUTIONS: dict[str, Callable[[tuple[int, ...], torch.Generator], Tensor]] = {
    "normal": _normal,
    "uniform": _uniform,
    "sign": _sign,
}


def one_row(keys: int, distribution: str, draw: int) -> dict[str, np.ndarray]:
    """One query and its keys at every width, each width the first dimensions of the same draw.

    First axis: divided by sqrt(d_k), not divided. scores, weights, column_sums (2, W, n); jacobian (2, W, n, n);
    entropy, trace, entry (2, W), entry being the Jacobian's largest.
    """
    generator = torch.Generator().manual_seed(draw)
    of = DISTRIBUTIONS[distribution]
    q, k = of((1, WIDTHS[-1]), generator).double(), of((keys, WIDTHS[-1]), generator).double()
    scores = torch.stack(
        [torch.cat([attention_scores(q[:, :d], k[:, :d], scaled) for d in WIDTHS]) for scaled in (True, False)]
    )
    weights = attention_weights(scores)
    jacobian = softmax_jacobian(weights)
    shown = {
        "scores": scores,
        "weights": weights,
        "jacobian": jacobian,
        "column_sums": jacobian.sum(dim=-2),
        "entropy": row_entropy(weights),
        "trace": jacobian_trace(weights),
        "entry": jacobian.amax(dim=(-2, -1)),
    }
    return {name: tensor.numpy() for name, tensor in shown.items()}


def measured(keys: int, distribution: str, draw: int) -> np.ndarray:
    """Each quantity over many rows at every width: (quantities, 2, W, 3) as value, low and high.

    For what a row has (the first five) and for the median: the middle 80 % of rows, or of gaps. For the typical
    and the mean gradient: the middle 80 % of 16 batches.
    """
    generator = torch.Generator().manual_seed(1_000_000 + draw)
    of, rows = DISTRIBUTIONS[distribution], LOGITS // keys
    q, k = of((rows, 1, WIDTHS[-1]), generator), of((rows, keys, WIDTHS[-1]), generator)
    found = [
        [_summary(attention_scores(q[..., :d], k[..., :d], scaled)[:, 0].double()) for d in WIDTHS]
        for scaled in (True, False)
    ]
    return torch.stack([torch.stack(each) for each in found]).permute(2, 0, 1, 3).numpy()


def _summary(scores: Tensor) -> Tensor:
    """All quantities of rows of scores (R, n): (quantities, 3)."""
    weights = attention_weights(scores)
    gap = scores[:, 0::2] - scores[:, 1::2]  # pairs that share no key
    slope, batches = sigmoid_slope(gap), gap.unflatten(0, (BATCHES, -1)).flatten(1)
    typical = sigmoid_slope(batches.square().mean(dim=1).sqrt())
    return torch.stack(
        [
            _spread(scores.square().mean(dim=-1)),  # q·k has mean 0
            _spread(2 * scores.var(dim=-1)),  # the mean of (z_i - z_j)^2 over all pairs of the row
            _spread(row_entropy(weights)),
            _spread(weights.amax(dim=-1)),
            _spread(jacobian_trace(weights)),
            _spread(typical, sigmoid_slope(gap.square().mean().sqrt())),
            _spread(slope, slope.median()),
            _spread(sigmoid_slope(batches).mean(dim=1)),
        ]
    )


def _spread(values: Tensor, value: Tensor | None = None) -> Tensor:
    """(3,): the value, by default the mean, and the ends of the middle 80 %."""
    low, high = values.flatten().quantile(torch.tensor([0.1, 0.9], dtype=values.dtype))
    return torch.stack([values.mean() if value is None else value, low, high])


def theory(keys: int) -> np.ndarray:
    """The same quantities from formulas, (quantities, 2, W); all but the first two take the logits as normal."""

    def at(d_k: int, scaled: bool) -> list[float]:
        variance = 1.0 if scaled else float(d_k)
        gap = typical_gap(d_k, scaled)
        return [
            variance,
            gap**2,
            expected_entropy(keys, variance),
            expected_largest(keys, variance),
            expected_trace(keys, variance),
            float(sigmoid_slope(torch.tensor(gap, dtype=torch.float64))),
            median_slope(gap**2),
            expected_slope(gap**2),
        ]

    scaled = [at(1, True)] * len(WIDTHS)  # the same at every width
    return np.array([scaled, [at(d_k, False) for d_k in WIDTHS]]).transpose(2, 0, 1)


def of_sequence(model: Transformer, task: Task, src: list[int]) -> dict[str, np.ndarray]:
    """The numbers of every head for one sequence and its right answer, by kind of attention: (L, H, numbers, 2)."""
    trace, _, _ = teacher_forced(model, task, src)
    return {kind: _by_head(trace, kind, torch.tensor(True)) for kind in KINDS}


@torch.no_grad()
def of_batch(model: Transformer, task: Task) -> dict[str, np.ndarray]:
    """The same over a batch of fresh sequences, queries that are padding left out."""
    batch = task.batch(BATCH_SIZE, torch.Generator().manual_seed(BATCH_SEED), held_out=True)
    trace = Trace()
    model(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask, trace)
    target = (batch.tgt_out != task.tokenizer.pad_id)[:, None, :, None]  # (B, 1, T, 1)
    source = batch.src_mask.transpose(-2, -1)  # (B, 1, S, 1)
    return {kind: _by_head(trace, kind, source if kind == "encoder" else target) for kind in KINDS}


def _by_head(trace: Trace, kind: str, real: Tensor) -> np.ndarray:
    """(L, H, numbers, 2), the last axis with the division by sqrt(d_k) and without; real: queries that count."""
    layers = []
    for record in records(trace, kind):
        mask = real if record.mask is None else record.mask & real
        both = [head_saturation(attention_scores(record.q, record.k, scaled), mask) for scaled in (True, False)]
        layers.append(torch.stack([torch.stack([one[name] for name in NUMBERS], -1) for one in both], -1))
    return torch.stack(layers).numpy()
