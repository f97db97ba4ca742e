"""The Break it page's first picture: a part, the prediction, and what became of the twins."""

import json
from dataclasses import asdict
from typing import Any

import streamlit as st

from app.answers import address
from app.broken_state import FIELDS, View, checked, from_link
from app.code import code
from app.live import broken_panel, pack
from app.runtime import prepare
from app.text import literal
from transformer.broken import PARTS, outcome
from transformer.broken.results import RESULTS, TWINS, mean, table, target
from transformer.broken.twins import TASKS, empty_sources, fresh_model, measure, training
from transformer.layers import Sublayer

KEY, VIEW = "broken", "broken-view"


def show() -> None:
    """Draw the panel; the view comes from this page's link, then from what the person chose."""
    prepare()
    if VIEW not in st.session_state:
        st.session_state[VIEW], changed = from_link(st.query_params)
        if changed:
            st.info(literal(" ".join(changed)))
    _panel()
    with st.expander("All parts in one table"):
        st.markdown(table(results()))
        st.caption(
            "Means over the seeds. Loss: of fresh sequences, in nats a token, the right answer being read. Exact: of "
            f"{results()['fresh']:,} fresh sequences decoded without one wrong token."
        )
    code(fresh_model, training, measure, Sublayer)


@st.cache_data(show_spinner=False)
def results() -> dict[str, Any]:
    """The shipped file."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@st.fragment
def _panel() -> None:
    keep(KEY)
    broken_panel(key=KEY, data=panel_data(st.session_state[VIEW]), on_commit_change=lambda: None)


def keep(key: str) -> None:
    """Take what a panel of this page has committed into the view and the link."""
    chosen = (st.session_state.get(key) or {}).get("commit") or {}
    view = st.session_state[VIEW] = checked({**asdict(st.session_state[VIEW]), **chosen})
    link = view.link()
    for name in FIELDS:
        if name in link and st.query_params.get(name) != link[name]:
            st.query_params[name] = link[name]
        elif name not in link and name in st.query_params:
            del st.query_params[name]


def panel_data(view: View) -> bytes:
    """Everything that the panel shows: it needs to ask for nothing but a training."""
    shipped = results()
    parts = [_part(name) for name in shipped["parts"]]
    tokenizer = TASKS["quick"].tokenizer
    header = {
        "view": {"part": view.part, "guess": view.guess},
        "parts": parts,
        "fresh": shipped["fresh"],
        "labels": tokenizer.labels(range(tokenizer.vocab_size)),
        "at": address("breaking"),
    }
    return pack(header, {})


@st.cache_data(show_spinner=False)
def _part(name: str) -> dict[str, Any]:
    """One part with its words and its numbers; the answer that came true is computed from these."""
    part, measured = PARTS[name], results()["parts"][name]
    means = {twin: {what: mean(measured, twin, what) for what in ("loss", "exact", "alone")} for twin in TWINS}
    runs = [
        {"seed": int(seed), "target": target(part, run["source"]), **run} for seed, run in measured["seeds"].items()
    ]
    return {
        "name": name, "title": part.title, "done": part.done, "question": part.question, "answers": part.answers,
        "why": part.why, "command": measured["command"], "runs": runs, "means": means,
        "truth": outcome(means["intact"]["exact"], means["broken"]["exact"]) + 1,
        "one_training": not (part.change.config or part.change.settings),
        "empty": sum(empty_sources(part.intact, run["seed"]) for run in runs) / len(runs),
        "seconds": sum(mean(measured, twin, "seconds") for twin in TWINS),
    }  # fmt: skip
