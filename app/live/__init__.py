"""Small components of our own: Python computes, JavaScript draws."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

_HERE = Path(__file__).parent


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """One block for the browser: the header's length (uint32), the header as JSON, then the arrays as float32.

    The header gains "arrays": for each name its shape and where it starts, counted in numbers.
    """
    blocks, places, start = [], {}, 0
    for name, array in arrays.items():
        block = np.ascontiguousarray(array, dtype="<f4")
        places[name] = {"shape": block.shape, "start": start}
        blocks.append(block.tobytes())
        start += block.size
    encoded = json.dumps({**header, "arrays": places}).encode()
    return struct.pack("<I", len(encoded)) + encoded + b"".join(blocks)


def _source(*names: str) -> str:
    """The files as one, without indentation and comment lines: it is sent again with every update."""
    lines = (line.strip() for name in names for line in (_HERE / name).read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _component(name: str, js: tuple[str, ...], css: tuple[str, ...]) -> Callable[..., Any]:
    return st.components.v2.component(f"transformer_workbench.{name}", js=_source(*js), css=_source(*css))


_DRAWING = ("block.js", "heatmap.js", "save.js", "dom.js")
_PANEL = (*_DRAWING, "latch.js", "controls.js", "panel.js")
_LINES = ("pen.js", "figure.js", "alignment.js")
decode_player = _component(
    "decode_player", (*_DRAWING, "controls.js", *_LINES, "player.js"), ("live.css", "controls.css", "player.css")
)
attention_panel = _component(
    "attention_panel", (*_PANEL, *_LINES, "attention.js"), ("live.css", "controls.css", "attention.css")
)
_DRAWN = (*_PANEL, "pen.js")
_CHARTS = (*_DRAWN, "figure.js", "chart.js")
_SHEETS = (*_DRAWN, "sheet.js")
_POSITIONS = ("live.css", "controls.css", "positions.css")
positions_panel = _component(
    "positions_panel", (*_CHARTS, "sheet.js", "clocks.js", "positions_facts.js", "positions.js"), _POSITIONS
)
order_panel = _component("order_panel", (*_SHEETS, "positions_order.js"), _POSITIONS)
schemes_panel = _component("schemes_panel", (*_SHEETS, "positions_schemes.js"), _POSITIONS)
sizes_panel = _component("sizes_panel", (*_PANEL, "positions_sizes.js"), _POSITIONS)
_SATURATION = ("live.css", "controls.css", "saturation.css")
saturation_panel = _component("saturation_panel", (*_CHARTS, "saturation.js"), _SATURATION)
own_panel = _component("own_panel", (*_CHARTS, "own.js"), _SATURATION)
runs_panel = _component("runs_panel", (*_CHARTS, "runs.js"), _SATURATION)
masks_panel = _component(
    "masks_panel",
    (*_PANEL, "masks_picture.js", "masks_tables.js", "masks.js"),
    ("live.css", "controls.css", "masks.css"),
)
train_panel = _component("train_panel", (*_CHARTS, "train.js"), ("live.css", "controls.css", "train.css"))
_BREAKING = ("live.css", "controls.css", "broken.css", "gradients.css")
broken_panel = _component("broken_panel", (*_CHARTS, "broken.js", "broken_run.js"), _BREAKING)
gradients_panel = _component("gradients_panel", (*_CHARTS, "gradients.js"), _BREAKING)
rows_panel = _component("rows_panel", (*_SHEETS, "rows.js"), ("live.css", "rows.css"))
