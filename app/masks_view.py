"""The Masks page's picture: a batch, its masks, what they do to the model, and what breaks without them."""

import streamlit as st

from app.code import code
from app.live import masks_panel
from app.masks_block import batch_name, of_this_batch, panel_data
from app.masks_state import LINKED, checked, from_link
from app.runtime import prepare
from app.text import literal
from transformer import (
    MASKED_SOFTMAXES,
    Task,
    attention_weights,
    causal_mask,
    leak,
    padding_mask,
    teacher_forced_loss,
    weights_and_gradients,
)

KEY, VIEW = "masks", "masks-view"  # VIEW holds the view and the batch that it was chosen for


def show(task: Task, src: list[int], model_id: str = "") -> None:
    """Draw the panel for a source and the chosen model; the view comes from this page's link, then from the person."""
    prepare()
    if VIEW not in st.session_state:
        view, changed = from_link(st.query_params)
        st.session_state[VIEW] = (view, batch_name(task, src, view.draw))
        if changed:
            st.info(literal(" ".join(changed)))
    _panel(task, src, model_id)
    _why()
    code(padding_mask, causal_mask, attention_weights, leak, *list(MASKED_SOFTMAXES.values())[:-1],
         weights_and_gradients, teacher_forced_loss)  # fmt: skip


@st.fragment
def _panel(task: Task, src: list[int], model_id: str) -> None:
    """Runs again, alone, when a control is let go; while it is dragged, app.answers answers."""
    commit = (st.session_state.get(KEY) or {}).get("commit") or {}
    view, batch = (checked(commit), commit.get("batch")) if commit else st.session_state[VIEW]
    data, view = panel_data(task, src, of_this_batch(task, src, view, batch), commit, model_id)
    st.session_state[VIEW] = (view, batch_name(task, src, view.draw))
    masks_panel(key=KEY, data=data, on_commit_change=lambda: None)
    _write_link()


def _write_link() -> None:
    """The link holds what is shown."""
    link = st.session_state[VIEW][0].link()
    for name in LINKED:
        if name in link and st.query_params.get(name) != link[name]:
            st.query_params[name] = link[name]
        elif name not in link and name in st.query_params:
            del st.query_params[name]


def _why() -> None:
    with st.expander("Why these masks?"):
        st.latex(
            r"S'_{ij} = \frac{S_{ij}}{\sqrt{d_k}} + \begin{cases} 0 & M_{ij} = 1 \\ -\infty & M_{ij} = 0 \end{cases}"
            r"\qquad (1.2)"
        )
        st.write(
            "A mask acts on the scores, before softmax: what is hidden gets weight exactly 0, and the rest still sums "
            "to 1. In the model the lowest finite number stands in for −∞, which rounds to the same weight 0."
        )
        st.latex(r"M_{ij} = \begin{cases} 1 & j \le i \\ 0 & j > i \end{cases} \qquad (3.1)")
        st.write(
            "In training the decoder reads the whole right answer at once. Row i is to predict token i + 1, so it may "
            "read up to i: its own position is allowed, since the target was shifted right by BOS."
        )
        st.latex(r"\mathrm{tgt\_mask} = \mathrm{pad\_mask} \wedge \mathrm{causal\_mask} \qquad (3.3)")
        st.write(
            "Padding differs from sentence to sentence and not from query to query, causality the other way round. "
            "Each mask is stored with 1 on the axes on which it does not vary, and broadcasting fills them in "
            "(treatise, section 4.7; document 001, Masking)."
        )
