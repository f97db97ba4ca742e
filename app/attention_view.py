"""The Attention page's picture: sliders, all heads, and one query in slow motion, drawn by one live component."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import streamlit as st

from app.answers import asked_about
from app.attention_run import arrays, in_words, line_weights, records, teacher_forced
from app.attention_state import FIELDS, View, checked, from_link, snapped, within
from app.attention_words import shape_of_weights, stages, status, whose
from app.decoding import word_labels
from app.live import attention_panel, pack
from app.models import TRANSLATION, added, chosen, kind_of, trained, translation, untrained
from app.runtime import prepare
from app.text import literal
from transformer import Task, TransformerConfig

KEY, VIEW, SEEN = "attention", "attention-view", "attention-model"


def show(task: Task, src: list[int], model_id: str = "") -> None:
    """Draw the panel for a source and a person's own model, if one is chosen.

    The view comes from this page's link, then from what the person chose."""
    prepare()
    usual = at_sizes_of(chosen(kind_of(task), model_id).config, View())
    seen = (kind_of(task) == TRANSLATION, model_id)
    if VIEW not in st.session_state:
        st.session_state[VIEW], changed = from_link(st.query_params, usual)
        if changed:
            st.info(literal(" ".join(changed)))
    elif st.session_state[SEEN] != seen and (model_id or seen[0] != st.session_state[SEEN][0]):
        st.session_state[VIEW] = at_sizes_of(chosen(kind_of(task), model_id).config, st.session_state[VIEW])
    st.session_state[SEEN] = seen
    _panel(task, src, model_id, usual)
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
def _panel(task: Task, src: list[int], model_id: str, usual: View) -> None:
    """Runs again, alone, when a control is let go; while it is dragged, app.answers answers.

    usual is the view that needs no word in the link.
    """
    # Another model begins with sliders at its own sizes.
    key = "-".join(filter(None, (KEY, TRANSLATION if kind_of(task) == TRANSLATION else "", model_id)))
    wish = (st.session_state.get(key) or {}).get("commit") or asdict(st.session_state[VIEW])
    data, st.session_state[VIEW] = panel_data(task, src, wish, model_id)
    attention_panel(key=key, data=data, on_commit_change=lambda: None)
    _write_link(st.session_state[VIEW].link(usual))


def at_sizes_of(config: TransformerConfig, view: View) -> View:
    """The view with the sliders at a model's sizes."""
    usual = config.head_width * config.n_heads == config.d_model
    return replace(
        view,
        d_model=config.d_model,
        heads=config.n_heads,
        d_k=None if usual else config.head_width,
        layer=config.n_decoder_layers - 1,
    )


def panel_data(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> tuple[bytes, View]:
    """The block that the panel draws, and the view as it is shown: checked, snapped and within what there is.

    The model is the person's own, if one is chosen and the sliders stand at its sizes.
    """
    kind = kind_of(task)
    usual = at_sizes_of(chosen(kind, model_id).config, View())
    view, said = snapped(checked(wish, usual), wish.get("moved"))
    sizes = (kind, view.d_model, view.heads, view.head_width)
    own = chosen(kind, model_id) if model_id else None
    fits = own and (own.config.d_model, own.config.n_heads, own.config.head_width) == sizes[1:]
    # Another translator would not know this one's pieces.
    checkpoint = own if fits else None if own and kind == TRANSLATION else trained(*sizes)
    model = checkpoint.model if checkpoint else untrained(*sizes, task.tokenizer.vocab_size)
    answer = translation(chosen(kind, model_id), src) if kind == TRANSLATION else None
    trace, read, written = teacher_forced(model, task, src, answer)
    of_kind = records(trace, view.kind)
    row_ids, column_ids = src if view.kind == "encoder" else written, read if view.kind == "decoder" else src
    rows, columns = task.tokenizer.labels(row_ids), task.tokenizer.labels(column_ids)
    view = within(view, len(of_kind), len(rows))
    shown = arrays(of_kind, view.layer, view.head, view.what_if)
    words = None
    if view.words and kind == TRANSLATION:
        places = task.tokenizer.words(row_ids), task.tokenizer.words(column_ids)
        shown |= in_words(shown, *places)
        words = {
            "rows": word_labels(task.tokenizer, row_ids, places[0]),
            "columns": word_labels(task.tokenizer, column_ids, places[1]),
            "starts": [word.start for word in places[0]],
        }
    shown["lines"] = line_weights(shown["word-weights" if words else "weights"], view.layer, view.head, view.mean)
    row = shown["weights"][view.layer, view.head, view.query] if rows else np.zeros(0, dtype=np.float32)
    header = {
        "view": {**asdict(view), "d_k_shown": view.head_width},
        "ask": {**asked_about("attention", kind, src), "model": model_id},
        "count": wish.get("count", 0),
        "rows": rows,
        "columns": columns,
        "words": words,
        "pieces": kind == TRANSLATION,
        "most": most_of(view, (own or chosen(kind)).config),
        "causal": view.kind == "decoder",
        "trained": checkpoint is not None,
        "status": whose(own, checkpoint, model_id if model_id in added(kind) else "your model")
        + status(checkpoint, model, task, view),
        "snapped": said,
        "shapes": {
            "weights": shape_of_weights(shown["weights"].shape),
            "stages": stages(view, shown["weights"].shape, row),
        },
    }
    return pack(header, shown), view


def most_of(view: View, config: TransformerConfig) -> dict[str, int]:
    """How far the sliders go: to the sizes of the shipped small models, and further for a larger one."""
    return {"d_model": max(128, view.d_model, config.d_model), "heads": max(8, view.heads, config.n_heads)}


def panel_block(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> bytes:
    """The block alone, for a question asked while a control is dragged."""
    return panel_data(task, src, wish, model_id)[0]


def _write_link(link: dict[str, str]) -> None:
    for name in FIELDS:
        if name in link and st.query_params.get(name) != link[name]:
            st.query_params[name] = link[name]
        elif name not in link and name in st.query_params:
            del st.query_params[name]
