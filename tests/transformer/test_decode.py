import re

import pytest
import torch

from tests.transformer.small import CHOICES, LENGTHS, SIZES, B, S, small_model, sources
from transformer import BOS, EOS, PAD, AttentionSite, Trace, causal_mask, greedy_decode, padding_mask

V = SIZES["tgt_vocab_size"]
STEPS = 6


def never_ends(**changes):
    """A model that finds EOS improbable, so that it runs to the limit."""
    model = small_model(**changes)
    with torch.no_grad():
        model.output.bias[EOS] = -1e4
    return model


def tokens(steps) -> torch.Tensor:
    return torch.stack([step.token for step in steps], dim=1)


# where it ends


def test_it_runs_to_the_limit_and_says_so():
    steps = list(greedy_decode(never_ends(), sources(), STEPS))
    assert [step.index for step in steps] == [0, 1, 2, 3, 4, 5]
    assert [step.stopped for step in steps] == [(None, None)] * 5 + [("limit", "limit")]


def test_it_stops_at_eos():
    model = small_model()
    with torch.no_grad():
        model.output.bias[EOS] = 1e4
    (step,) = greedy_decode(model, sources(), STEPS)
    assert step.token.tolist() == [EOS, EOS]
    assert step.stopped == ("eos", "eos")


def test_eos_at_the_last_step_is_an_end_and_not_the_limit():
    (step,) = greedy_decode(never_ends(), sources(), 1, forced=torch.tensor([[EOS], [5]]))
    assert step.stopped == ("eos", "limit")


def test_a_finished_row_gives_pad_while_the_others_go_on():
    forced = torch.tensor([[7, EOS, 9, 9], [7, 8, 9, 10]])
    steps = list(greedy_decode(never_ends(), sources(), 5, forced=forced))
    assert tokens(steps)[0].tolist() == [7, EOS, PAD, PAD, PAD]
    assert tokens(steps)[1, :4].tolist() == [7, 8, 9, 10]
    assert [step.stopped[0] for step in steps] == [None, "eos", "eos", "eos", "eos"]
    assert [step.stopped[1] for step in steps] == [None, None, None, None, "limit"]
    sums = [step.log_probability[0].item() for step in steps]
    assert sums[1] < sums[0]
    assert sums[1:] == [sums[1]] * 4


def test_it_stops_when_the_last_row_has_ended():
    forced = torch.tensor([[7, EOS, 9], [7, 8, EOS]])
    assert len(list(greedy_decode(never_ends(), sources(), 5, forced=forced))) == 3


def test_other_special_ids_can_be_named():
    forced = torch.tensor([[7, 16, 9], [7, 8, EOS]])
    steps = list(greedy_decode(never_ends(), sources(), 3, forced=forced, eos_id=16, pad_id=15))
    assert tokens(steps).tolist() == [[7, 16, 15], [7, 8, EOS]]
    assert steps[-1].stopped == ("eos", "limit")
    first = next(greedy_decode(never_ends(), sources(), 1)).logits
    assert not torch.allclose(first, next(greedy_decode(never_ends(), sources(), 1, bos_id=14)).logits)


def test_every_position_up_to_max_len_can_be_decoded():
    assert len(list(greedy_decode(never_ends(max_len=7), sources(), 7))) == 7


# what a step holds


def test_the_start_is_bos_and_each_token_is_fed_back():
    model, src = never_ends(), sources()
    steps = list(greedy_decode(model, src, STEPS))
    prefix = torch.cat([torch.full((B, 1), BOS), tokens(steps)[:, :-1]], dim=1)
    with torch.no_grad():
        taught = model(src, prefix, None, causal_mask(STEPS))
    torch.testing.assert_close(torch.stack([s.logits for s in steps], dim=1), taught, rtol=0, atol=1e-4)
    assert torch.equal(taught.argmax(-1), tokens(steps))


def test_candidates_are_the_whole_vocabulary_from_the_most_probable_down():
    for step in greedy_decode(never_ends(), sources(), STEPS):
        assert step.candidates.shape == step.probabilities.shape == (B, V)
        assert step.candidates.sort(dim=1).values.tolist() == [list(range(V))] * B
        assert (step.probabilities.diff(dim=1) <= 0).all()
        assert torch.equal(step.token, step.candidates[:, 0])
        torch.testing.assert_close(step.probabilities.sum(1), torch.ones(B))
        softmax = step.logits.softmax(-1).gather(1, step.candidates)
        torch.testing.assert_close(step.probabilities, softmax)


def test_among_equals_the_lowest_id_is_taken():
    model = small_model()
    with torch.no_grad():
        model.output.weight.zero_()
        model.output.bias.zero_()
    step = next(greedy_decode(model, sources(), 1))
    assert step.token.tolist() == [0, 0]
    assert step.candidates.tolist() == [list(range(V))] * B
    torch.testing.assert_close(step.probabilities, torch.full((B, V), 1 / V))


def test_log_probability_is_the_sum_over_the_tokens_taken():
    total = torch.zeros(B)
    for step in greedy_decode(never_ends(), sources(), STEPS, forced=torch.tensor([[3, 4], [5, 6]])):
        total += step.logits.log_softmax(-1)[torch.arange(B), step.token]
        torch.testing.assert_close(step.log_probability, total)


@pytest.mark.parametrize("use_cache", [True, False])
def test_weights_are_the_rows_of_a_teacher_forced_pass(use_cache):
    model, src, src_mask = never_ends(), sources(), padding_mask(LENGTHS, S)
    steps = list(greedy_decode(model, src, STEPS, src_mask=src_mask, use_cache=use_cache))
    prefix, trace = torch.cat([torch.full((B, 1), BOS), tokens(steps)[:, :-1]], dim=1), Trace()
    with torch.no_grad():
        model(src, prefix, src_mask, causal_mask(STEPS), trace)
    sites = {site for site in trace.attention if site.stack == "decoder"}
    assert len(sites) == 2 * SIZES["n_decoder_layers"]
    for t, step in enumerate(steps):
        assert set(step.weights) == sites
        for site, row in step.weights.items():
            T_k = t + 1 if site.kind == "self" else S
            assert row.shape == (B, SIZES["n_heads"], T_k)
            torch.testing.assert_close(row, trace.attention[site].weights[:, :, t, :T_k], rtol=0, atol=1e-5)


def test_no_weight_falls_on_source_padding():
    for step in greedy_decode(never_ends(), sources(), STEPS, src_mask=padding_mask(LENGTHS, S)):
        row = step.weights[AttentionSite("decoder", 0, "cross")]
        assert (row[1, :, LENGTHS[1] :] == 0).all()
        assert (row[0] > 0).all()


# equal ways


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
def test_cached_equals_uncached(choice):
    model, src, src_mask = never_ends(**choice), sources(), padding_mask(LENGTHS, S)
    cached = list(greedy_decode(model, src, STEPS, src_mask=src_mask))
    again = list(greedy_decode(model, src, STEPS, src_mask=src_mask, use_cache=False))
    assert torch.equal(tokens(cached), tokens(again))
    for a, b in zip(cached, again, strict=True):
        torch.testing.assert_close(a.logits, b.logits, rtol=0, atol=1e-4)
        torch.testing.assert_close(a.log_probability, b.log_probability, rtol=0, atol=1e-4)


def test_sources_of_different_length_decode_together_as_alone():
    model, lengths = never_ends(), torch.tensor([7, 0, 3])
    src = sources(rows=3)
    together = list(greedy_decode(model, src, STEPS, src_mask=padding_mask(lengths, S)))
    for b, length in enumerate(lengths.tolist()):
        alone = list(greedy_decode(model, src[b : b + 1, :length], STEPS))
        assert torch.equal(tokens(alone)[0], tokens(together)[b])
        for one, all_ in zip(alone, together, strict=True):
            torch.testing.assert_close(one.logits[0], all_.logits[b], rtol=0, atol=1e-4)


def test_an_empty_source_decodes():
    steps = list(greedy_decode(never_ends(), torch.zeros(B, 0, dtype=torch.int64), STEPS))
    assert len(steps) == STEPS
    assert all(step.logits.isfinite().all() for step in steps)


def test_no_sources_at_all_end_at_once():
    (step,) = greedy_decode(never_ends(), torch.zeros(0, S, dtype=torch.int64), STEPS)
    assert step.logits.shape == (0, V)
    assert step.stopped == ()


def test_forcing_the_greedy_tokens_changes_nothing():
    model, src = never_ends(), sources()
    free = list(greedy_decode(model, src, STEPS))
    forced = list(greedy_decode(model, src, STEPS, forced=tokens(free)[:, :4]))
    assert torch.equal(tokens(free), tokens(forced))
    assert torch.equal(free[-1].logits, forced[-1].logits)


def test_a_forced_token_leads_elsewhere():
    model, src = never_ends(), sources()
    free = list(greedy_decode(model, src, 2))
    second = free[0].candidates[:, 1:2]
    branch = list(greedy_decode(model, src, 2, forced=second))
    assert torch.equal(branch[0].token, second[:, 0])
    assert torch.equal(branch[0].logits, free[0].logits)
    assert not torch.allclose(branch[1].logits, free[1].logits)


# how it runs


def counted(model, monkeypatch) -> list[str]:
    calls = []
    for name in ("encode", "decode"):
        whole = getattr(model, name)
        monkeypatch.setattr(
            model, name, lambda *given, name=name, whole=whole, **named: calls.append(name) or whole(*given, **named)
        )
    return calls


@pytest.mark.parametrize("use_cache", [True, False])
def test_the_encoder_runs_once(monkeypatch, use_cache):
    model = never_ends()
    calls = counted(model, monkeypatch)
    list(greedy_decode(model, sources(), STEPS, use_cache=use_cache))
    assert calls == ["encode"] + ["decode"] * STEPS


def test_a_known_memory_spares_the_encoder(monkeypatch):
    model, src, src_mask = never_ends(), sources(), padding_mask(LENGTHS, S)
    own = tokens(greedy_decode(model, src, STEPS, src_mask=src_mask))
    with torch.no_grad():
        memory = model.encode(src, src_mask)
    calls = counted(model, monkeypatch)
    assert torch.equal(tokens(greedy_decode(model, src, STEPS, src_mask=src_mask, memory=memory)), own)
    assert "encode" not in calls


def test_in_training_mode_it_runs_without_noise_and_gives_the_mode_back():
    model, src = never_ends(dropout=0.5), sources()
    quiet = list(greedy_decode(model, src, STEPS))
    model.train()
    before = model.generator.get_state()
    loud = []
    for step in greedy_decode(model, src, STEPS):
        assert all(module.training for module in model.modules())
        loud.append(step)
    assert all(module.training for module in model.modules())
    assert torch.equal(model.generator.get_state(), before)
    assert all(torch.equal(a.logits, b.logits) for a, b in zip(quiet, loud, strict=True))


def test_the_mode_comes_back_after_an_error_too():
    model = never_ends().train()
    with pytest.raises(ValueError, match="token id 17"):
        greedy_decode(model, torch.full((B, S), 17), STEPS)
    assert model.training


def test_it_keeps_no_gradients_and_leaves_the_callers_alone():
    for step in greedy_decode(never_ends(), sources(), 2):
        assert not step.logits.requires_grad
        assert torch.is_grad_enabled()


def test_it_does_not_draw():
    before = torch.random.get_rng_state()
    list(greedy_decode(never_ends().train(), sources(), STEPS))
    assert torch.equal(torch.random.get_rng_state(), before)


# wrong requests


@pytest.mark.parametrize("asked", [0, -1, 14])
def test_more_tokens_than_positions_are_refused_at_the_call(asked):
    with pytest.raises(ValueError, match=re.escape(f"max_new_tokens is {asked}; this model takes 1 to 13")):
        greedy_decode(never_ends(), sources(), asked)


@pytest.mark.parametrize("shape", [(3, 2), (2, 7), (2,)])
def test_forced_tokens_of_another_shape_are_refused_at_the_call(shape):
    said = f"forced tokens of shape {shape} do not fit 2 sources and 6 new tokens"
    with pytest.raises(ValueError, match=re.escape(said)):
        greedy_decode(never_ends(), sources(), STEPS, forced=torch.full(shape, 5))


@pytest.mark.parametrize("wrong", [V, -1])
def test_forced_tokens_outside_the_vocabulary_are_refused_at_the_call(wrong):
    with pytest.raises(ValueError, match=f"forced token id {wrong} is outside the vocabulary of 19"):
        greedy_decode(never_ends(), sources(), STEPS, forced=torch.tensor([[5, wrong], [5, 5]]))


@pytest.mark.parametrize("shape", [(3, 7, 14), (2, 6, 14)])
def test_memory_of_other_sources_is_refused_at_the_call(shape):
    said = f"memory of shape {shape} does not fit sources of shape (2, 7)"
    with pytest.raises(ValueError, match=re.escape(said)):
        greedy_decode(never_ends(), sources(), STEPS, memory=torch.zeros(shape))


def test_an_encoder_alone_does_not_decode():
    with pytest.raises(ValueError, match="n_decoder_layers is 0"):
        next(greedy_decode(small_model(n_decoder_layers=0), sources(), STEPS))
