"""What the Saturation page is sent: random rows against formulas written out, theory against draws, heads by hand."""

import math

import numpy as np
import pytest
import torch

from app.attention_run import records, teacher_forced
from app.models import shipped
from app.saturation_run import (
    BATCH_SEED,
    BATCH_SIZE,
    DISTRIBUTIONS,
    NUMBERS,
    QUANTITIES,
    WIDTHS,
    measured,
    of_batch,
    of_sequence,
    one_row,
    theory,
)
from transformer import AttentionSite, ReversalTask, Trace, jacobian_trace

TASK, SRC = ReversalTask(), [3, 11, 7, 4, 5]


@pytest.mark.parametrize("distribution", list(DISTRIBUTIONS))
def test_components_have_mean_0_and_variance_1(distribution: str) -> None:
    drawn = DISTRIBUTIONS[distribution]((100_000,), torch.Generator().manual_seed(1))
    assert drawn.mean().item() == pytest.approx(0, abs=0.015)
    assert drawn.var().item() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("keys", [2, 8])
@pytest.mark.parametrize("distribution", list(DISTRIBUTIONS))
def test_every_width_is_the_start_of_one_draw(keys: int, distribution: str) -> None:
    shown = {name: torch.tensor(array) for name, array in one_row(keys, distribution, 5).items()}
    generator = torch.Generator().manual_seed(5)
    q = DISTRIBUTIONS[distribution]((1, 1024), generator)[0].double()
    k = DISTRIBUTIONS[distribution]((keys, 1024), generator).double()
    for at, d_k in enumerate(WIDTHS):
        dots = torch.stack([(q[:d_k] * key[:d_k]).sum() for key in k])
        torch.testing.assert_close(shown["scores"][1, at], dots)
        torch.testing.assert_close(shown["scores"][0, at], dots / math.sqrt(d_k))
        weights = dots.exp() / dots.exp().sum() if d_k <= 64 else dots.softmax(-1)
        torch.testing.assert_close(shown["weights"][1, at], weights)
    assert shown["weights"].shape == (2, len(WIDTHS), keys)
    by_hand = torch.diag_embed(shown["weights"]) - shown["weights"].unsqueeze(-1) * shown["weights"].unsqueeze(-2)
    torch.testing.assert_close(shown["jacobian"], by_hand, atol=1e-15, rtol=0)
    torch.testing.assert_close(shown["trace"], 1 - shown["weights"].square().sum(-1), atol=1e-15, rtol=0)
    assert shown["column_sums"].abs().max() < 1e-15


def test_the_row_shown_first_goes_from_soft_to_one_hot_without_the_division_only() -> None:
    shown = one_row(8, "normal", 33)
    assert shown["weights"][1, -1].max() > 0.9999
    assert shown["trace"][1, -1] < 1e-4
    assert shown["weights"][0].max() < 0.6
    assert (shown["jacobian"][1, -1] ** 2).max() < 1e-8  # all of it


@pytest.mark.parametrize("keys", [2, 8, 32])
def test_measurement_lies_on_the_theory(keys: int) -> None:
    lines, points = theory(keys), measured(keys, "normal", 0)
    assert lines.shape == (len(QUANTITIES), 2, len(WIDTHS))
    assert points.shape == (len(QUANTITIES), 2, len(WIDTHS), 3)
    wide = WIDTHS.index(32)
    for name in ("variance", "gap", "entropy", "largest", "trace", "mean"):
        q = QUANTITIES.index(name)
        np.testing.assert_allclose(points[q, 0, wide:, 0], lines[q, 0, wide:], rtol=0.08, err_msg=name)
        np.testing.assert_allclose(points[q, 1, wide:, 0], lines[q, 1, wide:], rtol=0.25, err_msg=name)
    typical = QUANTITIES.index("typical")  # an exponent is measured: compare what it is of
    np.testing.assert_allclose(np.log(points[typical, 1, wide:, 0]), np.log(lines[typical, 1, wide:]), rtol=0.06)


@pytest.mark.parametrize("distribution", ["uniform", "sign"])
def test_the_distribution_stops_mattering(distribution: str) -> None:
    points, lines = measured(8, distribution, 0), theory(8)
    trace = QUANTITIES.index("trace")
    np.testing.assert_allclose(points[trace, 0, -1, 0], lines[trace, 0, -1], rtol=0.05)
    np.testing.assert_allclose(points[0, 1, :, 0], WIDTHS, rtol=0.1)  # the variance of q·k is d_k at every width
    np.testing.assert_allclose(points[1, 1, :, 0], 2 * np.array(WIDTHS), rtol=0.1)


def test_the_table_of_d_k_64() -> None:
    at = WIDTHS.index(64)
    scaled, plain = theory(8)[:, 0, at], theory(8)[:, 1, at]
    named = dict(zip(QUANTITIES, zip(scaled, plain, strict=True), strict=True))
    assert named["variance"] == (1, 64)
    assert named["gap"] == pytest.approx((2, 128))
    assert round(named["typical"][0], 4) == 0.1573
    assert f"{named['typical'][1]:.2e}" == "1.22e-05"
    assert round(named["typical"][0] / named["typical"][1]) == 12_891
    assert named["mean"][0] / named["mean"][1] == pytest.approx(5.2, abs=0.05)
    assert named["mean"][1] == pytest.approx(1 / math.sqrt(4 * math.pi * 64), rel=0.02)


def test_value_low_and_high_are_in_order() -> None:
    points = measured(4, "normal", 3)
    assert (points[..., 1] <= points[..., 2]).all()
    for name in ("typical", "median"):
        value, low, high = np.moveaxis(points[QUANTITIES.index(name)], -1, 0)
        assert ((low <= value) & (value <= high)).all()


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_heads_of_a_sequence_by_hand(kind: str) -> None:
    model = shipped("reverse-d64-h4").model
    found = of_sequence(model, TASK, SRC)[kind]
    assert found.shape == (2, 4, len(NUMBERS), 2)
    trace, _, _ = teacher_forced(model, TASK, SRC)
    record = records(trace, kind)[1]
    dots = record.q[0, 2] @ record.k[0, 2].T  # layer 2, head 3
    rows = [row[: i + 1] for i, row in enumerate(dots)] if kind == "decoder" else list(dots)
    rows = [row for row in rows if len(row) > 1]
    for side, factor in ((0, 0.25), (1, 1.0)):  # sqrt(16)
        z = [row * factor for row in rows]
        weights = [row.softmax(-1) for row in z]
        expected = {
            "variance": torch.cat(z).var(correction=0),
            "gap": torch.stack([2 * row.var() for row in z]).mean(),
            "largest": torch.stack([row.max() for row in weights]).mean(),
            "trace": torch.stack([jacobian_trace(row) for row in weights]).mean(),
        }
        for name, value in expected.items():
            number = found[1, 2, NUMBERS.index(name), side]
            assert number == pytest.approx(value.item(), rel=1e-3, abs=1e-6), name


def test_undoing_the_division_multiplies_variances_by_d_k() -> None:
    for found in of_batch(shipped("reverse-d64-h4-k8").model, TASK).values():
        np.testing.assert_allclose(found[:, :, :2, 1], 8 * found[:, :, :2, 0], rtol=1e-4)
        assert (found[:, :, NUMBERS.index("trace"), 1] <= found[:, :, NUMBERS.index("trace"), 0]).all()


def test_a_batch_leaves_padding_out() -> None:
    model = shipped("reverse-d32-h2").model
    batch = TASK.batch(BATCH_SIZE, torch.Generator().manual_seed(BATCH_SEED), held_out=True)
    trace = Trace()
    with torch.no_grad():
        model(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask, trace)
    weights = trace.attention[AttentionSite("decoder", 1, "cross")].weights
    largest = [
        weights[b, 0, t, :length].max()
        for b, length in enumerate(batch.lengths.tolist())
        for t in range(length + 1)
        if length > 1
    ]
    found = of_batch(model, TASK)["cross"][1, 0, NUMBERS.index("largest"), 0]
    assert found == pytest.approx(torch.stack(largest).mean().item(), rel=1e-5)


@pytest.mark.parametrize("src", [[], [7]])
def test_a_source_that_leaves_nothing_to_choose_has_no_numbers(src: list[int]) -> None:
    found = of_sequence(shipped("reverse-d64-h4").model, TASK, src)
    assert np.isnan(found["cross"]).all()
    assert np.isnan(found["encoder"]).all()
