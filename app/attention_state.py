"""What is chosen on the Attention page: read from a link or from the browser, checked, and written to a link."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from app.attention_run import KINDS, WhatIf

WIDTHS = range(8, 513, 8)
HEADS = range(1, 17)
MEANS = ("head", "layer", "all")  # of the layer, of all layers and heads
HEAD_WIDTHS = range(1, 129)


@dataclass(frozen=True)
class View:
    """The choices of one person. d_k None means d_model / heads; layer, head and query count from 0.

    words: pieces are joined to words; mean: whose weights are drawn as lines, one of MEANS.
    """

    d_model: int = 64
    heads: int = 4
    d_k: int | None = None
    kind: str = "cross"
    layer: int = 1
    head: int = 0
    query: int = 0
    scaled: bool = True
    masked: bool = True
    temperature: float = 1.0
    words: bool = False
    mean: str = "head"

    @property
    def head_width(self) -> int:
        return self.d_model // self.heads if self.d_k is None else self.d_k

    @property
    def what_if(self) -> WhatIf:
        return WhatIf(self.scaled, self.masked, self.temperature)

    def link(self, default: "View | None" = None) -> dict[str, str]:
        """What differs from the default, as it stands in a link; places count from 1 there."""
        default, said = default or View(), {}
        for name, value in asdict(self).items():
            if value != getattr(default, name):
                said[name] = str(value + 1) if name in ("layer", "head", "query") else str(value).lower()
        return said


def from_link(query: Mapping[str, str], default: View | None = None) -> tuple[View, list[str]]:
    """A view from a link's parameters, and a sentence for each one that had to be changed."""
    default = default or View()
    values: dict[str, Any] = {}
    for name in ("d_model", "heads", "d_k", "layer", "head", "query"):
        if name in query:
            values[name] = _number(query[name], int)
            if name in ("layer", "head", "query") and values[name] is not None:
                values[name] -= 1
    if "temperature" in query:
        values["temperature"] = _number(query["temperature"], float)
    for name in ("scaled", "masked", "words"):
        if name in query:
            values[name] = {"true": True, "false": False}.get(query[name].lower())
    for name in ("kind", "mean"):
        if name in query:
            values[name] = query[name]
    view = checked(values, default)
    changed = [
        f"{name} is {query[name]!r} in the link; showing {view.link(default).get(name, _text(default, name))}."
        for name in values
        if values[name] is None or getattr(view, name) != values[name]
    ]
    return view, changed


def checked(values: Mapping[str, Any], default: View | None = None) -> View:
    """A view from untrusted values: what is missing or of the wrong kind becomes the default, numbers are clamped."""
    default = default or View()

    def whole(name: str, allowed: range) -> int:
        value = values.get(name)
        if type(value) is int and value == getattr(default, name):  # a model's own width need not be on the slider
            return value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return getattr(default, name)
        nearest = round((value - allowed.start) / allowed.step) * allowed.step + allowed.start
        return min(max(nearest, allowed[0]), allowed[-1])

    temperature = values.get("temperature")
    fine = isinstance(temperature, int | float) and not isinstance(temperature, bool) and math.isfinite(temperature)
    return View(
        d_model=whole("d_model", WIDTHS),
        heads=whole("heads", HEADS),
        d_k=None if values.get("d_k") is None else whole("d_k", HEAD_WIDTHS),
        kind=values["kind"] if values.get("kind") in list(KINDS) else default.kind,
        layer=whole("layer", range(64)),
        head=whole("head", range(64)),
        query=whole("query", range(512)),
        scaled=values.get("scaled") is not False,
        masked=values.get("masked") is not False,
        temperature=min(max(float(temperature), 0.25), 4.0) if fine else default.temperature,
        words=values.get("words") is True,
        mean=values["mean"] if values.get("mean") in MEANS else default.mean,
    )


def snapped(view: View, moved: str | None) -> tuple[View, str]:
    """With d_k = d_model / heads not every pair is possible: the one not being moved gives way, and it is said."""
    if view.d_k is not None or view.d_model % view.heads == 0:
        return view, ""
    said = f"{view.heads} heads do not divide d_model {view.d_model}: "
    if moved == "heads":
        possible = [width for width in WIDTHS if width % view.heads == 0]
        d_model = min(possible, key=lambda width: abs(width - view.d_model))
        return replace(view, d_model=d_model), f"{said}d_model is {d_model}."
    possible = [heads for heads in HEADS if view.d_model % heads == 0]
    heads = min(possible, key=lambda heads: abs(heads - view.heads))
    return replace(view, heads=heads), f"{said}there are {heads}."


def within(view: View, n_layers: int, n_rows: int) -> View:
    """Layer, head and query no further than there are."""
    return replace(
        view,
        layer=min(view.layer, n_layers - 1),
        head=min(view.head, view.heads - 1),
        query=max(0, min(view.query, n_rows - 1)),
    )


def _number(text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        return None


def _text(view: View, name: str) -> str:
    value = getattr(view, name)
    return str(value + 1 if name in ("layer", "head", "query") else value)


FIELDS = tuple(field.name for field in fields(View))
