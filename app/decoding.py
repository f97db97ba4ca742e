"""One decode of one source, computed ahead, as the arrays that the player scrubs through."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from app.live import pack
from transformer import AttentionSite, Checkpoint, DecodeStep, Trace, greedy_decode

N_CANDIDATES = 6


@dataclass(frozen=True)
class Decoding:
    """A finished decode of one source (S tokens in, T tokens out, the last one EOS unless the limit came first).

    encoder (L, H, S, S), self_attention (L, H, T, T) and cross_attention (L, H, T, S) hold the weights
    of every layer and head; row t of the decoder's belongs to the step that wrote token t, and keys
    after t, which no mask lets it see, are 0. cache_difference is the largest difference of a logit
    from the same decode without a KV cache.
    """

    src: list[int]
    forced: list[int]
    steps: list[DecodeStep]
    encoder: np.ndarray
    self_attention: np.ndarray
    cross_attention: np.ndarray
    cache_difference: float

    @property
    def tokens(self) -> list[int]:
        return [int(step.token) for step in self.steps]


def run_decoding(checkpoint: Checkpoint, src: list[int], forced: list[int], max_new_tokens: int) -> Decoding:
    """Decode greedily after taking the forced tokens first. Raises ValueError as ``greedy_decode`` does."""
    model = checkpoint.model
    src_row = torch.tensor(src, dtype=torch.long).unsqueeze(0)
    forced_row = torch.tensor(forced, dtype=torch.long).unsqueeze(0)
    trace = Trace()
    with torch.no_grad():
        memory = model.encode(src_row, trace=trace)

    def decode(use_cache: bool) -> list[DecodeStep]:
        steps = greedy_decode(model, src_row, max_new_tokens, memory=memory, forced=forced_row, use_cache=use_cache)
        return list(steps)

    steps = decode(use_cache=True)
    differences = [
        (a.logits - b.logits).abs().max().item() for a, b in zip(steps, decode(use_cache=False), strict=True)
    ]
    layers = range(model.config.n_encoder_layers)
    encoder = torch.cat([trace.attention[AttentionSite("encoder", layer, "self")].weights for layer in layers])
    return Decoding(
        src=src,
        forced=forced,
        steps=steps,
        encoder=encoder.numpy(),
        self_attention=_rows(steps, "self", len(steps)),
        cross_attention=_rows(steps, "cross", len(src)),
        cache_difference=max(differences),
    )


def _rows(steps: list[DecodeStep], kind: str, n_keys: int) -> np.ndarray:
    """The rows of all steps as (L, H, T, n_keys); a row shorter than n_keys is filled up with zeros."""

    def padded(row: Tensor) -> Tensor:  # (1, H, T_k) -> (H, n_keys)
        return torch.nn.functional.pad(row[0], (0, n_keys - row.shape[-1]))

    sites = sorted(site for site in steps[0].weights if site.kind == kind)
    return torch.stack([torch.stack([padded(step.weights[site]) for step in steps], dim=1) for site in sites]).numpy()


def frames(decoding: Decoding, checkpoint: Checkpoint, step: int = 1) -> bytes:
    """The decode as one block for the player, which opens at a step: labels in the header, numbers as float32."""
    tokenizer, steps = checkpoint.tokenizer, decoding.steps
    n_candidates = min(N_CANDIDATES, tokenizer.vocab_size)
    candidates = [step.candidates[0, :n_candidates].tolist() for step in steps]
    try:
        expected, why = checkpoint.task.target(decoding.src), ""
    except ValueError as error:  # readable, but no question of this task, such as 31.2.2000
        expected, why = None, str(error)
    written = [token for token in decoding.tokens if token != tokenizer.eos_id]
    header = {
        "source": tokenizer.labels(decoding.src),
        "written": tokenizer.labels(decoding.tokens),
        "read": tokenizer.labels([tokenizer.bos_id, *decoding.tokens[:-1]]),
        "tokens": decoding.tokens,
        "step": step,
        "forced": len(decoding.forced),
        "candidates": [
            [{"id": i, "label": label} for i, label in zip(row, tokenizer.labels(row), strict=True)]
            for row in candidates
        ],
        "stopped": steps[-1].stopped[0],
        "answer": checkpoint.task.answer,
        "expected": None if expected is None else tokenizer.labels(expected),
        "noAnswer": why,
        "right": written == expected and steps[-1].stopped[0] == "eos",
    }
    probabilities = torch.stack([step.probabilities[0, :n_candidates] for step in steps])
    arrays = {
        "probabilities": probabilities.numpy(),
        "taken": np.array([_probability(step) for step in steps]),
        "log_probability": torch.cat([step.log_probability for step in steps]).numpy(),
        "encoder": decoding.encoder,
        "self": decoding.self_attention,
        "cross": decoding.cross_attention,
    }
    return pack(header, arrays)


def _probability(step: DecodeStep) -> float:
    """Of the token that was taken, which need not be the first candidate."""
    return step.probabilities[0][step.candidates[0] == step.token[0]].item()
