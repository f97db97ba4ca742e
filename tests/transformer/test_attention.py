import math
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.transformer.small import seeded
from transformer import (
    AttentionSite,
    KVCache,
    MultiHeadAttention,
    Trace,
    attention,
    attention_scores,
    attention_weights,
    causal_mask,
    padding_mask,
)

B, H, T_Q, T_K, D_HEAD, D_MODEL = 2, 3, 5, 7, 11, 13
SELF, CROSS = AttentionSite("decoder", 0, "self"), AttentionSite("decoder", 0, "cross")


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed))


def module(site=CROSS, d_model=D_MODEL, n_heads=H, d_head=D_HEAD, **options) -> MultiHeadAttention:
    made = MultiHeadAttention(site, d_model=d_model, n_heads=n_heads, d_head=d_head, **options).eval()
    with torch.no_grad():
        for i, p in enumerate(made.parameters()):
            p.copy_(0.5 * normal(*p.shape, seed=100 + i))
    return made


# scores


def test_a_score_is_the_product_over_the_root_of_the_width():
    # (1, 2) . (3, 4) = 11 and 11 / sqrt 2 = 7.778175.
    score = attention_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    assert score.item() == pytest.approx(7.778175, abs=1e-5)


def test_an_unscaled_score_is_the_product():
    assert attention_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), scaled=False).item() == 11


def test_queries_run_down_and_keys_across():
    q, k = normal(B, H, T_Q, D_HEAD), normal(B, H, T_K, D_HEAD, seed=1)
    scores = attention_scores(q, k)
    assert scores.shape == (B, H, T_Q, T_K)
    assert scores[1, 2, 3, 4].item() == pytest.approx(q[1, 2, 3].dot(k[1, 2, 4]).item() / math.sqrt(11), abs=1e-5)


def test_scaled_scores_have_deviation_1_whatever_the_width():
    # Eq. 1.4; unscaled they would have sqrt 4 = 2 and sqrt 256 = 16.
    for width in (4, 256):
        scores = attention_scores(normal(20_000, 1, width), normal(20_000, 1, width, seed=1))
        assert scores.std().item() == pytest.approx(1, abs=0.05)


def test_queries_and_keys_of_different_width_are_refused():
    with pytest.raises(ValueError, match="queries of width 11 cannot be compared with keys of width 7"):
        attention_scores(torch.zeros(5, 11), torch.zeros(5, 7))


# weights


def test_two_keys_share_by_the_logistic_function():
    # q = (2, 0) against (1, 0) and (0, 0): scores 2/sqrt 2 = sqrt 2 and 0, so the first weight is
    # 1 / (1 + e^-1.414214) = 1 / 1.243117 = 0.804430, and z = 0.804430 * 10 + 0.195570 * 20 = 11.955699.
    q, k = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    z, weights = attention(q, k, torch.tensor([[10.0], [20.0]]))
    torch.testing.assert_close(weights, torch.tensor([[0.804430, 0.195570]]), rtol=0, atol=1e-6)
    torch.testing.assert_close(z, torch.tensor([[11.955699]]), rtol=0, atol=1e-4)


def test_a_masked_key_leaves_its_share_to_the_others():
    # Scores 0, 0, ln 3: open, they share 1 : 1 : 3; with key 0 masked, 1 : 3.
    scores = torch.tensor([[0.0, 0.0, math.log(3)]])
    torch.testing.assert_close(attention_weights(scores), torch.tensor([[0.2, 0.2, 0.6]]))
    masked = attention_weights(scores, torch.tensor([[False, True, True]]))
    torch.testing.assert_close(masked, torch.tensor([[0.0, 0.25, 0.75]]))


def test_rows_sum_to_1():
    weights = attention_weights(3 * normal(B, H, T_Q, T_K), padding_mask(torch.tensor([7, 2]), T_K))
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T_Q))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("open_score", [-1e4, 0.0, 1e4])
def test_a_masked_weight_is_exactly_0_beside_any_score(dtype, open_score):
    scores = torch.tensor([[open_score, 6e4]], dtype=dtype)
    assert attention_weights(scores, torch.tensor([[True, False]])).tolist() == [[1, 0]]


def test_large_scores_do_not_overflow():
    assert attention_weights(torch.tensor([[1e30, 1e30, -1e30]])).tolist() == [[0.5, 0.5, 0.0]]


def test_masking_a_key_is_leaving_it_out():
    scores = normal(B, H, T_Q, T_K)
    mask = padding_mask(torch.tensor([4, 4]), T_K)
    torch.testing.assert_close(attention_weights(scores, mask)[..., :4], attention_weights(scores[..., :4]))


def test_an_open_mask_changes_nothing():
    scores = normal(B, H, T_Q, T_K)
    assert torch.equal(attention_weights(scores, torch.ones(1, 1, 1, 1, dtype=torch.bool)), attention_weights(scores))


def test_a_fully_masked_row_is_zeros_and_leaves_the_others_alone():
    scores = normal(B, H, T_Q, T_K)
    mask = padding_mask(torch.tensor([7, 0]), T_K)
    weights = attention_weights(scores, mask)
    assert torch.equal(weights[0], attention_weights(scores[0]))
    assert (weights[1] == 0).all()


def test_a_fully_masked_row_has_zero_gradients():
    q, k, v = (normal(B, H, T, D_HEAD, seed=i).requires_grad_() for i, T in enumerate((T_Q, T_K, T_K)))
    z, _ = attention(q, k, v, padding_mask(torch.tensor([3, 0]), T_K))
    z.square().sum().backward()
    assert (z[1] == 0).all()
    for x in (q, k, v):
        assert (x.grad[1] == 0).all()
        assert x.grad[0].isfinite().all()
        assert (x.grad[0] != 0).any()


def test_masked_scores_have_no_gradient():
    scores = normal(T_Q, T_K).requires_grad_()
    mask = torch.ones(T_Q, T_K).tril().bool()
    attention_weights(scores, mask).square().sum().backward()
    assert (scores.grad[~mask] == 0).all()
    assert (scores.grad[1:][mask[1:]] != 0).all()  # query 0 has one key, whose weight is 1 whatever its score


def test_a_mask_is_checked():
    with pytest.raises(ValueError, match=re.escape("mask of shape (2, 7) does not fit scores of shape (2, 3, 5, 7)")):
        attention(
            normal(B, H, T_Q, D_HEAD), normal(B, H, T_K, D_HEAD), normal(B, H, T_K, D_HEAD), torch.ones(2, 7).bool()
        )
    with pytest.raises(ValueError, match="must be boolean"):
        attention_weights(torch.zeros(5, 7), torch.ones(5, 7))


# attention


MASKS = {
    "no mask": None,
    "padding": padding_mask(torch.tensor([7, 3]), T_K),
    "causal": causal_mask(T_K)[:, :, :T_Q],
    "both": causal_mask(T_K)[:, :, :T_Q] & padding_mask(torch.tensor([7, 3]), T_K),
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_attention_equals_torchs(mask):
    q, k, v = normal(B, H, T_Q, D_HEAD), normal(B, H, T_K, D_HEAD, seed=1), normal(B, H, T_K, 17, seed=2)
    z, _ = attention(q, k, v, mask)
    assert z.shape == (B, H, T_Q, 17)
    expanded = None if mask is None else mask.expand(B, H, T_Q, T_K)
    torch.testing.assert_close(z, F.scaled_dot_product_attention(q, k, v, attn_mask=expanded), rtol=1e-5, atol=1e-6)


def test_permuted_keys_and_values_give_the_same_z():
    q, k, v = normal(T_Q, D_HEAD), normal(T_K, D_HEAD, seed=1), normal(T_K, D_HEAD, seed=2)
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    z, weights = attention(q, k, v)
    permuted_z, permuted_weights = attention(q, k[order], v[order])
    torch.testing.assert_close(permuted_z, z, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(permuted_weights, weights[:, order], rtol=1e-5, atol=1e-6)


def test_permuted_queries_give_permuted_z():
    q, k, v = normal(T_Q, D_HEAD), normal(T_K, D_HEAD, seed=1), normal(T_K, D_HEAD, seed=2)
    order = torch.tensor([3, 0, 2, 4, 1])
    torch.testing.assert_close(attention(q[order], k, v)[0], attention(q, k, v)[0][order], rtol=1e-5, atol=1e-6)


def test_without_keys_there_is_nothing_to_fetch():
    z, weights = attention(normal(B, H, T_Q, D_HEAD), torch.zeros(B, H, 0, D_HEAD), torch.zeros(B, H, 0, D_HEAD))
    assert weights.shape == (B, H, T_Q, 0)
    assert (z == torch.zeros(B, H, T_Q, D_HEAD)).all()


# heads


def test_heads_may_be_wider_or_narrower_than_d_model_over_heads():
    m = module()
    assert m.w_q.weight.shape == m.w_k.weight.shape == m.w_v.weight.shape == (H * D_HEAD, D_MODEL)
    assert m.w_o.weight.shape == (D_MODEL, H * D_HEAD)
    assert m(normal(B, T_Q, D_MODEL), normal(B, T_K, D_MODEL)).shape == (B, T_Q, D_MODEL)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_heads_equal_torchs(mask, bias):
    d_model = H * D_HEAD  # torch knows no other width
    ours = module(d_model=d_model, bias=bias)
    with torch.device("meta"):
        theirs = nn.MultiheadAttention(d_model, H, bias=bias, batch_first=True)
    state = {
        "in_proj_weight": torch.cat([ours.w_q.weight, ours.w_k.weight, ours.w_v.weight]),
        "out_proj.weight": ours.w_o.weight,
    }
    if bias:
        state["in_proj_bias"] = torch.cat([ours.w_q.bias, ours.w_k.bias, ours.w_v.bias])
        state["out_proj.bias"] = ours.w_o.bias
    theirs.load_state_dict({name: value.detach() for name, value in state.items()}, assign=True)

    x, source, trace = normal(B, T_Q, d_model), normal(B, T_K, d_model, seed=1), Trace()
    # There True means: may not attend; and a mask for each head stands in the batch axis.
    closed = None if mask is None else ~mask.expand(B, H, T_Q, T_K).flatten(0, 1)
    y, weights = theirs(x, source, source, attn_mask=closed, need_weights=True, average_attn_weights=False)
    torch.testing.assert_close(ours(x, source, mask, trace), y, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(trace.attention[CROSS].weights, weights, rtol=1e-4, atol=1e-5)


def test_a_head_is_a_block_of_rows():
    m, x, source, trace = module(), normal(B, T_Q, D_MODEL), normal(B, T_K, D_MODEL, seed=1), Trace()
    m(x, source, trace=trace)
    record = trace.attention[CROSS]
    for h in range(H):
        rows = slice(h * D_HEAD, (h + 1) * D_HEAD)
        for got, linear, stream in ((record.q, m.w_q, x), (record.k, m.w_k, source), (record.v, m.w_v, source)):
            torch.testing.assert_close(got[:, h], F.linear(stream, linear.weight[rows], linear.bias[rows]))


def test_a_head_speaks_through_its_own_columns_of_w_o():
    m, x, source, trace = module(), normal(B, T_Q, D_MODEL), normal(B, T_K, D_MODEL, seed=1), Trace()
    y = m(x, source, trace=trace)
    z = trace.attention[CROSS].z
    said = sum(z[:, h] @ m.w_o.weight[:, h * D_HEAD : (h + 1) * D_HEAD].T for h in range(H))
    torch.testing.assert_close(y, said + m.w_o.bias, rtol=1e-4, atol=1e-5)


def test_a_spoiled_head_leaves_the_others_alone():
    m, x, source = module(), normal(B, T_Q, D_MODEL), normal(B, T_K, D_MODEL, seed=1)
    before, after = Trace(), Trace()
    m(x, source, trace=before)
    with torch.no_grad():
        m.w_q.weight[D_HEAD : 2 * D_HEAD].neg_()
    m(x, source, trace=after)
    changed = [not torch.equal(before.attention[CROSS].z[:, h], after.attention[CROSS].z[:, h]) for h in range(H)]
    assert changed == [False, True, False]


def test_the_weights_recorded_are_those_before_dropout():
    m = module(dropout=0.5, generator=seeded())
    m.train()
    trace = Trace()
    m(normal(B, T_Q, D_MODEL), normal(B, T_K, D_MODEL, seed=1), trace=trace)
    record = trace.attention[CROSS]
    torch.testing.assert_close(record.weights.sum(-1), torch.ones(B, H, T_Q))
    assert (record.weights > 0).all()
    assert not torch.allclose(record.z, record.weights @ record.v)


def test_rotary_turns_queries_and_keys_but_not_values():
    x = normal(B, T_K, D_MODEL)
    plain, turned = Trace(), Trace()
    m = module(SELF, d_head=4)
    m(x, x, trace=plain)
    m.rotary = True
    m(x, x, trace=turned)
    plain, turned = plain.attention[SELF], turned.attention[SELF]
    assert torch.equal(plain.v, turned.v)
    for name in ("q", "k"):
        a, b = getattr(plain, name), getattr(turned, name)
        assert torch.equal(a[:, :, 0], b[:, :, 0])
        assert not torch.allclose(a[:, :, 1:], b[:, :, 1:])


# with a cache


@pytest.mark.parametrize("rotary", [False, True])
def test_self_attention_token_by_token_equals_all_at_once(rotary):
    m, x, cache = module(SELF, d_head=4, rotary=rotary), normal(B, T_K, D_MODEL), KVCache()
    rows = [m(x[:, t : t + 1], x[:, t : t + 1], cache=cache) for t in range(T_K)]
    torch.testing.assert_close(torch.cat(rows, dim=1), m(x, x, causal_mask(T_K)), rtol=1e-4, atol=1e-5)


def test_cross_attention_projects_its_source_once():
    m, source, cache = module(CROSS), normal(B, T_K, D_MODEL, seed=1), KVCache()
    calls = []
    m.w_k.register_forward_hook(lambda *_: calls.append("k"))
    m.w_v.register_forward_hook(lambda *_: calls.append("v"))
    x = normal(B, T_Q, D_MODEL)
    rows = [m(x[:, t : t + 1], source, cache=cache) for t in range(T_Q)]
    assert sorted(calls) == ["k", "v"]
    assert cache.length(CROSS) == T_K
    torch.testing.assert_close(torch.cat(rows, dim=1), m(x, source), rtol=1e-4, atol=1e-5)
