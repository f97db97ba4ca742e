"""The trained models that ship with the app, each loaded once and shared by everyone."""

import gc

import streamlit as st
import torch

from app.setup import ROOT
from transformer import Checkpoint, load_checkpoint

CHECKPOINTS = ROOT / "assets" / "checkpoints"


@st.cache_resource(show_spinner="Loading the model")
def shipped(name: str) -> Checkpoint:
    """A checkpoint of assets/checkpoints by name. The model is shared: it is only ever read."""
    torch.set_num_threads(1)  # a second thread makes small passes slower whenever a core is busy
    checkpoint = load_checkpoint(CHECKPOINTS / f"{name}.safetensors")
    # Streamlit collects all garbage after each run, 0.1 s with torch loaded; what is loaded now stays for good.
    gc.collect()
    gc.freeze()
    return checkpoint


def describe(checkpoint: Checkpoint) -> str:
    """One sentence: the model's sizes, and what was measured when it had been trained."""
    config, metrics = checkpoint.config, checkpoint.metrics
    n_parameters = sum(p.numel() for p in checkpoint.model.parameters())
    return (
        f"Model: {config.n_encoder_layers} + {config.n_decoder_layers} layers, d_model {config.d_model}, "
        f"{config.n_heads} heads of d_k {config.head_width}, {n_parameters:,} parameters; once trained it got "
        f"{metrics['exact_match']:,} of {metrics['exact_match_of']:,} fresh sequences right."
    )
