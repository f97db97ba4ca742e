"""The rows above every page: the task and the one sequence that all pages show."""

import streamlit as st

from app.text import literal
from transformer import TASKS, Task

# At most twice what the model was trained on: far enough to see it fail, short enough to be read.
STRETCH = 2


def source_rows() -> tuple[Task, list[int]]:
    """Draw the choice of task, the text field and its examples; return the task and the token ids to show.

    Each task keeps its own text. What cannot be read is explained under the field, and the last readable
    sequence stays on.
    """
    name = st.segmented_control(
        "Task",
        list(TASKS),
        default="reverse",
        required=True,
        format_func=lambda name: TASKS[name].title,
        key="task",
        bind="query-params",
        persist_state="session",
        label_visibility="collapsed",
    )
    task = TASKS[name]()
    key, last_good = f"source-{name}", f"last-good-{name}"
    first = next(iter(task.examples.values()))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="source-row"):
        text = st.text_input(
            f"Yours: {task.prompt}; then Enter",
            first,
            key=key,
            bind="query-params",
            persist_state="session",
            max_chars=400,
            placeholder="nothing: an empty sequence",
            width=440,
        )
        for label, example in task.examples.items():
            st.button(label, on_click=_take, args=(key, example), key=f"example-{name}-{label}")
    try:
        ids = within_reach(task, task.tokenizer.encode(text))
    except ValueError as error:
        text = st.session_state.get(last_good, first)
        ids = task.tokenizer.encode(text)
        st.warning(literal(f"{error} Still showing: {text or 'the empty sequence'}"))
    else:
        st.session_state[last_good] = text
    if len(ids) > task.max_source:
        st.info(f"{len(ids)} tokens: the model was trained on at most {task.max_source}. Watch it guess beyond that.")
    return task, ids


def within_reach(task: Task, ids: list[int]) -> list[int]:
    """The ids, if the pages can show so many; else ValueError with both numbers."""
    most = STRETCH * task.max_source
    if len(ids) > most:
        raise ValueError(f"{len(ids)} tokens are too many: up to {most} can be shown.")
    return ids


def _take(key: str, example: str) -> None:
    st.session_state[key] = example
