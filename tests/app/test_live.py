"""The block that Python sends to the browser, read back by hand."""

import json
import struct

import numpy as np

from app.live import pack


def test_pack_is_length_header_numbers() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.array([0.25])
    block = pack({"labels": ["é", "<b>"]}, {"a": a, "b": b})
    (length,) = struct.unpack_from("<I", block)
    header = json.loads(block[4 : 4 + length])
    assert header == {
        "labels": ["é", "<b>"],
        "arrays": {"a": {"shape": [2, 3], "start": 0}, "b": {"shape": [1], "start": 6}},
    }
    assert np.frombuffer(block[4 + length :], "<f4").tolist() == [0, 1, 2, 3, 4, 5, 0.25]


def test_pack_takes_arrays_in_any_memory_order() -> None:
    turned = np.arange(6.0).reshape(2, 3).T
    block = pack({}, {"a": turned})
    assert np.frombuffer(block[-24:], "<f4").reshape(3, 2).tolist() == turned.tolist()


def test_pack_of_nothing_has_no_numbers() -> None:
    block = pack({}, {"a": np.zeros((2, 0))})
    (length,) = struct.unpack_from("<I", block)
    assert len(block) == 4 + length
