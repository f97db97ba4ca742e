"""What a browser may ask the player for."""

import pytest

from app.decode_view import branch_tokens, panel_block, whole_numbers
from tests.app.test_decoding import unpack
from transformer import ReversalTask


def test_a_branch_of_this_source_is_taken() -> None:
    assert branch_tokens({"source": ["3", "4"], "tokens": [4, 9]}, ["3", "4"], 12) == [4, 9]


@pytest.mark.parametrize(
    "branch",
    [
        None,
        {},
        "x",
        {"source": ["3"], "tokens": [4]},
        {"source": ["3", "4"]},
        {"source": ["3", "4"], "tokens": "4"},
        {"source": ["3", "4"], "tokens": [12]},
        {"source": ["3", "4"], "tokens": [-1]},
        {"source": ["3", "4"], "tokens": [1.5]},
        {"source": ["3", "4"], "tokens": [True]},
    ],
)
def test_anything_else_counts_as_none(branch: object) -> None:
    assert branch_tokens(branch, ["3", "4"], 12) == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("6-9-2", [6, 9, 2]), ("7", [7]), ("", []), ("-", []), ("6-", []), ("x", []), ("٣", []), ("9" * 99, [])],
)
def test_numbers_in_a_link(text: str, numbers: list[int]) -> None:
    assert whole_numbers(text) == numbers


def test_a_branch_is_answered_with_the_models_own_going_on() -> None:
    header, arrays = unpack(panel_block(ReversalTask(), [3, 11, 7], {"tokens": [9]}))
    assert header["forced"] == header["step"] == 1
    assert header["written"][0] == "9"
    assert header["ask"] == {"at": "/live/decode", "task": "reverse", "source": [3, 11, 7], "model": ""}
    assert arrays["taken"][0] < 0.5


@pytest.mark.parametrize("tokens", [None, [], "9", [12], [[9]]])
def test_a_branch_of_nothing_is_the_models_own_choice(tokens: object) -> None:
    header, _ = unpack(panel_block(ReversalTask(), [3, 11, 7], {"tokens": tokens}))
    assert (header["forced"], header["written"]) == (0, ["7", "11", "3", "<eos>"])
