"""Four masked softmaxes: alike where something may be attended, different where nothing may."""

import math

import pytest
import torch

from tests.transformer.small import seeded
from transformer import MASKED_SOFTMAXES, weights_and_gradients

T_Q, T_K, D_V = 3, 5, 7
NAMES = list(MASKED_SOFTMAXES)
SCORES = torch.tensor([[0.0, math.log(3), 9.0, 9.0, 9.0]])
FIRST_TWO = torch.tensor([[True, True, False, False, False]])
NOTHING = torch.zeros(1, T_K, dtype=torch.bool)
V = torch.randn(T_K, D_V, generator=seeded())


@pytest.mark.parametrize("name", NAMES)
def test_all_agree_where_something_may_be_attended(name):
    # exp gives 1 and 3 of 4; z's gradient for the scores is w_j (g v_j - sum), 0 for what is masked.
    w, z, to_scores, to_v = weights_and_gradients(MASKED_SOFTMAXES[name], SCORES, FIRST_TWO, V)
    torch.testing.assert_close(w, torch.tensor([[0.25, 0.75, 0, 0, 0]]))
    torch.testing.assert_close(z, (0.25 * V[0] + 0.75 * V[1])[None])
    along = V @ z[0]
    expected = w[0] * (along - (w[0] * along).sum())
    torch.testing.assert_close(to_scores[0], expected)
    torch.testing.assert_close(to_v, w.T @ z)
    assert w[0, 2:].tolist() == to_scores[0, 2:].tolist() == [0, 0, 0]


def test_of_nothing_minus_infinity_makes_nan_of_everything():
    w, z, _, to_v = weights_and_gradients(MASKED_SOFTMAXES["−∞, then softmax"], SCORES, NOTHING, V)
    assert w.isnan().all()
    assert z.isnan().all()
    assert to_v.isnan().all()


def test_of_nothing_minus_1e9_makes_a_uniform_row_that_trains_what_is_hidden():
    w, z, _, to_v = weights_and_gradients(MASKED_SOFTMAXES["−1e9, then softmax"], SCORES, NOTHING, V)
    torch.testing.assert_close(w, torch.full((1, T_K), 1 / T_K))
    torch.testing.assert_close(z, V.mean(0, keepdim=True))
    assert to_v.abs().min() > 0


def test_of_nothing_a_repaired_nan_is_zero_but_its_gradient_is_not():
    w, z, to_scores, to_v = weights_and_gradients(MASKED_SOFTMAXES["−∞, softmax, NaN to 0"], SCORES, NOTHING, V)
    assert not w.any()
    assert not z.any()
    assert to_scores.isnan().all()
    assert not to_v.any()


def test_of_nothing_ours_is_zero_and_so_are_its_gradients():
    assert NAMES[-1] == "ours"
    for tensor in weights_and_gradients(MASKED_SOFTMAXES["ours"], SCORES, NOTHING, V):
        assert torch.equal(tensor, torch.zeros_like(tensor))


@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_a_mask_that_serves_all_queries(name):
    scores = torch.randn(2, 1, T_Q, T_K, generator=seeded(1))
    v = torch.randn(2, 1, T_K, D_V, generator=seeded(2))
    mask = torch.tensor([True, True, True, False, False]).view(1, 1, 1, T_K)
    w, z, to_scores, to_v = weights_and_gradients(MASKED_SOFTMAXES[name], scores, mask, v)
    assert (w.shape, z.shape) == (scores.shape, (2, 1, T_Q, D_V))
    assert (to_scores.shape, to_v.shape) == (scores.shape, v.shape)
    torch.testing.assert_close(w.sum(-1), torch.ones(2, 1, T_Q))


def test_it_works_inside_no_grad():
    with torch.no_grad():
        assert weights_and_gradients(MASKED_SOFTMAXES["ours"], SCORES, FIRST_TWO, V)[2].abs().max() > 0
