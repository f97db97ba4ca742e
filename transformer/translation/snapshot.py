"""A training run, and the files it is kept in."""

import csv
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from ..checkpoint import load_training, save_checkpoint
from ..config import TransformerConfig
from ..model import Transformer
from ..tasks import TranslationTask
from ..train import TrainState
from .settings import TranslationSettings


@dataclass
class Progress:
    """Where a run is in its data, and what it has seen: with weights and TrainState all that resuming needs.

    epoch, batch      the batch to come.
    loss_sum, losses  of the steps since the last line of the log.
    minutes           processor time in the training steps so far.
    log               a line for every ``TranslationSettings.every`` steps: column to number.
    """

    epoch: int = 0
    batch: int = 0
    loss_sum: float = 0.0
    losses: int = 0
    minutes: float = 0.0
    log: list[dict[str, float]] = field(default_factory=list)


@dataclass
class Run:
    """All that a run holds. pairs: a digest of the training pairs; attribution: whose sentences they are."""

    model: Transformer
    task: TranslationTask
    settings: TranslationSettings
    state: TrainState
    progress: Progress
    pairs: str
    attribution: str

    @classmethod
    def new(
        cls,
        config: TransformerConfig,
        task: TranslationTask,
        settings: TranslationSettings,
        pairs: str,
        attribution: str,
    ) -> "Run":
        model = Transformer(config, torch.Generator().manual_seed(settings.seed))
        return cls(model, task, settings, TrainState(model, settings), Progress(), pairs, attribution)

    def facts(self) -> dict[str, Any]:
        """What is written into a file's header beside config and task."""
        return {
            "settings": asdict(self.settings),
            "steps_done": self.state.step,
            "progress": asdict(self.progress),
            "pairs": self.pairs,
            "attribution": self.attribution,
        }


def save_snapshot(run: Run, folder: Path) -> Path:
    """Write step-NNNNNN.safetensors and log.csv. A kill in between leaves no half a file."""
    path = folder / f"step-{run.state.step:06}.safetensors"
    unfinished = path.with_suffix(".part")
    save_checkpoint(unfinished, run.model, run.task, training=run.facts(), state=run.state)
    os.replace(unfinished, path)
    if run.progress.log:
        with (folder / "log.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(run.progress.log[0]))
            table.writeheader()
            table.writerows(run.progress.log)
    return path


def load_snapshot(path: Path) -> Run:
    """Read a run back. Raises ValueError for a file that holds none."""
    checkpoint, settings, state = load_training(path, TranslationSettings)
    facts = checkpoint.training
    try:
        progress = Progress(**facts["progress"])
        return Run(checkpoint.model, checkpoint.task, settings, state, progress, facts["pairs"], facts["attribution"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"the training state in {path} is damaged: {error}") from error


def cooled_down(run: Run, steps: int, lr: float | None = None) -> Run:
    """The same run, to end after so many more steps, over which the learning rate falls to 0, from lr or its own.

    Given lr, a run that has cooled down already is warmed up again. Raises ValueError for such a run without.
    """
    settings = run.settings
    first = settings.steps - settings.cooldown
    if lr is None and settings.cooldown and run.state.step > first:
        raise ValueError(
            f"at step {run.state.step:,} the learning rate is falling already; a cooldown starts from a snapshot "
            f"of step {first:,} or before, or from a rate of its own"
        )
    changed = replace(settings, steps=run.state.step + steps, cooldown=steps, lr=settings.lr if lr is None else lr)
    return replace(run, settings=changed)
