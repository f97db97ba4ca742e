"""What the Attention page is sent, against the model and against formulas written out."""

import json
import math
import struct

import numpy as np
import pytest
import torch

from app.attention_run import WhatIf, arrays, records, teacher_forced
from app.attention_view import panel_data
from app.models import shipped, trained, untrained
from transformer import ReversalTask, causal_mask
from transformer.tasks import DateTask

SRC = [3, 11, 7, 4, 5]


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    return shipped("reverse-d64-h4").model


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_each_stage_follows_from_the_one_before(model: torch.nn.Module, kind: str) -> None:
    trace, _, _ = teacher_forced(model, ReversalTask(), SRC)
    shown = {name: torch.tensor(a) for name, a in arrays(records(trace, kind), 1, 2, WhatIf()).items()}
    torch.testing.assert_close(shown["dots"], shown["q"] @ shown["k"].T)
    torch.testing.assert_close(shown["scores"], shown["dots"] / math.sqrt(16))
    hidden = ~causal_mask(6)[0, 0] if kind == "decoder" else torch.zeros_like(shown["scores"], dtype=torch.bool)
    weights = shown["scores"].masked_fill(hidden, -math.inf).softmax(-1)
    torch.testing.assert_close(shown["weights"][1, 2], weights)
    torch.testing.assert_close(shown["z"], weights @ shown["v"])
    torch.testing.assert_close(shown["changed"][0, 0], weights)


def test_the_decoder_reads_the_right_answer(model: torch.nn.Module) -> None:
    _, read, written = teacher_forced(model, ReversalTask(), SRC)
    assert read == [1, 5, 4, 7, 11, 3]
    assert written == [5, 4, 7, 11, 3, 2]


def test_a_source_without_an_answer_has_bos_to_read() -> None:
    task = DateTask()
    _, read, written = teacher_forced(untrained("date", 16, 2, 8), task, task.tokenizer.encode("31.2.2000"))
    assert (read, written) == ([1], [2])


@pytest.mark.parametrize(
    ("what_if", "factor"),
    [(WhatIf(scaled=False), 4.0), (WhatIf(temperature=0.5), 2.0), (WhatIf(False, True, 4.0), 1.0)],
)
def test_a_what_if_multiplies_the_scores(model: torch.nn.Module, what_if: WhatIf, factor: float) -> None:
    trace, _, _ = teacher_forced(model, ReversalTask(), SRC)
    of_kind = records(trace, "cross")
    changed = torch.tensor(arrays(of_kind, 0, 1, what_if)["changed"][0, 0])
    torch.testing.assert_close(changed, (of_kind[0].scores[0, 1] * factor).softmax(-1))


def test_without_the_mask_the_future_is_seen(model: torch.nn.Module) -> None:
    trace, _, _ = teacher_forced(model, ReversalTask(), SRC)
    shown = arrays(records(trace, "decoder"), 0, 0, WhatIf(masked=False))
    assert shown["weights"][0, 0, 0, 1:].max() == 0
    assert shown["changed"][0, 0, 0, 1:].max() > 0


def test_nothing_to_attend_to_has_a_picture(model: torch.nn.Module) -> None:
    trace, _, _ = teacher_forced(model, ReversalTask(), [])
    shown = arrays(records(trace, "cross"), 0, 0, WhatIf())
    assert shown["weights"].shape == (2, 4, 1, 0)
    assert shown["entropy"].tolist() == shown["maximum"].tolist() == [[0] * 4] * 2
    assert not shown["z"].any()


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("src", [[], [7], SRC])
def test_every_length_of_every_kind_fills_a_block(kind: str, src: list[int]) -> None:
    block, view = panel_data(ReversalTask(), src, {"kind": kind, "query": 99, "head": 9, "count": 7})
    (length,) = struct.unpack_from("<I", block)
    header = json.loads(block[4 : 4 + length])
    numbers = np.frombuffer(block[4 + length :], "<f4")
    assert np.isfinite(numbers).all()
    assert header["count"] == 7
    assert len(header["shapes"]["stages"]) == 8
    assert view.query == max(0, len(header["rows"]) - 1)
    assert view.head == 3


def test_off_the_grid_there_is_no_trained_model() -> None:
    assert trained("reverse", 64, 4, 16).config.d_model == 64
    assert trained("reverse", 64, 4, 17) is None
    assert untrained("reverse", 24, 3, 5) is untrained("reverse", 24, 3, 5)
    assert untrained("reverse", 24, 3, 5).config.head_width == 5
