"""The row above every page: the one sequence that all pages show."""

import streamlit as st

from app.text import literal
from transformer import Checkpoint

KEY = "source"
_LAST_GOOD = "last_good_source"
# At most twice what the model was trained on: far enough to see it fail, short enough to be read.
STRETCH = 2


def examples(checkpoint: Checkpoint) -> dict[str, str]:
    """Sequences worth a look, by the name on their button."""
    symbols = checkpoint.tokenizer.symbols
    longest = checkpoint.task.max_len
    return {
        "Mixed": " ".join((symbols[0], symbols[8 % len(symbols)], symbols[4 % len(symbols)], *symbols[1:4])),
        "Repeats": " ".join((symbols[2], symbols[2], symbols[5], symbols[2], symbols[5])),
        "Longest": " ".join((symbols * longest)[:longest]),
        "One symbol": symbols[4 % len(symbols)],
        "Nothing": "",
    }


def source_row(checkpoint: Checkpoint) -> list[int]:
    """Draw the text field with its examples and return the token ids to show.

    What cannot be read is explained under the field, and the last readable sequence stays on.
    """
    choices = examples(checkpoint)
    first = next(iter(choices.values()))
    symbols = checkpoint.tokenizer.symbols
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="source-row"):
        text = st.text_input(
            f"Your sequence: symbols {symbols[0]} to {symbols[-1]}, spaces between, then Enter",
            first,
            key=KEY,
            bind="query-params",
            persist_state="session",
            max_chars=400,
            placeholder="nothing: an empty sequence",
            width=420,
        )
        for name, example in choices.items():
            st.button(name, on_click=_take, args=(example,), key=f"example-{name}")
    try:
        ids = _readable(checkpoint, text)
    except ValueError as error:
        text = st.session_state.get(_LAST_GOOD, first)
        ids = checkpoint.tokenizer.encode(text)
        st.warning(literal(f"{error} Still showing: {text or 'the empty sequence'}"))
    else:
        st.session_state[_LAST_GOOD] = text
    trained = checkpoint.task.max_len
    if len(ids) > trained:
        st.info(f"{len(ids)} symbols: the model was trained on at most {trained}. Watch it guess beyond that.")
    return ids


def _readable(checkpoint: Checkpoint, text: str) -> list[int]:
    ids = checkpoint.tokenizer.encode(text)
    most = STRETCH * checkpoint.task.max_len
    if len(ids) > most:
        raise ValueError(f"{len(ids)} symbols are too many: up to {most} can be shown.")
    return ids


def _take(example: str) -> None:
    st.session_state[KEY] = example
