"""Models that a person trained or uploaded: which there are, which is chosen, and how one comes in from a file."""

import re

import streamlit as st

from app.models import TITLES, TRANSLATION, added, chosen, describe, kind_of
from app.text import literal
from app.training import DONE, runs
from app.uploads import MOST_MEGABYTES, read_upload
from transformer import TASKS, Checkpoint, Task

OWN = "own-runs"
_COOKIE = "transformer-workbench-runs"  # written by the Train panel too, so that a reload knows its person's models
_SHIPPED = "shipped"


def remember(run_id: str) -> None:
    """This session's person has that run."""
    known = st.session_state.setdefault(OWN, [])
    if run_id not in known:
        known.append(run_id)


def own_runs() -> list[str]:
    """The ids of this person's runs that are still kept, oldest first."""
    if OWN not in st.session_state:
        cookie = str(st.context.cookies.get(_COOKIE, ""))  # whatever stands there: what is no run is not found below
        st.session_state[OWN] = re.findall(r"[A-Za-z0-9_-]{16}", cookie)
    kept = []
    for run_id in st.session_state[OWN]:
        try:
            runs().find(run_id)
        except KeyError:
            continue
        kept.append(run_id)
    st.session_state[OWN] = kept
    return kept


def model_choice(task: str) -> str:
    """Draw the choice of models of a task, if there are several; return the id, "" for the shipped one."""
    # Link and memory are kept by hand: a bound selectbox would put its whole line into the link.
    key = f"model-{task}"
    memory = f"last-{key}"
    linked = st.query_params.get(key)
    last = linked or st.session_state.get(memory, _SHIPPED)
    labels = {_SHIPPED: "Shipped", **_labels(task, last)}
    if last not in labels:
        which = "in the link" if linked else "chosen last"
        st.info(f"The model {which} is not kept any more: this is the shipped one.")
        st.query_params.pop(key, None)
        last = st.session_state[memory] = _SHIPPED
    _under_way()
    if len(labels) == 1:
        return ""
    current = st.session_state.get(key, last)
    st.session_state[key] = current if current in labels else _SHIPPED  # said anew: another page's box is another one
    picked = st.selectbox("Model", list(labels), format_func=labels.get, key=key, width=440)
    st.session_state[memory] = picked
    if picked == _SHIPPED:
        st.query_params.pop(key, None)
        return ""
    if st.query_params.get(key) != picked:
        st.query_params[key] = picked
    return picked


def _labels(task: str, last: str) -> dict[str, str]:
    """A line for each added model of the task, each own one, and the one chosen last or in the link, whoever's."""
    labels = {name: name for name in added(task)}
    for model_id in dict.fromkeys([*reversed(own_runs()), last]):
        run_id = model_id.partition("@")[0]
        checkpoint = chosen(task, model_id)
        if model_id in labels or checkpoint is chosen(task):  # it is gone, has no weights yet, or is of another task
            continue
        plan = runs().find(run_id).plan
        origin = f"seed {plan.seed}, step {checkpoint.training['steps_done']:,}" if plan else "uploaded"
        config = checkpoint.config
        labels[model_id] = (
            f"Yours: {origin}, d_model {config.d_model}, {config.n_heads} heads, "
            f"{config.n_encoder_layers} + {config.n_decoder_layers} layers"
        )
    return labels


def _under_way() -> None:
    """A line while one of this person's trainings goes on; asking about it keeps it alive on other pages too."""
    if any(runs().standing(runs().find(run_id))["name"] not in (*DONE, "paused") for run_id in own_runs()):
        _watch()


@st.fragment(run_every=5)
def _watch() -> None:
    said = []
    for run_id in own_runs():
        run = runs().find(run_id)
        standing = runs().standing(run)
        if run.plan and standing["name"] not in (*DONE, "paused"):
            place = f", place {standing['place']} in the queue" if standing["name"] == "queued" else ""
            said.append(f"{TASKS[run.plan.task].title}: {standing['name']}{place}")
    if not said:
        st.rerun()  # it is done: its model joins the choice
    st.caption(f"Your training goes on meanwhile. {'; '.join(said)}.")


def is_own(checkpoint: Checkpoint, task: Task) -> bool:
    """Whether a model that was chosen for a task is a person's own."""
    return checkpoint is not chosen(task.name)


def introduced(checkpoint: Checkpoint, mine: bool) -> str:
    """One sentence: whose model is shown, its sizes and what was measured of it."""
    said = describe(checkpoint)
    return f"Your {said[0].lower()}{said[1:]}" if mine else said


def upload() -> None:
    """Take a checkpoint in, or say why not."""
    with st.expander("Bring a trained model back"):
        file = st.file_uploader(
            f"A .safetensors checkpoint of this project, up to {MOST_MEGABYTES} MB",
            type="safetensors",
            max_upload_size=MOST_MEGABYTES,
            key="upload",
        )
        if file is None:
            return
        taken = st.session_state.setdefault("uploaded", {})
        if file.file_id not in taken:
            try:
                checkpoint = read_upload(file.getvalue(), file.name)
            except ValueError as error:
                st.error(literal(str(error)))
                return
            taken[file.file_id] = runs().keep(file.getvalue(), file.name), kind_of(checkpoint.task)
            remember(taken[file.file_id][0])
        ids = ".".join(own_runs()[-8:])
        cookie = f"{_COOKIE}={ids}; path=/; max-age=21600; samesite=strict"
        st.html(f"<script>document.cookie = {cookie!r}</script>", unsafe_allow_javascript=True)
        kind = taken[file.file_id][1]
        where = "on Decode or Attention" if kind == TRANSLATION else "on the other pages"
        st.success(literal(f"{file.name} is taken in. Choose it under “Model” {where}, task {TITLES[kind]}."))
