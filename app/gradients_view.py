"""The Break it page's second picture: gradients layer by layer, post-LN against pre-LN."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import streamlit as st

from app.answers import asked_about
from app.broken_state import STACKS, WEIGHTS, checked
from app.broken_view import VIEW, keep
from app.code import code
from app.live import gradients_panel, pack
from transformer import ReversalTask, Task
from transformer.gradient_norms import MOST, NORMS, RESULTS, at_start, exponent, gradient_norms, untrained

KEY = "gradients"
KINDS = tuple(f"{stack}.{weights}" for stack in STACKS for weights in WEIGHTS)


def show() -> None:
    """Draw the panel under its heading, and the theory that it is compared with."""
    st.subheader("Where LayerNorm stands: gradients layer by layer", anchor=False)
    _panel()
    with st.expander("Why post-LN wants a warmup"):
        st.latex(
            r"\text{post-LN: } \mathrm{LayerNorm}(X + f(X)) \quad (2.2) \qquad "
            r"\text{pre-LN: } X + f(\mathrm{LayerNorm}(X)) \quad (2.3)"
        )
        st.write(
            "Xiong et al. 2020 bound the gradient of the last layer's W₂ at initialisation: with post-LN by a number "
            "that does not fall with the depth L, with pre-LN by one that falls like 1/√L, because the stream that the "
            "final LayerNorm divides by has grown like √L. Large gradients near the output together with a full "
            "learning rate are what a warmup guards against."
        )
    code(untrained, gradient_norms)


@st.fragment
def _panel() -> None:
    keep(KEY)
    data = panel_data(ReversalTask(), [], asdict(st.session_state[VIEW]))
    gradients_panel(key=KEY, data=data, on_commit_change=lambda: None)


def panel_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """The block for a depth: gradients computed now, beside those of the shipped sweep and training.

    The batch is the module's own, so the source does not matter. Arrays: live.NORM (kinds, N), now; NORM.KIND.layers
    and NORM.KIND.low, .high, means and ranges over draws, N after N in one row; training.NORM (kinds, steps, layers).
    """
    view = checked(wish)
    shipped = results()
    now = at_start(view.layers, 0)
    arrays = {f"live.{norm}": np.stack([now[norm][kind].numpy() for kind in KINDS]) for norm in NORMS}
    for norm in NORMS:
        for kind in KINDS:
            draws = np.array([[x for layers in draw[norm][kind] for x in layers] for draw in shipped["start"]])
            arrays[f"{norm}.{kind}"] = np.stack([draws.mean(0), draws.min(0), draws.max(0)])
        arrays[f"training.{norm}"] = np.array([shipped["training"][norm][kind] for kind in KINDS])
        arrays[f"loss.{norm}"] = np.array(shipped["training"][norm]["loss"])
    header = {
        "view": {name: getattr(view, name) for name in ("layers", "stack", "weights", "after")},
        "ask": asked_about(KEY, task.name, src),
        "count": wish.get("count", 0),
        "kinds": KINDS,
        "most": MOST,
        "steps": shipped["steps"],
        "trained_layers": shipped["trained_layers"],
        "draws": len(shipped["start"]),
        "exponents": {norm: {kind: exponent(shipped["start"], norm, kind) for kind in KINDS} for norm in NORMS},
    }
    return pack(header, arrays)


@st.cache_data(show_spinner=False)
def results() -> dict[str, Any]:
    """The shipped file."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))
