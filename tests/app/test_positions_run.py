"""What the Positions page is sent, against the formulas written out and against the model."""

import json
import math
import struct
from dataclasses import asdict

import numpy as np
import pytest
import torch

from app.models import shipped
from app.positions_order import bare, reordered
from app.positions_run import FAR, encoding, nearest, rounding, turned
from app.positions_schemes import SCHEMES, SHOWN, schemes, sizes, trained_sizes
from app.positions_sections import LEARNED
from app.positions_state import REACH, TABLE, View
from app.positions_view import panel_data
from transformer import ReversalTask, Transformer, rotation, sinusoidal_encoding

WIDTHS = [2, 22, 64, 128]


def pe(position: float, d_model: int) -> list[float]:
    """One row of Eq. 2.5 and 2.6, with math alone."""
    angles = [position / 10000 ** (2 * i / d_model) for i in range(d_model // 2)]
    return [f(angle) for angle in angles for f in (math.sin, math.cos)]


@pytest.mark.parametrize("d_model", WIDTHS)
def test_the_table_is_the_equations(d_model: int) -> None:
    table = encoding(d_model)["table"]
    assert table.shape == (TABLE + 2 * REACH, d_model)
    for position in (-REACH, -1, 0, 13, TABLE + REACH - 1):
        np.testing.assert_allclose(table[REACH + position], pe(position, d_model), atol=1e-12)


@pytest.mark.parametrize("d_model", WIDTHS)
@pytest.mark.parametrize(("p", "k"), [(0, 1), (10, 7), (99, 64), (3, -64), (41, 0)])
def test_turned_rows_are_the_whole_matrix_times_the_row_and_the_residual_is_told(d_model: int, p: int, k: int) -> None:
    shown, table = turned(d_model, p, k), encoding(d_model)["table"]
    whole = rotation(k, d_model, torch.float64).numpy()
    assert shown["by_k"].shape == (2 * REACH + 1, d_model)
    assert shown["by_p"].shape == (TABLE, d_model)
    np.testing.assert_allclose(shown["by_k"][REACH + k], whole @ table[REACH + p], atol=1e-14)
    np.testing.assert_allclose(shown["by_p"], table[REACH : REACH + TABLE] @ whole.T, atol=1e-14)
    # Where the row and the column cross they say the same.
    assert np.array_equal(shown["by_k"][REACH + k], shown["by_p"][p])
    apart = abs(shown["by_k"][REACH + k] - table[REACH + p + k]).max()
    assert shown["apart_k"][REACH + k] == shown["apart_p"][p] == apart
    assert max(shown["apart_k"].max(), shown["apart_p"].max()) < 1e-13


@pytest.mark.parametrize("d_model", WIDTHS)
def test_rotations_have_determinant_1_and_are_orthogonal(d_model: int) -> None:
    shown = encoding(d_model)
    assert shown["determinant"].shape == shown["orthogonality"].shape == (2 * REACH + 1,)
    assert shown["determinant"].max() < 1e-13
    assert shown["orthogonality"].max() < 1e-14
    whole = rotation(-29, d_model, torch.float64)
    assert torch.linalg.det(whole).item() == pytest.approx(1, abs=1e-13)
    cos, sin = shown["turns"][REACH - 29, d_model // 2 - 1]
    np.testing.assert_allclose(whole[-2:, -2:], [[cos, sin], [-sin, cos]], atol=1e-15)


@pytest.mark.parametrize("d_model", WIDTHS)
def test_inner_products_depend_on_the_difference_only(d_model: int) -> None:
    shown = encoding(d_model)
    assert shown["products"][17, 60] == pytest.approx(np.dot(pe(17, d_model), pe(60, d_model)), abs=1e-11)
    assert shown["spread"].max() < 1e-12
    np.testing.assert_allclose(shown["mean"], shown["cosines"], atol=1e-12)
    np.testing.assert_allclose(shown["square"], d_model / 2, atol=1e-12)
    assert shown["mean"][TABLE - 1] == pytest.approx(d_model / 2)


def test_a_difference_stands_where_the_curve_says() -> None:
    # Entry TABLE - 1 + d is PE(p + d)·PE(p); at width 2 it is cos d.
    mean = encoding(2)["mean"]
    assert mean[TABLE - 1 + 5] == pytest.approx(math.cos(5), abs=1e-14)


@pytest.mark.parametrize("d_model", WIDTHS)
def test_wavelengths_end_below_ten_thousand_turns(d_model: int) -> None:
    waves = encoding(d_model)["wavelength"]
    assert waves[0] == pytest.approx(2 * math.pi)
    assert waves[-1] == pytest.approx(10000 ** ((d_model - 2) / d_model) * 2 * math.pi)


def test_the_nearest_positions() -> None:
    assert nearest(2)[:2] == (0, 44)
    p, q, distance = nearest(64)
    assert (p, q) == (0, 1)
    assert distance == pytest.approx(math.dist(pe(0, 64), pe(1, 64)), abs=1e-13)


def test_what_arithmetic_costs_below_position_600() -> None:
    lost = {name: line.max() for name, line in rounding(128, 7).items()}
    assert FAR == 600
    assert lost["identity"] < 2e-13
    assert 2.9e-8 < lost["once"] < 6e-8
    assert 3e-5 < lost["steps"] < 5e-5


def unpack(block: bytes) -> tuple[dict, np.ndarray]:
    (length,) = struct.unpack_from("<I", block)
    return json.loads(block[4 : 4 + length]), np.frombuffer(block[4 + length :], "<f4")


@pytest.mark.parametrize("view", [View(), View(2, 0, -64, 0), View(128, 99, 64, 63)])
def test_every_choice_fills_a_block(view: View) -> None:
    header, numbers = unpack(panel_data(ReversalTask(), [7], {**asdict(view), "count": 7}))
    assert np.isfinite(numbers).all()
    assert header["count"] == 7
    assert header["view"] == {"d_model": view.d_model, "p": view.p, "k": view.k, "pair": view.pair}
    assert header["limits"]["pair"] == [0, view.d_model // 2 - 1, 1]
    assert header["tokens"] == ["7"]


SRC, ORDER = [3, 11, 7, 4, 5], [3, 0, 4, 2, 1]


@pytest.fixture(scope="module")
def both() -> tuple[Transformer, Transformer]:
    model = shipped("reverse-d64-h4").model
    return bare(model), model


def test_outputs_permute_without_positions_and_change_with_them(both: tuple[Transformer, Transformer]) -> None:
    shown = reordered(both[1], SRC, ORDER)
    assert shown["outputs"].shape == shown["again"].shape == (2, 5, 64)
    assert shown["apart"][0] < 1e-5 < 0.1 < shown["apart"][1]
    moved = torch.tensor([[SRC[place] for place in ORDER]])
    with torch.no_grad():
        for index, model in enumerate(both):
            memory, again = model.encode(torch.tensor([SRC]))[0], model.encode(moved)[0]
            torch.testing.assert_close(torch.tensor(shown["outputs"][index]), memory[ORDER], atol=0, rtol=0)
            torch.testing.assert_close(torch.tensor(shown["again"][index]), again, atol=0, rtol=0)
    np.testing.assert_array_equal(shown["apart"], abs(shown["outputs"] - shown["again"]).max((1, 2)))


@pytest.mark.parametrize("src", [[], [7]])
def test_no_token_and_one_token_have_an_order_too(both: tuple[Transformer, Transformer], src: list[int]) -> None:
    shown = reordered(both[1], src, list(range(len(src))))
    assert shown["outputs"].shape == (2, len(src), 64)
    assert shown["apart"].tolist() == [0, 0]


def test_the_shared_model_keeps_its_positions(both: tuple[Transformer, Transformer]) -> None:
    without, model = both
    assert (without.config.positional, model.config.positional) == ("none", "sinusoidal")
    assert without.positions is None
    assert model.positions is not None


def test_three_schemes_of_one_query_and_key() -> None:
    learned = shipped(LEARNED).model.src_embedding.position.weight.detach()
    shown = schemes(learned, 3)
    q, k = torch.randn(2, 64, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    table = sinusoidal_encoding(SHOWN, 64, torch.float64)
    added = [(q + table[9]) @ (k + table[30]), (q + learned[9].double()) @ (k + learned[30].double())]
    turned_apart = (rotation(-9, 64, torch.float64) @ q) @ (rotation(-30, 64, torch.float64) @ k)
    for i, score in enumerate([*added, turned_apart]):
        assert shown["scores"][i, 9, 30] == pytest.approx(score.item() / 8, abs=1e-13)
    # q^T R_(p - r) k: the equation under the picture.
    assert shown["scores"][2, 9, 30] == pytest.approx((q @ rotation(-21, 64, torch.float64) @ k).item() / 8, abs=1e-13)
    assert shown["spread"][2] < 1e-13 < 0.1 < min(shown["spread"][:2])
    assert shown["alone"][0] < 1e-12 < 0.1 < shown["alone"][1]
    np.testing.assert_allclose(shown["turned"][9], rotation(-9, 64, torch.float64) @ q, atol=1e-14)


def test_learned_positions_beyond_those_taught_are_as_they_were_drawn() -> None:
    checkpoint = shipped(LEARNED)
    fresh = Transformer(checkpoint.config, torch.Generator().manual_seed(checkpoint.training["seed"]))
    trained, drawn = checkpoint.model.src_embedding.position.weight, fresh.src_embedding.position.weight
    taught = checkpoint.task.max_source
    assert torch.equal(trained[taught:], drawn[taught:].half().float())
    assert ((trained - drawn)[:taught].abs().amax(1) > 0.1).all()


@pytest.mark.parametrize(("width", "words"), [(16, 5_000), (64, 12), (512, 5_000)])
def test_fresh_embeddings_are_as_large_as_expected(width: int, words: int) -> None:
    shown = sizes(width, words)
    few = 4 / math.sqrt(width * words)  # four deviations of a measured root mean square would be about 2.8 / sqrt(n)
    np.testing.assert_allclose(shown["measured"], shown["expected"], rtol=few)
    np.testing.assert_allclose(shown["positions"], math.sqrt(0.5), rtol=1e-6)
    by_hand = {"normal": 1, "scaled": width**-0.5, "xavier": (2 / (words + width)) ** 0.5}
    for (init, scale), expected in zip(SCHEMES, shown["expected"], strict=True):
        assert expected == pytest.approx(by_hand[init] * (width**0.5 if scale else 1))


def test_at_width_512_tokens_drawn_from_the_unit_normal_outweigh_positions_32_to_1() -> None:
    shown = sizes(512, 5_000)
    assert shown["measured"][0] / shown["positions"][0] == pytest.approx(32, rel=1e-3)


def test_trained_models_are_weighed_over_what_they_were_taught() -> None:
    checkpoint = shipped(LEARNED)
    embedding = checkpoint.model.src_embedding
    token, position = trained_sizes(checkpoint)
    assert token == pytest.approx(8 * embedding.token.weight[3:].square().mean().sqrt().item(), rel=1e-5)
    assert position == pytest.approx(embedding.position.weight[:8].square().mean().sqrt().item(), rel=1e-5)
    assert trained_sizes(shipped("number-d64-h4"))[1] == pytest.approx(math.sqrt(0.5))
