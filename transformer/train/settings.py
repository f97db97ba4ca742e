"""How a run is trained."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class AdamSettings:
    """Adam (Kingma and Ba 2015) with a warmed-up learning rate and clipped gradients.

    clip  largest norm of all gradients together.
    """

    steps: int
    lr: float
    warmup: int
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    clip: float = 1.0

    def __post_init__(self) -> None:
        self._need_at_least_1("steps", "warmup")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are {', '.join(map(str, self.betas))}; each must be at least 0 and less than 1")
        for name in ("lr", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be more than 0")

    def _need_at_least_1(self, *names: str) -> None:
        for name in names:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(frozen=True, kw_only=True)
class TrainSettings(AdamSettings):
    """How to train on a task that makes its own pairs.

    schedule  "linear": up to ``lr`` over ``warmup`` steps, then straight to 0 at ``steps``.
              "inverse_sqrt": lr d_model^-0.5 min(step^-0.5, step warmup^-1.5), paper Eq. 3 when lr is 1.
    causal    train with the causal mask; False lets the decoder see the tokens that it is to predict.
    padding   train with the source's padding mask; False lets every query attend to padding.
    label_smoothing  share of the target's probability that goes to all symbols alike, PAD apart (paper, 5.4).
    """

    steps: int = 450
    batch_size: int = 32
    lr: float = 7e-3
    schedule: Literal["linear", "inverse_sqrt"] = "linear"
    warmup: int = 50
    betas: tuple[float, float] = (0.8, 0.95)
    causal: bool = True
    padding: bool = True
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_at_least_1("batch_size")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing is {self.label_smoothing}; it must be at least 0 and less than 1")

    def learning_rate(self, step: int, d_model: int) -> float:
        """The rate of a step; steps count from 1."""
        if self.schedule == "inverse_sqrt":
            return self.lr * d_model**-0.5 * min(step**-0.5, step * self.warmup**-1.5)
        rest = (self.steps + 1 - step) / max(self.steps + 1 - self.warmup, 1)
        return self.lr * min(step / self.warmup, rest, 1.0)
