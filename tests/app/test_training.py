"""The pool of trainings, with processes and a clock that the test holds in its hand."""

import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
import torch

from app.train_state import View, plan_of
from app.training import KEPT_FOR, MOST_FOLDERS, MOST_LIVES, MOST_QUEUED, UNASKED, Runs
from app.training_process import own_folder
from transformer import ReversalTask, TrainState, Transformer, load_checkpoint, save_checkpoint
from transformer.train.plan import COMMAND, KEPT, MODEL, PLAN, SNAPSHOT, STATE, put, read_state

TASK = ReversalTask()
PLAN_OF_IT = plan_of(View(d_model=8, heads=1, steps=50), TASK, [3, 4])


class Fake:
    """A worker that does what the test says."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.status, self.killed = folder, None, False
        (folder / "stderr").touch()

    def poll(self) -> int | None:
        return self.status

    def kill(self) -> None:
        self.killed, self.status = True, -9

    def says(self, name: str, step: int = 7, status: int | None = None) -> None:
        put(self.folder / STATE, json.dumps({"name": name, "step": step, "said": "", "metrics": {}}).encode())
        self.status = status


class Pool(Runs):
    def __init__(self, root: Path, most_running: int = 2) -> None:
        self.now, self.processes = 1_000_000.0, {}
        super().__init__(root, most_running, lambda: self.now, self.began)

    def began(self, folder: Path) -> Fake:
        self.processes[folder.name] = Fake(folder)
        return self.processes[folder.name]

    def name(self, run_id: str) -> str:
        return self.standing(self.find(run_id))["name"]


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return Pool(tmp_path)


def with_snapshot(pool: Pool, run_id: str, step: int = 7) -> None:
    model = Transformer(PLAN_OF_IT.config, torch.Generator().manual_seed(0))
    facts = {"settings": {}, "seed": 0, "steps_done": step}
    state = TrainState(model, PLAN_OF_IT.settings)
    save_checkpoint(pool.root / run_id / SNAPSHOT, model, TASK, training=facts, state=state)


# the pool and the queue


def test_no_more_run_than_there_are_cores_and_places_are_shown(pool: Pool) -> None:
    ids = [pool.start(PLAN_OF_IT) for _ in range(5)]
    assert list(pool.processes) == ids[:2]
    places = [pool.standing(pool.find(run_id)) for run_id in ids[2:]]
    assert [(each["name"], each["place"], each["waiting"]) for each in places] == [("queued", i, 3) for i in (1, 2, 3)]
    pool.processes[ids[0]].says("finished", 50, status=0)
    assert pool.standing(pool.find(ids[3]))["place"] == 1
    assert list(pool.processes) == ids[:3]
    assert pool.name(ids[0]) == "finished"


def test_there_is_an_end_to_the_queue(pool: Pool) -> None:
    for _ in range(2 + MOST_QUEUED):
        pool.start(PLAN_OF_IT)
    with pytest.raises(ValueError, match=f"{MOST_QUEUED} trainings wait already"):
        pool.start(PLAN_OF_IT)
    assert len(list(pool.root.iterdir())) == 2 + MOST_QUEUED


def test_ids_cannot_be_guessed_and_folders_are_private(pool: Pool) -> None:
    ids = {pool.start(PLAN_OF_IT) for _ in range(5)}
    assert len(ids) == 5
    assert all(len(run_id) == 16 for run_id in ids)
    assert all(stat.S_IMODE((pool.root / run_id).stat().st_mode) == 0o700 for run_id in ids)


@pytest.mark.parametrize("run_id", ["", "..", "../../etc/passwd", "nobodys-training", "x" * 16, "a" * 500, "\0" * 16])
def test_what_is_no_run_is_not_found(pool: Pool, run_id: str) -> None:
    (pool.root.parent / ("y" * 16)).mkdir(exist_ok=True)
    with pytest.raises(KeyError):
        pool.find(run_id)


# pause, resume, stop


def test_pause_and_stop_are_written_for_the_worker_to_read(pool: Pool) -> None:
    one, two = pool.start(PLAN_OF_IT), pool.start(PLAN_OF_IT)
    for run_id in (one, two):
        pool.processes[run_id].says("running")
    pool.pause(pool.find(one))
    pool.stop(pool.find(two))
    assert (pool.root / one / COMMAND).read_text() == "pause"
    assert (pool.root / two / COMMAND).read_text() == "stop"


def test_a_pause_gives_the_place_to_the_next_and_resuming_queues_again(pool: Pool) -> None:
    one, two, three = (pool.start(PLAN_OF_IT) for _ in range(3))
    pool.processes[one].says("running")
    pool.pause(pool.find(one))
    pool.processes[one].says("paused", status=0)
    assert pool.name(three) == "starting"
    pool.resume(pool.find(one))
    assert pool.standing(pool.find(one))["place"] == 1
    assert not (pool.root / one / COMMAND).exists()
    pool.processes[two].says("finished", status=0)
    assert pool.name(one) == "starting"


def test_resumed_before_its_process_has_gone_it_waits_for_that(pool: Pool) -> None:
    one = pool.start(PLAN_OF_IT)
    first = pool.processes[one]
    first.says("paused")
    pool.resume(pool.find(one))
    assert pool.name(one) == "queued"
    assert pool.processes[one] is first
    first.status = 0
    assert pool.name(one) == "starting"
    assert pool.processes[one] is not first
    assert not pool.queue


def test_resuming_what_is_not_paused_does_nothing(pool: Pool) -> None:
    one = pool.start(PLAN_OF_IT)
    pool.resume(pool.find(one))
    pool.processes[one].says("finished", status=0)
    pool.resume(pool.find(one))
    assert pool.name(one) == "finished"
    assert not pool.queue


@pytest.mark.parametrize(("act", "name"), [("pause", "paused"), ("stop", "stopped")])
def test_a_worker_that_has_not_begun_is_not_waited_for(pool: Pool, act: str, name: str) -> None:
    """It would read the command only after seconds of loading."""
    one, _, queued = (pool.start(PLAN_OF_IT) for _ in range(3))
    for run_id in (queued, one):
        getattr(pool, act)(pool.find(run_id))
        assert pool.name(run_id) == name
    assert pool.processes[one].killed
    assert queued not in pool.processes


def test_stopping_a_paused_training_keeps_its_model(pool: Pool) -> None:
    one = pool.start(PLAN_OF_IT)
    with_snapshot(pool, one, step=13)
    pool.processes[one].says("paused", 13, status=0)
    pool.tend()
    pool.stop(pool.find(one))
    assert pool.standing(pool.find(one))["step"] == 13
    assert load_checkpoint(pool.root / one / MODEL).training["steps_done"] == 13
    pool.stop(pool.find(one))
    pool.resume(pool.find(one))
    assert pool.name(one) == "stopped"


# what nobody asks about


def test_unasked_trainings_are_paused_and_their_place_goes_to_others(pool: Pool) -> None:
    gone, watched, queued = (pool.start(PLAN_OF_IT) for _ in range(3))
    pool.processes[gone].says("running")
    pool.processes[watched].says("running")
    pool.now += UNASKED - 1
    pool.find(watched)
    pool.now += 2
    pool.tend()
    assert (pool.root / gone / COMMAND).read_text() == "pause"
    assert not (pool.root / watched / COMMAND).exists()
    assert read_state(pool.root / queued)["name"] == "paused"  # nobody asked about that one either
    pool.processes[gone].says("paused", status=0)
    pool.tend()
    assert pool.known[gone].process is None
    assert pool.name(gone) == "paused"  # and can be resumed


def test_folders_are_removed_after_hours_but_none_at_work(pool: Pool) -> None:
    done, working = pool.start(PLAN_OF_IT), pool.start(PLAN_OF_IT)
    pool.processes[done].says("finished", status=0)
    pool.tend()
    for run_id in (done, working):
        os.utime(pool.root / run_id, (pool.now - KEPT_FOR - 1,) * 2)
    pool.tidy()
    assert [folder.name for folder in pool.root.iterdir()] == [working]
    with pytest.raises(KeyError):
        pool.find(done)


def test_asking_keeps_a_folder(pool: Pool) -> None:
    one = pool.start(PLAN_OF_IT)
    pool.processes[one].says("finished", status=0)
    for _ in range(1000):
        pool.now += KEPT_FOR / 1000  # often enough that the folder need not be told each time
        pool.find(one)
    pool.now += KEPT_FOR - 100
    pool.tidy()
    assert pool.name(one) == "finished"


def test_the_number_of_folders_is_bounded(pool: Pool) -> None:
    ids = [pool.keep(b"", "x.safetensors") for _ in range(MOST_FOLDERS)]
    for age, run_id in enumerate(reversed(ids)):
        os.utime(pool.root / run_id, (pool.now - age,) * 2)
    pool.keep(b"", "y.safetensors")
    kept = {folder.name for folder in pool.root.iterdir()}
    assert len(kept) == MOST_FOLDERS
    assert ids[0] not in kept


# kills


def test_a_killed_worker_is_taken_up_before_those_who_wait_but_not_for_ever(pool: Pool) -> None:
    one, _, waiting = (pool.start(PLAN_OF_IT) for _ in range(3))
    for _ in range(MOST_LIVES):
        pool.processes[one].says("running", status=-9)
        pool.tend()
    assert pool.name(one) == "failed"
    assert pool.name(waiting) == "starting"


def test_a_worker_that_fails_says_why(pool: Pool) -> None:
    one = pool.start(PLAN_OF_IT)
    (pool.root / one / "stderr").write_text("Traceback\n  ...\nOSError: no space left\n")
    pool.processes[one].says("running", status=1)
    assert pool.standing(pool.find(one))["said"] == "The training ended unexpectedly. OSError: no space left"
    assert pool.name(one) == "failed"


@pytest.mark.parametrize("left_as", ["running", "paused", "finished"])
def test_a_fresh_server_takes_up_what_another_left(pool: Pool, left_as: str) -> None:
    one = pool.start(PLAN_OF_IT)
    pool.processes[one].says(left_as)
    fresh = Pool(pool.root)
    assert fresh.name(one) == {"running": "starting"}.get(left_as, left_as)  # its process is another one
    assert fresh.find(one).plan == PLAN_OF_IT
    assert (one in fresh.processes) == (left_as == "running")


def test_what_was_queued_when_the_server_died_is_queued_again(pool: Pool) -> None:
    one = pool.start(PLAN_OF_IT)
    assert Pool(pool.root, most_running=0).name(one) == "queued"


# models


def test_the_model_is_the_finished_one_or_the_last_snapshot_or_a_kept_step(pool: Pool) -> None:
    run = pool.find(pool.start(PLAN_OF_IT))
    assert pool.model(run) is None
    (run.folder / SNAPSHOT).touch()
    assert pool.model(run) == run.folder / SNAPSHOT
    (run.folder / MODEL).touch()
    assert pool.model(run) == run.folder / MODEL
    (run.folder / KEPT).mkdir()
    (run.folder / KEPT / "30.safetensors").touch()
    assert pool.model(run, 30) == run.folder / KEPT / "30.safetensors"
    assert pool.model(run, 31) is None


def test_an_upload_is_a_finished_run_without_a_plan(pool: Pool) -> None:
    one = pool.keep(b"contents", "mine.safetensors")
    assert pool.name(one) == "finished"
    assert (pool.root / one / MODEL).read_bytes() == b"contents"
    again = Pool(pool.root)
    assert again.find(one).plan is None
    assert not (pool.root / one / PLAN).exists()
    assert again.name(one) == "finished"


# the folder


def test_the_folder_is_this_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = own_folder()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert own_folder() == path
    path.chmod(0o755)  # someone made it first, and reads along
    assert own_folder() != path
    assert stat.S_IMODE(own_folder().stat().st_mode) == 0o700
