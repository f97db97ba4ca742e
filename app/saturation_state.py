"""What is chosen on the Saturation page: read from a link or from the browser, checked, and written to a link."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from app.attention_run import KINDS
from app.saturation_run import DISTRIBUTIONS, KEYS, NUMBERS, QUANTITIES, WIDTHS
from transformer.scaling import INITS, SIZES
from transformer.zoo import recipes

# Those that differ in task and sizes alone, not in their positions or masks.
CHOSEN = "the chosen one"  # above the page: the person's own, or else the task's usual one
MODELS = tuple(name for name in recipes() if re.fullmatch(r"[a-z]+-d\d+-h\d+(-k\d+)?", name))


def _one_of(default: Any, allowed: Sequence[Any]) -> Any:
    return field(default=default, metadata={"allowed": tuple(allowed)})


@dataclass(frozen=True)
class DrawView:
    """Random q and k: width is d_k, draw the number of the random draw."""

    width: int = _one_of(64, WIDTHS)
    keys: int = _one_of(8, KEYS)
    distribution: str = _one_of("normal", list(DISTRIBUTIONS))
    draw: int = _one_of(33, range(1000))  # a row that saturates steadily; 46 keeps a near tie at 1,024
    curve: str = _one_of("typical", QUANTITIES)


@dataclass(frozen=True)
class ModelView:
    """A model's own q and k: of the person's sequence or of a batch, trained or as it was before."""

    model: str = _one_of(CHOSEN, (CHOSEN, *MODELS))
    learned: str = _one_of("trained", ("trained", "untrained"))
    sample: str = _one_of("own", ("own", "batch"))
    site: str = _one_of("cross", list(KINDS))
    number: str = _one_of("variance", NUMBERS)


@dataclass(frozen=True)
class RunView:
    """Which of the measured trainings."""

    head_width: int = _one_of(128, sorted(d_model // heads for d_model, heads in SIZES))
    init: str = _one_of("xavier", INITS)


View = TypeVar("View", DrawView, ModelView, RunView)


def link(view: View) -> dict[str, str]:
    """What differs from the default, as it stands in a link."""
    return {name: str(value) for name, value in asdict(view).items() if value != getattr(type(view)(), name)}


def from_link(kind: type[View], query: Mapping[str, str]) -> tuple[View, list[str]]:
    """A view from a link's parameters, and a sentence for each one that had to be changed."""
    values: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in query:
            values[each.name] = _number(query[each.name]) if isinstance(each.default, int) else query[each.name]
    view = checked(kind, values)
    changed = [
        f"{name} is {query[name]!r} in the link; showing {getattr(view, name)}."
        for name, value in values.items()
        if getattr(view, name) != value
    ]
    return view, changed


def checked(kind: type[View], values: Mapping[str, Any]) -> View:
    """A view from untrusted values: a number becomes the nearest allowed, anything else not allowed the default."""
    return kind(**{each.name: _allowed(each, values.get(each.name)) for each in fields(kind)})


def _allowed(each: Any, value: Any) -> Any:
    allowed = each.metadata["allowed"]
    if isinstance(each.default, str):
        return value if isinstance(value, str) and value in allowed else each.default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return each.default
    return min(allowed, key=lambda one: abs(one - value))


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def models_of(task: str) -> list[str]:
    """The shipped models of a task, narrow heads first."""
    return sorted((name for name in MODELS if name.split("-")[0] == task), key=lambda name: (sizes(name)[2], name))


def sizes(name: str) -> tuple[int, int, int]:
    """d_model, heads and d_k from a checkpoint's name, such as reverse-d64-h4-k2."""
    _, d_model, heads, *own = name.split("-")
    width, count = int(d_model[1:]), int(heads[1:])
    return width, count, int(own[0][1:]) if own else width // count


def usual(task: str) -> str:
    """The model that a task is shown with where none is asked for."""
    return f"{task}-d64-h4"
