"""One training in a process of its own: ``python -m transformer.train.worker FOLDER``.

The folder holds all that is needed to begin, and to go on after any kill: see ``plan`` for what stands where. A file
named "command" holding "pause" or "stop" is obeyed after the step that is under way. When the process that
started this one is gone, the training is snapshotted and left to whoever takes it up.
"""

import json
import math
import os
import sys
import time
from array import array
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..checkpoint import load_training, save_checkpoint
from ..model import Transformer
from .loop import TrainState, TrainStep, exact_match, train
from .plan import COMMAND, KEPT, LOCK, MODEL, SNAPSHOT, STATE, Plan, put
from .record import FRESH_SEED, frame, frame_rows, step_rows

SNAPSHOT_EVERY = 2.0  # seconds
MOST_SECONDS = 240.0  # of one processor, over all the processes that took part
CHECKED = 4096  # fresh sequences that a finished model is measured on


class Worker:
    """A training that goes on where its folder says it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = plan = Plan.read(folder)
        self.task = plan.made_task()
        self.steps, self.frames = step_rows(folder), frame_rows(folder, plan)
        self.spent = {"seconds": 0.0, "processor_seconds": 0.0}
        if (folder / SNAPSHOT).exists():
            checkpoint, _, self.state = load_training(folder / SNAPSHOT)
            self.model, self.spent = checkpoint.model, checkpoint.training["spent"]
        else:
            self.model = Transformer(plan.config, torch.Generator().manual_seed(plan.seed))
            self.state = TrainState(self.model, plan.settings)
        self.steps.cut(self.state.step)
        self.frames.cut(self.state.step)
        self.began = time.perf_counter(), time.process_time()

    def run(self) -> None:
        """Train to the end, or until told otherwise."""
        parent, saved = os.getppid(), time.perf_counter()
        self.say("running")
        if self.frames.count() == 0:
            self.record(None)
        for step in train(self.model, self.task, self.plan.settings, self.state):
            if not math.isfinite(step.loss):
                return self.say("failed", f"At step {step.step} the loss is no number any more: try a smaller rate.")
            row = (step.step, step.loss, step.learning_rate, step.grad_norm, self.used()["seconds"])
            self.steps.append(torch.tensor(row))
            if self.plan.has_frame(step.step):
                self.record(step)
            if step.step == self.plan.settings.steps:
                break
            if os.getppid() != parent:
                return self.snapshot()
            if self.used()["processor_seconds"] > MOST_SECONDS:
                return self.end("stopped", f"Stopped: {MOST_SECONDS:.0f} seconds of one core are the most there is.")
            command = self.command()
            if command == "pause":
                self.snapshot()
                return self.say("paused")
            if command == "stop":
                return self.end("stopped", "")
            if time.perf_counter() - saved > SNAPSHOT_EVERY:
                self.snapshot()
                saved = time.perf_counter()
        self.end("finished", "")

    def command(self) -> str:
        with suppress(FileNotFoundError):
            return (self.folder / COMMAND).read_text(encoding="utf-8")
        return ""

    def used(self) -> dict[str, float]:
        """Seconds so far, by the clock and of the processor; pauses are left out."""
        wall, processor = self.began
        return {
            "seconds": self.spent["seconds"] + time.perf_counter() - wall,
            "processor_seconds": self.spent["processor_seconds"] + time.process_time() - processor,
        }

    def record(self, step: TrainStep | None) -> None:
        done = self.state.step
        self.frames.append(frame(self.plan, self.model, step))
        if self.plan.is_kept(done):
            kept = self.folder / KEPT
            kept.mkdir(exist_ok=True)
            self.save(kept / f"{done}.safetensors", {})

    def save(self, path: Path, metrics: dict[str, int], state: TrainState | None = None) -> None:
        training = {
            "settings": asdict(self.plan.settings),
            "seed": self.plan.seed,
            "steps_done": self.state.step,
            "spent": self.used(),
        }
        unfinished = path.with_name(path.name + ".part")
        save_checkpoint(unfinished, self.model, self.task, training=training, metrics=metrics, state=state)
        os.replace(unfinished, path)

    def snapshot(self) -> None:
        self.save(self.folder / SNAPSHOT, {}, self.state)

    def end(self, name: str, said: str) -> None:
        """Keep the model as it is, say so, then measure it and keep that too."""
        if not self.plan.has_frame(self.state.step):
            # The slider's last frame is the model that is kept.
            _, loss, rate, norm, _ = array("f", self.steps.read(self.steps.count() - 1))
            self.record(TrainStep(self.state.step, loss, rate, norm))
        self.save(self.folder / MODEL, {})
        self.say(name, said)
        draw = torch.Generator().manual_seed(FRESH_SEED + self.plan.seed)
        metrics = {"exact_match": exact_match(self.model, self.task, CHECKED, draw), "exact_match_of": CHECKED}
        self.save(self.folder / MODEL, metrics)
        self.say(name, said, metrics)
        (self.folder / SNAPSHOT).unlink(missing_ok=True)

    def say(self, name: str, said: str = "", metrics: dict[str, Any] | None = None) -> None:
        state = {"name": name, "step": self.state.step, "said": said, "metrics": metrics or {}}
        put(self.folder / STATE, json.dumps(state).encode())


def main(folder: Path) -> None:
    """Wait until no other process trains in this folder, then do."""
    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(10)  # pages are answered first
    with (folder / LOCK).open("w") as lock:
        with suppress(ImportError):  # no such locks on Windows
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends, in whatever way
        if not (folder / MODEL).exists():  # else the other one has finished it
            Worker(folder).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
