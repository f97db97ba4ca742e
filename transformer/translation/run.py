"""The training loop over sentence pairs, resumable to the bit."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor, nn

from ..model import Transformer
from ..tasks import Batch
from ..tokenizer import PAD
from ..train import TrainState, TrainStep
from ..train.loss import smoothed_loss
from .batches import Ids, collate, epoch_batches
from .settings import TranslationSettings
from .snapshot import Progress


def train_on_pairs(
    model: Transformer, pairs: Sequence[Ids], settings: TranslationSettings, state: TrainState, progress: Progress
) -> Iterator[TrainStep]:
    """Train in place up to ``settings.steps``, yielding after each step; stop by leaving the loop.

    Given state and progress of an earlier run on the same pairs it goes on as if it had never stopped.
    """
    parameters = list(model.parameters())
    while state.step < settings.steps:
        batches = epoch_batches(pairs, settings.batch_tokens, settings.seed, progress.epoch)
        for batch in islice(batches, progress.batch, None):
            if state.step == settings.steps:
                return
            started = time.process_time()
            model.train()
            loss = batch_loss(model, collate(batch), settings.label_smoothing, settings.bfloat16)
            state.optimizer.zero_grad()
            loss.backward()
            grad_norm = nn.utils.clip_grad_norm_(parameters, settings.clip)
            rate = settings.learning_rate(state.step + 1)
            for group in state.optimizer.param_groups:
                group["lr"] = rate
            state.optimizer.step()
            state.step += 1
            progress.batch += 1
            progress.loss_sum += loss.item()
            progress.losses += 1
            progress.minutes += (time.process_time() - started) / 60
            yield TrainStep(state.step, loss.item(), rate, grad_norm.item())
        progress.epoch, progress.batch = progress.epoch + 1, 0


def batch_loss(model: Transformer, batch: Batch, smoothing: float, bfloat16: bool = False) -> Tensor:
    """Smoothed cross-entropy of one batch, a mean over its target tokens. Padding is not projected at all."""
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
        memory = model.encode(batch.src, batch.src_mask)
        states = model.decode(batch.tgt_in, memory, batch.tgt_mask, batch.src_mask)
        real = batch.tgt_out != PAD
        return smoothed_loss(model.project(states[real]), batch.tgt_out[real], smoothing)


@torch.no_grad()
def mean_loss(model: Transformer, pairs: Sequence[Ids], batch_tokens: int) -> float:
    """Cross-entropy per target token of pairs not trained on: no dropout, no smoothing, full precision."""
    model.eval()
    total, n_tokens = 0.0, 0
    for batch in map(collate, epoch_batches(pairs, batch_tokens, 0, 0)):
        n = int((batch.tgt_out != PAD).sum())
        total += batch_loss(model, batch, 0.0).item() * n
        n_tokens += n
    return total / n_tokens
