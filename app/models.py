"""The models that sliders reach: trained ones from assets/checkpoints, untrained ones built on the spot."""

from contextlib import suppress
from dataclasses import replace

import streamlit as st
import torch

from app.setup import ROOT
from app.training import runs
from transformer import TASKS, Checkpoint, Transformer, load_checkpoint, without_positions
from transformer.train.__main__ import QUICK_CONFIG
from transformer.zoo import checkpoint_name

CHECKPOINTS = ROOT / "assets" / "checkpoints"


@st.cache_resource(show_spinner=False)
def shipped(name: str) -> Checkpoint:
    """A checkpoint of assets/checkpoints by name. The model is shared: it is only ever read."""
    torch.set_num_threads(1)  # a second thread makes small passes slower whenever a core is busy
    return load_checkpoint(CHECKPOINTS / f"{name}.safetensors")


@st.cache_resource(show_spinner=False)
def shipped_without_positions(name: str) -> Transformer:
    """The same weights with the positions left out; shared too."""
    return without_positions(shipped(name).model)


def chosen(task: str, model_id: str = "") -> Checkpoint:
    """The model that a person chose for a task: "" is the shipped one; else the id of a training or an upload.

    ID@STEP is a training's model as it was after that step, if it was kept. A model that is not there any
    more, or is one of another task, gives way to the shipped one.
    """
    run_id, _, step = model_id.partition("@")
    if run_id:
        with suppress(KeyError, ValueError, OSError):  # a folder may be removed under our eyes
            path = runs().model(runs().find(run_id), int(step) if step else None)
            checkpoint = _own(str(path), path.stat().st_mtime_ns) if path else None
            if checkpoint and checkpoint.task.name == task:
                return checkpoint
    return shipped(checkpoint_name(task, 64, 4))


@st.cache_resource(show_spinner=False, max_entries=20)
def _own(path: str, changed: int) -> Checkpoint:
    """A person's own model, read again when its file has changed. It is only ever read."""
    return load_checkpoint(path)


@st.cache_resource(show_spinner=False, max_entries=200)
def untrained(task: str, d_model: int, n_heads: int, d_head: int) -> Transformer:
    """A model of these sizes as it is before its first training step, the same at each call."""
    vocab_size = TASKS[task]().tokenizer.vocab_size
    config = replace(
        QUICK_CONFIG,
        src_vocab_size=vocab_size,
        tgt_vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        d_head=d_head,
        d_ff=4 * d_model,
        n_encoder_layers=2,
        n_decoder_layers=2,
    )
    return Transformer(config, torch.Generator().manual_seed(0)).eval()


def trained(task: str, d_model: int, n_heads: int, d_head: int) -> Checkpoint | None:
    """The shipped checkpoint of these sizes, if there is one."""
    name = checkpoint_name(task, d_model, n_heads, d_head)
    return shipped(name) if (CHECKPOINTS / f"{name}.safetensors").exists() else None


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
    right, of = (checkpoint.metrics.get(name) for name in ("exact_match", "exact_match_of"))
    steps = checkpoint.training.get("steps_done")
    if type(right) is int and type(of) is int:
        return f"once trained it got {right:,} of {of:,} fresh sequences right"
    return f"not measured, after {steps:,} steps of training" if type(steps) is int else "not measured"
