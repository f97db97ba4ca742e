"""How a translator is trained."""

from dataclasses import dataclass

from ..train import AdamSettings


@dataclass(frozen=True, kw_only=True)
class TranslationSettings(AdamSettings):
    """Adam with a rate that warms up, stays, and falls in a straight line to 0 over the last ``cooldown`` steps.

    While it stays no end is in sight, so a run can be as long as there is time for; most of what can be gained
    comes in the cooldown, which can start from any snapshot.

    max_words        longer English sentences are left out.
    batch_tokens     most tokens of a batch on either side, padding included.
    label_smoothing  share of the target's probability that goes to all words alike (paper, 5.4).
    bfloat16         compute matrix products in 16 bits.
    seed             of the weights, the order of batches, and dropout.
    every            steps between two snapshots, each with a line of the log.

    Raises ValueError for a value that cannot be.
    """

    steps: int = 20_000
    lr: float = 2e-3
    warmup: int = 500
    cooldown: int = 7_500
    max_words: int = 10
    batch_tokens: int = 2_048
    label_smoothing: float = 0.1
    bfloat16: bool = False
    seed: int = 0
    every: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_at_least_1("max_words", "batch_tokens", "every")
        if not 0 <= self.cooldown <= self.steps:
            raise ValueError(f"cooldown is {self.cooldown}; it must lie between 0 and steps = {self.steps}")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed is {self.seed}; it must be at least 0 and less than 2^31")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing is {self.label_smoothing}; it must be at least 0 and less than 1")

    def learning_rate(self, step: int) -> float:
        """The rate of a step; steps count from 1."""
        return self.lr * min(step / self.warmup, 1.0, (self.steps + 1 - step) / (self.cooldown + 1))
