"""The choices of the Train page, from links and browsers, and the plans that they make."""

from typing import Any

import pytest

from app.train_state import (
    BY_TASK,
    MOST_SECONDS,
    View,
    checked,
    default_view,
    estimate,
    example,
    from_link,
    plan_of,
    settings_of,
)
from transformer import TASKS, AdditionTask, DateTask, ReversalTask
from transformer.train.__main__ import QUICK_CONFIG

TASK = ReversalTask()
RUN = "abcdefgh-_012345"


def test_the_default_is_the_quick_training() -> None:
    plan = plan_of(View(), TASK, [3, 4])
    assert plan.config == QUICK_CONFIG
    assert (plan.settings.steps, plan.settings.batch_size, plan.settings.warmup) == (450, 32, 50)
    assert plan.settings.lr == pytest.approx(7e-3, rel=0.02)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_a_default_that_is_allowed_and_in_no_link(task: str) -> None:
    view = default_view(task)
    assert checked({}, task) == view
    assert view.link(task) == {}
    assert plan_of(view, TASKS[task](), []).settings.steps == view.steps
    assert set(BY_TASK) < set(TASKS)


def test_a_link_gives_back_what_it_was_made_from() -> None:
    view = View(d_model=24, heads=3, layers=2, steps=600, rate=-2.5, batch=16, warmup=7, dropout=0.1, smoothing=0.15,
                seed=42, schedule="inverse_sqrt", run=RUN, at=120)  # fmt: skip
    assert from_link(view.link("reverse"), "reverse") == (view, [])


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"d_model": "70"}, "d_model is '70' in the link; showing 72."),
        ({"heads": "99"}, "heads is '99' in the link; showing 8."),
        ({"rate": "nan"}, "rate is 'nan' in the link; showing -2.15."),
        ({"steps": "<b>"}, "steps is '<b>' in the link; showing 450."),
        ({"schedule": "cosine"}, "schedule is 'cosine' in the link; showing linear."),
        ({"run": "../x"}, "run is '../x' in the link; showing none."),
        ({"at": "soon"}, "at is 'soon' in the link; showing -1."),
    ],
    ids=str,
)
def test_nonsense_in_a_link_is_said(query: dict[str, str], said: str) -> None:
    assert from_link(query, "reverse")[1] == [said]


@pytest.mark.parametrize("value", [None, [], {}, True, "64", float("nan"), float("inf"), 1e300, -5], ids=str)
def test_whatever_a_browser_sends_becomes_a_view(value: Any) -> None:
    names = ("d_model", "heads", "steps", "rate", "seed", "run", "schedule", "at")
    view = checked(dict.fromkeys(names, value), "reverse")
    plan_of(View(d_model=view.d_model, heads=1), TASK, [3])
    assert view.run == ""
    assert type(view.d_model) is type(view.at) is int


def test_sizes_that_cannot_be_are_refused_in_the_configs_own_words() -> None:
    with pytest.raises(ValueError, match="d_model 64 is not divisible by n_heads 5"):
        plan_of(View(heads=5), TASK, [3])


def test_what_takes_too_long_is_refused_with_both_numbers() -> None:
    view = View(d_model=128, layers=3, steps=2000, batch=128)
    seconds = estimate(view, TASK)
    assert seconds > MOST_SECONDS
    with pytest.raises(ValueError, match=f"about {seconds:.0f} seconds of one core; up to 120 are allowed"):
        plan_of(view, TASK, [3])


@pytest.mark.parametrize("schedule", ["linear", "inverse_sqrt"])
def test_the_chosen_rate_is_the_peak_of_either_schedule(schedule: str) -> None:
    view = View(schedule=schedule, rate=-2.3, warmup=40, d_model=24)
    settings = settings_of(view)
    rates = [settings.learning_rate(step, 24) for step in range(1, view.steps + 1)]
    assert max(rates) == pytest.approx(10**-2.3, rel=1e-3)
    assert rates.index(max(rates)) == 39


@pytest.mark.parametrize(
    ("task", "src", "watched"),
    [
        (TASK, [3, 7, 7], [3, 7, 7]),
        (TASK, [], [3, 11, 7, 4, 5, 6]),
        (TASK, [3] * 9, [3, 11, 7, 4, 5, 6]),
        (DateTask(), DateTask().tokenizer.encode("31.2.2000"), DateTask().tokenizer.encode("3 May 2021")),
        (AdditionTask(), [3, 3], AdditionTask().tokenizer.encode("58+67")),
    ],
)
def test_the_example_is_the_persons_own_if_it_has_an_answer(task: Any, src: list[int], watched: list[int]) -> None:
    assert example(task, src) == (watched, task.target(watched))
