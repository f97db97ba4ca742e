"""The Masks page's picture: a batch, its masks, what they do to the model, and what breaks without them."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import streamlit as st

from app.code import code
from app.live import masks_panel, pack
from app.masks_models import FRESH, measured, on_one
from app.masks_run import (
    attention_arrays,
    empty_rows,
    leaks,
    masks,
    next_tokens,
    query_axis,
    records,
    run,
    sentences,
    with_companions,
)
from app.masks_state import LINKED, View, cell_name, checked, for_batch, from_link, within
from app.models import shipped
from app.runtime import prepare
from app.text import literal
from transformer import (
    MASKED_SOFTMAXES,
    Task,
    Trace,
    attention_weights,
    causal_mask,
    leak,
    padding_mask,
    teacher_forced_loss,
    weights_and_gradients,
)
from transformer.zoo import checkpoint_name

KEY, VIEW = "masks", "masks-view"  # VIEW holds the view and the batch that it was chosen for


def show(task: Task, src: list[int]) -> None:
    """Draw the panel for a source; the view comes from this page's link, then from what the person chose."""
    prepare()
    if VIEW not in st.session_state:
        view, changed = from_link(st.query_params)
        st.session_state[VIEW] = (view, batch_name(task, src, view.draw))
        if changed:
            st.info(literal(" ".join(changed)))
    _panel(task, src)
    _write_link()
    _why()
    code(padding_mask, causal_mask, attention_weights, leak, *list(MASKED_SOFTMAXES.values())[:-1],
         weights_and_gradients, teacher_forced_loss)  # fmt: skip


def batch_name(task: Task, src: list[int], draw: int) -> str:
    """Lengths and cells belong to one batch; this names it."""
    return f"{task.name} {'-'.join(map(str, src))} {draw}"


@st.fragment
def _panel(task: Task, src: list[int]) -> None:
    """Runs again, alone, for each answer to a drag."""
    wish = (st.session_state.get(KEY) or {}).get("wish") or {}
    view, of = (checked(wish), wish.get("batch")) if wish else st.session_state[VIEW]
    name = batch_name(task, src, view.draw)
    if of != name:
        view = replace(view, lengths=View().lengths, flips=())
    data, view = panel_data(task, src, view, wish)
    st.session_state[VIEW] = (view, name)
    masks_panel(key=KEY, data=data, on_wish_change=lambda: None, on_commit_change=_write_link)


def panel_data(task: Task, src: list[int], view: View, wish: Mapping[str, Any]) -> tuple[bytes, View]:
    """The block that the panel draws, and the view as it is shown: no further than this batch goes."""
    checkpoint = shipped(checkpoint_name(task.name, 64, 4))
    model, tokenizer = checkpoint.model, task.tokenizer
    full = with_companions(task, src, view.draw)
    longest = [len(one) for one in full]
    lengths = [m if n is None else min(n, m) for n, m in zip(view.lengths, longest, strict=True)]
    batch = sentences(model, task, full, lengths)
    S, T = batch.src.shape[1], batch.tgt.shape[1]
    view = for_batch(view, longest, T, tokenizer.vocab_size)
    n_read = int(batch.tgt_lengths[view.sentence])
    n_rows = S if view.attend == "encoder" else T
    view = within(view, checkpoint.config.n_decoder_layers, checkpoint.config.n_heads, n_rows, n_read)

    at, edited = view.sentence, bool(view.flips) or not view.causal
    usual_trace = trace = Trace()
    usual = logits = run(model, batch, masks(batch, causal=True), usual_trace)
    applied = masks(batch, view.causal, view.flips)
    if edited:
        trace = Trace()
        logits = run(model, batch, applied, trace)
    of_kind = records(trace, view.attend)
    token = _another(batch.tgt[at, :n_read].tolist(), tokenizer.vocab_size) if view.token is None else view.token
    own_decoder = any(flip[:2] == ("d", at) for flip in view.flips)
    pair, pair_arrays = _two_models(task.name, tuple(src), view.draw)
    arrays = {
        "encoder": applied.encoder,
        "padding": applied.padding,
        "causal": applied.causal,
        "decoder": applied.decoder,
        "cross": applied.cross,
        **attention_arrays(of_kind, at),
        **next_tokens(logits[at]),
        "moved": (logits - usual)[at].abs().amax(-1),
        **leaks(model, batch, applied, at, token, own_decoder),
        **empty_rows(of_kind[view.layer], at, view.head, view.row),
        **pair_arrays,
    }
    header = {
        "view": {**asdict(view), "flips": [cell_name(flip) for flip in view.flips], "token_shown": token},
        "batch": batch_name(task, src, view.draw),
        "count": wish.get("count", 0),
        "full": longest,
        "lengths": lengths,
        "read": batch.tgt_lengths.tolist(),
        "sources": [_labels(task, row) for row in batch.src.tolist()],
        "targets": [_labels(task, row) for row in batch.tgt.tolist()],
        "written": _labels(task, batch.written[at].tolist()),
        "vocabulary": tokenizer.vocabulary(),
        "heads": checkpoint.config.n_heads,
        "edited": edited,
        "softmaxes": list(MASKED_SOFTMAXES),
        "query_axis": query_axis(model, batch, usual, usual_trace),
        "pair": pair,
    }
    return pack(header, {name: np.asarray(array) for name, array in arrays.items()}), view


def _labels(task: Task, ids: list[int]) -> list[str]:
    return ["·" if label == "<pad>" else label for label in task.tokenizer.labels(ids)]


def _another(read: list[int], vocab_size: int) -> int:
    """A token that the target does not hold, or else the last one."""
    return next((token for token in range(vocab_size - 1, 2, -1) if token not in read), vocab_size - 1)


@st.cache_data(show_spinner=False, max_entries=200)
def _two_models(task: str, src: tuple[int, ...], draw: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the panel says of the model trained with the causal mask and of the one trained without."""
    said, arrays = {"fresh": FRESH}, {}
    leaky = shipped(checkpoint_name(task, 64, 4, causal=False))
    for name, checkpoint in {"causal": shipped(checkpoint_name(task, 64, 4)), "open": leaky}.items():
        tokens, numbers = on_one(checkpoint, leaky.task, list(src))
        words = {which: _labels(leaky.task, ids) for which, ids in tokens.items()}
        said[name] = {**_fresh(task, name, draw), **words, "trained": checkpoint.metrics}
        arrays |= {f"{name}_{which}": array for which, array in numbers.items()}
    return said, arrays


@st.cache_data(show_spinner=False, max_entries=200)
def _fresh(task: str, name: str, draw: int) -> dict[str, float]:
    leaky = shipped(checkpoint_name(task, 64, 4, causal=False))
    return measured(leaky if name == "open" else shipped(checkpoint_name(task, 64, 4)), leaky.task, draw)


def _write_link() -> None:
    """The link holds what is shown; called when a control is let go, too."""
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
