import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.transformer.small import seeded, small_config, small_model
from transformer import ResidualSite, Trace
from transformer.layers import FeedForward, Sublayer, UnbiasedLayerNorm, layer_norm


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed))


# norms


def test_the_unbiased_norm_by_hand():
    # Mean 2.5, squares 2.25 + 0.25 + 0.25 + 2.25 = 5 over 3: deviation 1.290994, plus eps 0.5: 1.790994.
    y = UnbiasedLayerNorm(4, eps=0.5)(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    torch.testing.assert_close(y, torch.tensor([-0.837524, -0.279175, 0.279175, 0.837524]), rtol=0, atol=1e-5)


def test_torchs_norm_by_hand():
    # The same squares over 4: variance 1.25, plus eps 0.5 inside the root: sqrt 1.75 = 1.322876.
    y = layer_norm(small_config(d_model=4, norm_eps=0.5))(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    torch.testing.assert_close(y, torch.tensor([-1.133893, -0.377964, 0.377964, 1.133893]), rtol=0, atol=1e-5)


def test_at_width_512_the_unbiased_norm_is_a_thousandth_smaller():
    x = normal(3, 512)
    ratio = UnbiasedLayerNorm(512, eps=0.0)(x) / nn.LayerNorm(512, eps=0.0)(x)
    torch.testing.assert_close(ratio, torch.full_like(ratio, math.sqrt(511 / 512)), rtol=1e-4, atol=0)  # 0.99902


@pytest.mark.parametrize("kind", ["torch", "unbiased"])
def test_each_position_is_normalized_by_itself(kind):
    norm = layer_norm(small_config(layer_norm=kind))
    x = 5 * normal(2, 7, 14) + 3
    y = norm(x)
    torch.testing.assert_close(y.mean(-1), torch.zeros(2, 7), rtol=0, atol=1e-5)
    torch.testing.assert_close(y.std(-1, correction=int(kind == "unbiased")), torch.ones(2, 7), rtol=1e-3, atol=0)
    torch.testing.assert_close(norm(x[1:, 3:4]), y[1:, 3:4])


@pytest.mark.parametrize("kind", ["torch", "unbiased"])
def test_a_norm_has_gain_and_shift(kind):
    norm, x = layer_norm(small_config(layer_norm=kind)), normal(2, 7, 14)
    plain = norm(x)
    with torch.no_grad():
        norm.weight.copy_(normal(14, seed=1))
        norm.bias.copy_(normal(14, seed=2))
    torch.testing.assert_close(norm(x), normal(14, seed=1) * plain + normal(14, seed=2))


# the feed-forward network


def feed_forward(**changes) -> FeedForward:
    return FeedForward(small_config(**changes), seeded()).eval()


@pytest.mark.parametrize(
    ("activation", "expected"),
    # Hidden numbers 1 and -1. ReLU: 1 and 0. GELU(1) = Phi(1) = 0.841345 and GELU(-1) = -Phi(-1) = -0.158655.
    # Out: 10 h_0 + 100 h_1 + 0.5.
    [("relu", 10.5), ("gelu", 10 * 0.841345 - 100 * 0.158655 + 0.5)],
)
def test_the_network_by_hand(activation, expected):
    ffn = feed_forward(d_model=2, d_ff=2, activation=activation)
    with torch.no_grad():
        ffn.w_1.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        ffn.w_1.bias.copy_(torch.tensor([0.0, -3.0]))
        ffn.w_2.weight.copy_(torch.tensor([[10.0, 100.0], [0.0, 0.0]]))
        ffn.w_2.bias.copy_(torch.tensor([0.5, 0.0]))
    assert ffn(torch.tensor([1.0, 2.0]))[0].item() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("bias", [True, False])
def test_the_network_is_two_convolutions_of_width_1(bias):
    ffn, x = feed_forward(ffn_bias=bias), normal(2, 7, 14)
    wide = F.conv1d(x.transpose(1, 2), ffn.w_1.weight.unsqueeze(-1), ffn.w_1.bias)
    narrow = F.conv1d(wide.relu(), ffn.w_2.weight.unsqueeze(-1), ffn.w_2.bias)
    torch.testing.assert_close(ffn(x), narrow.transpose(1, 2))


def test_the_network_does_not_mix_positions():
    ffn, x = feed_forward(), normal(2, 7, 14)
    changed = x.clone()
    changed[:, 3] += 1
    assert (ffn(changed) != ffn(x)).any(-1).tolist() == [[t == 3 for t in range(7)]] * 2


def test_dropout_falls_on_the_hidden_numbers():
    ffn = feed_forward(d_model=4, d_ff=4, hidden_dropout=0.5, ffn_bias=False)
    with torch.no_grad():
        ffn.w_1.weight.copy_(torch.eye(4))
        ffn.w_2.weight.copy_(torch.eye(4))
    assert ffn.train()(torch.ones(50, 7, 4)).unique().tolist() == [0, 2]  # 1 / 0.5


# the residual connection


def sublayer(norm: str) -> Sublayer:
    return Sublayer(small_config(d_model=4, norm=norm), ResidualSite("encoder", 0, "self"), seeded()).eval()


X = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
NORMED_X = torch.tensor([[[-1.341641, -0.447214, 0.447214, 1.341641]]])  # over sqrt 1.25 = 1.118034


def test_post_ln_normalizes_the_sum():
    # x + 2 x = 3 x, and the norm takes the 3 away again.
    torch.testing.assert_close(sublayer("post")(X, lambda h: 2 * h, None), NORMED_X, rtol=0, atol=1e-4)


def test_pre_ln_adds_to_x_itself():
    expected = X + 2 * NORMED_X  # not NORMED_X + 2 NORMED_X
    torch.testing.assert_close(sublayer("pre")(X, lambda h: 2 * h, None), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_stream_is_recorded_as_it_leaves(norm):
    trace = Trace()
    y = sublayer(norm)(X, lambda h: 2 * h, trace)
    assert list(trace.residual) == [ResidualSite("encoder", 0, "self")]
    assert trace.residual[ResidualSite("encoder", 0, "self")] is y


def test_dropout_falls_on_the_update_and_not_on_the_stream():
    layer = Sublayer(small_config(d_model=4, norm="pre", dropout=0.5), ResidualSite("encoder", 0, "self"), seeded())
    x = 10 * torch.ones(50, 7, 4)
    y = layer.train()(x, torch.ones_like, None)
    assert y.unique().tolist() == [10, 12]  # 10 + 0 and 10 + 1 / 0.5


# layers


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_rotary_turns_self_attention_only(norm):
    model = small_model(positional="rotary", d_head=4, norm=norm)
    assert [layer.self_attention.rotary for layer in model.encoder] == [True, True]
    assert [layer.self_attention.rotary for layer in model.decoder] == [True, True, True]
    assert [layer.cross_attention.rotary for layer in model.decoder] == [False, False, False]
