"""What is chosen on the Train page: read from a link or from the browser, checked, written to a link, made a plan."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from transformer import Task, TrainSettings, TransformerConfig
from transformer.train.__main__ import QUICK_CONFIG
from transformer.train.plan import Plan

# What may be chosen: name to smallest, largest and step; a power of ten for the rate.
NUMBERS: dict[str, tuple[float, float, float]] = {
    "d_model": (8, 128, 8),
    "heads": (1, 8, 1),
    "layers": (1, 3, 1),
    "steps": (50, 2000, 50),
    "rate": (-4.0, -1.5, 0.05),
    "batch": (8, 128, 8),
    "warmup": (1, 400, 1),
    "dropout": (0.0, 0.5, 0.05),
    "smoothing": (0.0, 0.3, 0.05),
    "seed": (0, 9999, 1),
}
WHOLE = ("d_model", "heads", "layers", "steps", "batch", "warmup", "seed")
SCHEDULES = ("linear", "inverse_sqrt")
MOST_SECONDS = 120.0  # of one core, as estimated, for a training to be accepted
# What learns the task well in little time, where that differs from the reversal task's sizes.
BY_TASK: dict[str, dict[str, Any]] = {
    "sort": {"steps": 700},
    "number": {"steps": 700},
    "date": {"steps": 900, "rate": -2.3},
    "addition": {"layers": 2, "steps": 1500, "batch": 64, "rate": -2.5},
}


@dataclass(frozen=True)
class View:
    """The choices of one person. rate: power of ten of the largest learning rate. run: a training's id. at: the
    step that its slider shows, -1 for the last there is."""

    d_model: int = 64
    heads: int = 4
    layers: int = 1
    steps: int = 450
    rate: float = -2.15
    batch: int = 32
    warmup: int = 50
    dropout: float = 0.0
    smoothing: float = 0.0
    seed: int = 0
    schedule: str = "linear"
    run: str = ""
    at: int = -1

    def link(self, task_name: str) -> dict[str, str]:
        """What differs from the task's default, as it stands in a link."""
        default = default_view(task_name)
        return {name: str(value) for name, value in asdict(self).items() if value != getattr(default, name)}


FIELDS = tuple(field.name for field in fields(View))


def default_view(task_name: str) -> View:
    return replace(View(), **BY_TASK.get(task_name, {}))


def from_link(query: Mapping[str, str], task_name: str) -> tuple[View, list[str]]:
    """A view from a link's parameters, and a sentence for each one that had to be changed."""
    said = {name: query[name] for name in FIELDS if name in query}
    values = {name: _number(text) if name in NUMBERS or name == "at" else text for name, text in said.items()}
    view = checked(values, task_name)
    changed = [
        f"{name} is {said[name]!r} in the link; showing {getattr(view, name) or 'none'}."
        for name, value in values.items()
        if value is None or getattr(view, name) != value
    ]
    return view, changed


def checked(values: Mapping[str, Any], task_name: str) -> View:
    """A view from untrusted values: what is missing or of the wrong kind becomes the default, numbers are clamped."""
    default = default_view(task_name)

    def number(name: str) -> float:
        value, (low, high, step) = values.get(name), NUMBERS[name]
        if not _is_number(value):
            return getattr(default, name)
        clamped = min(max(value, low), high)
        near = round(low + round((clamped - low) / step) * step, 6)
        return int(near) if name in WHOLE else near

    run, at = values.get("run"), values.get("at")
    return View(
        **{name: number(name) for name in NUMBERS},
        schedule=values["schedule"] if values.get("schedule") in list(SCHEDULES) else default.schedule,
        run=run if isinstance(run, str) and re.fullmatch(r"[A-Za-z0-9_-]{16}", run) else "",
        at=min(int(at), 10**6) if _is_number(at) and at >= 0 else -1,
    )


def settings_of(view: View) -> TrainSettings:
    """With either schedule the chosen rate is the largest one: the paper's formula peaks at (d_model warmup)^-0.5."""
    peak = round(10**view.rate, 7)
    factor = math.sqrt(view.d_model * view.warmup) if view.schedule == "inverse_sqrt" else 1.0
    return TrainSettings(
        steps=view.steps,
        batch_size=view.batch,
        lr=peak * factor,
        schedule=view.schedule,
        warmup=view.warmup,
        label_smoothing=view.smoothing,
    )


def plan_of(view: View, task: Task, src: list[int]) -> Plan:
    """The training that is asked for. Raises ValueError for sizes that no model can have, or that take too long.

    The example watched is the person's own sequence; one that has no right answer, or is longer than the
    training's, gives way to the task's first.
    """
    vocab_size = task.tokenizer.vocab_size
    config: TransformerConfig = replace(
        QUICK_CONFIG,
        src_vocab_size=vocab_size,
        tgt_vocab_size=vocab_size,
        d_model=view.d_model,
        n_heads=view.heads,
        d_ff=4 * view.d_model,
        n_encoder_layers=view.layers,
        n_decoder_layers=view.layers,
        dropout=view.dropout,
    )
    seconds = estimate(view, task)
    if seconds > MOST_SECONDS:
        raise ValueError(
            f"This would take about {seconds:.0f} seconds of one core; up to {MOST_SECONDS:.0f} are allowed. "
            "Fewer steps, layers or sequences in a batch, or a smaller d_model, take less."
        )
    src, target = example(task, src)
    return Plan(task.name, config, settings_of(view), view.seed, src, target)


def example(task: Task, src: list[int]) -> tuple[list[int], list[int]]:
    """A source with its right answer: the given one, or else the task's first."""
    if 0 < len(src) <= task.max_source:
        try:
            return src, task.target(src)
        except ValueError:
            pass
    first = task.tokenizer.encode(next(iter(task.examples.values())))
    return first, task.target(first)


def estimate(view: View, task: Task) -> float:
    """Seconds of one core, roughly: the start, then for each layer a fixed cost and its products; fitted by hand."""
    length = (task.max_source + task.max_target) / 16
    a_step = view.layers * (0.0055 + 2.4e-8 * view.batch * length * view.d_model**2)
    return 4.0 + view.steps * a_step


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
