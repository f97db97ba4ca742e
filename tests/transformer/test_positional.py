import math
import re

import pytest
import torch

from tests.transformer.small import seeded
from transformer import angular_frequencies, rotate, rotation, rotation_blocks, sinusoidal_encoding, wavelengths

DOUBLE = torch.float64


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=DOUBLE)


def test_frequencies_of_width_4_are_1_and_a_hundredth():
    # 10000^(-0/4) = 1, 10000^(-2/4) = 1/100.
    torch.testing.assert_close(angular_frequencies(4), torch.tensor([1.0, 0.01], dtype=DOUBLE), rtol=1e-15, atol=0)


def test_the_longest_wavelength_at_width_128_is_8660_turns():
    # 10000^(126/128) = 8659.64, not the 10,000 that only an endless width would reach.
    assert 1 / angular_frequencies(128)[-1].item() == pytest.approx(8659.64, abs=0.01)


def test_wavelengths_run_from_one_turn_to_just_under_ten_thousand():
    # 2 pi, 200 pi at width 4; 10000^((d - 2) / d) times 2 pi at the end of any width.
    torch.testing.assert_close(
        wavelengths(4), torch.tensor([2 * math.pi, 200 * math.pi], dtype=DOUBLE), rtol=1e-15, atol=0
    )
    assert wavelengths(22)[-1].item() == pytest.approx(10000 ** (20 / 22) * 2 * math.pi, rel=1e-13)


def test_a_table_may_begin_anywhere():
    table = sinusoidal_encoding(9, 10, DOUBLE, offset=-3)
    assert torch.equal(table[3:], sinusoidal_encoding(6, 10, DOUBLE))
    # sin(-2), cos(-2)
    torch.testing.assert_close(table[1, :2], torch.tensor([-0.90929743, -0.41614684], dtype=DOUBLE), rtol=0, atol=1e-8)


def test_position_1_of_width_4():
    # sin 1, cos 1, sin 0.01, cos 0.01.
    expected = torch.tensor([0.84147098, 0.54030231, 0.00999983, 0.99995000])
    torch.testing.assert_close(sinusoidal_encoding(2, 4)[1], expected, rtol=0, atol=1e-7)


def test_position_0_is_zeros_and_ones():
    assert sinusoidal_encoding(1, 6).tolist() == [[0, 1, 0, 1, 0, 1]]


def test_positions_run_down_and_dimensions_across():
    assert sinusoidal_encoding(7, 10).shape == (7, 10)
    assert sinusoidal_encoding(0, 10).shape == (0, 10)


def test_a_longer_table_begins_with_the_shorter_one():
    assert torch.equal(sinusoidal_encoding(13, 10)[:7], sinusoidal_encoding(7, 10))


def test_the_float32_table_is_the_double_one_rounded_once():
    # Angles taken in float32 would be off by 4e-5 at position 600.
    assert torch.equal(sinusoidal_encoding(601, 64), sinusoidal_encoding(601, 64, DOUBLE).float())


def test_every_position_has_length_sqrt_of_half_the_width():
    norms = sinusoidal_encoding(100, 22, DOUBLE).norm(dim=1)
    torch.testing.assert_close(norms, torch.full_like(norms, math.sqrt(11)), rtol=0, atol=1e-13)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_the_product_of_two_positions_depends_on_their_distance_only(k):
    table = sinusoidal_encoding(200, 22, DOUBLE)
    products = (table[:-k] * table[k:]).sum(1)
    torch.testing.assert_close(products, products[:1].expand_as(products), rtol=0, atol=1e-12)


@pytest.mark.parametrize("d_model", [2, 10, 64])
@pytest.mark.parametrize("k", [0, 1, 7, 100, -3])
def test_an_offset_is_a_rotation(k, d_model):
    table = sinusoidal_encoding(300, d_model, DOUBLE)
    here = torch.arange(max(0, -k), 300 - max(0, k))
    moved = table[here] @ rotation(k, d_model, DOUBLE).T
    torch.testing.assert_close(moved, table[here + k], rtol=0, atol=1e-12)


def test_the_rotation_by_1_at_width_2():
    # omega_0 = 1: [[cos 1, sin 1], [-sin 1, cos 1]].
    expected = torch.tensor([[0.54030231, 0.84147098], [-0.84147098, 0.54030231]])
    torch.testing.assert_close(rotation(1, 2), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("k", [0, 1, 2.5, -11, 400])
def test_a_rotation_keeps_lengths_and_orientation(k):
    R = rotation(k, 10, DOUBLE)
    torch.testing.assert_close(R @ R.T, torch.eye(10, dtype=DOUBLE), rtol=0, atol=1e-14)
    assert torch.linalg.det(R).item() == pytest.approx(1, abs=1e-13)


def test_rotations_add_up():
    one_by_one = rotation(3, 10, DOUBLE) @ rotation(-8, 10, DOUBLE)
    torch.testing.assert_close(one_by_one, rotation(-5, 10, DOUBLE), rtol=0, atol=1e-14)


def test_each_pair_of_dimensions_turns_by_itself():
    R = rotation(7, 10)
    inside = torch.block_diag(*[torch.ones(2, 2)] * 5).bool()
    assert (R[~inside] == 0).all()
    assert (R[inside] != 0).all()


def test_many_offsets_at_once_are_the_blocks_of_each():
    blocks = rotation_blocks(torch.tensor([-2.0, 0.0, 7.0]), 6)
    assert blocks.shape == (3, 3, 2, 2)
    for block, k in zip(blocks, [-2, 0, 7], strict=True):
        assert torch.equal(torch.block_diag(*block), rotation(k, 6, DOUBLE))


def test_an_offset_turns_a_quarter_clockwise_with_sin_to_the_right_and_cos_up():
    # Up, (sin, cos) = (0, 1), goes to the right, (1, 0): position pi/2 of the pair with omega 1.
    quarter = rotation_blocks(math.pi / 2, 2)[0]
    torch.testing.assert_close(
        quarter @ torch.tensor([0.0, 1.0], dtype=DOUBLE), torch.tensor([1.0, 0.0], dtype=DOUBLE), rtol=0, atol=1e-15
    )


def test_rotary_turns_a_pair_by_its_position():
    # The vector (1, 0) at positions 0, 1, 2 with omega_0 = 1.
    turned = rotate(torch.tensor([[1.0, 0.0]]).expand(3, 2))
    expected = torch.tensor([[1.0, 0.0], [0.54030231, 0.84147098], [-0.41614684, 0.90929743]])
    torch.testing.assert_close(turned, expected, rtol=0, atol=1e-7)


def test_rotary_pairs_neighbouring_dimensions():
    # At position 1 of width 4 the second pair turns by 1/100 only.
    turned = rotate(torch.tensor([[0.0, 0.0, 1.0, 0.0]]), offset=1)
    expected = torch.tensor([[0.0, 0.0, 0.99995000, 0.00999983]])
    torch.testing.assert_close(turned, expected, rtol=0, atol=1e-7)


def test_rotary_is_the_inverse_of_the_offsets_rotation():
    x = normal(1, 10)
    torch.testing.assert_close(rotate(x, offset=6), x @ rotation(-6, 10, DOUBLE).T, rtol=0, atol=1e-14)


def test_rotary_with_an_offset_goes_on_where_it_stopped():
    x = normal(2, 3, 7, 10)
    assert torch.equal(rotate(x)[:, :, 4:], rotate(x[:, :, 4:], offset=4))


def test_rotary_keeps_lengths():
    x = normal(2, 3, 7, 10)
    torch.testing.assert_close(rotate(x, offset=50).norm(dim=-1), x.norm(dim=-1), rtol=0, atol=1e-14)


def test_rotary_scores_depend_on_the_distance_only():
    q, k = normal(1, 10, seed=1), normal(1, 10, seed=2)

    def score(p: int, r: int) -> float:
        return (rotate(q, offset=p) @ rotate(k, offset=r).T).item()

    assert score(9, 4) == pytest.approx(score(5, 0), abs=1e-12)
    assert score(205, 200) == pytest.approx(score(5, 0), abs=1e-12)
    assert abs(score(4, 9) - score(9, 4)) > 0.01
    assert abs(score(6, 0) - score(5, 0)) > 0.01


@pytest.mark.parametrize(
    "make",
    [lambda d: angular_frequencies(d), lambda d: sinusoidal_encoding(5, d), lambda d: rotation(1, d),
     lambda d: rotate(torch.zeros(5, d)), lambda d: wavelengths(d), lambda d: rotation_blocks(1, d)],
    ids=["frequencies", "encoding", "rotation", "rotary", "wavelengths", "blocks"],
)  # fmt: skip
@pytest.mark.parametrize("d", [7, 1, 0])
def test_a_width_without_pairs_is_refused(make, d):
    with pytest.raises(ValueError, match=re.escape(f"d_model {d} does not split into sine-cosine pairs")):
        make(d)
