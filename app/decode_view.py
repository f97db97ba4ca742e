"""The Decode page's picture: the player, and what stands under it."""

import streamlit as st

from app.decoding import frames, run_decoding
from app.live import decode_player
from transformer import Checkpoint

KEY = "player"


def show(checkpoint: Checkpoint, src: list[int]) -> None:
    """Decode ids and let the player step through it. A candidate chosen in the player branches the decode."""
    labels = checkpoint.tokenizer.labels(src)
    branch = (st.session_state.get(KEY) or {}).get("branch") or {}
    forced = branch.get("tokens", []) if branch.get("source") == labels else []
    limit = 2 * len(src) + 2  # room for twice the answer: a model that does not stop is stopped here
    decoding = run_decoding(checkpoint, src, forced[:limit], limit)
    decode_player(key=KEY, data=frames(decoding, checkpoint), on_branch_change=lambda: None)
    config, metrics = checkpoint.config, checkpoint.metrics
    n_parameters = sum(p.numel() for p in checkpoint.model.parameters())
    st.caption(
        f"Model: {config.n_encoder_layers} + {config.n_decoder_layers} layers, d_model {config.d_model}, "
        f"{config.n_heads} heads of d_k {config.head_width}, {n_parameters:,} parameters; when it had been trained it "
        f"reversed {metrics['exact_match']:,} of {metrics['exact_match_of']:,} fresh sequences. Decoded with a KV cache: "
        f"without one the tokens are the same and no logit differs by more than {decoding.cache_difference:.1e}."
    )
