"""Trainings over HTTP: a page starts one, tells it what to do and follows it, without a run of any script.

GET /training/ID?steps=N&frames=M   where it stands, and what was recorded from row N and frame M on, as one block
POST /training                      {"task", "source", "view"} starts one; the answer names its id
POST /training/ID                   {"do": "pause" | "resume" | "stop"}
GET /training/ID/model.safetensors  its model, or with ?step=N the weights that were kept of a step
"""

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from app.training import Run

_MOST_BYTES = 20_000


def address() -> str:
    """Where trainings are asked about, under the server's prefix if it has one."""
    return "/" + "/".join(filter(None, (st.get_option("server.baseUrlPath").strip("/"), "training")))


def recorded_id(task_name: str) -> str:
    """The id under which a task's recording is followed like a run."""
    return f"recorded-{task_name}"


def follow(request: Request) -> Response:
    """Where a training stands, and what has been recorded since."""
    # Here and below, not above: torch takes seconds to import, and the server need not wait for it.
    from app.live import pack
    from app.training import runs
    from transformer.train.plan import read_state
    from transformer.train.record import STEP_COLUMNS, frame_rows, frame_width, step_rows

    run_id = request.path_params["run"]
    try:
        run = _recorded(run_id) or runs().find(run_id)
        from_step, from_frame = (int(request.query_params.get(name, "0")) for name in ("steps", "frames"))
    except KeyError:
        return PlainTextResponse("This training is not kept any more.", 404)
    except ValueError as error:
        return PlainTextResponse(f"the question cannot be read: {error}", 400)
    if run.plan is None:
        return PlainTextResponse("This is an uploaded model: how it was trained is not known here.", 404)
    standing = read_state(run.folder) if _recorded(run_id) else runs().standing(run)
    rows = step_rows(run.folder).read(max(0, from_step))
    frames = frame_rows(run.folder, run.plan).read(max(0, from_frame))
    arrays = {
        "steps": np.frombuffer(rows, "<f4").reshape(-1, len(STEP_COLUMNS)),
        "frames": np.frombuffer(frames, "<f4").reshape(-1, frame_width(run.plan)),
    }
    header = {**standing, "from": [from_step, from_frame], "has_model": runs().model(run) is not None}
    return Response(pack(header, arrays), media_type="application/octet-stream", headers={"Cache-Control": "no-store"})


def _recorded(run_id: str) -> "Run | None":
    """A shipped recording as a run that nobody can tell anything."""
    from app.recordings import recording
    from app.training import Run
    from transformer import TASKS
    from transformer.train.plan import Plan

    known = {recorded_id(name): recording(name) for name in TASKS}
    return Run(run_id, known[run_id], Plan.read(known[run_id]), 0.0) if run_id in known else None


def download(request: Request) -> Response:
    """A model as a file."""
    from app.training import runs

    try:
        run = runs().find(request.path_params["run"])
        step = request.query_params.get("step")
        path = runs().model(run, None if step is None else int(step))
    except (KeyError, ValueError):
        path = None
    if path is None:
        return PlainTextResponse("There is no such model, or it is not kept any more.", 404)
    name = f"{run.plan.task}-d{run.plan.config.d_model}-h{run.plan.config.n_heads}" if run.plan else "model"
    at = "" if step is None else f"-step-{int(step)}"
    return FileResponse(path, filename=f"{name}{at}.safetensors", media_type="application/octet-stream")


async def act(request: Request) -> Response:
    """Start a training, or tell one what to do. Only JSON is read: a form of another site cannot send it."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return PlainTextResponse("the question must be JSON", 415)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            return PlainTextResponse("the question is too long", 413)
    try:
        asked = dict(json.loads(body))
    except (ValueError, TypeError) as error:
        return PlainTextResponse(f"the question cannot be read: {error}", 400)
    run_id = request.path_params.get("run")
    return await run_in_threadpool(_started, asked) if run_id is None else await run_in_threadpool(_told, run_id, asked)


def _started(asked: dict[str, Any]) -> Response:
    from app.source import within_reach
    from app.train_state import checked, plan_of
    from app.training import runs
    from transformer import TASKS

    try:
        task = TASKS[asked["task"]]()
        src = [int(i) for i in asked["source"]]
        task.tokenizer.labels(within_reach(task, src))
        view = checked(dict(asked["view"]), task.name)
    except (ValueError, KeyError, TypeError) as error:
        return PlainTextResponse(f"the question cannot be read: {error!r}", 400)
    try:
        return JSONResponse({"run": runs().start(plan_of(view, task, src))})
    except ValueError as error:
        return PlainTextResponse(str(error), 400)


def _told(run_id: str, asked: dict[str, Any]) -> Response:
    from app.training import runs

    acts = {"pause": runs().pause, "resume": runs().resume, "stop": runs().stop}
    if asked.get("do") not in list(acts):
        return PlainTextResponse(f"“do” must be one of {', '.join(acts)}", 400)
    try:
        run = runs().find(run_id)
    except KeyError:
        return PlainTextResponse("This training is not kept any more.", 404)
    acts[asked["do"]](run)
    return JSONResponse(runs().standing(run))


def routes() -> list[Route]:
    """For the server, once its options are known."""
    at = address()
    return [
        Route(at, act, methods=["POST"]),
        Route(f"{at}/{{run}}", act, methods=["POST"]),
        Route(f"{at}/{{run}}", follow),
        Route(f"{at}/{{run}}/model.safetensors", download),
    ]
