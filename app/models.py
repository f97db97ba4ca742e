"""The models that sliders reach: trained ones from assets/checkpoints, untrained ones built on the spot."""

from dataclasses import replace

import streamlit as st
import torch

from app.setup import ROOT
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
    config, metrics = checkpoint.config, checkpoint.metrics
    n_parameters = sum(p.numel() for p in checkpoint.model.parameters())
    return (
        f"Model: {config.n_encoder_layers} + {config.n_decoder_layers} layers, d_model {config.d_model}, "
        f"{config.n_heads} heads of d_k {config.head_width}, {n_parameters:,} parameters; once trained it got "
        f"{metrics['exact_match']:,} of {metrics['exact_match_of']:,} fresh sequences right."
    )
