"""A person's own models where the shipped ones stand otherwise, and what the Train page's panel is told of a run."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from app import attention_view, models, train_view
from app.models import chosen, describe, measured, shipped
from app.train_state import View, plan_of
from app.training import Runs
from tests.app.test_training import Pool
from tests.transformer.small import seeded
from transformer import ReversalTask, Transformer, save_checkpoint
from transformer.train.plan import KEPT, MODEL

TASK, SRC = ReversalTask(), [3, 11, 7]
PLAN = plan_of(View(d_model=24, heads=3, steps=60, smoothing=0.1), TASK, SRC)


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Pool(tmp_path)
    for module in (models, train_view):
        monkeypatch.setattr(module, "runs", lambda: made)
    return made


def trained(pool: Runs, metrics: dict[str, Any] | None = None) -> str:
    run = pool.start(PLAN)
    for name, seed in ((MODEL, 1), (f"{KEPT}/10.safetensors", 2)):
        path = pool.root / run / name
        path.parent.mkdir(exist_ok=True)
        model = Transformer(PLAN.config, torch.Generator().manual_seed(seed))
        save_checkpoint(path, model, TASK, training={"steps_done": 60}, metrics=metrics)
    return run


def block(contents: bytes) -> tuple[dict[str, Any], np.ndarray]:
    (length,) = struct.unpack_from("<I", contents)
    return json.loads(contents[4 : 4 + length]), np.frombuffer(contents[4 + length :], "<f4")


def test_an_id_chooses_its_model_and_a_step_the_one_that_was_kept(pool: Runs) -> None:
    run = trained(pool)
    last, kept = chosen("reverse", run), chosen("reverse", f"{run}@10")
    assert last.config == kept.config == PLAN.config
    assert torch.equal(
        last.model.output.weight, Transformer(PLAN.config, torch.Generator().manual_seed(1)).output.weight
    )
    assert not torch.equal(last.model.output.weight, kept.model.output.weight)
    assert chosen("reverse", run) is last


@pytest.mark.parametrize("wrong", ["", "@", "nobody", "../../x", "{run}@11", "{run}@x", "{run}@"])
def test_what_is_not_there_gives_way_to_the_shipped_model(pool: Runs, wrong: str) -> None:
    model = chosen("reverse", wrong.format(run=trained(pool)))
    expected = wrong != "{run}@"  # no step: the run's own model
    assert (model is shipped("reverse-d64-h4")) == expected


def test_a_model_of_another_task_is_not_shown(pool: Runs) -> None:
    assert chosen("copy", trained(pool)) is shipped("copy-d64-h4")


def test_a_file_that_has_changed_is_read_again(pool: Runs) -> None:
    run = trained(pool)
    before = chosen("reverse", run)
    save_checkpoint(pool.root / run / MODEL, Transformer(PLAN.config, seeded()), TASK, training={"steps_done": 61})
    after = chosen("reverse", run)
    assert (before.training["steps_done"], after.training["steps_done"]) == (60, 61)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        (None, "not measured, after 60 steps of training"),
        ({"exact_match": "<b>", "exact_match_of": 9}, "not measured, after 60 steps of training"),
        ({"exact_match": 4000, "exact_match_of": 4096}, "once trained it got 4,000 of 4,096 fresh sequences right"),
    ],
)
def test_only_numbers_of_an_own_file_are_said(pool: Runs, metrics: dict[str, Any] | None, said: str) -> None:
    own = chosen("reverse", trained(pool, metrics))
    assert measured(own) == said
    assert describe(own).endswith(f"parameters; {said}.")


def test_attention_shows_it_at_its_sizes_and_says_so_elsewhere(pool: Runs) -> None:
    run = trained(pool)
    at_home, _ = block(attention_view.panel_data(TASK, SRC, {"d_model": 24, "heads": 3, "layer": 0}, run)[0])
    away, _ = block(attention_view.panel_data(TASK, SRC, {"d_model": 64, "heads": 4}, run)[0])
    without, _ = block(attention_view.panel_data(TASK, SRC, {"d_model": 24, "heads": 3})[0])
    assert at_home["status"].startswith("Your model. Trained, not measured, after 60 steps of training.")
    assert away["status"].startswith("Not your model, which has d_model 24, 3 heads, d_k 8. Trained: 4,096")
    assert without["status"].startswith("Untrained")
    assert at_home["ask"]["model"] == run


def test_the_panel_is_told_of_the_run_in_the_link(pool: Runs) -> None:
    run = pool.start(PLAN)
    contents, view = train_view.panel_data(TASK, [4, 4], {"run": run})
    header, numbers = block(contents)
    assert view.run == header["run"]["id"] == run
    assert header["run"]["example"] == {
        "source": ["3", "11", "7"],
        "read": ["<bos>", "7", "11", "3"],
        "written": ["7", "11", "3", "<eos>"],
    }
    assert header["run"]["layout"]["cross"] == [1, 3, 4, 3]
    assert header["run"]["kept"] == list(range(0, 60, 10))
    # 0.9 for the right one and a share of 0.1 for each of the eleven that are not PAD.
    assert header["run"]["wanted"] == pytest.approx([0.9 + 0.1 / 11, 0.1 / 11])
    assert sum([header["run"]["wanted"][0], *[header["run"]["wanted"][1]] * 10]) == pytest.approx(1)
    right, other = header["run"]["wanted"]
    assert header["run"]["least_loss"] == pytest.approx(-right * math.log(right) - 10 * other * math.log(other))
    place = header["arrays"]["document_rate"]
    document = numbers[place["start"] : place["start"] + place["shape"][0]]
    assert document[29] == pytest.approx(24**-0.5 * 30 * 400**-1.5)


@pytest.mark.parametrize(("src", "said"), [([3], ""), ([], "3 11 7 4 5 6 will be watched instead.")])
def test_an_example_that_gives_way_is_said(pool: Runs, src: list[int], said: str) -> None:
    header, _ = block(train_view.panel_data(TASK, src, {})[0])
    assert header["watched"].endswith(said)
    assert bool(header["watched"]) == bool(said)


@pytest.mark.parametrize("run", ["AAAAAAAAAAAAAAAA", "", "../..", None])
def test_without_a_run_the_panel_shows_the_recording(pool: Runs, run: Any) -> None:
    header, _ = block(train_view.panel_data(TASK, SRC, {"run": run, "heads": 5})[0])
    assert (header["run"]["id"], header["run"]["recorded"]) == ("recorded-reverse", True)
    assert header["problem"].startswith("d_model 64 is not divisible by n_heads 5")
