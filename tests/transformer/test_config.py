import dataclasses
import math
import re

import pytest

from tests.transformer.small import small_config
from transformer import TransformerConfig


def test_the_defaults_are_the_papers_base_model():
    config = TransformerConfig(src_vocab_size=10, tgt_vocab_size=10)
    assert (config.d_model, config.n_heads, config.d_ff) == (512, 8, 2048)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (6, 6)
    assert (config.norm, config.activation, config.positional) == ("post", "relu", "sinusoidal")
    assert (config.dropout, config.scale_embeddings, config.tie_embeddings) == (0.1, True, False)
    assert config.head_width == 64


def test_head_width_is_d_model_over_heads_unless_given():
    assert small_config(d_model=12, n_heads=3, d_head=None).head_width == 4
    assert small_config(d_model=14, n_heads=3, d_head=5).head_width == 5


@pytest.mark.parametrize(
    ("norm", "final_norm", "has"),
    [("post", None, False), ("pre", None, True), ("post", True, True), ("pre", False, False)],
)
def test_a_final_norm_comes_with_pre_ln_unless_said(norm, final_norm, has):
    assert small_config(norm=norm, final_norm=final_norm).has_final_norm is has


@pytest.mark.parametrize(
    ("bias", "own", "has"), [(True, None, True), (False, None, False), (True, False, False), (False, True, True)]
)
def test_each_kind_of_bias_follows_bias_unless_said(bias, own, has):
    assert small_config(bias=bias, attention_bias=own, ffn_bias=not has).has_attention_bias is has
    assert small_config(bias=bias, ffn_bias=own, attention_bias=not has).has_ffn_bias is has


def test_a_config_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        small_config().d_model = 16


def test_fields_are_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        TransformerConfig(10, 10)


def test_equal_configs_are_equal_and_hash_alike():
    assert small_config() == small_config()
    assert len({small_config(), small_config(), small_config(d_ff=29)}) == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"d_model": 130, "n_heads": 4, "d_head": None}, "d_model 130 is not divisible by n_heads 4"),
        ({"d_model": 15}, "d_model 15 is odd"),
        ({"positional": "rotary", "d_head": 5}, "d_head 5 is odd"),
        ({"positional": "rotary", "d_model": 9, "n_heads": 3, "d_head": None}, "d_head 3 is odd"),
        ({"layer_norm": "unbiased", "d_model": 1, "positional": "none"}, "d_model 1 has no unbiased deviation"),
        ({"tie_embeddings": True}, "one vocabulary; got 17 source words and 19 target words"),
        ({"tie_embeddings": True, "src_vocab_size": 19, "n_decoder_layers": 0}, "n_decoder_layers is 0"),
        ({"norm_eps": -1e-5}, "norm_eps is -1e-05"),
        ({"norm_eps": math.nan}, "norm_eps is nan"),
    ],
)
def test_a_shape_that_no_model_can_have_is_refused_with_its_numbers(changes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        small_config(**changes)


@pytest.mark.parametrize(
    "name", ["src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "d_head", "d_ff", "n_encoder_layers", "max_len"]
)
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "8"])
def test_sizes_are_whole_and_positive(name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name} is {value!r}; it must be a whole number of at least 1")):
        small_config(**{name: value})


@pytest.mark.parametrize("value", [-1, 1.5, False])
def test_decoder_layers_are_whole_and_may_be_none_at_all(value):
    assert small_config(n_decoder_layers=0).n_decoder_layers == 0
    with pytest.raises(ValueError, match=re.escape(f"n_decoder_layers is {value!r}")):
        small_config(n_decoder_layers=value)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("norm", "'post', 'pre'"),
        ("activation", "'relu', 'gelu', 'silu'"),
        ("positional", "'sinusoidal', 'learned', 'rotary', 'none'"),
        ("layer_norm", "'torch', 'unbiased'"),
        ("init", "'default', 'xavier', 'xavier_attention'"),
        ("embedding_init", "'normal', 'scaled', 'xavier'"),
        ("output", "'logits', 'log_probs'"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(name, allowed):
    with pytest.raises(ValueError, match=f"{name} is 'swish'; it must be one of {allowed}"):
        small_config(**{name: "swish"})


@pytest.mark.parametrize("name", ["dropout", "hidden_dropout"])
@pytest.mark.parametrize("value", [-0.1, 1.0, math.nan])
def test_dropout_leaves_something(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be at least 0 and less than 1"):
        small_config(**{name: value})


def test_an_odd_width_is_fine_without_sinusoids():
    assert small_config(d_model=15, positional="none").d_model == 15
