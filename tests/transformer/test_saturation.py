"""The softmax Jacobian, its trace, the gradient at a gap, and how saturated a head is."""

import math

import pytest
import torch

from transformer import (
    attention_scores,
    head_saturation,
    jacobian_trace,
    sigmoid_slope,
    softmax_jacobian,
    typical_gap,
)


def logits(*shape: int, spread: float = 2.0) -> torch.Tensor:
    return spread * torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def test_the_jacobian_is_what_autograd_says() -> None:
    z = logits(7)
    by_autograd = torch.autograd.functional.jacobian(lambda z: z.softmax(-1), z)
    torch.testing.assert_close(softmax_jacobian(z.softmax(-1)), by_autograd, atol=1e-15, rtol=1e-12)


def test_the_jacobian_by_hand() -> None:
    s = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    expected = [[0.25, -0.15, -0.10], [-0.15, 0.21, -0.06], [-0.10, -0.06, 0.16]]
    torch.testing.assert_close(softmax_jacobian(s), torch.tensor(expected, dtype=torch.float64))
    assert jacobian_trace(s).item() == pytest.approx(0.62)


def test_the_jacobian_is_symmetric_and_its_columns_sum_to_zero() -> None:
    jacobian = softmax_jacobian(logits(3, 5, 7).softmax(-1))
    assert jacobian.shape == (3, 5, 7, 7)
    assert torch.equal(jacobian, jacobian.transpose(-2, -1))
    assert jacobian.sum(dim=-2).abs().max() < 1e-16


def test_the_trace_is_one_minus_the_square_of_the_norm() -> None:
    s = logits(3, 5, 7).softmax(-1)
    torch.testing.assert_close(jacobian_trace(s), 1 - s.square().sum(-1), atol=1e-15, rtol=0)
    diagonal = softmax_jacobian(s).diagonal(dim1=-2, dim2=-1)
    torch.testing.assert_close(jacobian_trace(s), diagonal.sum(-1), atol=1e-15, rtol=0)
    assert bool((softmax_jacobian(s).amax((-2, -1)) <= jacobian_trace(s) / 2 + 1e-16).all())


def test_the_trace_runs_from_one_minus_1_over_n_to_zero() -> None:
    assert jacobian_trace(torch.full((11,), 1 / 11, dtype=torch.float64)).item() == pytest.approx(10 / 11)
    assert jacobian_trace(torch.tensor([0.0, 1.0, 0.0])).item() == 0


def test_a_nearly_one_hot_row_keeps_its_digits() -> None:
    """Two keys a gap of 50 apart: 1 - |s|^2 rounds to 0, the trace is 2 sigma'(50) = 2 e^-50 (1 - 2 e^-50 ...)."""
    s = torch.tensor([50.0, 0.0], dtype=torch.float64).softmax(-1)
    assert 1 - s.square().sum() == 0
    assert jacobian_trace(s).item() == pytest.approx(2 * math.exp(-50), rel=1e-12, abs=0)
    assert softmax_jacobian(s)[0, 0].item() == pytest.approx(math.exp(-50), rel=1e-12, abs=0)


def test_with_two_keys_the_gradient_is_that_of_the_sigmoid() -> None:
    z = logits(2)
    gap = (z[0] - z[1]).requires_grad_()
    (slope,) = torch.autograd.grad(gap.sigmoid(), gap)
    assert softmax_jacobian(z.softmax(-1))[0, 0].item() == pytest.approx(slope.item(), rel=1e-12)
    assert sigmoid_slope(gap).item() == pytest.approx(slope.item(), rel=1e-12)


def test_the_slope_at_the_typical_gap_of_d_k_64() -> None:
    gaps = torch.tensor([typical_gap(64), typical_gap(64, scaled=False)], dtype=torch.float64)
    assert gaps.tolist() == [math.sqrt(2), math.sqrt(128)]
    scaled, plain = sigmoid_slope(gaps).tolist()
    assert round(scaled, 4) == 0.1573
    assert f"{plain:.2e}" == "1.22e-05"
    assert round(scaled / plain) == 12_891


def test_the_slope_is_even_at_most_a_quarter_and_exponential_far_out() -> None:
    gap = torch.tensor([-60.0, 0.0, 60.0], dtype=torch.float64)
    assert sigmoid_slope(gap).tolist() == pytest.approx([math.exp(-60), 0.25, math.exp(-60)], rel=1e-12, abs=0)


def test_the_typical_gap_does_not_grow_when_scaled() -> None:
    assert {typical_gap(d_k) for d_k in (1, 3, 1024)} == {math.sqrt(2)}
    assert typical_gap(8, scaled=False) == 4


@pytest.mark.parametrize("d_k", [3, 64, 257])
def test_the_variance_of_dot_products_and_of_gaps(d_k: int) -> None:
    generator = torch.Generator().manual_seed(d_k)
    q = torch.randn(20_000, 1, d_k, generator=generator)
    k = torch.randn(20_000, 2, d_k, generator=generator)
    for scaled, expected in ((False, d_k), (True, 1)):
        z = attention_scores(q, k, scaled)[:, 0]
        assert z.var().item() == pytest.approx(expected, rel=0.04)
        assert (z[:, 0] - z[:, 1]).var().item() == pytest.approx(2 * expected, rel=0.06)


def test_a_head_by_hand() -> None:
    """Two rows of three keys; the last key of the second is masked."""
    scores = torch.tensor([[[[0.0, math.log(2), 0.0], [math.log(3), 0.0, 9.0]]]], dtype=torch.float64)
    mask = torch.tensor([[[[True, True, True], [True, True, False]]]])
    found = {name: value.item() for name, value in head_saturation(scores, mask).items()}
    seen = [0.0, math.log(2), 0.0, math.log(3), 0.0]
    mean = sum(seen) / 5
    assert found["variance"] == pytest.approx(sum((z - mean) ** 2 for z in seen) / 5)
    # Pairs of the first row: two of gap ln 2, one of gap 0; of the second: one of gap ln 3.
    assert found["gap"] == pytest.approx((2 * math.log(2) ** 2 / 3 + math.log(3) ** 2) / 2)
    rows = [(0.25, 0.5, 0.25), (0.75, 0.25)]
    assert found["largest"] == pytest.approx((0.5 + 0.75) / 2)
    assert found["entropy"] == pytest.approx(-sum(s * math.log(s) for row in rows for s in row) / 2)
    assert found["trace"] == pytest.approx(sum(1 - sum(s * s for s in row) for row in rows) / 2)


def test_rows_that_leave_nothing_to_choose_do_not_count() -> None:
    scores = logits(1, 2, 3, 5)
    mask = torch.ones(1, 1, 3, 5, dtype=torch.bool)
    mask[:, :, 0, 1:] = False  # one key
    mask[:, :, 1] = False  # none
    found = head_saturation(scores, mask)
    alone = head_saturation(scores[:, :, 2:])
    for name, value in found.items():
        assert value.shape == (2,)
        torch.testing.assert_close(value, alone[name])


@pytest.mark.parametrize("keys", [0, 1])
def test_without_a_choice_there_is_no_number(keys: int) -> None:
    found = head_saturation(torch.zeros(1, 2, 3, keys))
    assert set(found) == {"variance", "gap", "entropy", "largest", "trace"}
    assert all(value.isnan().all() for value in found.values())
