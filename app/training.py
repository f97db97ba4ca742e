"""The trainings that people started: a bounded pool of processes, a queue, and a folder for each.

A training is a process of its own (transformer.train.worker) that writes into its folder; nothing of it lives only in
this server. So a page that is reloaded, or a server that is started anew, takes it up from the folder by its id.
"""

import json
import os
import re
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from app.training_process import Process, launched, own_folder
from transformer import load_checkpoint, save_checkpoint
from transformer.train.plan import COMMAND, KEPT, MODEL, PLAN, SNAPSHOT, STATE, Plan, put, read_state

UNASKED = 120.0  # seconds without a question from any page, after which a training is paused
KEPT_FOR = 6 * 3600.0  # seconds without a question after which its folder is removed
MOST_FOLDERS = 60
MOST_QUEUED = 20
MOST_LIVES = 5  # how often a training whose process was killed is taken up again
DONE = ("stopped", "finished", "failed")


@dataclass
class Run:
    """A training as the pool sees it. process: None while it waits or rests. asked: when a page last did;
    noted: when the folder was last told."""

    id: str
    folder: Path
    plan: Plan | None  # None for an uploaded model
    asked: float
    process: Process | None = None
    lives: int = 0
    noted: float = 0.0


class Runs:
    """The registry. Safe to call from any thread; ``tend`` is to be called about twice a second."""

    def __init__(
        self,
        root: Path,
        most_running: int,
        clock: Callable[[], float] = time.time,
        launch: Callable[[Path], Process] | None = None,
    ) -> None:
        self.root, self.most_running, self.clock = root, most_running, clock
        self.launch = launch or launched
        self.lock = threading.RLock()
        self.known: dict[str, Run] = {}
        self.queue: list[Run] = []

    def start(self, plan: Plan) -> str:
        """Queue a training; returns its id. Raises ValueError when too many wait already."""
        with self.lock:
            if len(self.queue) >= MOST_QUEUED:
                raise ValueError(f"{MOST_QUEUED} trainings wait already: please try again in a minute.")
            run = self._new()
            plan.write(run.folder)
            run.plan = plan
            self.queue.append(run)
            self.tend()
            return run.id

    def keep(self, model: bytes, name: str) -> str:
        """A model that was trained elsewhere, as if its training had finished here; returns its id."""
        with self.lock:
            run = self._new()
            (run.folder / MODEL).write_bytes(model)
            self._say(run, "finished", uploaded=name)
            return run.id

    def find(self, run_id: str) -> Run:
        """The run, which counts as asked for. Raises KeyError when there is none (any more).

        One that another server left in its folder is taken up: if it was under way it is queued.
        """
        with self.lock:
            run = self.known.get(run_id) or self._taken_up(run_id)
            now = self.clock()
            if now - run.noted > 30:  # for other servers, and for the time after this one
                with suppress(OSError):
                    os.utime(run.folder, (now, now))
                run.noted = now
            run.asked = now
            return run

    def standing(self, run: Run) -> dict[str, Any]:
        """name (queued, starting, running, paused, stopped, finished, failed), step, said, metrics;
        place and waiting, counted from 1, in the queue."""
        with self.lock:
            self.tend()
            state = {"name": "starting", "step": 0, "said": "", "metrics": {}} | read_state(run.folder)
            if run in self.queue:
                state |= {"name": "queued", "place": self.queue.index(run) + 1, "waiting": len(self.queue)}
            return state

    def pause(self, run: Run) -> None:
        """Let the processor go; the training can be resumed. Nothing happens to one that rests."""
        with self.lock:
            if run in self.queue:
                self.queue.remove(run)
                self._say(run, "paused")
            elif run.process and self._has_begun(run):
                put(run.folder / COMMAND, b"pause")
            elif run.process:
                self._kill(run)
                self._say(run, "paused")

    def resume(self, run: Run) -> None:
        """Queue a training that was paused."""
        with self.lock:
            if run not in self.queue and read_state(run.folder).get("name") == "paused":
                self._begin_again(run)
                run.lives = 0
                self.queue.append(run)
                self.tend()

    def stop(self, run: Run) -> None:
        """End a training and keep its model as it is."""
        with self.lock:
            if read_state(run.folder).get("name") in DONE:
                return
            if run.process and self._has_begun(run):
                put(run.folder / COMMAND, b"stop")
                return
            if run.process:  # has not read its folder yet: it would answer late
                self._kill(run)
            if run in self.queue:
                self.queue.remove(run)
            step = 0
            if (run.folder / SNAPSHOT).exists():
                kept = load_checkpoint(run.folder / SNAPSHOT)
                save_checkpoint(run.folder / MODEL, kept.model, kept.task, training=kept.training)
                step = kept.training["steps_done"]
            self._say(run, "stopped", step=step)

    def model(self, run: Run, step: int | None = None) -> Path | None:
        """The file of its model: finished or as last snapshotted, or, of a step whose weights were kept, that one."""
        if step is not None:
            path = run.folder / KEPT / f"{step}.safetensors"
            return path if path.exists() else None
        return next((path for name in (MODEL, SNAPSHOT) if (path := run.folder / name).exists()), None)

    def tend(self) -> None:
        """Notice processes that ended, pause what nobody asks about, and start what can be started."""
        with self.lock:
            for run in list(self.known.values()):
                if run.process and (status := run.process.poll()) is not None:
                    self._ended(run, status)
                if self.clock() - run.asked > UNASKED:
                    self.pause(run)
            at_work = sum(run.process is not None for run in self.known.values())
            # One that was resumed at once may not have left its last process yet.
            for run in [run for run in self.queue if run.process is None][: max(0, self.most_running - at_work)]:
                self.queue.remove(run)
                run.lives += 1
                run.process = self.launch(run.folder)

    def tidy(self) -> None:
        """Remove folders that nobody asked about for long, and the longest unasked beyond as many as may be kept."""
        with self.lock:
            oldest_first = sorted((folder.stat().st_mtime, folder) for folder in self.root.iterdir())
            too_many = len(oldest_first) - MOST_FOLDERS
            for i, (asked, folder) in enumerate(oldest_first):
                run = self.known.get(folder.name)
                at_work = run and (run.process or run in self.queue)
                if not at_work and (i < too_many or self.clock() - asked > KEPT_FOR):
                    self.known.pop(folder.name, None)
                    shutil.rmtree(folder, ignore_errors=True)

    def _new(self) -> Run:
        run_id = secrets.token_urlsafe(12)
        folder = self.root / run_id
        folder.mkdir(mode=0o700)
        self.tidy()
        self.known[run_id] = Run(run_id, folder, None, self.clock())
        return self.known[run_id]

    def _taken_up(self, run_id: str) -> Run:
        folder = self.root / run_id
        if not re.fullmatch(r"[A-Za-z0-9_-]{16}", run_id) or not folder.is_dir():
            raise KeyError(run_id)
        run = Run(run_id, folder, Plan.read(folder) if (folder / PLAN).exists() else None, self.clock())
        self.known[run_id] = run
        if run.plan and read_state(folder).get("name", "running") == "running":
            self._begin_again(run)
            self.queue.append(run)
        return run

    def _ended(self, run: Run, status: int) -> None:
        run.process = None
        if run in self.queue or read_state(run.folder).get("name") in (*DONE, "paused"):
            return
        if status <= 0 and run.lives < MOST_LIVES:  # it was killed: the folder has all that is needed to go on
            self._begin_again(run)
            self.queue.insert(0, run)
            return
        said = (run.folder / "stderr").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        self._say(run, "failed", said=f"The training ended unexpectedly. {''.join(said)}".strip())

    @staticmethod
    def _begin_again(run: Run) -> None:
        """Forget what its last process said and was told."""
        for name in (STATE, COMMAND):
            (run.folder / name).unlink(missing_ok=True)

    @staticmethod
    def _has_begun(run: Run) -> bool:
        return read_state(run.folder).get("name") == "running"

    @staticmethod
    def _kill(run: Run) -> None:
        run.process.kill()
        run.process = None

    @staticmethod
    def _say(run: Run, state: str, **more: Any) -> None:
        put(run.folder / STATE, json.dumps({**read_state(run.folder), "name": state, **more}).encode())


@st.cache_resource(show_spinner=False)
def runs() -> Runs:
    """This server's registry, tended by a thread of its own."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    registry = Runs(own_folder(), cores)

    def tend() -> None:
        for beat in range(sys.maxsize):
            time.sleep(0.5)  # the pool's own beat: a place that falls free is taken within half a second
            with suppress(OSError):  # another server of this user may remove a folder under our eyes
                registry.tend()
                if beat % 600 == 0:
                    registry.tidy()

    threading.Thread(target=tend, name="trainings", daemon=True).start()
    return registry
