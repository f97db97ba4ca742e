"""What the Saturation page shows of a model's own q and k: which models there are, and one block for one of them."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from app.answers import asked_about
from app.live import pack
from app.models import chosen, shipped, untrained
from app.own import introduced, is_own
from app.saturation_run import NUMBERS, of_batch, of_sequence
from app.saturation_state import CHOSEN, ModelView, checked, models_of, sizes, usual
from transformer import Checkpoint, Task, Transformer, TransformerConfig

_of_batch = lru_cache(maxsize=50)(of_batch)


@lru_cache(maxsize=20)
def _blank(config: TransformerConfig) -> Transformer:
    """A model as it is before its first training step, the same at each call."""
    return Transformer(config, torch.Generator().manual_seed(0)).eval()


def own_data(task: Task, src: list[int], wish: Mapping[str, Any], model_id: str = "") -> bytes:
    """The numbers of every head of one trained model, and of the same sizes untrained."""
    view, own = checked(ModelView, wish), chosen(task.name, model_id)
    mine = is_own(own, task)
    models = _models(task, own, mine)
    if view.model not in [one["name"] for one in models]:
        view = replace(view, model=CHOSEN)
    checkpoint, mine = (own, mine) if view.model == CHOSEN else (shipped(view.model), False)
    blank = _blank(checkpoint.config) if mine else untrained(task.name, *_sizes(checkpoint.config))
    arrays: dict[str, np.ndarray] = {}
    for learned, model in (("trained", checkpoint.model), ("untrained", blank)):
        found = of_sequence(model, task, src) if view.sample == "own" else _of_batch(model, task)
        arrays |= {f"{learned}-{site}": numbers for site, numbers in found.items()}
    most = max(task.max_source, task.max_target + 1, len(src) + 1)
    header = {
        "view": asdict(view),
        "ask": {**asked_about("own", task.name, src), "model": model_id},
        "count": wish.get("count", 0),
        "models": models,
        "numbers": NUMBERS,
        "keys": most,
        "divides": checkpoint.config.scale_scores,
        "status": introduced(checkpoint, mine),
    }
    return pack(header, arrays)


def _models(task: Task, own: Checkpoint, mine: bool) -> list[dict[str, Any]]:
    """What the slider goes over, narrow heads first: the task's shipped models, and a person's own among them."""
    named = {name: sizes(name) for name in models_of(task.name) if mine or name != usual(task.name)}
    models = [{"name": name, "d_k": of[2], "label": _label(*of)} for name, of in named.items()]
    of = _sizes(own.config)
    models.append({"name": CHOSEN, "d_k": of[2], "label": _label(*of, "yours: " if mine else "")})
    return sorted(models, key=lambda one: one["d_k"])


def _sizes(config: TransformerConfig) -> tuple[int, int, int]:
    return config.d_model, config.n_heads, config.head_width


def _label(d_model: int, heads: int, d_k: int, whose: str = "") -> str:
    return f"{d_k}  ({whose}{heads} head{'s' if heads > 1 else ''}, d_model {d_model})"
