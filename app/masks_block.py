"""The block that the Masks page draws: everything computed for one view of one batch."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from app.answers import asked_about
from app.live import pack
from app.masks_breaks import empty_rows, leaks, query_axis
from app.masks_models import is_causal, two_models
from app.masks_run import (
    attention_arrays,
    masks,
    next_tokens,
    records,
    run,
    sentences,
    with_companions,
)
from app.masks_state import View, cell_name, checked, for_batch, within
from app.models import chosen
from app.own import introduced, is_own
from transformer import MASKED_SOFTMAXES, Task, Trace

OPEN = " It was trained without the causal mask."


def batch_name(task: Task, src: list[int], draw: int) -> str:
    """Lengths and cells belong to one batch; this names it."""
    return f"{task.name} {'-'.join(map(str, src))} {draw}"


def of_this_batch(task: Task, src: list[int], view: View, batch: Any) -> View:
    """The view; lengths and cells that were chosen for another batch are forgotten."""
    own = batch == batch_name(task, src, view.draw)
    return view if own else replace(view, lengths=View().lengths, flips=())


def panel_block(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> bytes:
    """The block alone, for a question asked while a control is dragged."""
    return panel_data(task, src, of_this_batch(task, src, checked(wish), wish.get("batch")), wish, model_id)[0]


def panel_data(
    task: Task, src: list[int], view: View, wish: Mapping[str, Any], model_id: str = ""
) -> tuple[bytes, View]:
    """The block that the panel draws, and the view as it is shown: no further than this batch goes.

    A wish with "whole" False, of a slider that moves, is answered without what breaks.
    """
    checkpoint = chosen(task.name, model_id)
    mine = is_own(checkpoint, task)
    model, config, tokenizer = checkpoint.model, checkpoint.config, task.tokenizer
    full = with_companions(task, src, view.draw)
    longest = [len(one) for one in full]
    lengths = [m if n is None else min(n, m) for n, m in zip(view.lengths, longest, strict=True)]
    batch = sentences(model, task, full, lengths)
    S, T = batch.src.shape[1], batch.tgt.shape[1]
    view = for_batch(view, longest, T, tokenizer.vocab_size)
    n_read = int(batch.tgt_lengths[view.sentence])
    n_layers, n_rows = (config.n_encoder_layers, S) if view.attend == "encoder" else (config.n_decoder_layers, T)
    view = within(view, n_layers, config.n_heads, n_rows, n_read)

    whole, at, edited = wish.get("whole") is not False, view.sentence, bool(view.flips) or not view.causal
    usual_trace = trace = Trace()
    usual = logits = run(model, batch, masks(batch, causal=True), usual_trace)
    applied = masks(batch, view.causal, view.flips)
    if edited:
        trace = Trace()
        logits = run(model, batch, applied, trace)
    of_kind = records(trace, view.attend)
    token = _another(batch.tgt[at, :n_read].tolist(), tokenizer.vocab_size) if view.token is None else view.token
    arrays = {
        "encoder": applied.encoder,
        "padding": applied.padding,
        "causal": applied.causal,
        "decoder": applied.decoder,
        "cross": applied.cross,
        **attention_arrays(of_kind, at),
        **next_tokens(logits[at]),
        "moved": (logits - usual)[at].abs().amax(-1),
    }
    header = {
        "view": {
            **asdict(view),
            "flips": [cell_name(flip) for flip in view.flips],
            "token_shown": token,
            "batch": batch_name(task, src, view.draw),  # comes back with each wish
        },
        "ask": {**asked_about("masks", task.name, src), "model": model_id},
        "count": wish.get("count", 0),
        "full": longest,
        "lengths": lengths,
        "read": batch.tgt_lengths.tolist(),
        "sources": [_labels(task, row) for row in batch.src.tolist()],
        "targets": [_labels(task, row) for row in batch.tgt.tolist()],
        "written": _labels(task, batch.written[at].tolist()),
        "vocabulary": tokenizer.vocabulary(),
        "heads": config.n_heads,
        "scaled": config.scale_scores,
        "own": mine,
        "status": f"{introduced(checkpoint, mine)}{'' if is_causal(checkpoint) else OPEN}",
        "edited": edited,
        "whole": whole,
    }
    if whole:
        own_decoder = any(flip[:2] == ("d", at) for flip in view.flips)
        arrays |= leaks(model, batch, applied, at, token, own_decoder)
        arrays |= empty_rows(of_kind[view.layer], at, view.head, view.row)
        header["softmaxes"] = list(MASKED_SOFTMAXES)
        header["query_axis"] = query_axis(model, batch, usual, usual_trace)
        header["pair"], of_pair = two_models(task.name, tuple(src), view.draw)
        arrays |= of_pair
    return pack(header, {name: np.asarray(array) for name, array in arrays.items()}), view


def _labels(task: Task, ids: list[int]) -> list[str]:
    return ["·" if label == "<pad>" else label for label in task.tokenizer.labels(ids)]


def _another(read: list[int], vocab_size: int) -> int:
    """A token that the target does not hold, or else the last one."""
    return next((token for token in range(vocab_size - 1, 2, -1) if token not in read), vocab_size - 1)
