import re

import pytest
import torch

from transformer import causal_mask, padding_mask
from transformer.masks import check_mask


def test_causal_mask_opens_the_diagonal_and_the_past():
    assert causal_mask(3).tolist() == [[[[True, False, False], [True, True, False], [True, True, True]]]]


@pytest.mark.parametrize("T", [0, 1, 5])
def test_causal_mask_is_boolean_and_opens_half_the_square(T):
    mask = causal_mask(T)
    assert mask.shape == (1, 1, T, T)
    assert mask.dtype == torch.bool
    assert mask.sum() == T * (T + 1) // 2


def test_padding_mask_opens_the_first_keys_for_every_query():
    mask = padding_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.shape == (3, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert mask.flatten(1).tolist() == [[True, True, False], [False, False, False], [True, True, True]]


@pytest.mark.parametrize(("B", "T"), [(0, 5), (2, 0), (0, 0)])
def test_padding_mask_of_nothing(B, T):
    assert padding_mask(torch.zeros(B, dtype=torch.int64), T).shape == (B, 1, 1, T)


def test_masks_combine_with_and():
    # Row by row: query 0 sees key 0 only; the second sentence has one real key, which all its queries see.
    mask = causal_mask(3) & padding_mask(torch.tensor([3, 1]), 3)
    assert mask.shape == (2, 1, 3, 3)
    assert mask[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask[1, 0].int().tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([4, 8], "lengths run from 4 to 8; they must lie between 0 and T = 7"),
        ([-1, 3], "lengths run from -1 to 3; they must lie between 0 and T = 7"),
        ([[1, 2]], "lengths must have one axis, (B,); got shape (1, 2)"),
    ],
)
def test_lengths_that_cannot_be_are_refused(lengths, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        padding_mask(torch.tensor(lengths), 7)


@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 1, 5, 7), (2, 1, 1, 7), (1, 1, 1, 1), (2, 3, 5, 1)])
def test_a_mask_fits_when_each_axis_is_1_or_that_of_the_scores(shape):
    check_mask(torch.ones(shape, dtype=torch.bool), torch.Size((2, 3, 5, 7)))


@pytest.mark.parametrize(
    "shape",
    [
        (2, 1, 1, 5),  # as long as the queries, not the keys
        (3, 1, 5, 7),  # heads in the place of the batch
        (2, 3, 7, 5),  # transposed
        (5, 7),  # torch would broadcast these two
        (7,),
        (1,),
        (2, 3, 5, 0),
        (2, 1, 3, 5, 7),
    ],
)
def test_a_mask_that_does_not_fit_is_refused_naming_both_shapes(shape):
    said = f"a mask of shape {shape} does not fit scores of shape (2, 3, 5, 7)"
    with pytest.raises(ValueError, match=re.escape(said)):
        check_mask(torch.ones(shape, dtype=torch.bool), torch.Size((2, 3, 5, 7)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_of_numbers_is_refused(dtype):
    with pytest.raises(ValueError, match=f"a mask must be boolean, True = may attend; got {dtype}"):
        check_mask(torch.ones(1, 1, 5, 7, dtype=dtype), torch.Size((2, 3, 5, 7)))
