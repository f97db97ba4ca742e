"""What is written down while a model trains: a row of numbers a step, and every few steps a frame.

Both are files of float32 rows of one length each, so they are appended to, cut and read without being understood.
"""

from array import array
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from ..analysis import answer_share
from ..config import TransformerConfig
from ..masks import causal_mask
from ..model import Transformer
from ..tokenizer import BOS, EOS
from ..trace import AttentionSite, Trace
from .loop import TrainStep, exact_match
from .plan import FRAMES, STEPS, Plan

STEP_COLUMNS = ("step", "loss", "learning_rate", "grad_norm", "seconds")
FRESH = 64  # sequences of one exact match on the way
FRESH_SEED = 1_000_003  # they come from another stream than a run's own
KINDS = {"encoder": ("encoder", "self"), "decoder": ("decoder", "self"), "cross": ("decoder", "cross")}


def frame_layout(plan: Plan) -> dict[str, tuple[int, ...]]:
    """Name to shape of all that stands in a frame, in its order.

    step, exact  how many of FRESH fresh sequences were right, -1 where that was not measured.
    gradients    (G,), the norm of each part's gradient before clipping, see ``parts``.
    encoder, decoder, cross   attention weights of the example: (L, H, T_q, T_k).
    focus_...    (L, H), the largest weight of a row, mean over rows.
    answer       (L, H), of cross-attention, see ``answer_share``.
    """
    config, S, T = plan.config, len(plan.src), len(plan.target) + 1
    encoder = (config.n_encoder_layers, config.n_heads)
    decoder = (config.n_decoder_layers, config.n_heads)
    return {
        "step": (1,),
        "exact": (1,),
        "gradients": (len(parts(plan.config)),),
        "encoder": (*encoder, S, S),
        "decoder": (*decoder, T, T),
        "cross": (*decoder, T, S),
        "focus_encoder": encoder,
        "focus_decoder": decoder,
        "focus_cross": decoder,
        "answer": decoder,
    }


def frame_width(plan: Plan) -> int:
    return sum(map(prod, frame_layout(plan).values()))


def parts(config: TransformerConfig) -> dict[str, tuple[str, ...]]:
    """The model's parts in the order of the forward pass, each with what its parameters' names start with."""
    return {
        "source embedding": ("src_embedding.",),
        **{f"encoder {i + 1}": (f"encoder.{i}.",) for i in range(config.n_encoder_layers)},
        "target embedding": ("tgt_embedding.",),
        **{f"decoder {i + 1}": (f"decoder.{i}.",) for i in range(config.n_decoder_layers)},
        "output and last norms": ("output.", "encoder_norm.", "decoder_norm."),
    }


@torch.no_grad()
def gradient_norms(model: Transformer, last: TrainStep | None, clip: float) -> Tensor:
    """Norm of each part's gradient as it was before clipping: (G,); zeros before the first step."""
    groups = list(parts(model.config).values())
    if last is None:
        return torch.zeros(len(groups))
    clipped = min(1.0, clip / (last.grad_norm + 1e-6))  # as clip_grad_norm_ scales
    squares = torch.zeros(len(groups))
    for name, parameter in model.named_parameters():
        part = next(i for i, starts in enumerate(groups) if name.startswith(starts))
        squares[part] += parameter.grad.square().sum()
    return squares.sqrt() / clipped


@torch.no_grad()
def example_attention(model: Transformer, src: list[int], target: list[int]) -> dict[str, Tensor]:
    """Weights of every head for one example, teacher-forced and without dropout: kind -> (L, H, T_q, T_k)."""
    trace, training = Trace(), model.training
    model.eval()
    read = torch.tensor([[BOS, *target]])
    model(torch.tensor([src]), read, None, causal_mask(read.shape[1]), trace)
    model.train(training)
    layers = {"encoder": model.config.n_encoder_layers, "decoder": model.config.n_decoder_layers}
    return {
        name: torch.cat([trace.attention[AttentionSite(stack, i, kind)].weights for i in range(layers[stack])])
        for name, (stack, kind) in KINDS.items()
    }


def frame(plan: Plan, model: Transformer, last: TrainStep | None) -> Tensor:
    """One frame as one row, after a step (None: before the first one)."""
    step = 0 if last is None else last.step
    right = -1
    if plan.is_measured(step):
        draw = torch.Generator().manual_seed(FRESH_SEED + plan.seed + step)
        right = exact_match(model, plan.made_task(), FRESH, draw)
    weights = example_attention(model, plan.src, plan.target)
    src, written = torch.tensor(plan.src), torch.tensor([*plan.target, EOS])
    values = {
        "step": torch.tensor([float(step)]),
        "exact": torch.tensor([float(right)]),
        "gradients": gradient_norms(model, last, plan.settings.clip),
        **weights,
        **{f"focus_{name}": w.amax(dim=-1).mean(dim=-1) for name, w in weights.items()},
        "answer": answer_share(weights["cross"], src, written),
    }
    return torch.cat([values[name].flatten() for name in frame_layout(plan)])


class Rows:
    """A file of float32 rows of one length, the first number of each being its step."""

    def __init__(self, path: Path, width: int) -> None:
        self.path, self.width = path, width

    def append(self, row: Tensor) -> None:
        with self.path.open("ab") as file:
            file.write(row.to(torch.float32).numpy().tobytes())

    def count(self) -> int:
        """Whole rows; the kill of a writer may leave a part of one."""
        return self.path.stat().st_size // (4 * self.width) if self.path.exists() else 0

    def read(self, first: int = 0) -> bytes:
        """Whole rows from one on."""
        n = self.count()
        if first >= n:
            return b""
        with self.path.open("rb") as file:
            file.seek(4 * self.width * first)
            return file.read(4 * self.width * (n - first))

    def cut(self, step: int) -> None:
        """Forget what comes after a step."""
        steps = array("f", self.read())[:: self.width]
        with self.path.open("ab") as file:
            file.truncate(4 * self.width * sum(each <= step for each in steps))


def step_rows(folder: Path) -> Rows:
    return Rows(folder / STEPS, len(STEP_COLUMNS))


def frame_rows(folder: Path, plan: Plan) -> Rows:
    return Rows(folder / FRAMES, frame_width(plan))
