"""Twins trained while one looks: each in a process of its own, its lines handed out over HTTP.

A run ends with its training, when it is stopped, or when nobody has asked for its lines for a while: a tab that was
closed cannot say so.
"""

import atexit
import os
import secrets
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from app.answers import address
from app.setup import ROOT

AT_ONCE = 2  # runs of all people together
UNASKED = 60.0  # seconds without a question after which a run ends
KEPT = 20  # finished runs whose lines can still be read
HIGHEST_SEED = 9999


@dataclass
class Run:
    """One process and the lines that it has printed so far, each a JSON object."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    asked: float = field(default_factory=time.monotonic)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """End it; a process that does not listen is killed after half a second."""
        self.process.terminate()
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def collect(self) -> None:
        with self.process as process:
            for line in process.stdout or ():
                self.lines.append(line.strip())

    def end_when_unasked(self) -> None:
        while self.running:
            if time.monotonic() - self.asked > UNASKED:
                self.stop()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)


RUNS: dict[str, Run] = {}
_STARTING = threading.Lock()


def arguments(part: str, seed: int) -> list[str]:
    """What Python is started with."""
    return ["-m", "transformer.broken", part, "--seeds", str(seed), "--watch"]


def start(part: str, seed: int) -> str | None:
    """Train a part's twins; returns the run's name, or None while as many run as may."""
    with _STARTING:
        if sum(run.running for run in RUNS.values()) >= AT_ONCE:
            return None
        for old in [name for name, run in RUNS.items() if not run.running][:-KEPT]:
            del RUNS[old]
        quiet = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        process = subprocess.Popen(
            [sys.executable, *arguments(part, seed)],
            cwd=ROOT,
            env=os.environ | quiet,
            stdout=subprocess.PIPE,
            text=True,
        )
        run = Run(process)
        name = secrets.token_urlsafe(9)
        RUNS[name] = run
    if hasattr(os, "setpriority"):  # not everywhere
        os.setpriority(os.PRIO_PROCESS, run.process.pid, 10)  # behind everything that people drag
    for job in (run.collect, run.end_when_unasked):
        threading.Thread(target=job, daemon=True).start()
    return name


@atexit.register
def stop_all() -> None:
    """No training outlives the server."""
    for run in RUNS.values():
        if run.running:
            run.stop()


async def started(request: Request) -> Response:
    """POST {"part": name, "seed": number}: {"run": name}, or what is wrong in words."""
    from transformer.broken import PARTS  # here, not above: torch takes seconds to import

    if (refused := _not_json(request)) is not None:
        return refused
    try:
        asked = await request.json()
        part, seed = asked["part"], asked["seed"]
        fits = part in PARTS and type(seed) is int and 0 <= seed <= HIGHEST_SEED
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        return PlainTextResponse(f"a part of {', '.join(PARTS)} and a seed from 0 to {HIGHEST_SEED} are needed", 400)
    name = start(part, seed)
    if name is None:
        return PlainTextResponse(f"{AT_ONCE} trainings are running already: try again when one has ended", 429)
    return JSONResponse({"run": name})


def lines(request: Request) -> Response:
    """GET ?after=N: the lines after the first N, and whether more will come."""
    run = RUNS.get(request.path_params["run"])
    after = request.query_params.get("after", "0")
    if run is None or not (after.isascii() and after.isdigit()):
        return PlainTextResponse("there is no such run", 404)
    run.asked = time.monotonic()
    running = run.running  # before the lines: what is printed last is not missed
    return JSONResponse({"lines": run.lines[int(after) :], "running": running}, headers={"Cache-Control": "no-store"})


def stopped(request: Request) -> Response:
    """POST: the run has ended when this is answered."""
    run = RUNS.get(request.path_params["run"])
    if (refused := _not_json(request)) is not None:
        return refused
    if run is None:
        return PlainTextResponse("there is no such run", 404)
    if run.running:
        run.stop()
    return JSONResponse({})


def _not_json(request: Request) -> Response | None:
    """Another site's form cannot send this type, so it cannot start or stop anything here."""
    if request.headers.get("content-type", "").split(";")[0] == "application/json":
        return None
    return PlainTextResponse("the content type must be application/json", 415)


def routes() -> list[Route]:
    """For the server, once its options are known."""
    return [
        Route(address("breaking/start"), started, methods=["POST"]),
        Route(address("breaking/{run}"), lines),
        Route(address("breaking/{run}/stop"), stopped, methods=["POST"]),
    ]
