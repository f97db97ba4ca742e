"""What is chosen on the Positions page: read from a link or from the browser, checked, and written to a link."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

TABLE = 100  # positions drawn, 0 to 99: the treatise's max_len
REACH = 64  # farthest offset, both ways
NUMBERS = {
    "d_model": range(2, 129, 2),
    "p": range(TABLE),
    "k": range(-REACH, REACH + 1),
    "pair": range(64),
    "draw": range(100),
    "width": (16, 32, 64, 128, 256, 512),
    "words": (12, 5_000),
}


@dataclass(frozen=True)
class View:
    """The choices of one person.

    d_model, p, k, pair  width of the encoding, a position, an offset, a pair of dimensions; all count from 0, as in
                         the equations.
    order                the source's places, from 0 too, in the order in which they are read; () is backwards.
    draw                 which random query and key are put at all positions.
    width, words         d_model and number of words of the embeddings that are weighed against positions.
    """

    d_model: int = 64
    p: int = 10
    k: int = 7
    pair: int = 2
    order: tuple[int, ...] = ()
    draw: int = 0
    width: int = 64
    words: int = 5_000

    def link(self) -> dict[str, str]:
        """What differs from the default, as it stands in a link."""
        default, said = View(), {}
        for name, value in asdict(self).items():
            if value != getattr(default, name):
                said[name] = _text(name, value)
        return said


def from_link(query: Mapping[str, str]) -> tuple[View, list[str]]:
    """A view from a link's parameters, and a sentence for each one that had to be changed."""
    values: dict[str, Any] = {}
    for name in FIELDS:
        if name not in query:
            continue
        if name == "order":
            values[name] = _places(query[name])
        else:
            whole = re.fullmatch(r"-?\d{1,9}", query[name], re.ASCII)
            values[name] = int(query[name]) if whole else None
    view = checked(values)
    changed = [
        f"{name} is {query[name]!r} in the link; showing {_text(name, getattr(view, name)) or 'it backwards'}."
        for name in values
        if getattr(view, name) != values[name]
    ]
    return view, changed


def checked(values: Mapping[str, Any]) -> View:
    """A view from untrusted values: what is missing or of the wrong kind becomes the default, numbers are clamped."""
    default = View()

    def nearest(name: str) -> int:
        value = values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return getattr(default, name)
        return min(NUMBERS[name], key=lambda allowed: abs(allowed - value))

    numbers = {name: nearest(name) for name in NUMBERS}
    numbers["pair"] = min(numbers["pair"], numbers["d_model"] // 2 - 1)
    order = values.get("order")
    fine = isinstance(order, list | tuple) and all(type(place) is int for place in order)
    fine = fine and sorted(order) == list(range(len(order)))
    return View(**numbers, order=tuple(order) if fine else ())


def order_of(view: View, length: int) -> list[int]:
    """The order for a source of this length: the chosen one where it fits, else backwards."""
    return list(view.order) if view.order and len(view.order) == length else list(range(length))[::-1]


def _places(text: str) -> tuple[int, ...] | None:
    numbers = re.fullmatch(r"\d{1,3}(-\d{1,3}){0,99}", text, re.ASCII)
    return tuple(int(place) for place in text.split("-")) if numbers else None


def _text(name: str, value: Any) -> str:
    return "-".join(map(str, value)) if name == "order" else str(value)


FIELDS = tuple(field.name for field in fields(View))
