"""Choices on the Saturation page: links, clamping, models by task."""

import pytest

from app.models import CHECKPOINTS
from app.saturation_run import WIDTHS
from app.saturation_state import DrawView, ModelView, RunView, checked, from_link, link, models_of, sizes, usual
from transformer import TASKS


def test_widths_run_from_1_to_1024_and_hold_the_powers_of_two() -> None:
    assert (WIDTHS[0], WIDTHS[-1]) == (1, 1024)
    assert set(WIDTHS) >= {2**power for power in range(11)}
    assert sorted(set(WIDTHS)) == WIDTHS


def test_a_link_holds_only_what_differs() -> None:
    assert [link(kind()) for kind in (DrawView, ModelView, RunView)] == [{}, {}, {}]
    assert link(DrawView(width=256, curve="mean")) == {"width": "256", "curve": "mean"}


@pytest.mark.parametrize(
    "view",
    [
        DrawView(1024, 32, "sign", 7, "trace"),
        ModelView("reverse-d16-h2", "untrained", "batch", "encoder", "gap"),
        RunView(16, "default"),
    ],
)
def test_a_link_leads_back(view: DrawView | ModelView | RunView) -> None:
    assert from_link(type(view), link(view)) == (view, [])


def test_no_two_panels_share_a_name_in_the_link() -> None:
    names = [name for kind in (DrawView, ModelView, RunView) for name in kind.__dataclass_fields__]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("query", "view", "said"),
    [
        ({"width": "100"}, DrawView(width=108), "width is '100' in the link; showing 108."),
        ({"width": "-5"}, DrawView(width=1), "width is '-5' in the link; showing 1."),
        ({"width": "x"}, DrawView(), "width is 'x' in the link; showing 64."),
        ({"keys": "3.5"}, DrawView(), "keys is '3.5' in the link; showing 8."),
        ({"draw": "9" * 40}, DrawView(draw=999), f"draw is '{'9' * 40}' in the link; showing 999."),
        ({"curve": "<b>"}, DrawView(), "curve is '<b>' in the link; showing typical."),
    ],
)
def test_nonsense_in_a_link_is_changed_and_said(query: dict, view: DrawView, said: str) -> None:
    assert from_link(DrawView, query) == (view, [said])


@pytest.mark.parametrize("value", [None, "64", True, float("nan"), float("inf"), [], {}, "<script>"])
def test_a_browser_can_send_anything(value: object) -> None:
    for kind in (DrawView, ModelView, RunView):
        assert checked(kind, dict.fromkeys(kind.__dataclass_fields__, value)) == kind()


def test_sizes_stand_in_the_name() -> None:
    assert sizes("reverse-d64-h4-k2") == (64, 4, 2)
    assert sizes("copy-d128-h8") == (128, 8, 16)


@pytest.mark.parametrize("task", list(TASKS))
def test_every_task_has_models_and_they_ship(task: str) -> None:
    names = models_of(task)
    assert all((CHECKPOINTS / f"{name}.safetensors").exists() for name in names)
    assert [sizes(name)[2] for name in names] == sorted(sizes(name)[2] for name in names)
    assert usual(task) in names
