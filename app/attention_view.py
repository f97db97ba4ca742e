"""The Attention page's picture: sliders, all heads, and one query in slow motion, drawn by one live component."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import streamlit as st

from app.answers import asked_about
from app.attention_run import arrays, records, teacher_forced
from app.attention_state import FIELDS, View, checked, from_link, snapped, within
from app.attention_words import shape_of_weights, stages, status, whose
from app.live import attention_panel, pack
from app.models import chosen, trained, untrained
from app.runtime import prepare
from app.text import literal
from transformer import Task, TransformerConfig

KEY, VIEW, SEEN = "attention", "attention-view", "attention-model"


def show(task: Task, src: list[int], model_id: str = "") -> None:
    """Draw the panel for a source and a person's own model, if one is chosen.

    The view comes from this page's link, then from what the person chose."""
    prepare()
    if VIEW not in st.session_state:
        st.session_state[VIEW], changed = from_link(st.query_params)
        if changed:
            st.info(literal(" ".join(changed)))
    if model_id and st.session_state.get(SEEN) != model_id and not {"d_model", "heads", "d_k"} & set(st.query_params):
        st.session_state[VIEW] = at_sizes_of(chosen(task.name, model_id).config, st.session_state[VIEW])
    st.session_state[SEEN] = model_id
    _panel(task, src, model_id)
    with st.expander("Why this formula?"):
        st.latex(
            r"\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V \qquad (1.1)"
        )
        st.write(
            "A query asks, every key answers with an inner product, and softmax turns the answers into shares of 1. "
            "z is the mean of the values in these shares. Dividing by √d_k keeps the answers' spread at 1 whatever "
            "the head's width, so that softmax does not start out saturated (treatise, Eq. 1.3 and 1.4)."
        )


@st.fragment
def _panel(task: Task, src: list[int], model_id: str) -> None:
    """Runs again, alone, when a control is let go; while it is dragged, app.answers answers."""
    key = f"{KEY}-{model_id}" if model_id else KEY  # another model begins with sliders at its own sizes
    wish = (st.session_state.get(key) or {}).get("commit") or asdict(st.session_state[VIEW])
    data, st.session_state[VIEW] = panel_data(task, src, wish, model_id)
    attention_panel(key=key, data=data, on_commit_change=lambda: None)
    _write_link(st.session_state[VIEW])


def at_sizes_of(config: TransformerConfig, view: View) -> View:
    """The view with the sliders at a model's sizes."""
    usual = config.head_width * config.n_heads == config.d_model
    return replace(
        view, d_model=config.d_model, heads=config.n_heads, d_k=None if usual else config.head_width, layer=1
    )


def panel_data(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> tuple[bytes, View]:
    """The block that the panel draws, and the view as it is shown: checked, snapped and within what there is.

    The model is the person's own, if one is chosen and the sliders stand at its sizes.
    """
    view, said = snapped(checked(wish), wish.get("moved"))
    sizes = (task.name, view.d_model, view.heads, view.head_width)
    own = chosen(task.name, model_id) if model_id else None
    fits = own and (own.config.d_model, own.config.n_heads, own.config.head_width) == sizes[1:]
    checkpoint = own if fits else trained(*sizes)
    model = checkpoint.model if checkpoint else untrained(*sizes)
    trace, read, written = teacher_forced(model, task, src)
    of_kind = records(trace, view.kind)
    labels = task.tokenizer.labels
    rows = labels(src if view.kind == "encoder" else written)
    columns = labels(read if view.kind == "decoder" else src)
    view = within(view, len(of_kind), len(rows))
    shown = arrays(of_kind, view.layer, view.head, view.what_if)
    row = shown["weights"][view.layer, view.head, view.query] if rows else np.zeros(0, dtype=np.float32)
    header = {
        "view": {**asdict(view), "d_k_shown": view.head_width},
        "ask": {**asked_about("attention", task.name, src), "model": model_id},
        "count": wish.get("count", 0),
        "rows": rows,
        "columns": columns,
        "causal": view.kind == "decoder",
        "trained": checkpoint is not None,
        "status": whose(own, checkpoint) + status(checkpoint, model, task, view),
        "snapped": said,
        "shapes": {
            "weights": shape_of_weights(shown["weights"].shape),
            "stages": stages(view, shown["weights"].shape, row),
        },
    }
    return pack(header, shown), view


def panel_block(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> bytes:
    """The block alone, for a question asked while a control is dragged."""
    return panel_data(task, src, wish, model_id)[0]


def _write_link(view: View) -> None:
    link = view.link()
    for name in FIELDS:
        if name in link and st.query_params.get(name) != link[name]:
            st.query_params[name] = link[name]
        elif name not in link and name in st.query_params:
            del st.query_params[name]
