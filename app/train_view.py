"""The Train page's picture: choices, a training under way, and its time as a slider, drawn by one live component."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import streamlit as st

from app.answers import asked_about
from app.code import code
from app.live import pack, train_panel
from app.own import own_runs, remember, upload
from app.recordings import recording
from app.runtime import prepare
from app.text import literal
from app.train_state import (
    FIELDS,
    NUMBERS,
    View,
    checked,
    default_view,
    estimate,
    example,
    from_link,
    plan_of,
    settings_of,
)
from app.training import runs
from app.training_answers import address, recorded_id
from transformer import Task, Transformer, TransformerConfig, answer_share, sequence_loss, train
from transformer.train import TrainSettings
from transformer.train.__main__ import DOCUMENT_SETTINGS
from transformer.train.loss import smoothed_loss
from transformer.train.plan import Plan
from transformer.train.record import FRESH, STEP_COLUMNS, example_attention, frame_layout, gradient_norms, parts


def show(task: Task, src: list[int]) -> None:
    """Draw the panel; the view comes from this page's link, then from what the person chose for this task."""
    prepare()
    kept = f"train-view-{task.name}"
    if kept not in st.session_state:
        st.session_state[kept], changed = from_link(st.query_params, task.name)
        if changed:
            st.info(literal(" ".join(changed)))
        if "run" not in st.query_params:
            st.session_state[kept] = replace(st.session_state[kept], run=_last_own(task))
    _panel(task, src, kept)
    upload()
    with st.expander("Why does the rate warm up?"):
        st.latex(
            r"\mathrm{lr}(s) = d_{\mathrm{model}}^{-0.5} \cdot "
            r"\min\!\left(s^{-0.5},\; s \cdot \mathrm{warmup}^{-1.5}\right) \qquad \text{(001, Training)}"
        )
        st.write(
            "At first every head looks everywhere alike and gradients say little about where to go: large steps then "
            "can lead where no later step leads out again. So the rate rises in a straight line for the warmup steps. "
            "The two branches meet at s = warmup, the peak, (d_model · warmup)^−0.5. Pre-LN models, such as "
            "this one, bear a missing warmup better than post-LN ones."
        )
    code(
        train,
        TrainSettings.learning_rate,
        sequence_loss,
        smoothed_loss,
        example_attention,
        gradient_norms,
        answer_share,
    )


@st.fragment
def _panel(task: Task, src: list[int], kept: str) -> None:
    """Runs again, alone, when a choice is made or a training started; what trains is followed by HTTP."""
    key = f"train-{task.name}"
    wish = (st.session_state.get(key) or {}).get("commit") or asdict(st.session_state[kept])
    data, view = panel_data(task, src, wish)
    if st.session_state[kept].run and not view.run:
        st.info("The training in the link is not kept any more, or is one of another task.")
    st.session_state[kept] = view
    if view.run:
        remember(view.run)
    train_panel(key=key, data=data, on_commit_change=lambda: None)
    link = view.link(task.name)
    for name in FIELDS:
        if name in link and st.query_params.get(name) != link[name]:
            st.query_params[name] = link[name]
        elif name not in link and name in st.query_params:
            del st.query_params[name]


def panel_data(task: Task, src: list[int], wish: Mapping[str, Any]) -> tuple[bytes, View]:
    """What the panel needs of the choices, and of the run that they name; and the view, checked."""
    view = checked(wish, task.name)
    plan = _plan_of_run(view.run, task)
    view = replace(view, run=view.run if plan else "")
    shown = plan or Plan.read(recording(task.name))
    chosen, problem = None, ""
    try:
        chosen = plan_of(view, task, src)
    except ValueError as error:
        problem = str(error)
    header = {
        "view": asdict(view),
        "default": asdict(default_view(task.name)),
        "ask": asked_about("train", task.name, src),
        "count": wish.get("count", 0),
        "numbers": NUMBERS,
        "training": address(),
        "problem": problem,
        "watched": _watched(task, src),
        "parameters": n_parameters(chosen.config) if chosen else 0,
        "seconds": estimate(view, task),
        "answer": task.answer,
        "title": task.title,
        "run": {"id": view.run or recorded_id(task.name), "recorded": not plan, **_facts(shown, task)},
    }
    steps, d_model = shown.settings.steps, shown.config.d_model
    arrays = {
        "run_rate": rates(shown.settings, d_model, steps),
        "next_rate": rates(settings_of(view), view.d_model, view.steps),
        "document_rate": rates(DOCUMENT_SETTINGS, d_model, steps),
    }
    return pack(header, arrays), view


def panel_block(task: Task, src: list[int], wish: Mapping[str, Any]) -> bytes:
    """The block alone, for a question asked while a control is dragged."""
    return panel_data(task, src, wish)[0]


def rates(settings: TrainSettings, d_model: int, steps: int) -> np.ndarray:
    """The learning rate of steps 1 to ``steps``."""
    return np.array([settings.learning_rate(step, d_model) for step in range(1, steps + 1)])


def _watched(task: Task, src: list[int]) -> str:
    """What is said where the person's own sequence cannot be the example, else ""."""
    watched, _ = example(task, src)
    if watched == src:
        return ""
    labels = " ".join(task.tokenizer.labels(watched))
    return f"Your sequence is empty, too long or without a right answer; {labels} will be watched instead."


def _last_own(task: Task) -> str:
    """The person's latest training of the task, "" if there is none: a page opened anew goes on with it."""
    return next((run_id for run_id in reversed(own_runs()) if _plan_of_run(run_id, task)), "")


def _plan_of_run(run_id: str, task: Task) -> Plan | None:
    try:
        plan = runs().find(run_id).plan
    except KeyError:
        return None
    return plan if plan and plan.task == task.name else None


def n_parameters(config: TransformerConfig) -> int:
    """How many numbers a model of these sizes learns."""
    return sum(p.numel() for p in Transformer(config).parameters())


def _example(task: Task, src: list[int], target: list[int]) -> dict[str, list[str]]:
    """The labels of an example: its source, what the decoder reads, and what it is to write there."""
    tokenizer = task.tokenizer
    return {
        "source": tokenizer.labels(src),
        "read": tokenizer.labels([tokenizer.bos_id, *target]),
        "written": tokenizer.labels([*target, tokenizer.eos_id]),
    }


def _facts(plan: Plan, task: Task) -> dict[str, Any]:
    """What does not change while a training goes on."""
    config, settings = plan.config, plan.settings
    smoothing, others = settings.label_smoothing, config.tgt_vocab_size - 1
    wanted = [1 - smoothing + smoothing / others, smoothing / others]
    return {
        "example": _example(task, plan.src, plan.target),
        "steps": settings.steps,
        "seed": plan.seed,
        "sizes": f"d_model {config.d_model}, {config.n_heads} heads, {config.n_encoder_layers} + "
        f"{config.n_decoder_layers} layers, {n_parameters(config):,} parameters",
        "schedule": settings.schedule,
        "warmup": settings.warmup,
        "smoothing": smoothing,
        "wanted": wanted,
        # The entropy of what is wanted of the right token and of all others but PAD.
        "least_loss": -sum(n * p * math.log(p) for n, p in zip((1, others - 1), wanted, strict=True) if p),
        "columns": STEP_COLUMNS,
        "layout": frame_layout(plan),
        "parts": list(parts(config)),
        "fresh": FRESH,
        "kept": [step for step in range(settings.steps) if plan.is_kept(step)],
    }
