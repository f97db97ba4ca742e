"""Trainings that are watched: started, asked for lines, stopped, ended when nobody asks."""

import json
import time
from collections.abc import Callable, Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app import breaking

# Stands for a training that does not end by itself while a test looks at it; each test stops it.
FOREVER = "import time; print('{}', flush=True); time.sleep(600)"
AT = "/live/breaking"


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    breaking.RUNS.clear()
    yield
    breaking.stop_all()
    breaking.RUNS.clear()


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=breaking.routes()))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run this code in place of a training."""
    return lambda source: monkeypatch.setattr(breaking, "arguments", lambda part, seed: ["-c", source])


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Look again and again; the seconds only turn what would hang into a failure."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)  # looks again; it is over with the condition


def begin(client: TestClient, part: str = "causal", seed: int = 0) -> str:
    return client.post(f"{AT}/start", json={"part": part, "seed": seed}).json()["run"]


def test_a_real_training_gives_its_points_and_stops(client: TestClient) -> None:
    name = begin(client, "ffn", 4)
    until(lambda: len(client.get(f"{AT}/{name}").json()["lines"]) >= 2, 120)
    first, second = (json.loads(line) for line in client.get(f"{AT}/{name}").json()["lines"][:2])
    assert (first["twin"], first["step"], second["twin"], second["step"]) == ("intact", 5, "broken", 5)
    assert client.post(f"{AT}/{name}/stop", json={}).status_code == 200
    until(lambda: not breaking.RUNS[name].running)
    assert client.get(f"{AT}/{name}").json()["running"] is False


def test_lines_are_handed_out_from_where_one_is(client: TestClient, fake: Callable[[str], None]) -> None:
    fake("for i in range(3): print(i)")
    name = begin(client)
    until(lambda: not client.get(f"{AT}/{name}").json()["running"])
    until(lambda: len(breaking.RUNS[name].lines) == 3)
    assert client.get(f"{AT}/{name}", params={"after": 1}).json() == {"lines": ["1", "2"], "running": False}


def test_it_ends_when_nobody_asks_any_more(
    client: TestClient, fake: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaking, "UNASKED", 0.2)
    fake(FOREVER)
    name = begin(client)
    until(lambda: not breaking.RUNS[name].running)


def test_few_run_at_once_and_the_next_is_refused_in_words(client: TestClient, fake: Callable[[str], None]) -> None:
    fake(FOREVER)
    names = [begin(client) for _ in range(breaking.AT_ONCE)]
    refused = client.post(f"{AT}/start", json={"part": "causal", "seed": 0})
    assert refused.status_code == 429
    assert "are running already" in refused.text
    client.post(f"{AT}/{names[0]}/stop", json={})
    until(lambda: not breaking.RUNS[names[0]].running)
    assert client.post(f"{AT}/start", json={"part": "causal", "seed": 0}).status_code == 200


def test_a_process_that_does_not_listen_is_killed(client: TestClient, fake: Callable[[str], None]) -> None:
    fake(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {FOREVER}")
    name = begin(client)
    until(lambda: bool(breaking.RUNS[name].lines))
    client.post(f"{AT}/{name}/stop", json={})
    until(lambda: not breaking.RUNS[name].running, 10)


@pytest.mark.parametrize(
    "wrong",
    ["[", "7", "null", "{}", '{"part": "wings", "seed": 0}', '{"part": "causal", "seed": "0"}',
     '{"part": "causal", "seed": -1}', '{"part": "causal", "seed": 10000}', '{"part": "causal", "seed": true}',
     '{"part": ["causal"], "seed": 0}'],
)  # fmt: skip
def test_nonsense_starts_nothing(client: TestClient, wrong: str) -> None:
    answer = client.post(f"{AT}/start", content=wrong, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "a part of causal, " in answer.text
    assert not breaking.RUNS


def test_another_sites_form_starts_and_stops_nothing(client: TestClient, fake: Callable[[str], None]) -> None:
    fake(FOREVER)
    body = '{"part": "causal", "seed": 0}'
    assert client.post(f"{AT}/start", content=body, headers={"Content-Type": "text/plain"}).status_code == 415
    assert not breaking.RUNS
    name = begin(client)
    assert client.post(f"{AT}/{name}/stop").status_code == 415
    assert breaking.RUNS[name].running


@pytest.mark.parametrize("path", ["nowhere", "nowhere?after=3"])
def test_an_unknown_run_is_said_to_be_none(client: TestClient, path: str) -> None:
    assert client.get(f"{AT}/{path}").status_code == 404


@pytest.mark.parametrize("after", ["x", "-1", "٣"])
def test_a_place_that_is_none_is_refused(client: TestClient, fake: Callable[[str], None], after: str) -> None:
    fake("print(1)")
    assert client.get(f"{AT}/{begin(client)}", params={"after": after}).status_code == 404
