"""One decode of one source, computed ahead, as the arrays that the player scrubs through."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from app.live import pack
from app.models import TRANSLATION, kind_of
from transformer import (
    AttentionSite,
    Checkpoint,
    DecodeStep,
    Tokenizer,
    Trace,
    Transformer,
    causal_mask,
    greedy_decode,
    join_pieces,
    with_means,
)

N_CANDIDATES = 6


@dataclass(frozen=True)
class Decoding:
    """A finished decode of one source (S tokens in, T tokens out, the last one EOS unless the limit came first).

    encoder (L, H, S, S), self_attention (L, H, T, T) and cross_attention (L, H, T, S) hold the weights
    of every layer and head; row t of the decoder's belongs to the step that wrote token t, and keys
    after t, which no mask lets it see, are 0. cache_difference is the largest difference of a logit
    from one pass over the whole target without a KV cache; seconds is what the decode took, the encoder
    not counted.
    """

    src: list[int]
    forced: list[int]
    steps: list[DecodeStep]
    encoder: np.ndarray
    self_attention: np.ndarray
    cross_attention: np.ndarray
    cache_difference: float
    seconds: float

    @property
    def tokens(self) -> list[int]:
        return [int(step.token) for step in self.steps]


def run_decoding(checkpoint: Checkpoint, src: list[int], forced: list[int], max_new_tokens: int) -> Decoding:
    """Decode greedily after taking the forced tokens first. Raises ValueError as ``greedy_decode`` does."""
    model = checkpoint.model
    src_row = torch.tensor(src, dtype=torch.long).unsqueeze(0)
    forced_row = torch.tensor(forced, dtype=torch.long).unsqueeze(0)
    memory, encoder = _encoded(model, tuple(src))
    started = time.perf_counter()
    steps = list(greedy_decode(model, src_row, max_new_tokens, memory=memory, forced=forced_row))
    seconds = time.perf_counter() - started
    read = torch.tensor([[checkpoint.tokenizer.bos_id, *(int(step.token) for step in steps[:-1])]])
    with torch.no_grad():
        whole = model.project(model.decode(read, memory, causal_mask(read.shape[1])))
    return Decoding(
        src=src,
        forced=forced,
        steps=steps,
        encoder=encoder,
        self_attention=_rows(steps, "self", len(steps)),
        cross_attention=_rows(steps, "cross", len(src)),
        cache_difference=(torch.stack([step.logits for step in steps], dim=1) - whole).abs().max().item(),
        seconds=seconds,
    )


@lru_cache(maxsize=16)
def _encoded(model: Transformer, src: tuple[int, ...]) -> tuple[Tensor, np.ndarray]:
    """The encoder's output (1, S, d_model) and its weights (L, H, S, S), computed once for a source, whatever is
    decoded from it.
    """
    trace = Trace()
    with torch.no_grad():
        memory = model.encode(torch.tensor([src], dtype=torch.long), trace=trace)
    layers = range(model.config.n_encoder_layers)
    weights = [trace.attention[AttentionSite("encoder", layer, "self")].weights for layer in layers]
    return memory, torch.cat(weights).numpy()


def _rows(steps: list[DecodeStep], kind: str, n_keys: int) -> np.ndarray:
    """The rows of all steps as (L, H, T, n_keys); a row shorter than n_keys is filled up with zeros."""

    def padded(row: Tensor) -> Tensor:  # (1, H, T_k) -> (H, n_keys)
        return torch.nn.functional.pad(row[0], (0, n_keys - row.shape[-1]))

    sites = sorted(site for site in steps[0].weights if site.kind == kind)
    return torch.stack([torch.stack([padded(step.weights[site]) for step in steps], dim=1) for site in sites]).numpy()


def opens_at(decoding: Decoding, checkpoint: Checkpoint) -> int:
    """The step that is shown first: a translation is read whole before it is taken apart."""
    return len(decoding.tokens) if kind_of(checkpoint.task) == TRANSLATION else 1


def frames(
    decoding: Decoding, checkpoint: Checkpoint, step: int | None = None, ask: dict[str, Any] | None = None
) -> bytes:
    """The decode as one block for the player, which opens at a step: labels in the header, numbers as float32.

    ask says where and with what the player asks for a branch.
    """
    tokenizer, steps, opens = checkpoint.tokenizer, decoding.steps, opens_at(decoding, checkpoint)
    n_candidates = min(N_CANDIDATES, tokenizer.vocab_size)
    candidates = [step.candidates[0, :n_candidates].tolist() for step in steps]
    try:
        expected, why = checkpoint.task.target(decoding.src), ""
    except ValueError as error:  # readable, but no question of this task, such as 31.2.2000
        expected, why = None, str(error)
    written = [token for token in decoding.tokens if token != tokenizer.eos_id]
    header = {
        "ask": ask,
        "source": tokenizer.labels(decoding.src),
        "written": tokenizer.labels(decoding.tokens),
        "read": tokenizer.labels([tokenizer.bos_id, *decoding.tokens[:-1]]),
        "tokens": decoding.tokens,
        "step": opens if step is None else step,
        "opens": opens,
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
        "texts": _texts(decoding, checkpoint),
        "cached": [step.n_cached for step in steps],
        "memory": [1, len(decoding.src), checkpoint.config.d_model],
    }
    probabilities = torch.stack([step.probabilities[0, :n_candidates] for step in steps])
    arrays = {
        "probabilities": probabilities.numpy(),
        "taken": np.array([_probability(step) for step in steps]),
        "log_probability": torch.cat([step.log_probability for step in steps]).numpy(),
        "encoder": decoding.encoder,
        "self": decoding.self_attention,
        "cross": decoding.cross_attention,
        "lines": with_means(torch.from_numpy(decoding.cross_attention)).numpy(),
    }
    if kind_of(checkpoint.task) == TRANSLATION:
        joined, in_words = _in_words(decoding, tokenizer)
        header |= {"words": joined}
        arrays |= in_words
    return pack(header, arrays)


def _texts(decoding: Decoding, checkpoint: Checkpoint) -> list[str]:
    """What stands written after each step, as a text; for symbols, which are shown as such anyway, none."""
    if kind_of(checkpoint.task) != TRANSLATION:
        return []
    tokens = decoding.tokens
    return [checkpoint.tokenizer.decode(tokens[: t + 1]) for t in range(len(tokens))]


def _in_words(decoding: Decoding, tokenizer: Tokenizer) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The same weights between words, and the words: source, written and read, and after how many tokens each
    written one is complete.
    """
    read = [tokenizer.bos_id, *decoding.tokens[:-1]]
    ids = {"source": decoding.src, "written": decoding.tokens, "read": read}
    places = {name: tokenizer.words(some) for name, some in ids.items()}
    joined = {name: word_labels(tokenizer, ids[name], places[name]) for name in ids}
    joined["complete"] = [word.stop for word in places["written"]]

    def between(weights: np.ndarray, rows: str, columns: str) -> np.ndarray:
        return join_pieces(torch.from_numpy(weights), places[rows], places[columns]).numpy()

    cross = between(decoding.cross_attention, "written", "source")
    return joined, {
        "word-encoder": between(decoding.encoder, "source", "source"),
        "word-self": between(decoding.self_attention, "written", "read"),
        "word-cross": cross,
        "word-lines": with_means(torch.from_numpy(cross)).numpy(),
    }


def word_labels(tokenizer: Tokenizer, ids: list[int], words: list[range]) -> list[str]:
    """Each word as it is written; one that no text stands for, such as EOS, by its label."""
    found = []
    for word in words:
        own = ids[word.start : word.stop]
        found.append(tokenizer.decode(own).strip() or "".join(tokenizer.labels(own)))
    return found


def _probability(step: DecodeStep) -> float:
    """Of the token that was taken, which need not be the first candidate."""
    return step.probabilities[0][step.candidates[0] == step.token[0]].item()
