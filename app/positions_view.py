"""The Positions page's first picture, the encoding and its rotations; then its other sections."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.answers import asked_about
from app.code import code
from app.live import pack, positions_panel
from app.positions_run import encoding, nearest, rounding, turned
from app.positions_sections import order_section, schemes_section, sizes_section
from app.positions_session import open_view, take_commit, write_link
from app.positions_state import NUMBERS, REACH, TABLE, checked
from app.runtime import prepare
from transformer import (
    Task,
    angular_frequencies,
    diagonals,
    float32_encoding,
    nearest_positions,
    rotation_blocks,
    sinusoidal_encoding,
    wavelengths,
)

KEY = "positions"


def show(task: Task, src: list[int], model_id: str = "") -> None:
    """Draw the page for a source and the chosen model; the view comes from its link, then from the person."""
    prepare()
    open_view(len(src))
    _encoding(task, src)
    st.write(
        "Each pair of dimensions is a clock hand that starts at twelve and turns by ωᵢ at every position; early pairs "
        "race, late ones hardly move. Going k positions on turns pair i by k·ωᵢ wherever it stood, so **one matrix "
        "moves every position by k**. Drag k, or the large hand itself."
    )
    with st.expander("Why a rotation?"):
        st.latex(
            r"PE_{p,\,2i} = \sin(p\,\omega_i), \quad PE_{p,\,2i+1} = \cos(p\,\omega_i), \quad "
            r"\omega_i = 10000^{-2i/d} \qquad (2.5,\ 2.6)"
        )
        st.latex(
            r"\begin{pmatrix} PE_{p+k,\,2i} \\ PE_{p+k,\,2i+1} \end{pmatrix} = "
            r"\begin{pmatrix} \cos k\omega_i & \sin k\omega_i \\ -\sin k\omega_i & \cos k\omega_i \end{pmatrix}"
            r"\begin{pmatrix} PE_{p,\,2i} \\ PE_{p,\,2i+1} \end{pmatrix} \qquad (2.8)"
        )
        st.write(
            "These are the sum formulas of sine and cosine. The matrix acts on (sin, cos): drawn with sin to the right "
            "and cos upwards, a positive k turns clockwise. Drawn the usual way round, with cos to the right, the same "
            "turn runs anticlockwise. Its determinant is 1 and its transpose undoes it, so lengths and inner products "
            "stay: PE(p)·PE(q) = Σ cos((q − p)·ωᵢ), and |PE(p)|² = d/2 for every p. It is one angle for each pair, not "
            "one for the whole vector. "
            "With few dimensions positions nearly repeat: at d_model 2, positions 0 and 44 are almost the same point."
        )
    code(
        sinusoidal_encoding,
        angular_frequencies,
        rotation_blocks,
        wavelengths,
        diagonals,
        nearest_positions,
        float32_encoding,
    )
    order_section(task, src, model_id)
    schemes_section(task, src, model_id)
    sizes_section(task, src, model_id)
    write_link()


@st.fragment
def _encoding(task: Task, src: list[int]) -> None:
    """Runs again, alone, when a control is let go; while d_model is dragged, app.answers answers."""
    wish = take_commit(KEY, ("d_model", "p", "k", "pair"))
    positions_panel(key=KEY, data=panel_data(task, src, wish), on_commit_change=lambda: None)
    write_link()


def panel_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """The block that the panel draws: a width's encodings and rotations, and the row and column of p and k."""
    view = checked(wish)
    arrays = encoding(view.d_model)
    header = {
        "view": {name: getattr(view, name) for name in ("d_model", "p", "k", "pair")},
        "ask": asked_about(KEY, task.name, src),
        "count": wish.get("count", 0),
        "positions": TABLE,
        "offsets": [-REACH, REACH],
        "limits": {
            **{name: [NUMBERS[name][0], NUMBERS[name][-1], NUMBERS[name].step] for name in ("d_model", "p", "k")},
            "pair": [0, view.d_model // 2 - 1, 1],
        },
        "nearest": nearest(view.d_model),
        "norm_error": float(abs(arrays["square"] - view.d_model / 2).max()),
        "tokens": task.tokenizer.labels(src),
    }
    return pack(header, {**arrays, **turned(view.d_model, view.p, view.k), **rounding(view.d_model, view.k)})
