"""Teacher-forced training, one step at a time, resumable to the bit."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..decode import evaluating, greedy_decode
from ..model import Transformer
from ..tasks import GeneratedTask
from ..tokenizer import BOS, PAD
from .distributed import Share
from .loss import smoothed_loss
from .settings import AdamSettings, TrainSettings


@dataclass(frozen=True)
class TrainStep:
    """What one step did. loss is in nats per target token, before the step; grad_norm before clipping."""

    step: int
    loss: float
    learning_rate: float
    grad_norm: float


class TrainState:
    """What a run must remember between steps besides the weights: Adam's moments, the generator, the step count.

    The model's own generator supplies data and dropout, so one state continues all randomness.
    Raises ValueError for a model built without a generator.
    """

    def __init__(self, model: Transformer, settings: AdamSettings) -> None:
        if model.generator is None:
            raise ValueError(
                "training must be repeatable: build the model with a generator, Transformer(config, generator)"
            )
        self.step = 0
        self.generator = model.generator
        self.names = [name for name, _ in model.named_parameters()]
        self.optimizer = torch.optim.Adam(
            model.parameters(), lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True
        )

    def tensors(self) -> dict[str, Tensor]:
        """Everything as named tensors, for saving."""
        saved = {"generator": self.generator.get_state()}
        for i, moments in self.optimizer.state_dict()["state"].items():
            for key, value in moments.items():
                saved[f"{key}/{self.names[i]}"] = value
        return saved

    def load(self, tensors: dict[str, Tensor], step: int) -> None:
        """Take up where ``tensors()`` was saved, after that many steps."""
        state: dict[int, dict[str, Tensor]] = {}
        for i, name in enumerate(self.names):
            state[i] = {
                key: tensors[f"{key}/{name}"] for key in ("step", "exp_avg", "exp_avg_sq") if f"{key}/{name}" in tensors
            }
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.generator.set_state(tensors["generator"])
        self.step = step


def sequence_loss(
    logits: Tensor, tgt_out: Tensor, label_smoothing: float = 0.0, n_tokens: Tensor | None = None
) -> Tensor:
    """Mean cross-entropy in nats over target tokens other than PAD: (B, T, V), (B, T) -> (); 0 if there are none.

    n_tokens  to divide by, where these rows are only a part of the batch.
    """
    real = tgt_out != PAD
    if label_smoothing and real.any():
        total = smoothed_loss(logits[real], tgt_out[real], label_smoothing) * real.sum()
    else:
        total = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD, reduction="sum")
    return total / (real.sum() if n_tokens is None else n_tokens).clamp(min=1)


def train(
    model: Transformer, task: GeneratedTask, settings: TrainSettings, state: TrainState | None = None
) -> Iterator[TrainStep]:
    """Train in place up to ``settings.steps``, yielding after each step; stop by leaving the loop.

    Given the state of an earlier run it goes on from there, as if it had never stopped. In a process group each
    process trains on its share of every batch, and all take the same step.
    """
    state = TrainState(model, settings) if state is None else state
    share = Share.here(settings.batch_size)
    shared_model, parameters = share.wrapped(model), list(model.parameters())
    model.train()
    while state.step < settings.steps:
        step = state.step + 1
        whole = task.batch(settings.batch_size, state.generator)
        batch, n_tokens = share.rows(whole), (whole.tgt_out != PAD).sum()
        src_mask = batch.src_mask if settings.padding else None
        tgt_mask = batch.tgt_mask if settings.causal else None
        logits = shared_model(batch.src, batch.tgt_in, src_mask, tgt_mask)
        loss = sequence_loss(logits, batch.tgt_out, settings.label_smoothing, n_tokens)
        state.optimizer.zero_grad()
        (loss * share.world).backward()  # the gradients' mean over the processes is then that of the whole batch
        grad_norm = nn.utils.clip_grad_norm_(parameters, settings.clip)
        rate = settings.learning_rate(step, model.config.d_model)
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        state.optimizer.step()
        state.step = step
        yield TrainStep(step, share.summed(loss.detach()).item(), rate, grad_norm.item())


def exact_match(
    model: Transformer, task: GeneratedTask, n: int, generator: torch.Generator, *, padding: bool = True
) -> int:
    """How many of n fresh sequences are decoded greedily without one wrong token, EOS included.

    They come from the held-out tenth where the task has one. padding = False decodes without the padding mask.
    """
    batch = task.batch(n, generator, held_out=True)
    src_mask = batch.src_mask if padding else None
    steps = greedy_decode(model, batch.src, batch.tgt_out.shape[1], src_mask=src_mask)
    decoded = torch.stack([step.token for step in steps], dim=1)  # (B, T'), PAD after EOS
    missing = batch.tgt_out.shape[1] - decoded.shape[1]
    decoded = F.pad(decoded, (0, missing), value=PAD)
    return int((decoded == batch.tgt_out).all(dim=1).sum())


def teacher_forced_loss(
    model: Transformer,
    task: GeneratedTask,
    n: int,
    generator: torch.Generator,
    causal: bool = True,
    *,
    padding: bool = True,
    dropout: bool = False,
    start: int = BOS,
) -> float:
    """The loss on the n fresh sequences that ``exact_match`` draws from such a generator, each right answer being read.

    To see what each is for, it can go without the causal or the padding mask, with dropout left on, or with another
    token than BOS at the start.
    """
    batch = task.batch(n, generator, held_out=True)
    src_mask, tgt_mask = batch.src_mask if padding else None, batch.tgt_mask if causal else None
    tgt_in = batch.tgt_in.clone()
    tgt_in[:, 0] = start
    with evaluating(model, dropout=dropout), torch.no_grad():
        logits = model(batch.src, tgt_in, src_mask, tgt_mask)
    return sequence_loss(logits, batch.tgt_out).item()
