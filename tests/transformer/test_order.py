import math
import re

import pytest
import torch

from tests.transformer.small import S, seeded, small_config, small_model, sources
from transformer import (
    Transformer,
    added_scores,
    diagonals,
    embedding_rms,
    expected_token_rms,
    float32_encoding,
    nearest_positions,
    permuted_outputs,
    rotary_scores,
    sinusoidal_encoding,
    without_positions,
)

DOUBLE = torch.float64
ORDER = torch.tensor([4, 0, 6, 2, 1, 5, 3])


def test_diagonals_of_a_matrix_worked_by_hand():
    # Row minus column -2, -1, 0, 1, 2: (3), (2, 6), (1, 5, 9), (4, 8), (7).
    mean, spread = diagonals(torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]))
    assert mean.tolist() == [3, 4, 5, 6, 7]
    assert spread.tolist() == [0, 4, 8, 4, 0]


@pytest.mark.parametrize("shape", [(2, 3), (4,), (1, 2, 2)])
def test_diagonals_need_a_square(shape):
    with pytest.raises(ValueError, match=re.escape(f"square matrix; got shape {shape}")):
        diagonals(torch.zeros(shape))


def test_products_of_sinusoids_are_a_toeplitz_matrix_and_their_sum_of_cosines():
    table = sinusoidal_encoding(31, 22, DOUBLE)
    mean, spread = diagonals(table @ table.T)
    assert spread.max() < 1e-12
    by_hand = [sum(math.cos(d * 10000 ** (-2 * i / 22)) for i in range(11)) for d in range(-30, 31)]
    torch.testing.assert_close(mean, torch.tensor(by_hand, dtype=DOUBLE), rtol=0, atol=1e-12)


def test_the_nearest_two_positions_of_width_2_are_44_apart():
    # 44 is 7.003 turns of 2 pi: the distance is 2 sin((44 - 14 pi) / 2).
    p, q, distance = nearest_positions(sinusoidal_encoding(50, 2, DOUBLE))
    assert (p, q) == (0, 44)
    assert distance == pytest.approx(2 * math.sin((44 - 14 * math.pi) / 2), abs=1e-12)


def test_the_nearest_of_many_equal_pairs_is_the_first():
    assert nearest_positions(sinusoidal_encoding(40, 64, DOUBLE))[:2] == (0, 1)
    assert nearest_positions(torch.tensor([[0.0, 0.0], [9.0, 0.0], [3.0, 4.0]])) == (0, 2, 5.0)


def test_angles_in_float32_lose_4e_5_below_position_600():
    exact = sinusoidal_encoding(600, 128, DOUBLE)
    assert 3e-5 < (float32_encoding(600, 128).double() - exact).abs().max() < 5e-5
    assert (sinusoidal_encoding(600, 128).double() - exact).abs().max() < 6e-8


def test_added_positions_leave_four_terms():
    q, k = torch.randn(2, 6, generator=seeded(), dtype=DOUBLE)
    table = sinusoidal_encoding(5, 6, DOUBLE)
    scores = added_scores(q, k, table)
    assert scores.shape == (5, 5)
    by_hand = (q @ k + q @ table[3] + table[1] @ k + table[1] @ table[3]) / math.sqrt(6)
    assert scores[1, 3].item() == pytest.approx(by_hand.item(), abs=1e-14)
    assert diagonals(scores)[1].max() > 0.1


def test_rotary_scores_depend_on_the_difference_only():
    q, k = torch.randn(2, 10, generator=seeded(), dtype=DOUBLE)
    scores = rotary_scores(q, k, 13)
    mean, spread = diagonals(scores)
    assert spread.max() < 1e-13
    assert scores[0, 0].item() == pytest.approx((q @ k).item() / math.sqrt(10), abs=1e-14)
    assert mean.std() > 0.1


@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary"])
def test_without_positions_outputs_permute_and_with_them_they_do_not(positional):
    model = small_model(positional=positional, d_head=4)
    src = sources(rows=1)[0]
    moved, of_moved = permuted_outputs(without_positions(model), src, ORDER)
    assert moved.shape == (S, 14)
    torch.testing.assert_close(moved, of_moved, rtol=0, atol=2e-6)
    moved, of_moved = permuted_outputs(model, src, ORDER)
    assert (moved - of_moved).abs().max() > 0.01


def test_reordered_outputs_are_rows_of_the_first():
    model, src = small_model(), sources(rows=1)[0]
    with torch.no_grad():
        whole = model.encode(src.unsqueeze(0))[0]
    moved, of_moved = permuted_outputs(model, src, ORDER)
    assert torch.equal(moved[1], whole[0])
    assert torch.equal(permuted_outputs(model, src, torch.arange(S))[1], whole)
    assert not torch.equal(of_moved, moved)


def test_without_positions_every_weight_is_kept_and_none_is_shared():
    model = small_model(positional="learned")
    bare = without_positions(model)
    assert bare.config.positional == "none"
    kept = dict(model.named_parameters())
    for name, weight in bare.named_parameters():
        assert torch.equal(weight, kept[name])
        assert weight.data_ptr() != kept[name].data_ptr()
    assert set(kept) - {name for name, _ in bare.named_parameters()} == {
        "src_embedding.position.weight",
        "tgt_embedding.position.weight",
    }


@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "none"])
def test_the_two_summands_are_what_the_encoder_adds(positional):
    model = small_model(positional=positional)
    ids = sources()
    tokens, positions = model.src_embedding.parts(ids, 0, model.positions)
    together = tokens if positions is None else tokens + positions
    assert torch.equal(model.src_embedding(ids, 0, model.positions, None), together)
    token_rms, position_rms = embedding_rms(model, ids)
    assert token_rms == pytest.approx(tokens.square().mean().sqrt().item(), rel=1e-6)
    assert (position_rms == 0) == (positional == "none")


def test_sinusoids_have_the_root_mean_square_of_one_half():
    assert embedding_rms(small_model(), sources())[1] == pytest.approx(math.sqrt(0.5), abs=1e-7)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("embedding_init", ["normal", "scaled", "xavier"])
def test_token_parts_are_as_large_as_expected(embedding_init, scale):
    config = small_config(
        src_vocab_size=3001, d_model=66, embedding_init=embedding_init, scale_embeddings=scale, n_decoder_layers=0
    )
    measured, _ = embedding_rms(Transformer(config, seeded()), torch.arange(3001).unsqueeze(1))
    assert measured == pytest.approx(expected_token_rms(config), rel=0.01)


def test_expected_token_parts_by_hand():
    def of(**changes) -> float:
        return expected_token_rms(small_config(**changes))

    assert of(embedding_init="scaled") == pytest.approx(1)
    assert of(embedding_init="normal", d_model=512) == pytest.approx(22.627, abs=1e-3)  # document 001's "about 23"
    assert of(embedding_init="xavier", d_model=512, src_vocab_size=5000) == pytest.approx(0.431, abs=1e-3)
    assert of(embedding_init="normal", scale_embeddings=False) == 1
