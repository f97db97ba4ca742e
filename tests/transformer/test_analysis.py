"""Entropy and likeness of heads."""

import math

import torch

from transformer import head_similarity, row_entropy


def test_entropy_of_one_key_none_and_all() -> None:
    rows = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0]])
    torch.testing.assert_close(row_entropy(rows), torch.tensor([0.0, 0.0, math.log(4), math.log(2)]))


def test_entropy_keeps_the_leading_axes() -> None:
    assert row_entropy(torch.full((2, 3, 5, 7), 1 / 7)).shape == (2, 3, 5)


def test_likeness_by_hand() -> None:
    a = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    b = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    c = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    # a and b agree in one row of two; c shares half of every row with both.
    expected = torch.tensor([[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]])
    torch.testing.assert_close(head_similarity(torch.stack([a, b, c])), expected)
