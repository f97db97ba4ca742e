"""One recorded training of each task, which the Train page shows until a person starts one.

``python -m app.recordings [TASK ...]`` makes them anew, by the worker and the settings that Start has.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from app.setup import ROOT
from app.train_state import default_view, plan_of
from transformer import TASKS
from transformer.train.plan import FRAMES, STATE, STEPS, Plan
from transformer.train.record import frame_rows
from transformer.train.worker import Worker

RECORDINGS = ROOT / "assets" / "trainings"
_ONE_FRAME_IN = 2  # enough for a film, and half the bytes


def recording(task: str) -> Path:
    """The folder of a task's recording."""
    return RECORDINGS / task


def record(task_name: str) -> None:
    """Train by the task's default choices and keep what was recorded."""
    task = TASKS[task_name]()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        plan = plan_of(default_view(task_name), task, [])
        plan.write(folder)
        Worker(folder).run()
        kept = recording(task_name)
        kept.mkdir(parents=True, exist_ok=True)
        plan.write(kept)
        for name in (STATE, STEPS):
            shutil.copy(folder / name, kept / name)
        (kept / FRAMES).write_bytes(_thinned(plan, folder))


def _thinned(plan: Plan, folder: Path) -> bytes:
    """One frame in so many, counted back from the last, and the first, which is the untrained model."""
    rows = frame_rows(folder, plan)
    width, contents = 4 * rows.width, rows.read()
    frames = [contents[start : start + width] for start in range(0, len(contents), width)]
    return b"".join(frame for i, frame in enumerate(frames) if i == 0 or (len(frames) - 1 - i) % _ONE_FRAME_IN == 0)


if __name__ == "__main__":
    for name in sys.argv[1:] or TASKS:
        record(name)
