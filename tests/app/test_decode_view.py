"""What a browser may ask the player for."""

import pytest

from app.decode_view import branch_tokens, whole_numbers


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
