"""Integrals over normal logits, against identities, closed forms, limits and draws."""

import math

import pytest
import torch

from transformer import (
    expected_entropy,
    expected_largest,
    expected_slope,
    expected_trace,
    jacobian_trace,
    median_slope,
    row_entropy,
    sigmoid_slope,
)


@pytest.mark.parametrize("variance", [0.3, 1.0, 64.0, 1024.0])
def test_with_two_keys_the_trace_is_twice_the_slope(variance: float) -> None:
    assert expected_trace(2, variance) == pytest.approx(2 * expected_slope(2 * variance), rel=1e-6)


@pytest.mark.parametrize("variance", [1.0, 50.0])
def test_with_two_keys_the_largest_weight_is_the_sigmoid_of_the_gap(variance: float) -> None:
    deviation = math.sqrt(2 * variance)
    gap = torch.linspace(0, 12 * deviation, 20_001, dtype=torch.float64)
    density = 2 * torch.exp(-0.5 * (gap / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
    assert expected_largest(2, variance) == pytest.approx(torch.trapezoid(gap.sigmoid() * density, gap).item(), 1e-5)


@pytest.mark.parametrize("n_keys", [3, 11])
@pytest.mark.parametrize("variance", [1.0, 40.0])
def test_against_draws(n_keys: int, variance: float) -> None:
    generator = torch.Generator().manual_seed(n_keys)
    z = torch.randn(40_000, n_keys, generator=generator, dtype=torch.float64) * math.sqrt(variance)
    s = z.softmax(-1)
    pairs = [
        (expected_entropy, row_entropy(s)),
        (expected_largest, s.amax(-1)),
        (expected_trace, jacobian_trace(s)),
    ]
    for expected, drawn in pairs:
        error = drawn.std().item() / math.sqrt(len(z))
        assert expected(n_keys, variance) == pytest.approx(drawn.mean().item(), abs=4 * error)


@pytest.mark.parametrize("variance", [1.0, 200.0])
def test_one_key_has_everything(variance: float) -> None:
    found = [expected(1, variance) for expected in (expected_entropy, expected_largest, expected_trace)]
    assert found == pytest.approx([0, 1, 0], abs=1e-5)


def test_nearly_equal_logits_share_nearly_equally() -> None:
    """The largest of five standard normal numbers is 1.163 on average, and each weight is about (1 + z) / 5."""
    found = [expected(5, 0.01) for expected in (expected_entropy, expected_largest, expected_trace)]
    assert found == pytest.approx([math.log(5), (1 + 0.1 * 1.163) / 5, 4 / 5], abs=0.005)


@pytest.mark.parametrize("variance", [0.0, -1.0, math.nan])
def test_a_variance_is_positive(variance: float) -> None:
    for expected in (expected_slope, median_slope):
        with pytest.raises(ValueError, match="it must be more than 0"):
            expected(variance)
    for expected in (expected_entropy, expected_largest, expected_trace):
        with pytest.raises(ValueError, match="it must be more than 0"):
            expected(3, variance)


def test_the_mean_gradient_falls_like_one_over_a_root_and_not_exponentially() -> None:
    for d_k in (64, 256, 1024):
        assert expected_slope(2 * d_k) == pytest.approx(1 / math.sqrt(4 * math.pi * d_k), rel=1 / d_k)
    assert expected_slope(2) / expected_slope(2 * 64) == pytest.approx(5.2, abs=0.05)


def test_the_mean_and_the_median_of_drawn_gaps() -> None:
    gap = torch.randn(200_001, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * math.sqrt(128)
    slope = sigmoid_slope(gap)
    assert expected_slope(128) == pytest.approx(slope.mean().item(), rel=0.03)
    assert median_slope(128) == pytest.approx(slope.median().item(), rel=0.1)
    assert median_slope(2) / median_slope(128) == pytest.approx(414, abs=1)
