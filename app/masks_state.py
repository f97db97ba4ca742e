"""What is chosen on the Masks page: read from a link or from the browser, checked, and written to a link."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.masks_run import KINDS, B, Flip

MOST_FLIPS, LAST = 99, 99  # cells changed by hand; the last place that can be named
_PLACES = ("sentence", "layer", "head", "row", "place")  # count from 1 in a link
_SWITCHES = {"causal": True, "spread": False}
_CELL = re.compile(r"(?:([ec])([1-9])|(d)([1-9])\.([1-9]\d?))\.([1-9]\d?)", re.ASCII)


@dataclass(frozen=True)
class View:
    """The choices of one person; places count from 0.

    lengths   real source tokens of each sentence, None: all. flips: cells turned by hand. spread: masks drawn
    over all heads and queries. draw: which companions. place, token: the changed target token of the leak
    detector, token None: any other.
    """

    lengths: tuple[int | None, ...] = (None,) * B
    causal: bool = True
    flips: tuple[Flip, ...] = ()
    spread: bool = False
    sentence: int = 0
    attend: str = "decoder"
    layer: int = 0
    head: int = 0
    row: int = 2
    place: int = 3
    token: int | None = None
    draw: int = 0

    def link(self) -> dict[str, str]:
        """What differs from the default, as it stands in a link."""
        default = View()
        said = {f"length{i + 1}": str(length) for i, length in enumerate(self.lengths) if length is not None}
        said |= {name: str(getattr(self, name)).lower() for name in _SWITCHES if self._differs(name)}
        said |= {name: str(getattr(self, name) + 1) for name in _PLACES if self._differs(name)}
        said |= {name: str(getattr(self, name)) for name in ("attend", "token", "draw") if self._differs(name)}
        if self.flips != default.flips:
            said["cells"] = "_".join(map(cell_name, self.flips))
        return said

    def _differs(self, name: str) -> bool:
        return getattr(self, name) != getattr(View(), name)


LINKED = (*(f"length{i + 1}" for i in range(B)), *_SWITCHES, *_PLACES, "attend", "token", "draw", "cells")


def cell_name(flip: Flip) -> str:
    """As in a link and in the browser.

    d1.3.5 is the decoder mask's sentence 1, query 3, key 5; e2.4 and c2.4, encoder and cross, have no query.
    """
    which, sentence, query, key = flip
    return f"{which}{sentence + 1}.{query + 1}.{key + 1}" if which == "d" else f"{which}{sentence + 1}.{key + 1}"


def cell_of(name: str) -> Flip | None:
    """The cell of a name; None for any other text."""
    found = _CELL.fullmatch(name)
    if not found:
        return None
    flat, of_flat, full, of_full, query, key = found.groups()
    return (flat or full, int(of_flat or of_full) - 1, int(query or 1) - 1, int(key) - 1)


def from_link(query: Mapping[str, str]) -> tuple[View, list[str]]:
    """A view from a link's parameters, and a sentence for each one that had to be changed."""
    given: dict[str, Any] = {name: query[name] for name in LINKED if name in query}
    values: dict[str, Any] = {"lengths": [_whole(given.get(f"length{i + 1}")) for i in range(B)]}
    for name in (*_PLACES, "token", "draw"):
        number = _whole(given.get(name))
        values[name] = number - 1 if name in _PLACES and number is not None else number
    values |= {name: {"true": True, "false": False}.get(given[name].lower()) for name in _SWITCHES if name in given}
    values["attend"] = given.get("attend")
    values["flips"] = given["cells"].split("_") if "cells" in given else []
    view = checked(values)
    link = view.link()
    changed = [
        f"{name} is {text!r} in the link; showing {link.get(name, 'the usual')}."
        for name, text in given.items()
        if link.get(name, _usual(name)) != text.lower()
    ]
    return view, changed


def checked(values: Mapping[str, Any]) -> View:
    """A view from untrusted values: what is missing or of the wrong kind becomes the default, numbers are clamped."""
    default = View()

    def whole(value: Any, otherwise: Any, most: int = LAST) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return otherwise
        return min(max(round(value), 0), most)

    lengths, flips = (values.get(name) for name in ("lengths", "flips"))
    lengths = lengths if isinstance(lengths, list) and len(lengths) == B else [None] * B
    names = [name for name in flips if isinstance(name, str)] if isinstance(flips, list) else []
    cells = dict.fromkeys(cell for cell in map(cell_of, names) if cell and cell[1] < B)
    return View(
        lengths=tuple(whole(length, None) for length in lengths),
        flips=tuple(cells)[:MOST_FLIPS],
        attend=values["attend"] if values.get("attend") in list(KINDS) else default.attend,
        token=whole(values.get("token"), None, 10_000),
        draw=whole(values.get("draw"), default.draw, 9_999),
        sentence=whole(values.get("sentence"), default.sentence, B - 1),
        **{name: whole(values.get(name), getattr(default, name)) for name in ("layer", "head", "row", "place")},
        **{name: values[name] if isinstance(values.get(name), bool) else usual for name, usual in _SWITCHES.items()},
    )


def for_batch(view: View, full: Sequence[int], T: int, vocab_size: int) -> View:
    """What this batch has: sentences of these full lengths, targets of T read tokens, ids below vocab_size."""
    S = max(full)
    lengths = (None if n is None or n >= most else n for n, most in zip(view.lengths, full, strict=True))
    inside = (flip for flip in view.flips if flip[2] < T and flip[3] < (T if flip[0] == "d" else S))
    token = view.token if view.token is not None and view.token < vocab_size else None
    return replace(view, lengths=tuple(lengths), flips=tuple(inside), token=token)


def within(view: View, n_layers: int, n_heads: int, n_rows: int, n_read: int) -> View:
    """Layer, head, row and place no further than there are."""
    return replace(
        view,
        layer=min(view.layer, n_layers - 1),
        head=min(view.head, n_heads - 1),
        row=min(view.row, n_rows - 1),
        place=min(view.place, n_read - 1),
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,6}", text, re.ASCII) else None


def _usual(name: str) -> str | None:
    """How the default of a parameter would be written."""
    if name in _PLACES:
        return str(getattr(View(), name) + 1)
    return str(getattr(View(), name)).lower() if name in (*_SWITCHES, "attend", "draw") else None
