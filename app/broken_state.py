"""What is chosen on the Break it page: read from a link or from the browser, checked, and written to a link."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from transformer.broken import PARTS
from transformer.gradient_norms import MOST, STEPS

STACKS = ("encoder", "decoder")
WEIGHTS = ("w_2", "all")
SHOWN = "shown"  # in place of a guess: revealed without one


@dataclass(frozen=True)
class View:
    """The choices of one person. guess is 1, 2 or 3, "shown", or None while nothing is revealed.

    layers, stack and weights say which gradients are shown; after is how many steps of training they are taken.
    """

    part: str = "causal"
    guess: int | str | None = None
    layers: int = 12
    stack: str = "decoder"
    weights: str = "w_2"
    after: int = 0

    def link(self) -> dict[str, str]:
        """What differs from the default, as it stands in a link."""
        default = View()
        return {name: str(value) for name, value in asdict(self).items() if value != getattr(default, name)}


FIELDS = tuple(field.name for field in fields(View))


def from_link(query: Mapping[str, str]) -> tuple[View, list[str]]:
    """A view from a link's parameters, and a sentence for each one that had to be changed."""
    asked = {name: query[name] for name in FIELDS if name in query}
    values = {name: int(text) if text.isascii() and text.isdigit() else text for name, text in asked.items()}
    view = checked(values)
    changed = [
        f"{name} is {text!r} in the link; showing {getattr(view, name)}."
        for name, text in asked.items()
        if getattr(view, name) != values[name]
    ]
    return view, changed


def checked(values: Mapping[str, Any]) -> View:
    """A view from untrusted values: what is missing or of the wrong kind becomes the default, numbers are clamped."""
    default = View()

    def one_of(name: str, allowed: tuple[Any, ...]) -> Any:
        value = values.get(name)
        fits = isinstance(value, int | str) and not isinstance(value, bool) and value in allowed
        return value if fits else getattr(default, name)

    layers, after = values.get("layers"), values.get("after")
    return View(
        part=one_of("part", tuple(PARTS)),
        guess=one_of("guess", (1, 2, 3, SHOWN)),
        layers=min(max(layers, 1), MOST) if type(layers) is int else default.layers,
        stack=one_of("stack", STACKS),
        weights=one_of("weights", WEIGHTS),
        after=min(STEPS, key=lambda step: abs(step - after)) if type(after) is int else default.after,
    )
