"""Greedy decoding, one token at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from .cache import KVCache
from .masks import causal_mask
from .model import Transformer
from .tokenizer import BOS, EOS, PAD
from .trace import AttentionSite, Trace

Stop = Literal["eos", "limit"]


@dataclass(frozen=True)
class DecodeStep:
    """One new token for each of B sources, and all that led to it.

    index           the step, from 0.
    token           (B,), the token taken; PAD where the source had already ended.
    logits          (B, V), what the model gave for this position.
    log_probability (B,), natural logarithm of the probability of all tokens taken so far.
    weights         for every attention site of the decoder the new row: (B, H, T_k).
    stopped         per source None while it goes on, "eos" or "limit" once it has ended.
    n_cached        how many numbers the KV cache holds after this step: (of cross-attention, of self-attention).
    """

    index: int
    token: Tensor
    logits: Tensor
    log_probability: Tensor
    weights: dict[AttentionSite, Tensor]
    stopped: tuple[Stop | None, ...]
    n_cached: tuple[int, int]

    @cached_property
    def candidates(self) -> Tensor:
        """(B, V), token ids from the most to the least probable; among equals the lower id comes first."""
        return self.logits.argsort(dim=-1, descending=True, stable=True)

    @cached_property
    def probabilities(self) -> Tensor:
        """(B, V), those of ``candidates``, over the full vocabulary: rows sum to 1."""
        return self.logits.softmax(dim=-1).gather(1, self.candidates)


def greedy_decode(
    model: Transformer,
    src: Tensor,
    max_new_tokens: int,
    *,
    src_mask: Tensor | None = None,
    memory: Tensor | None = None,
    forced: Tensor | None = None,
    use_cache: bool = True,
    dropout: bool = False,
    bos_id: int = BOS,
    eos_id: int = EOS,
    pad_id: int = PAD,
) -> Iterator[DecodeStep]:
    """Decode src (B, S), taking the most probable token at each step, until every source has ended.

    src_mask  (B, 1, 1, S), hides source padding.
    memory    the encoder's output (B, S, d_model) if it is known already; else the encoder runs once.
    forced    (B, P), tokens to take in the first P steps in place of the greedy ones.
    use_cache False runs the whole prefix again at each step: the same result, for comparison.
    dropout   True leaves dropout on, as a forgotten eval() does: no two decodes are alike. It sets the model's mode
              while it runs, so not for a model that others use.

    Runs without gradients and, but for ``dropout``, in eval mode, whatever mode the model is in. Raises ValueError
    at the call when max_new_tokens needs more positions than the model's max_len, or when memory or forced does
    not fit.
    """
    if not 1 <= max_new_tokens <= model.config.max_len:
        raise ValueError(
            f"max_new_tokens is {max_new_tokens}; this model takes 1 to {model.config.max_len} (its max_len)"
        )
    if forced is not None and (forced.ndim != 2 or forced.shape[0] != src.shape[0] or forced.shape[1] > max_new_tokens):
        raise ValueError(
            f"forced tokens of shape {tuple(forced.shape)} do not fit {src.shape[0]} sources "
            f"and {max_new_tokens} new tokens"
        )
    if forced is not None and forced.numel():
        low, high = int(forced.min()), int(forced.max())
        if low < 0 or high >= model.config.tgt_vocab_size:
            raise ValueError(
                f"forced token id {low if low < 0 else high} is outside the vocabulary of {model.config.tgt_vocab_size}"
            )
    if memory is None:
        with evaluating(model, dropout=dropout), torch.no_grad():
            memory = model.encode(src, src_mask)
    elif memory.shape[:2] != src.shape:
        raise ValueError(
            f"memory of shape {tuple(memory.shape)} does not fit sources of shape {tuple(src.shape)}; "
            "it must be (B, S, d_model)"
        )
    ids = (bos_id, eos_id, pad_id)
    return _steps(model, memory, src_mask, max_new_tokens, forced, use_cache, dropout, ids)


@torch.no_grad()
def _steps(
    model: Transformer,
    memory: Tensor,
    src_mask: Tensor | None,
    max_new_tokens: int,
    forced: Tensor | None,
    use_cache: bool,
    dropout: bool,
    ids: tuple[int, int, int],
) -> Iterator[DecodeStep]:
    bos_id, eos_id, pad_id = ids
    B = memory.shape[0]
    prefix = torch.full((B, 1), bos_id)
    cache = KVCache() if use_cache else None
    total = torch.zeros(B)
    stopped: list[Stop | None] = [None] * B

    for index in range(max_new_tokens):
        trace = Trace()
        with evaluating(model, dropout=dropout):
            if use_cache:
                state = model.decode(prefix[:, -1:], memory, None, src_mask, trace, cache)
            else:
                state = model.decode(prefix, memory, causal_mask(index + 1), src_mask, trace)
            logits = model.project(state[:, -1])  # (B, V)
        token = logits.argmax(dim=-1) if forced is None or index >= forced.shape[1] else forced[:, index]

        going = torch.tensor([stop is None for stop in stopped], dtype=torch.bool)
        token = token.where(going, pad_id)
        log_probs = logits.log_softmax(dim=-1)
        total = total + log_probs.gather(1, token.unsqueeze(1)).squeeze(1).where(going, 0.0)
        for b, taken in enumerate(token.tolist()):
            if stopped[b] is None and taken == eos_id:
                stopped[b] = "eos"
            elif stopped[b] is None and index == max_new_tokens - 1:
                stopped[b] = "limit"
        yield DecodeStep(
            index=index,
            token=token,
            logits=logits,
            log_probability=total,
            weights={site: record.weights[:, :, -1] for site, record in trace.attention.items()},
            stopped=tuple(stopped),
            n_cached=(cache.n_numbers("cross"), cache.n_numbers("self")) if cache else (0, 0),
        )
        if all(stopped):
            return
        prefix = torch.cat((prefix, token.unsqueeze(1)), dim=1)


@contextmanager
def evaluating(model: nn.Module, *, dropout: bool = False) -> Iterator[None]:
    """Eval mode inside, or with ``dropout`` training mode; the mode it had afterwards."""
    before = model.training
    if before != dropout:
        model.train(dropout)
    try:
        yield
    finally:
        if before != dropout:
            model.train(before)
