"""The models that sliders reach: trained ones from assets/checkpoints, untrained ones built on the spot."""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st
import torch

from app.setup import ROOT
from app.training import runs
from transformer import (
    EOS,
    TASKS,
    Checkpoint,
    Task,
    Transformer,
    TranslationTask,
    greedy_decode,
    load_checkpoint,
)
from transformer.checkpoint import read_header
from transformer.train.__main__ import QUICK_CONFIG
from transformer.zoo import checkpoint_name, recipes

CHECKPOINTS = ROOT / "assets" / "checkpoints"
TRANSLATION = TranslationTask.name  # whatever the languages
# What a page can offer, by name; the first one is what Decode and Attention open on.
TITLES = {TRANSLATION: "Translation", **{name: kind.title for name, kind in TASKS.items()}}


@st.cache_resource(show_spinner=False)
def shipped(name: str) -> Checkpoint:
    """A checkpoint of assets/checkpoints by name. The model is shared: it is only ever read."""
    torch.set_num_threads(1)  # a second thread makes small passes slower whenever a core is busy
    return load_checkpoint(CHECKPOINTS / f"{name}.safetensors")


def chosen(task: str, model_id: str = "") -> Checkpoint:
    """The model that a person chose for a task: "" is the shipped one; else an added one's name, or the id of a
    training or an upload.

    ID@STEP is a training's model as it was after that step, if it was kept. A model that is not there any
    more, or is one of another task, gives way to the shipped one.
    """
    if model_id in added(task):
        return shipped(model_id)
    run_id, _, step = model_id.partition("@")
    if run_id:
        with suppress(KeyError, ValueError, OSError):  # a folder may be removed under our eyes
            path = runs().model(runs().find(run_id), int(step) if step else None)
            checkpoint = _own(str(path), path.stat().st_mtime_ns) if path else None
            if checkpoint and kind_of(checkpoint.task) == task:
                return checkpoint
    return shipped(checkpoint_name(task, 192 if task == TRANSLATION else 64, 4))


def kind_of(task: Task) -> str:
    """The name under which the pages offer a task: all translations under one."""
    return TRANSLATION if isinstance(task, TranslationTask) else task.name


def task_of(name: str, model_id: str = "") -> Task:
    """A task by its name. A translator brings its own words along, so there the model decides."""
    return chosen(name, model_id).task if name == TRANSLATION else TASKS[name]()


@st.cache_resource(show_spinner=False)
def added(task: str) -> tuple[str, ...]:
    """The names of those models of a task that somebody put beside the shipped ones, such as converted ones."""
    ours = {*recipes(), checkpoint_name(TRANSLATION, 192, 4)}
    names = sorted(path.stem for path in CHECKPOINTS.glob("*.safetensors") if path.stem not in ours)
    return tuple(name for name in names if _kind_in(name) == task)


def _kind_in(name: str) -> str:
    with suppress(ValueError, OSError):  # no checkpoint of ours: nothing to offer
        task = str(read_header(CHECKPOINTS / f"{name}.safetensors")[1].get("name"))
        return TRANSLATION if task == "marian" else task
    return ""


@st.cache_resource(show_spinner=False, max_entries=20)
def _own(path: str, changed: int) -> Checkpoint:
    """A person's own model, read again when its file has changed. It is only ever read."""
    return load_checkpoint(path)


@st.cache_resource(show_spinner=False, max_entries=12)
def untrained(task: str, d_model: int, n_heads: int, d_head: int, vocab_size: int | None = None) -> Transformer:
    """A model of these sizes as it is before its first training step, the same at each call.

    vocab_size None: that of the task, for a task that can be made without a model.
    """
    vocab_size = vocab_size or TASKS[task]().tokenizer.vocab_size
    config = replace(
        QUICK_CONFIG,
        src_vocab_size=vocab_size,
        tgt_vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        d_head=d_head,
        d_ff=4 * d_model,
        n_encoder_layers=3 if task == TRANSLATION else 2,
        n_decoder_layers=3 if task == TRANSLATION else 2,
        tie_embeddings=task == TRANSLATION,
        max_len=256,
    )
    return Transformer(config, torch.Generator().manual_seed(0)).eval()


def trained(task: str, d_model: int, n_heads: int, d_head: int) -> Checkpoint | None:
    """The shipped checkpoint of these sizes, if there is one."""
    name = checkpoint_name(task, d_model, n_heads, d_head)
    return shipped(name) if (CHECKPOINTS / f"{name}.safetensors").exists() else None


def translation(checkpoint: Checkpoint, src: list[int]) -> list[int]:
    """A translator's own answer to a source, EOS not among it."""
    return list(_translation(checkpoint.model, tuple(src), min(2 * len(src) + 8, checkpoint.config.max_len)))


@lru_cache(maxsize=16)
def _translation(model: Transformer, src: tuple[int, ...], limit: int) -> tuple[int, ...]:
    steps = greedy_decode(model, torch.tensor([src], dtype=torch.long), limit)
    return tuple(i for step in steps if (i := int(step.token)) != EOS)


def describe(checkpoint: Checkpoint) -> str:
    """One sentence: the model's sizes, and what was measured when it had been trained."""
    config = checkpoint.config
    n_parameters = sum(p.numel() for p in checkpoint.model.parameters())
    return (
        f"Model: {config.n_encoder_layers} + {config.n_decoder_layers} layers, d_model {config.d_model}, "
        f"{config.n_heads} heads of d_k {config.head_width}, {n_parameters:,} parameters; {measured(checkpoint)}."
    )


def measured(checkpoint: Checkpoint) -> str:
    """How good the model is, as far as its file says so in numbers: own files may say anything."""
    if said := _on_sentences(checkpoint.metrics.get("short")):
        return said
    right, of = (checkpoint.metrics.get(name) for name in ("exact_match", "exact_match_of"))
    steps = checkpoint.training.get("steps_done")
    if type(right) is int and type(of) is int:
        return f"once trained it got {right:,} of {of:,} fresh sequences right"
    return f"not measured, after {steps:,} steps of training" if type(steps) is int else "not measured"


def _on_sentences(scores: Any) -> str:
    """A translator's scores on everyday sentences, "" if these are none."""
    names = ("bleu", "chrf", "exact_match", "exact_match_of")
    values = [scores.get(name) for name in names] if isinstance(scores, dict) else []
    if not values or not all(isinstance(value, int | float) for value in values):
        return ""
    bleu, chrf, right, of = values
    return (
        f"on {of:,} sentences of 3 to 8 words that it never saw: BLEU {bleu:.1f}, chrF {chrf:.1f}, "
        f"{right:,} letter for letter as one of the references"
    )


def attribution(checkpoint: Checkpoint) -> str:
    """Whose sentences a model was trained on, as its file says, "" if it does not."""
    said = checkpoint.training.get("attribution")
    return said if isinstance(said, str) else ""
