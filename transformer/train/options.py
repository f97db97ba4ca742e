"""What the training commands share in reading their options."""

import argparse
from collections.abc import Callable, Iterable
from typing import Any


def at_least(least: int) -> Callable[[str], int]:
    """A whole number of the command line, refused below ``least``."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

    return number


def given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Those of these options that were given, by name."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}
