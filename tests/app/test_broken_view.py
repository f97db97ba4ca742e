"""What the Break it page sends to its panels: the file's own numbers, and what the link asks for."""

import json
import struct
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch

from app.broken_state import View, checked, from_link
from app.broken_view import panel_data, results
from app.gradients_view import KINDS
from app.gradients_view import panel_data as gradients
from tests.app.test_pages import run
from transformer import ReversalTask
from transformer.broken import PARTS, outcome
from transformer.gradient_norms import MOST, RESULTS, STEPS, at_start


def unpacked(block: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    (length,) = struct.unpack_from("<I", block)
    header = json.loads(block[4 : 4 + length])
    numbers = np.frombuffer(block[4 + length :], "<f4")
    arrays = {}
    for name, place in header["arrays"].items():
        size = int(np.prod(place["shape"]))
        arrays[name] = numbers[place["start"] : place["start"] + size].reshape(place["shape"])
    return header, arrays


# the view


def test_a_link_says_only_what_differs_and_is_read_back() -> None:
    view = View(part="ffn", guess=2, layers=24, stack="encoder", weights="all", after=STEPS[3])
    assert View().link() == {}
    assert from_link(view.link()) == (view, [])
    assert from_link(View(guess="shown").link()) == (View(guess="shown"), [])


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"part": "<b>"}, "part is '<b>' in the link; showing causal."),
        ({"guess": "7"}, "guess is '7' in the link; showing None."),
        ({"layers": "99"}, f"layers is '99' in the link; showing {MOST}."),
        ({"layers": "x"}, "layers is 'x' in the link; showing 12."),
        ({"after": "41"}, "after is '41' in the link; showing 40."),
        ({"stack": "middle"}, "stack is 'middle' in the link; showing decoder."),
    ],
)
def test_nonsense_in_a_link_is_explained(query: dict[str, str], said: str) -> None:
    view, changed = from_link(query)
    assert changed == [said]
    assert checked(asdict(view)) == view


@pytest.mark.parametrize(
    "values", [{"part": None}, {"part": []}, {"guess": True}, {"guess": 2.0}, {"layers": 3.5}, {"after": None}], ids=str
)
def test_what_a_browser_may_send_becomes_a_view(values: dict[str, Any]) -> None:
    assert checked(values) == View()


# the parts


def test_every_number_of_the_file_is_in_the_panel() -> None:
    header, _ = unpacked(panel_data(View(part="ffn", guess=1)))
    assert header["view"] == {"part": "ffn", "guess": 1}
    assert [part["name"] for part in header["parts"]] == list(results()["parts"])
    for part in header["parts"]:
        measured = results()["parts"][part["name"]]
        for shown, (seed, run_) in zip(part["runs"], measured["seeds"].items(), strict=True):
            assert shown["seed"] == int(seed)
            assert all(shown[twin] == run_[twin] for twin in ("intact", "broken"))
        exact = [[run_[twin]["exact"] for run_ in measured["seeds"].values()] for twin in ("intact", "broken")]
        assert part["truth"] == outcome(*(sum(some) / len(some) for some in exact)) + 1
        assert part["answers"] == list(PARTS[part["name"]].answers)


def test_tokens_are_named_as_in_the_task() -> None:
    header, _ = unpacked(panel_data(View()))
    assert header["labels"][:4] == ["<pad>", "<bos>", "<eos>", "3"]
    run_ = header["parts"][0]["runs"][0]
    assert run_["target"] == [*run_["source"][::-1], 2]


# gradients


def test_gradients_are_computed_now_and_laid_over_the_sweep() -> None:
    header, arrays = unpacked(gradients(ReversalTask(), [], {"layers": 2, "stack": "encoder", "count": 4}))
    assert (header["view"]["layers"], header["view"]["stack"], header["count"]) == (2, "encoder", 4)
    now = at_start(2, 0)
    for norm in ("post", "pre"):
        expected = torch.stack([now[norm][kind] for kind in KINDS])
        torch.testing.assert_close(torch.from_numpy(arrays[f"live.{norm}"].copy()), expected, rtol=1e-4, atol=1e-6)
    shipped = json.loads(RESULTS.read_text(encoding="utf-8"))
    draws = [draw["post"]["decoder.w_2"][4][2] for draw in shipped["start"]]  # layer 3 of 5, after 1 + 2 + 3 + 4
    column = arrays["post.decoder.w_2"][:, 10 + 2]
    assert column.tolist() == pytest.approx([sum(draws) / len(draws), min(draws), max(draws)], rel=1e-5)


# the page


def test_the_page_opens_with_its_table_and_its_code() -> None:
    app = run()
    app.switch_page("../pages/break.py").run()
    assert not app.exception
    assert any("python -m transformer.broken causal" in text.value for text in app.markdown)
    assert any("def measure(" in block.value for block in app.code)


def test_the_page_takes_its_view_from_the_link_and_explains_nonsense() -> None:
    app = run(part="wings", layers="7")
    app.switch_page("../pages/break.py").run()
    assert not app.exception
