import math

import pytest
import torch
from torch import nn

from tests.transformer.small import CHOICES, seeded, small_config
from transformer import MultiHeadAttention, Transformer, TransformerConfig

# Wide enough for statistics; fan_in and fan_out differ everywhere.
WIDE = {
    "src_vocab_size": 1_009, "tgt_vocab_size": 499, "d_model": 96, "n_heads": 3, "d_head": 40, "d_ff": 211,
    "n_encoder_layers": 1, "n_decoder_layers": 1,
}  # fmt: skip


def fresh(**changes) -> Transformer:
    return Transformer(TransformerConfig(**(WIDE | changes)), seeded())


def linears(model: nn.Module) -> dict[str, nn.Linear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


def assert_uniform(values: torch.Tensor, bound: float) -> None:
    """Within +-bound, close to it at the ends, and with the deviation bound / sqrt 3 of a uniform draw."""
    assert values.abs().max().item() <= bound
    if values.numel() > 5_000:
        assert values.abs().max().item() > 0.99 * bound
        assert values.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.03)


def test_xavier_bounds_every_matrix_by_its_two_fans():
    for linear in linears(fresh(init="xavier")).values():
        assert_uniform(linear.weight, math.sqrt(6 / (linear.in_features + linear.out_features)))
        assert_uniform(linear.bias, 1 / math.sqrt(linear.in_features))
        assert (linear.bias != 0).all()


def test_torchs_default_bounds_weights_and_biases_by_the_fan_in():
    for linear in linears(fresh(init="default")).values():
        assert_uniform(linear.weight, 1 / math.sqrt(linear.in_features))
        assert_uniform(linear.bias, 1 / math.sqrt(linear.in_features))
        assert (linear.bias != 0).all()


def test_xavier_in_attention_only_with_zero_biases_there():
    model = fresh(init="xavier_attention")
    inside = {id(m) for a in model.modules() if isinstance(a, MultiHeadAttention) for m in a.children()}
    assert len([m for m in linears(model).values() if id(m) in inside]) == 3 * 4
    for linear in linears(model).values():
        if id(linear) in inside:
            assert_uniform(linear.weight, math.sqrt(6 / (linear.in_features + linear.out_features)))
            assert (linear.bias == 0).all()
        else:
            assert_uniform(linear.weight, 1 / math.sqrt(linear.in_features))
            assert (linear.bias != 0).all()


@pytest.mark.parametrize(("kind", "deviation"), [("normal", 1.0), ("scaled", 1 / math.sqrt(96))])
def test_embeddings_are_normal(kind, deviation):
    model = fresh(embedding_init=kind)
    for weight in (model.src_embedding.token.weight, model.tgt_embedding.token.weight):
        assert weight.std().item() == pytest.approx(deviation, rel=0.02)
        assert weight.mean().item() == pytest.approx(0, abs=0.02 * deviation)
        assert weight.abs().max().item() > 3.5 * deviation  # no uniform draw


def test_embeddings_as_xavier_matrices():
    model = fresh(embedding_init="xavier")
    assert_uniform(model.src_embedding.token.weight, math.sqrt(6 / (1_009 + 96)))
    assert_uniform(model.tgt_embedding.token.weight, math.sqrt(6 / (499 + 96)))


def test_learned_positions_are_drawn_as_embeddings_are():
    model = fresh(positional="learned", embedding_init="normal")
    assert model.src_embedding.position.weight.std().item() == pytest.approx(1, rel=0.02)
    assert not torch.equal(model.src_embedding.position.weight, model.tgt_embedding.position.weight)


def test_one_matrix_for_all_words_is_drawn_as_an_embedding():
    model = fresh(tie_embeddings=True, tgt_vocab_size=1_009, embedding_init="normal")
    assert model.output.weight is model.src_embedding.token.weight
    assert model.output.weight is model.tgt_embedding.token.weight
    assert model.output.weight.std().item() == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("kind", ["torch", "unbiased"])
def test_norms_start_as_plain_norms(kind):
    gains = shifts = 0
    for name, p in fresh(layer_norm=kind, norm="pre").named_parameters():
        if "norm" in name and name.endswith("weight"):
            gains += 1
            assert (p == 1).all()
        elif "norm" in name:
            shifts += 1
            assert (p == 0).all()
    assert gains == shifts == 2 + 3 + 2  # encoder layer, decoder layer, final norms


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
def test_one_seed_gives_one_model(choice):
    config = small_config(**choice)
    first, same, other = (Transformer(config, seeded(seed)).state_dict() for seed in (5, 5, 6))
    assert all(torch.equal(first[name], same[name]) for name in first)
    drawn = [name for name in first if first[name].ndim == 2]
    assert not any(torch.equal(first[name], other[name]) for name in drawn)


@pytest.mark.parametrize("init", ["default", "xavier", "xavier_attention"])
@pytest.mark.parametrize("embedding_init", ["normal", "scaled", "xavier"])
def test_building_with_a_generator_leaves_the_global_one_alone(init, embedding_init):
    before = torch.random.get_rng_state()
    Transformer(small_config(positional="learned", init=init, embedding_init=embedding_init), seeded())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_building_without_one_draws_from_the_global_one():
    with torch.random.fork_rng(devices=[]):
        before = torch.random.get_rng_state()
        Transformer(small_config())
        assert not torch.equal(torch.random.get_rng_state(), before)
