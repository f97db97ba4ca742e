from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
import torch

from tests.transformer.small import LENGTHS, SIZES, B, S, T, small_model, sources, targets
from transformer import (
    AttentionSite,
    ResidualSite,
    Trace,
    attention_scores,
    attention_weights,
    causal_mask,
    padding_mask,
)

SRC_MASK, TGT_MASK = padding_mask(LENGTHS, S), causal_mask(T)
H, D_HEAD, D = SIZES["n_heads"], SIZES["d_head"], SIZES["d_model"]


def traced(model) -> tuple[torch.Tensor, Trace]:
    trace = Trace()
    return model(sources(), targets(), SRC_MASK, TGT_MASK, trace), trace


def test_every_attention_is_recorded_in_the_order_in_which_it_ran():
    _, trace = traced(small_model())
    assert list(trace.attention) == [
        AttentionSite("encoder", 0, "self"),
        AttentionSite("encoder", 1, "self"),
        AttentionSite("decoder", 0, "self"),
        AttentionSite("decoder", 0, "cross"),
        AttentionSite("decoder", 1, "self"),
        AttentionSite("decoder", 1, "cross"),
        AttentionSite("decoder", 2, "self"),
        AttentionSite("decoder", 2, "cross"),
    ]


@pytest.mark.parametrize(("norm", "last"), [("post", "ffn"), ("pre", "norm")])
def test_the_stream_is_recorded_after_every_part(norm, last):
    model = small_model(norm=norm, n_decoder_layers=1)
    _, trace = traced(model)
    expected = [
        ResidualSite("encoder", 0, "embedding"),
        ResidualSite("encoder", 0, "self"),
        ResidualSite("encoder", 0, "ffn"),
        ResidualSite("encoder", 1, "self"),
        ResidualSite("encoder", 1, "ffn"),
        ResidualSite("encoder", 1, "norm"),
        ResidualSite("decoder", 0, "embedding"),
        ResidualSite("decoder", 0, "self"),
        ResidualSite("decoder", 0, "cross"),
        ResidualSite("decoder", 0, "ffn"),
        ResidualSite("decoder", 0, "norm"),
    ]
    assert list(trace.residual) == [site for site in expected if last == "norm" or site.after != "norm"]
    assert [x.shape for x in trace.residual.values()] == [
        (B, S if site.stack == "encoder" else T, D) for site in trace.residual
    ]


def test_a_record_holds_every_tensor_of_its_attention():
    _, trace = traced(small_model())
    cross = trace.attention[AttentionSite("decoder", 1, "cross")]
    assert cross.q.shape == cross.z.shape == (B, H, T, D_HEAD)
    assert cross.k.shape == cross.v.shape == (B, H, S, D_HEAD)
    assert cross.scores.shape == cross.weights.shape == (B, H, T, S)
    assert cross.mask is SRC_MASK
    assert trace.attention[AttentionSite("decoder", 1, "self")].mask is TGT_MASK


def test_the_numbers_of_a_record_follow_from_one_another():
    _, trace = traced(small_model())
    for record in trace.attention.values():
        assert torch.equal(record.scores, attention_scores(record.q, record.k))
        assert torch.equal(record.weights, attention_weights(record.scores, record.mask))
        assert torch.equal(record.z, record.weights @ record.v)
        assert record.scores.isfinite().all()
        assert (record.weights[~record.mask.expand_as(record.weights)] == 0).all()
        torch.testing.assert_close(record.weights.sum(-1), torch.ones(record.weights.shape[:-1]))


def test_without_a_mask_none_is_recorded():
    trace = Trace()
    small_model().encode(sources(), trace=trace)
    assert trace.attention[AttentionSite("encoder", 0, "self")].mask is None


def test_with_pre_ln_the_stream_is_the_sum_of_what_was_added():
    model = small_model(norm="pre")
    _, trace = traced(model)
    heads = trace.attention[AttentionSite("encoder", 1, "self")].z
    before, mid, after = (
        trace.residual[ResidualSite("encoder", layer, part)] for layer, part in ((0, "ffn"), (1, "self"), (1, "ffn"))
    )
    layer = model.encoder[1]
    added = layer.self_attention.w_o(heads.transpose(1, 2).reshape(B, S, H * D_HEAD))
    torch.testing.assert_close(mid, before + added, rtol=0, atol=1e-5)
    torch.testing.assert_close(after, mid + layer.ffn(layer.ffn_sublayer.norm(mid)), rtol=0, atol=1e-5)


def test_with_post_ln_each_part_begins_where_the_last_one_ended():
    model = small_model()
    _, trace = traced(model)
    for before, after in pairwise(site for site in trace.residual if site.stack == "encoder"):
        if after.after == "ffn":
            sublayer, ffn = model.encoder[after.layer].ffn_sublayer, model.encoder[after.layer].ffn
            x = trace.residual[before]
            torch.testing.assert_close(trace.residual[after], sublayer.norm(x + ffn(x)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_last_of_the_stream_is_what_the_model_gives(norm):
    model = small_model(norm=norm)
    logits, trace = traced(model)
    memory, states = (
        [x for site, x in trace.residual.items() if site.stack == stack][-1] for stack in ("encoder", "decoder")
    )
    assert torch.equal(memory, model.encode(sources(), SRC_MASK))
    assert torch.equal(model.project(states), logits)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_tracing_changes_no_bit(norm):
    model = small_model(norm=norm)
    assert torch.equal(traced(model)[0], model(sources(), targets(), SRC_MASK, TGT_MASK))


def test_tracing_changes_no_bit_of_a_training_pass_either():
    logits, gradients = [], []
    for trace in (Trace(), None):
        model = small_model(dropout=0.3).train()
        logits.append(model(sources(), targets(), SRC_MASK, TGT_MASK, trace))
        logits[-1].square().mean().backward()
        gradients.append([p.grad for p in model.parameters()])
    assert torch.equal(*logits)
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_gradients_reach_what_was_recorded():
    logits, trace = traced(small_model())
    weights = trace.attention[AttentionSite("encoder", 0, "self")].weights
    (gradient,) = torch.autograd.grad(logits[0, 0, 0], weights)
    assert (gradient[0] != 0).any()
    assert (gradient[1] == 0).all()  # another sentence


def test_a_later_pass_replaces_an_earlier_one():
    model, trace = small_model(), Trace()
    model.encode(sources(seed=1), trace=trace)
    first = dict(trace.attention)
    model.encode(sources(seed=2), trace=trace)
    assert trace.attention.keys() == first.keys()
    assert not any(torch.equal(trace.attention[site].q, first[site].q) for site in first)


def test_sites_sort_by_stack_layer_and_kind():
    sites = [AttentionSite("encoder", 0, "self"), AttentionSite("decoder", 10, "self"),
             AttentionSite("decoder", 2, "self"), AttentionSite("decoder", 2, "cross")]  # fmt: skip
    assert sorted(sites) == [sites[3], sites[2], sites[1], sites[0]]


def test_threads_sharing_a_model_get_their_own_traces():
    model = small_model()

    @torch.no_grad()
    def run(seed: int) -> tuple[torch.Tensor, Trace]:
        trace = Trace()
        return model(sources(seed=seed), targets(seed=seed), SRC_MASK, TGT_MASK, trace), trace

    seeds = list(range(60))
    alone = [run(seed) for seed in seeds]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(run, seeds))
    for (logits, trace), (expected, expected_trace) in zip(together, alone, strict=True):
        assert torch.equal(logits, expected)
        assert list(trace.attention) == list(expected_trace.attention)
        assert all(
            torch.equal(record.weights, expected_trace.attention[site].weights)
            for site, record in trace.attention.items()
        )
