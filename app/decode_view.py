"""The Decode page's picture: the player, and what stands under it."""

import re
from typing import Any

import streamlit as st

from app import rows_view
from app.answers import asked_about
from app.decoding import Decoding, frames, run_decoding
from app.live import decode_player
from app.models import attribution, chosen, describe, kind_of
from app.runtime import prepare
from app.text import literal
from transformer import Checkpoint, Task

KEY, LINKED = "player", "player-linked-branch"
STEP, TAKE = "step", "take"  # in the link: tokens written, and ids that were taken in place of the model's own


def show(task: Task, src: list[int], model_id: str = "") -> None:
    """Decode ids with the chosen model and let the player step through it; a candidate chosen there branches it."""
    prepare()
    labels = task.tokenizer.labels(src)
    linked = st.session_state.setdefault(
        LINKED, {"source": labels, "tokens": whole_numbers(st.query_params.get(TAKE, ""))}
    )
    branch = (st.session_state.get(KEY) or {}).get("branch") or linked
    checkpoint, decoding = _decoded(task, src, branch, model_id)
    forced = decoding.forced
    step = next(iter(whole_numbers(st.query_params.get(STEP, ""))), len(forced) or None)
    data = frames(decoding, checkpoint, step, _ask(task, src, model_id))
    decode_player(key=KEY, data=data, on_branch_change=lambda: None)
    if forced:
        st.query_params[TAKE] = "-".join(map(str, forced))
    elif TAKE in st.query_params:
        del st.query_params[TAKE]
    n_tokens = len(decoding.tokens)
    st.caption(
        f"{describe(checkpoint)} {n_tokens} tokens took {1000 * decoding.seconds:.0f} ms with a KV cache; in one pass "
        f"over all of them without it no logit differs by more than {decoding.cache_difference:.1e}."
    )
    rows_view.show(checkpoint, src)
    if said := attribution(checkpoint):
        st.caption(literal(f"Trained on sentences of {said}."))


def panel_block(task: Task, src: list[int], wish: dict[str, Any], model_id: str = "") -> bytes:
    """The block of a branch, asked for when a candidate is taken: {"tokens": ids}. The page runs after it."""
    branch = {"source": task.tokenizer.labels(src), "tokens": wish.get("tokens")}
    checkpoint, decoding = _decoded(task, src, branch, model_id)
    return frames(decoding, checkpoint, len(decoding.forced) or None, _ask(task, src, model_id))


def _decoded(task: Task, src: list[int], branch: Any, model_id: str) -> tuple[Checkpoint, Decoding]:
    checkpoint = chosen(kind_of(task), model_id)
    # A model that does not stop by itself is stopped here.
    limit = min(max(2 * len(src), task.max_target) + 2, checkpoint.config.max_len)
    forced = branch_tokens(branch, checkpoint.tokenizer.labels(src), checkpoint.config.tgt_vocab_size)[:limit]
    return checkpoint, run_decoding(checkpoint, src, forced, limit)


def _ask(task: Task, src: list[int], model_id: str) -> dict[str, Any]:
    return {**asked_about("decode", kind_of(task), src), "model": model_id}


def branch_tokens(branch: Any, source: list[str], vocab_size: int) -> list[int]:
    """The tokens that the player asks to take first, [] for none: {"source": labels, "tokens": ids}.

    It comes from a browser, so anything else than ids of this vocabulary for this very source counts as none.
    """
    if not isinstance(branch, dict) or branch.get("source") != source:
        return []
    tokens = branch.get("tokens")
    fits = isinstance(tokens, list) and all(type(i) is int and 0 <= i < vocab_size for i in tokens)
    return tokens if fits else []


def whole_numbers(text: str) -> list[int]:
    """The numbers of "6-9-2"; [] for any other text."""
    return [int(part) for part in text.split("-")] if re.fullmatch(r"\d{1,6}(-\d{1,6}){0,99}", text, re.ASCII) else []
