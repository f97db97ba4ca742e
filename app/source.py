"""The rows above every page: the task and the one sequence that all pages show."""

import streamlit as st

from app.text import literal
from transformer import TASKS, Task

# At most twice what the model was trained on: far enough to see it fail, short enough to be read.
STRETCH = 2
MOST_CHARACTERS = 400


def source_rows() -> tuple[Task, list[int]]:
    """Draw the choice of task, the text field and its examples; return the task and the token ids to show.

    Each task keeps its own text. What cannot be read is explained under the field, and the last readable
    sequence stays on.
    """
    by_title = {kind.title: name for name, kind in TASKS.items()}
    said = st.query_params.get("task")
    if said is not None and said not in by_title and said not in TASKS:
        st.info(literal(f"The link's task {said!r} is not one of {', '.join(by_title)}."))
        said = None
    _take_from_link("task", by_title.get(said, said), "reverse")
    name = st.segmented_control(
        "Task",
        list(TASKS),
        required=True,
        format_func=lambda name: TASKS[name].title,
        key="task",
        on_change=_hold,
        args=("task",),
        label_visibility="collapsed",
    )
    task = TASKS[name]()
    _keep_in_link("task", name, task.title if name != "reverse" else None)
    key, last_good = f"source-{name}", f"last-good-{name}"
    first = next(iter(task.examples.values()))
    said = st.query_params.get(key)
    _take_from_link(key, said if said is None else said[:MOST_CHARACTERS], first)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="source-row"):
        text = st.text_input(
            f"Yours: {task.prompt}; then Enter",
            key=key,
            on_change=_hold,
            args=(key,),
            max_chars=MOST_CHARACTERS,
            placeholder="nothing: an empty sequence",
            width=440,
        )
        for label, example in task.examples.items():
            st.button(label, on_click=_take, args=(key, example), key=f"example-{name}-{label}")
    _keep_in_link(key, text, text if text != first else None)
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


def _take_from_link(key: str, said: str | None, first: str) -> None:
    """Before a widget is drawn: a new link decides, else what the person chose last, on this page or on another.

    Streamlit's own binding to the link forgets on the next page what the link had brought in, and a widget's
    state does not outlive its page.
    """
    if said is not None and said != st.session_state.get(f"{key}-linked"):
        st.session_state[f"{key}-held"] = said
    st.session_state[key] = st.session_state.setdefault(f"{key}-held", first)


def _hold(key: str) -> None:
    st.session_state[f"{key}-held"] = st.session_state[key]


def _keep_in_link(key: str, value: str, linked: str | None) -> None:
    """After it: the link holds what differs from the first value (linked None)."""
    st.session_state[f"{key}-linked"] = value
    if linked is None:
        st.query_params.pop(key, None)
    elif st.query_params.get(key) != linked:
        st.query_params[key] = linked


def within_reach(task: Task, ids: list[int]) -> list[int]:
    """The ids, if the pages can show so many; else ValueError with both numbers."""
    most = STRETCH * task.max_source
    if len(ids) > most:
        raise ValueError(f"{len(ids)} tokens are too many: up to {most} can be shown.")
    return ids


def _take(key: str, example: str) -> None:
    st.session_state[f"{key}-held"] = example
