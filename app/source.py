"""The rows above every page: the task and the one sequence that all pages show."""

import streamlit as st

from app.models import TITLES, TRANSLATION, chosen, kind_of, task_of
from app.own import model_choice
from app.text import literal
from transformer import TASKS, Task

# At most twice what the model was trained on: far enough to see it fail, short enough to be read.
STRETCH = 2
MOST_TOKENS = 64  # more, side by side for every head, are a few pixels each
MOST_CHARACTERS = 400


def chosen_run(translation: bool = False) -> tuple[Task, list[int], str]:
    """Draw the choice of task, of model where there are several, and the text; return the task, the token ids
    to show and the model's id, "" for the shipped one. translation: whether this page can show translators.
    """
    name = _task_choice([*TITLES] if translation else [*TASKS])
    model_id = model_choice(name)
    task = task_of(name, model_id)
    return task, _source_row(task, model_id), model_id


def source_rows() -> tuple[Task, list[int]]:
    """The same without a choice of model."""
    task = TASKS[_task_choice([*TASKS])]()
    return task, _source_row(task)


def _task_choice(names: list[str]) -> str:
    """Draw the choice of task; the first one is the page's own. One that this page has not stays chosen elsewhere."""
    by_title = {TITLES[name]: name for name in names}
    said = st.query_params.get("task")
    if said is not None and said not in by_title and said not in TITLES:
        st.info(literal(f"The link's task {said!r} is not one of {', '.join(by_title)}."))
        said = None
    _take_from_link("task", by_title.get(said, said), names[0])
    if st.session_state["task"] not in names:
        st.session_state["task"] = names[0]
    name = st.segmented_control(
        "Task",
        names,
        required=True,
        format_func=TITLES.get,
        key="task",
        on_change=_hold,
        args=("task",),
        label_visibility="collapsed",
    )
    _keep_in_link("task", name, TITLES[name] if name != names[0] else None)
    return name


def _source_row(task: Task, model_id: str = "") -> list[int]:
    """Draw the text field and its examples; return the token ids to show.

    Each task keeps its own text. What cannot be read is explained under the field, and the last readable
    sequence stays on.
    """
    key, last_good = f"source-{task.name}", f"last-good-{task.name}"
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
            st.button(label, on_click=_take, args=(key, example), key=f"example-{task.name}-{label}")
    _keep_in_link(key, text, text if text != first else None)
    try:
        ids = within_reach(task, task.tokenizer.encode(text))
    except ValueError as error:
        text = st.session_state.get(last_good, first)
        ids = task.tokenizer.encode(text)
        st.warning(literal(f"{error} Still showing: {text or 'the empty sequence'}"))
    else:
        st.session_state[last_good] = text
    for doubt in doubts(task, text, ids, model_id):
        st.info(doubt)
    return ids


def doubts(task: Task, text: str, ids: list[int], model_id: str = "") -> list[str]:
    """Why what the model answers to this text may be worth nothing: a sentence for each reason."""
    found, translates = [], kind_of(task) == TRANSLATION
    # How a converted model was trained is not known.
    settings = chosen(TRANSLATION, model_id).training.get("settings") if translates else None
    most_words = settings.get("max_words") if isinstance(settings, dict) else None
    n_words = len(text.split())
    if isinstance(most_words, int) and n_words > most_words:
        found.append(
            f"{n_words} words: the model learned from sentences of at most {most_words}. It often loses the thread in "
            "longer ones; two short sentences, one after the other, fare better."
        )
    elif len(ids) > task.max_source and (most_words or not translates):
        found.append(
            f"{len(ids)} tokens: the model was trained on at most {task.max_source}. Watch it guess beyond that."
        )
    unfamiliar = task.tokenizer.unfamiliar(ids)
    if 3 * unfamiliar > len(ids):
        found.append(
            f"{unfamiliar} of {len(ids)} pieces stand for characters that are not in the model's vocabulary. "
            "It hardly ever saw them, so its answer means little."
        )
    return found


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
    most = min(STRETCH * task.max_source, MOST_TOKENS)
    if len(ids) > most:
        raise ValueError(f"{len(ids)} tokens are too many: up to {most} can be shown.")
    return ids


def _take(key: str, example: str) -> None:
    st.session_state[f"{key}-held"] = example
