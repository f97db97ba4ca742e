"""The Saturation page: random q and k under a slider, a model's own, and trainings without the division."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import streamlit as st

from app.answers import asked_about
from app.code import code
from app.live import own_panel, pack, runs_panel, saturation_panel
from app.runtime import prepare
from app.saturation_own import own_data
from app.saturation_run import QUANTITIES, WIDTHS, measured, one_row, theory
from app.saturation_state import (
    CHOSEN,
    DrawView,
    ModelView,
    RunView,
    View,
    checked,
    from_link,
    link,
)
from app.saturation_words import NOTES, about_runs, equations
from app.text import literal
from transformer import (
    Task,
    attention_scores,
    expected_entropy,
    expected_largest,
    expected_slope,
    expected_trace,
    head_saturation,
    jacobian_trace,
    median_slope,
    sigmoid_slope,
    softmax_jacobian,
    typical_gap,
)
from transformer.scaling import RESULTS, measure

# Every number of the first panel comes from one of these.
DRAWN_BY = (
    one_row,
    measured,
    attention_scores,
    softmax_jacobian,
    jacobian_trace,
    sigmoid_slope,
    typical_gap,
    median_slope,
    expected_slope,
    expected_trace,
    expected_entropy,
    expected_largest,
)
SEEN = "own-model"
PANELS: dict[str, type] = {"saturation": DrawView, "own": ModelView, "runs": RunView}


def show(task: Task, src: list[int], model_id: str = "") -> None:
    """Draw the page for a source and the chosen model; panels' choices come from the link, then from the person."""
    prepare()
    for key, kind in PANELS.items():
        if _store(key) not in st.session_state:
            st.session_state[_store(key)], changed = from_link(kind, st.query_params)
            if changed:
                st.info(literal(" ".join(changed)))
    if st.session_state.setdefault(SEEN, model_id) != model_id:  # another one is chosen: the slider goes there
        st.session_state[_store("own")] = replace(st.session_state[_store("own")], model=CHOSEN)
    st.session_state[SEEN] = model_id
    _drawn(task, src)
    equations()
    code(*DRAWN_BY)
    st.subheader("Your model’s own q and k", anchor=False)
    _own(task, src, model_id)
    code(head_saturation)
    st.subheader("Trained without the division", anchor=False)
    _runs(task, src)
    code(measure)


@st.fragment
def _drawn(task: Task, src: list[int]) -> None:
    _mount("saturation", saturation_panel, drawn_data(task, src, _chosen("saturation")))


def drawn_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """Random q and k of every width, what is measured on them and what theory says; of the source nothing is shown."""
    view = checked(DrawView, wish)
    drawn = (view.keys, view.distribution, view.draw)
    header = {
        "view": asdict(view),
        "ask": asked_about("saturation", task.name, src),
        "count": wish.get("count", 0),
        "drawn": {"keys": view.keys},
        "widths": WIDTHS,
        "quantities": QUANTITIES,
        "notes": NOTES,
    }
    arrays = {**_one_row(*drawn), "measured": _measured(*drawn), "theory": _theory(view.keys)}
    return pack(header, arrays)


@st.fragment
def _own(task: Task, src: list[int], model_id: str) -> None:
    place = f"own-{model_id}"  # another model begins with a panel of its own
    _mount("own", own_panel, own_data(task, src, _chosen("own", place), model_id), place)


@st.fragment
def _runs(task: Task, src: list[int]) -> None:
    _mount("runs", runs_panel, runs_data(task, src, _chosen("runs")))


def runs_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """What was measured of the trainings with and without the division; of the source nothing is shown."""
    view = checked(RunView, wish)
    results = _results()
    about = results["about"]
    header = {
        "view": asdict(view),
        "ask": asked_about("runs", task.name, src),
        "count": wish.get("count", 0),
        "runs": results["runs"],
        "exact_of": about["exact_of"],
        "averaged_steps": about["averaged_steps"],
        "status": about_runs(about),
    }
    return pack(header, {})


def _store(key: str) -> str:
    return f"{key}-view"


def _chosen(key: str, place: str | None = None) -> dict[str, Any]:
    """What a panel was left at, or its view so far. place: the component's key, if it is not the panel's name."""
    wish = (st.session_state.get(place or key) or {}).get("commit") or asdict(st.session_state[_store(key)])
    st.session_state[_store(key)] = checked(PANELS[key], wish)
    return wish


def _mount(key: str, panel: Any, data: bytes, place: str | None = None) -> None:
    panel(key=place or key, data=data, on_commit_change=lambda: None)
    _write_link(key)


def _write_link(key: str) -> None:
    view: View = st.session_state[_store(key)]
    said = link(view)
    for each in fields(view):
        if each.name in said and st.query_params.get(each.name) != said[each.name]:
            st.query_params[each.name] = said[each.name]
        elif each.name not in said and each.name in st.query_params:
            del st.query_params[each.name]


# Shared and only read: arrays that depend on nothing but their arguments.
_one_row = st.cache_resource(one_row, show_spinner=False, max_entries=50)
_measured = st.cache_resource(measured, show_spinner=False, max_entries=50)
_theory = st.cache_resource(theory, show_spinner=False)


@st.cache_resource(show_spinner=False)
def _results() -> dict[str, Any]:
    return json.loads(RESULTS.read_text(encoding="utf-8"))
