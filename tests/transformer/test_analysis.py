"""Entropy and likeness of heads."""

import math

import torch

from transformer import head_similarity, join_pieces, row_entropy, with_means


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


def test_joining_pieces_by_hand() -> None:
    """Three rows in words of 2 and 1, four columns in words of 1, 2 and 1."""
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.3, 0.0, 0.3, 0.4], [0.5, 0.5, 0.0, 0.0]])
    joined = join_pieces(weights, [range(0, 2), range(2, 3)], [range(0, 1), range(1, 3), range(3, 4)])
    torch.testing.assert_close(joined, torch.tensor([[0.2, 0.4, 0.4], [0.5, 0.5, 0.0]]))


def test_joined_rows_still_sum_to_one_and_single_pieces_change_nothing() -> None:
    weights = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0)).softmax(-1)
    joined = join_pieces(weights, [range(0, 2), range(2, 5)], [range(0, 3), range(3, 7)])
    assert joined.shape == (2, 3, 2, 2)
    torch.testing.assert_close(joined.sum(-1), torch.ones(2, 3, 2))
    alone = join_pieces(weights, [range(i, i + 1) for i in range(5)], [range(i, i + 1) for i in range(7)])
    torch.testing.assert_close(alone, weights)


def test_nothing_joins_to_nothing() -> None:
    assert join_pieces(torch.zeros(2, 3, 1, 0), [range(0, 1)], []).shape == (2, 3, 1, 0)


def test_means_stand_after_heads_and_layers() -> None:
    weights = torch.arange(12.0).view(2, 3, 2)
    means = with_means(weights)
    assert means.shape == (3, 4, 2)
    assert torch.equal(means[:2, :3], weights)
    assert means[0, 3].tolist() == [2.0, 3.0]
    assert means[2, 1].tolist() == [5.0, 6.0]
    assert means[2, 3].tolist() == [5.0, 6.0]
