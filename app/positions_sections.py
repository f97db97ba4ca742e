"""The Positions page under its first picture: order with and without positions, other schemes, sizes."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.answers import asked_about
from app.code import code
from app.live import order_panel, pack, schemes_panel, sizes_panel
from app.models import chosen, shipped, trained
from app.own import introduced, is_own
from app.positions_order import reordered
from app.positions_schemes import SCHEMES, SHOWN, schemes, sizes, taught, trained_sizes
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


def order_section(task: Task, src: list[int], model_id: str) -> None:
    """The person's own tokens in another order."""
    st.subheader("Without positions, order is nothing", anchor=False)
    _order(task, src, model_id)
    st.write(
        "The same trained weights twice, once with their positions left out. Without them, reordering the tokens "
        "reorders the outputs and changes nothing else: the encoder is **equivariant**. Not invariant: each token's "
        "output goes with it (001, Positional Embeddings). With positions, the same tokens in another order are "
        "another sequence."
    )
    st.latex(r"\mathrm{Attention}(PQ, PK, PV) = P\,\mathrm{Attention}(Q, K, V)")
    code(permuted_outputs, without_positions)


@st.fragment
def _order(task: Task, src: list[int], model_id: str) -> None:
    wish = take_commit("order", ("order",))
    order_panel(key="order", data=order_data(task, src, wish, model_id), on_commit_change=lambda: None)
    keep_order(len(src))
    write_link()


def order_data(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> bytes:
    """The chosen model's outputs with and without positions, for the source in its order and in the wished one."""
    order = order_of(checked(wish), len(src))
    checkpoint = chosen(task.name, model_id)
    arrays = reordered(checkpoint.model, src, order)
    header = {
        "view": {"order": order},
        "ask": {**asked_about("order", task.name, src), "model": model_id},
        "count": wish.get("count", 0),
        "tokens": task.tokenizer.labels(src),
        "width": checkpoint.config.d_model,
        "positional": checkpoint.config.positional,
        "status": introduced(checkpoint, is_own(checkpoint, task)),
        "apart": arrays.pop("apart").tolist(),
    }
    return pack(header, arrays)


def schemes_section(task: Task, src: list[int], model_id: str) -> None:
    """Sinusoidal, learned and rotary positions side by side."""
    st.subheader("Three ways to put them in", anchor=False)
    _schemes(task, src, model_id)
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
def _schemes(task: Task, src: list[int], model_id: str) -> None:
    wish = take_commit("schemes", ("draw",))
    schemes_panel(key="schemes", data=schemes_data(task, src, wish, model_id), on_commit_change=lambda: None)
    write_link()


def schemes_data(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> bytes:
    """The scores of one draw under each scheme; of the source nothing is shown.

    The learned table is that of the chosen model, if it has one that splits into pairs, else a shipped one.
    """
    view = checked(wish)
    own = chosen(task.name, model_id)
    suits = own.config.positional == "learned" and own.config.d_model % 2 == 0
    checkpoint = own if suits else shipped(LEARNED)
    learned = checkpoint.model.src_embedding.position.weight.detach()
    arrays = schemes(learned, view.draw)
    header = {
        "view": {"draw": view.draw},
        "ask": {**asked_about("schemes", task.name, src), "model": model_id},
        "count": wish.get("count", 0),
        "draws": len(NUMBERS["draw"]),
        "positions": min(SHOWN, len(learned)),
        "width": checkpoint.config.d_model,
        "taught": taught(checkpoint),
        "own": _of_own(own) if is_own(own, task) else "",
        "spread": arrays.pop("spread").tolist(),
        "alone": arrays.pop("alone").tolist(),
    }
    return pack(header, arrays)


def _of_own(own: Checkpoint) -> str:
    """Which of the three ways a person's own model goes."""
    width = own.config.d_model
    return {
        "sinusoidal": "Your model adds sinusoids, the first of these.",
        "learned": "Your model adds a learned table, and the one shown is its own."
        if width % 2 == 0
        else f"Your model’s learned table is {width} wide, which makes no pairs: the one shown is a shipped model’s.",
        "rotary": f"Your model turns q and k, the last of these, {own.config.head_width} dimensions in each head.",
        "none": "Your model has no positions of any kind.",
    }[own.config.positional]


def sizes_section(task: Task, src: list[int], model_id: str) -> None:
    """How large the two summands of Eq. 2.7 are."""
    st.subheader("Why embeddings are multiplied by √d_model", anchor=False)
    _sizes(task, src, model_id)
    st.write(
        "Tokens and positions are added, so they should be of one size. Positions have root mean square √½ at any "
        "width. Embeddings drawn small, N(0, 1/d), need the factor √d to reach 1 (001, Embeddings and the Output "
        "Head); torch's own N(0, 1) times √d drowns the positions, 32 to 1 at width 512, and without the factor it is "
        "right again (004). The treatise's Xavier matrix depends on how many words there are. Training moves all of it."
    )
    st.latex(r"X^{(0)} = \mathrm{Embed}(x)\cdot\sqrt{D} + PE \qquad (2.7)")
    code(embedding_rms, expected_token_rms)


@st.fragment
def _sizes(task: Task, src: list[int], model_id: str) -> None:
    wish = take_commit("sizes", ("width", "words"))
    sizes_panel(key="sizes", data=sizes_data(task, src, wish, model_id), on_commit_change=lambda: None)
    write_link()


def sizes_data(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> bytes:
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
    own = chosen(task.name, model_id)
    yours = [(f"yours: d_model {own.config.d_model}", own)] if is_own(own, task) else []
    for name, checkpoint in [*_trained_of(view.width), *yours]:
        token, position = trained_sizes(checkpoint)
        rows.append({"name": name, "expected": None, "measured": token, "positions": position, "trained": True})
    header = {
        "view": {"width": view.width, "words": view.words},
        "ask": {**asked_about("sizes", task.name, src), "model": model_id},
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
