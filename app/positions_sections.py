"""The Positions page under its first picture: order with and without positions, other schemes, sizes."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.answers import asked_about
from app.code import code
from app.live import order_panel, pack, schemes_panel, sizes_panel
from app.models import shipped, shipped_without_positions, trained
from app.positions_order import reordered
from app.positions_schemes import SCHEMES, SHOWN, schemes, sizes, trained_sizes
from app.positions_session import keep_order, take_commit, write_link
from app.positions_state import NUMBERS, checked, order_of
from transformer import (
    TASKS,
    Checkpoint,
    Task,
    added_scores,
    embedding_rms,
    expected_token_rms,
    permuted_outputs,
    rotary_scores,
    rotate,
    without_positions,
)
from transformer.zoo import checkpoint_name

LEARNED = checkpoint_name("reverse", 64, 4, positional="learned")
_SHORT = {"normal": "N(0, 1)", "scaled": "N(0, 1/d)", "xavier": "Xavier"}


def order_section(task: Task, src: list[int]) -> None:
    """The person's own tokens in another order."""
    st.subheader("Without positions, order is nothing", anchor=False)
    _order(task, src)
    st.write(
        "The same trained weights twice, once with their positions left out. Without them, reordering the tokens "
        "reorders the outputs and changes nothing else: the encoder is **equivariant**. Not invariant: each token's "
        "output goes with it (001, Positional Embeddings). With positions, the same tokens in another order are "
        "another sequence."
    )
    st.latex(r"\mathrm{Attention}(PQ, PK, PV) = P\,\mathrm{Attention}(Q, K, V)")
    code(permuted_outputs, without_positions)


@st.fragment
def _order(task: Task, src: list[int]) -> None:
    wish = take_commit("order", ("order",))
    order_panel(key="order", data=order_data(task, src, wish), on_commit_change=lambda: None)
    keep_order(len(src))
    write_link()


def order_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """The outputs of both models for the source in its order and in the wished one."""
    order = order_of(checked(wish), len(src))
    name = checkpoint_name(task.name, 64, 4)
    checkpoint = shipped(name)
    arrays = reordered(shipped_without_positions(name), checkpoint.model, src, order)
    header = {
        "view": {"order": order},
        "ask": asked_about("order", task.name, src),
        "count": wish.get("count", 0),
        "tokens": task.tokenizer.labels(src),
        "width": checkpoint.config.d_model,
        "apart": arrays.pop("apart").tolist(),
    }
    return pack(header, arrays)


def schemes_section(task: Task, src: list[int]) -> None:
    """Sinusoidal, learned and rotary positions side by side."""
    st.subheader("Three ways to put them in", anchor=False)
    _schemes(task, src)
    st.write(
        "One query and one key, drawn at random, stand at every pair of positions p and r. Products of two sinusoids "
        "depend on p − r alone, but once they are added to tokens the cross terms q·PE(r) and PE(p)·k depend on each "
        "place. A learned table promises nothing of the kind, and only the rows that training reached mean anything. "
        "Rotary positions turn q and k instead (Su et al. 2021), and the score itself depends on p − r alone."
    )
    st.latex(
        r"\begin{aligned}(q + PE_p)\cdot(k + PE_r) &= q\cdot k + q\cdot PE_r + PE_p\cdot k + PE_p\cdot PE_r \\"
        r"(R_{p}^{\top} q)\cdot(R_{r}^{\top} k) &= q^{\top} R_{p-r}\, k\end{aligned}"
    )
    code(added_scores, rotary_scores, rotate)


@st.fragment
def _schemes(task: Task, src: list[int]) -> None:
    wish = take_commit("schemes", ("draw",))
    schemes_panel(key="schemes", data=schemes_data(task, src, wish), on_commit_change=lambda: None)
    write_link()


def schemes_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """The scores of one draw under each scheme; of the source nothing is shown."""
    view = checked(wish)
    checkpoint = shipped(LEARNED)
    arrays = schemes(checkpoint.model.src_embedding.position.weight.detach(), view.draw)
    header = {
        "view": {"draw": view.draw},
        "ask": asked_about("schemes", task.name, src),
        "count": wish.get("count", 0),
        "draws": len(NUMBERS["draw"]),
        "positions": SHOWN,
        "width": checkpoint.config.d_model,
        "taught": checkpoint.task.max_source,
        "spread": arrays.pop("spread").tolist(),
        "alone": arrays.pop("alone").tolist(),
    }
    return pack(header, arrays)


def sizes_section(task: Task, src: list[int]) -> None:
    """How large the two summands of Eq. 2.7 are."""
    st.subheader("Why embeddings are multiplied by √d_model", anchor=False)
    _sizes(task, src)
    st.write(
        "Tokens and positions are added, so they should be of one size. Positions have root mean square √½ at any "
        "width. Embeddings drawn small, N(0, 1/d), need the factor √d to reach 1 (001, Embeddings and the Output "
        "Head); torch's own N(0, 1) times √d drowns the positions, 32 to 1 at width 512, and without the factor it is "
        "right again (004). The treatise's Xavier matrix depends on how many words there are. Training moves all of it."
    )
    st.latex(r"X^{(0)} = \mathrm{Embed}(x)\cdot\sqrt{D} + PE \qquad (2.7)")
    code(embedding_rms, expected_token_rms)


@st.fragment
def _sizes(task: Task, src: list[int]) -> None:
    wish = take_commit("sizes", ("width", "words"))
    sizes_panel(key="sizes", data=sizes_data(task, src, wish), on_commit_change=lambda: None)
    write_link()


def sizes_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """Root mean squares at one width; of the source nothing is shown."""
    view = checked(wish)
    arrays = sizes(view.width, view.words)
    rows = [
        {
            "name": f"{_SHORT[init]}{' · √d' if scale else ''}",
            "expected": float(arrays["expected"][i]),
            "measured": float(arrays["measured"][i]),
            "positions": float(arrays["positions"][i]),
            "trained": False,
        }
        for i, (init, scale) in enumerate(SCHEMES)
    ]
    for name, checkpoint in _trained_of(view.width):
        token, position = trained_sizes(checkpoint)
        rows.append({"name": name, "expected": None, "measured": token, "positions": position, "trained": True})
    header = {
        "view": {"width": view.width, "words": view.words},
        "ask": asked_about("sizes", task.name, src),
        "count": wish.get("count", 0),
        "widths": NUMBERS["width"],
        "vocabularies": NUMBERS["words"],
        "rows": rows,
    }
    return pack(header, {})


def _trained_of(width: int) -> list[tuple[str, Checkpoint]]:
    """The shipped models of this width with 4 heads, one for each task, and the one with learned positions."""
    made = [(f"trained: {TASKS[task].title.lower()}", trained(task, width, 4, width // 4)) for task in TASKS]
    if width == 64:
        made.append(("trained: learned positions", shipped(LEARNED)))
    return [(name, checkpoint) for name, checkpoint in made if checkpoint]
