"""What a training in a folder is to do, and where the folder keeps what."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..config import TransformerConfig
from ..tasks import TASKS, GeneratedTask
from .settings import TrainSettings

PLAN, STATE, COMMAND, LOCK = "plan.json", "state.json", "command", "lock"
STEPS, FRAMES = "steps.f32", "frames.f32"
SNAPSHOT, MODEL, KEPT = "snapshot.safetensors", "model.safetensors", "kept"
FRAMES_OF_A_RUN, KEPT_OF_A_RUN = 150, 15


@dataclass(frozen=True)
class Plan:
    """A training: the task by name, the model, how it is trained, the seed of all draws, and the example watched.

    src and target are the example's ids, without BOS and EOS. Raises ValueError for what cannot be.
    """

    task: str
    config: TransformerConfig
    settings: TrainSettings
    seed: int
    src: list[int]
    target: list[int]

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"there is no task {self.task!r}; there are {', '.join(TASKS)}")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed is {self.seed}; it must be at least 0 and less than 2^31")

    def made_task(self) -> GeneratedTask:
        return TASKS[self.task]()

    @property
    def frame_every(self) -> int:
        """Steps from one frame to the next."""
        return max(1, round(self.settings.steps / FRAMES_OF_A_RUN))

    def has_frame(self, step: int) -> bool:
        return step % self.frame_every == 0 or step == self.settings.steps

    def is_measured(self, step: int) -> bool:
        """Whether the frame of this step also has an exact match."""
        return step % (5 * self.frame_every) == 0 or step == self.settings.steps

    def is_kept(self, step: int) -> bool:
        """Whether the weights of this step are kept."""
        every = self.frame_every * (FRAMES_OF_A_RUN // KEPT_OF_A_RUN)
        return step % every == 0 and step != self.settings.steps

    def write(self, folder: Path) -> None:
        put(folder / PLAN, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: Path) -> "Plan":
        saved = json.loads((folder / PLAN).read_text(encoding="utf-8"))
        betas = tuple(saved["settings"]["betas"])
        settings = TrainSettings(**{**saved["settings"], "betas": betas})
        return cls(**{**saved, "config": TransformerConfig(**saved["config"]), "settings": settings})


def put(path: Path, contents: bytes) -> None:
    """Write a file so that no reader and no kill ever sees half of it."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(contents)
    os.replace(unfinished, path)


def read_state(folder: Path) -> dict[str, Any]:
    """What the worker last said of itself, {} before its first word: name, step, said and, when it is done, metrics.

    name is "running", "paused", "stopped", "finished" or "failed".
    """
    try:
        return json.loads((folder / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
