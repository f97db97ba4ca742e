"""Trainings over HTTP, asked without a browser."""

import asyncio
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request
from starlette.responses import Response

from app import training
from app.recordings import recording
from app.train_state import default_view
from app.training import Runs
from app.training_answers import act, download, follow, recorded_id
from tests.app.test_training import Pool
from transformer import TASKS
from transformer.train.plan import MODEL, Plan
from transformer.train.record import frame_rows, frame_width, step_rows

START = {"task": "reverse", "source": [3, 4, 5], "view": {"d_model": 8, "heads": 2, "steps": 50}}


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Pool(tmp_path)
    monkeypatch.setattr(training, "runs", lambda: made)
    return made


def got(handler: Any, run: str, query: str = "") -> Response:
    return handler(
        Request({"type": "http", "headers": [], "query_string": query.encode(), "path_params": {"run": run}})
    )


def posted(body: Any, run: str | None = None, kind: str = "application/json") -> Response:
    contents = body if isinstance(body, bytes) else json.dumps(body).encode()
    messages = iter([{"type": "http.request", "body": contents, "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(messages)

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", kind.encode())],
        "path_params": {} if run is None else {"run": run},
    }
    return asyncio.run(act(Request(scope, receive)))


def block(response: Response) -> tuple[dict[str, Any], np.ndarray]:
    (length,) = struct.unpack_from("<I", response.body)
    return json.loads(response.body[4 : 4 + length]), np.frombuffer(response.body[4 + length :], "<f4")


def test_a_start_is_a_run_with_the_plan_that_was_asked_for(pool: Runs) -> None:
    response = posted(START)
    assert response.status_code == 200
    plan = pool.find(json.loads(response.body)["run"]).plan
    assert (plan.config.d_model, plan.config.n_heads, plan.settings.steps) == (8, 2, 50)
    assert (plan.src, plan.target) == ([3, 4, 5], [5, 4, 3])


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_what_a_form_of_another_site_could_send_is_refused(pool: Runs, kind: str) -> None:
    assert posted(START, kind=kind).status_code == 415
    assert not pool.known


@pytest.mark.parametrize(
    "body",
    [b"", b"[", b"7", b"null", {}, {**START, "task": "knit"}, {**START, "source": [99]}, {**START, "source": [3] * 17},
     {**START, "source": None}, {**START, "view": 7}, {**START, "task": []}],
    ids=str,
)  # fmt: skip
def test_nonsense_is_refused_in_words(pool: Runs, body: Any) -> None:
    response = posted(body)
    assert response.status_code == 400
    assert b"the question cannot be read: " in response.body
    assert not pool.known


def test_sizes_that_cannot_be_are_refused_in_the_configs_words(pool: Runs) -> None:
    response = posted({**START, "view": {"heads": 5}})
    assert response.status_code == 400
    assert response.body.startswith(b"d_model 64 is not divisible by n_heads 5")


def test_a_long_question_is_not_read_to_its_end(pool: Runs) -> None:
    assert posted(b" " * 30_000).status_code == 413


def test_what_is_told_reaches_the_pool(pool: Runs) -> None:
    run = json.loads(posted(START).body)["run"]
    pool.processes[run].says("running")
    assert json.loads(posted({"do": "pause"}, run).body)["name"] == "running"
    assert (pool.root / run / "command").read_text() == "pause"
    pool.processes[run].says("paused", status=0)
    pool.tend()
    assert json.loads(posted({"do": "resume"}, run).body)["name"] == "starting"
    assert json.loads(posted({"do": "stop"}, run).body)["name"] == "stopped"


@pytest.mark.parametrize("body", [{"do": "dance"}, {"do": []}, {}])
def test_an_unknown_act_is_refused_with_the_known_ones(pool: Runs, body: dict[str, Any]) -> None:
    run = json.loads(posted(START).body)["run"]
    response = posted(body, run)
    assert (response.status_code, response.body) == (400, "“do” must be one of pause, resume, stop".encode())


@pytest.mark.parametrize("run", ["x" * 16, "..", "recorded-knit"])
def test_what_is_not_kept_is_said(pool: Runs, run: str) -> None:
    assert posted({"do": "stop"}, run).status_code == 404
    assert got(follow, run).status_code == 404
    assert got(download, run).status_code == 404


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_recording_made_by_its_default_choices(task: str) -> None:
    header, numbers = block(got(follow, recorded_id(task)))
    plan = Plan.read(recording(task))
    assert header["name"] == "finished"
    assert header["arrays"]["steps"]["shape"] == [plan.settings.steps, 5]
    assert plan.settings.steps == default_view(task).steps
    count, width = header["arrays"]["frames"]["shape"]
    frames = numbers[5 * plan.settings.steps :].reshape(count, width)
    assert frames[0, 0] == 0
    assert frames[-1, 0] == plan.settings.steps
    assert header["metrics"]["exact_match"] > 4050


def test_what_is_new_since_is_sent(pool: Runs) -> None:
    folder = recording("reverse")
    plan = Plan.read(folder)
    header, numbers = block(got(follow, recorded_id("reverse"), "steps=447&frames=74"))
    assert header["from"] == [447, 74]
    assert numbers.tobytes() == step_rows(folder).read(447) + frame_rows(folder, plan).read(74)
    assert len(numbers) == 3 * 5 + 2 * frame_width(plan)


@pytest.mark.parametrize("query", ["steps=x", "frames=", "steps=1.5"])
def test_rows_that_are_no_numbers_are_refused(query: str) -> None:
    assert got(follow, recorded_id("reverse"), query).status_code == 400


def test_a_recording_cannot_be_told_anything(pool: Runs) -> None:
    assert posted({"do": "stop"}, recorded_id("reverse")).status_code == 404


def test_a_model_is_downloaded_under_a_telling_name(pool: Runs) -> None:
    run = json.loads(posted(START).body)["run"]
    assert got(download, run).status_code == 404
    (pool.root / run / MODEL).write_bytes(b"weights")
    response = got(download, run)
    assert response.path == pool.root / run / MODEL
    assert response.headers["content-disposition"] == 'attachment; filename="reverse-d8-h2.safetensors"'
    assert got(download, run, "step=7").status_code == got(download, run, "step=../x").status_code == 404
