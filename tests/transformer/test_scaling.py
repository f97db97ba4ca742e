"""Trainings with and without the division: the shipped results, and that their commands make the same runs."""

import json
import shlex
from dataclasses import asdict, replace

import pytest

from transformer import scaling
from transformer.train.__main__ import QUICK_CONFIG, _fresh
from transformer.train.parser import parser

FILE = json.loads(scaling.RESULTS.read_text(encoding="utf-8"))


def runs(d_k: int, init: str, scaled: bool) -> list[dict]:
    return [run for run in FILE["runs"] if (run["d_k"], run["init"], run["scaled"]) == (d_k, init, scaled)]


def test_every_run_is_there_once() -> None:
    made = {(run["d_model"], run["heads"], run["init"], run["seed"], run["scaled"]) for run in FILE["runs"]}
    wanted = {
        (*sizes, init, seed, scaled)
        for sizes in scaling.SIZES
        for init in scaling.INITS
        for seed in scaling.SEEDS
        for scaled in (True, False)
    }
    assert made == wanted
    assert len(FILE["runs"]) == len(wanted)


def test_the_file_says_how_it_was_made() -> None:
    settings, config = json.loads(json.dumps([asdict(scaling.SETTINGS), asdict(QUICK_CONFIG)]))
    assert FILE["about"]["settings"].items() <= settings.items()
    # Each run names its own initial weights.
    assert {**FILE["about"]["config"], "init": config["init"]}.items() <= config.items()
    assert FILE["about"]["task"] == {"name": "reverse", **asdict(scaling.TASK)}


@pytest.mark.parametrize("init", scaling.INITS)
def test_the_wide_head_learns_only_with_the_division(init: str) -> None:
    for run in runs(128, init, True):
        assert run["exact"] > 2_000
        assert run["loss"][-1] < 0.05
    for run in runs(128, init, False):
        assert run["exact"] < 200
        assert run["loss"][-1] > 1


def test_the_wider_the_head_the_more_the_division_matters() -> None:
    means = [sum(run["exact"] for run in runs(d_k, "xavier", False)) / 3 for d_k in (16, 32, 64, 128)]
    assert means == sorted(means, reverse=True)
    assert min(run["exact"] for d_k in (16, 32, 64, 128) for run in runs(d_k, "xavier", True)) > 2_000


def test_before_training_xavier_weights_give_q_dot_k_a_variance_near_d_k() -> None:
    for d_k in (16, 32, 64, 128):
        for run in runs(d_k, "xavier", True):
            assert run["before"]["dots_variance"] == pytest.approx(d_k, rel=0.5)
        without, divided = runs(d_k, "xavier", False)[0], runs(d_k, "xavier", True)[0]
        # Not equal: the self-attention below, divided or not, is part of where q comes from.
        assert without["before"]["dots_variance"] == pytest.approx(divided["before"]["dots_variance"], rel=0.2)
        assert without["before"]["trace"] < divided["before"]["trace"]


@pytest.mark.parametrize("run", FILE["runs"][:: len(FILE["runs"]) // 5], ids=lambda run: f"d_k {run['d_k']}")
def test_a_command_makes_the_same_run(run: dict) -> None:
    words = shlex.split(run["command"])
    assert words[:3] == ["python", "-m", "transformer.train"]
    args = parser().parse_args(words[3:])
    model, task, settings, _, seed = _fresh(args)
    expected = replace(
        QUICK_CONFIG,
        d_model=run["d_model"],
        n_heads=run["heads"],
        d_ff=4 * run["d_model"],
        init=run["init"],
        scale_scores=run["scaled"],
    )
    assert (model.config, task, settings) == (expected, scaling.TASK, scaling.SETTINGS)
    assert (seed, args.check, model.config.head_width) == (run["seed"], FILE["about"]["exact_of"], run["d_k"])


def test_a_short_run_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "SETTINGS", replace(scaling.SETTINGS, steps=20))
    monkeypatch.setattr(scaling, "CHECKED", 64)
    run = scaling.measure(8, 2, "default", False, 3)
    assert (run["d_k"], run["scaled"], run["seed"]) == (4, False, 3)
    assert len(run["loss"]) == 2
    assert run["loss"][0] > run["loss"][1] > 0
    assert run["before"].keys() == run["after"].keys()
    assert run == scaling.measure(8, 2, "default", False, 3)
