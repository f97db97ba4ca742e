"""Training: the loop, its settings and, in ``__main__``, the command."""

from .loop import TrainState, TrainStep, exact_match, sequence_loss, teacher_forced_loss, train
from .settings import AdamSettings, TrainSettings

__all__ = [
    "AdamSettings",
    "TrainSettings",
    "TrainState",
    "TrainStep",
    "exact_match",
    "sequence_loss",
    "teacher_forced_loss",
    "train",
]
