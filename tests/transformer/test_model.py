import math
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.reference import Reference
from tests.transformer.small import (
    CHOICES,
    LENGTHS,
    SIZES,
    B,
    S,
    T,
    seeded,
    small_config,
    small_model,
    sources,
    targets,
    unsettle,
)
from transformer import PRESETS, Trace, Transformer, causal_mask, padding_mask

D = SIZES["d_model"]
SRC_MASK = padding_mask(LENGTHS, S)
TGT_MASK = causal_mask(T)


# against the reference in loops


def assert_equals_reference(model: Transformer, src_mask: torch.Tensor | None, tgt_mask: torch.Tensor | None) -> None:
    """Memory, states, output and every weight of the model, in double, to 1e-6; the tables of sinusoids are float32."""
    reference, trace, near = Reference(model.config, model.state_dict()), Trace(), {"rtol": 0, "atol": 1e-6}
    model = model.double()
    src, tgt = sources(), targets()
    with torch.no_grad():
        memory = model.encode(src, src_mask, trace)
        torch.testing.assert_close(memory, reference.memory(src, src_mask), **near)
        if model.config.n_decoder_layers:
            states = model.decode(tgt, memory, tgt_mask, src_mask, trace)
            torch.testing.assert_close(states, reference.states(tgt, memory, tgt_mask, src_mask), **near)
            torch.testing.assert_close(model.project(states), reference.output(states), **near)
            whole = reference(src, tgt, src_mask, tgt_mask)
            torch.testing.assert_close(model(src, tgt, src_mask, tgt_mask), whole, **near)
    assert {(site.stack, site.layer, site.kind) for site in trace.attention} == set(reference.weights)
    for site, record in trace.attention.items():
        torch.testing.assert_close(record.weights, reference.weights[site.stack, site.layer, site.kind], **near)


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
def test_every_choice_computes_what_its_equations_say(choice):
    assert_equals_reference(small_model(**choice), SRC_MASK, TGT_MASK)


@pytest.mark.parametrize("choice", [{}, {"norm": "pre"}, {"positional": "rotary", "d_head": 4}], ids=str)
def test_an_encoder_alone_computes_what_its_equations_say(choice):
    assert_equals_reference(small_model(n_decoder_layers=0, **choice), SRC_MASK, None)


MASKS = {
    "none": (None, None),
    "source padding": (SRC_MASK, None),
    "causal": (None, TGT_MASK),
    "target padding too": (SRC_MASK, TGT_MASK & padding_mask(torch.tensor([2, 5]), T)),
    "an empty source": (padding_mask(torch.tensor([0, 7]), S), TGT_MASK),
    "an empty target": (SRC_MASK, TGT_MASK & padding_mask(torch.tensor([5, 0]), T)),
}


@pytest.mark.parametrize(("src_mask", "tgt_mask"), MASKS.values(), ids=MASKS.keys())
def test_every_mask_hides_what_it_says(src_mask, tgt_mask):
    assert_equals_reference(small_model(), src_mask, tgt_mask)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_made_small_computes_what_its_equations_say(name):
    preset = PRESETS[name]
    small = replace(
        preset, src_vocab_size=19, tgt_vocab_size=19, d_model=22, n_heads=2, d_ff=23, max_len=13,
        n_encoder_layers=2, n_decoder_layers=min(preset.n_decoder_layers, 3),
    )  # fmt: skip
    assert_equals_reference(unsettle(Transformer(small, seeded()).eval()), SRC_MASK, TGT_MASK)


# against torch's


def torchs_layer(layer: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters of one of our layers under the names of torch's encoder or decoder layer."""
    named = {"linear1": layer.ffn.w_1, "linear2": layer.ffn.w_2, "norm1": layer.self_sublayer.norm}
    attentions = {"self_attn": layer.self_attention}
    if hasattr(layer, "cross_attention"):
        named |= {"norm2": layer.cross_sublayer.norm, "norm3": layer.ffn_sublayer.norm}
        attentions["multihead_attn"] = layer.cross_attention
    else:
        named["norm2"] = layer.ffn_sublayer.norm
    state = {}
    for name, m in attentions.items():
        state[f"{name}.in_proj_weight"] = torch.cat([m.w_q.weight, m.w_k.weight, m.w_v.weight])
        state[f"{name}.in_proj_bias"] = torch.cat([m.w_q.bias, m.w_k.bias, m.w_v.bias])
        named[f"{name}.out_proj"] = m.w_o
    for name, module in named.items():
        state |= {f"{name}.{kind}": p for kind, p in module.named_parameters()}
    return state


def torchs_stack(layers: nn.ModuleList, norm: nn.Module) -> dict[str, torch.Tensor]:
    state = {f"layers.{i}.{name}": p for i, layer in enumerate(layers) for name, p in torchs_layer(layer).items()}
    return state | {f"norm.{kind}": p for kind, p in norm.named_parameters()}


def torchs_encoder(model: Transformer) -> nn.TransformerEncoder:
    config = model.config
    with torch.device("meta"):  # the weights come from ours
        layer = nn.TransformerEncoderLayer(
            config.d_model, config.n_heads, config.d_ff, dropout=0.0, activation=config.activation,
            batch_first=True, norm_first=config.norm == "pre",
        )  # fmt: skip
        encoder = nn.TransformerEncoder(
            layer, config.n_encoder_layers, nn.LayerNorm(config.d_model), enable_nested_tensor=False
        )
    encoder.load_state_dict(_detached(torchs_stack(model.encoder, model.encoder_norm)), assign=True)
    return encoder


def torchs_transformer(model: Transformer) -> nn.Transformer:
    config = model.config
    with torch.device("meta"):
        whole = nn.Transformer(
            config.d_model, config.n_heads, 1, config.n_decoder_layers, config.d_ff, dropout=0.0,
            activation=config.activation, batch_first=True, norm_first=config.norm == "pre",
            custom_encoder=nn.Identity(),
        )  # fmt: skip
    whole.decoder.load_state_dict(_detached(torchs_stack(model.decoder, model.decoder_norm)), assign=True)
    whole.encoder = torchs_encoder(model)
    return whole


def _detached(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in state.items()}


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_whole_equals_torchs_transformer(norm, activation):
    model = small_model(norm=norm, activation=activation, final_norm=True, d_model=22, n_heads=2, d_head=None)
    src, tgt, tgt_lengths = sources(), targets(), torch.tensor([2, 5])
    tgt_mask = TGT_MASK & padding_mask(tgt_lengths, T)
    trace = Trace()
    states = model.decode(tgt, model.encode(src, SRC_MASK, trace), tgt_mask, SRC_MASK, trace)

    theirs = torchs_transformer(model)
    embedded = [record for site, record in trace.residual.items() if site.after == "embedding"]
    # There True means: may not attend.
    expected = theirs(
        *embedded, tgt_mask=~TGT_MASK[0, 0], src_key_padding_mask=~SRC_MASK[:, 0, 0],
        memory_key_padding_mask=~SRC_MASK[:, 0, 0], tgt_key_padding_mask=~padding_mask(tgt_lengths, T)[:, 0, 0],
    )  # fmt: skip
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_encoder_equals_torchs_encoder(norm, activation):
    model = small_model(
        norm=norm, activation=activation, final_norm=True, n_decoder_layers=0, d_model=22, n_heads=2, d_head=None
    )
    trace = Trace()
    memory = model(sources(), src_mask=SRC_MASK, trace=trace)
    embedded = next(iter(trace.residual.values()))
    expected = torchs_encoder(model)(embedded, src_key_padding_mask=~SRC_MASK[:, 0, 0])
    torch.testing.assert_close(memory, expected, rtol=0, atol=1e-5)


# embeddings


def test_a_word_enters_times_the_root_of_the_width_plus_its_position():
    # Width 4: the word's row times 2, plus at position 1 sin 1, cos 1, sin 0.01, cos 0.01.
    model, trace = small_model(d_model=4), Trace()
    with torch.no_grad():
        model.src_embedding.token.weight[9] = torch.tensor([1.0, 2.0, 3.0, 4.0])
        model.encode(torch.tensor([[9, 9]]), trace=trace)
    first, second = next(iter(trace.residual.values()))[0]
    torch.testing.assert_close(first, torch.tensor([2.0, 5.0, 6.0, 9.0]))
    torch.testing.assert_close(second, torch.tensor([2.84147098, 4.54030231, 6.00999983, 8.99995]))


def test_learned_positions_are_rows_by_position_and_not_by_sentence():
    model, trace = small_model(positional="learned", scale_embeddings=False), Trace()
    model.encode(torch.full((B, S), 9), trace=trace)
    x = next(iter(trace.residual.values()))
    expected = model.src_embedding.token.weight[9] + model.src_embedding.position.weight[:S]
    assert torch.equal(x, expected.expand(B, S, D))


def test_one_matrix_serves_source_target_and_output():
    model = small_model(tie_embeddings=True, src_vocab_size=19)
    separate = sum(p.numel() for p in small_model(src_vocab_size=19).parameters())
    assert separate - sum(p.numel() for p in model.parameters()) == 2 * 19 * D
    memory = model.encode(sources())
    with torch.no_grad():
        model.src_embedding.token.weight.mul_(2)
    assert not torch.allclose(model.encode(sources()), memory)
    torch.testing.assert_close(
        model.project(torch.eye(D)) - model.output.bias, model.tgt_embedding.token.weight.T, rtol=0, atol=1e-6
    )


# shapes and outputs


@torch.no_grad()
def test_forward_is_encode_decode_project():
    model, src, tgt = small_model(), sources(), targets()
    memory = model.encode(src, SRC_MASK)
    states = model.decode(tgt, memory, TGT_MASK, SRC_MASK)
    logits = model.project(states)
    assert memory.shape == (B, S, D)
    assert states.shape == (B, T, D)
    assert logits.shape == (B, T, SIZES["tgt_vocab_size"])
    assert torch.equal(model(src, tgt, SRC_MASK, TGT_MASK), logits)


@torch.no_grad()
def test_log_probabilities_are_the_logits_normalized():
    logits = small_model()(sources(), targets())
    log_probs = small_model(output="log_probs")(sources(), targets())
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(B, T))
    torch.testing.assert_close(log_probs, logits.log_softmax(-1))


@torch.no_grad()
def test_an_encoder_alone_gives_its_memory():
    model = small_model(n_decoder_layers=0)
    assert torch.equal(model(sources(), src_mask=SRC_MASK), model.encode(sources(), SRC_MASK))
    assert not any(name.startswith(("tgt", "decoder", "output")) for name, _ in model.named_parameters())


def test_the_table_of_positions_is_not_saved():
    short, long = small_model(max_len=5), small_model(max_len=13)
    long.load_state_dict(short.state_dict())
    assert "positions" not in short.state_dict()
    assert torch.equal(long.encode(sources(length=5)), short.encode(sources(length=5)))


# who sees whom


@torch.no_grad()
def test_the_future_has_no_influence_on_earlier_logits():
    model, src, tgt = small_model(), sources(), targets()
    logits = model(src, tgt, SRC_MASK, TGT_MASK)
    for t in range(1, T):
        changed = tgt.clone()
        changed[:, t] = (changed[:, t] + 1) % SIZES["tgt_vocab_size"]
        others = model(src, changed, SRC_MASK, TGT_MASK)
        assert torch.equal(others[:, :t], logits[:, :t])
        assert (others[:, t:] != logits[:, t:]).any(-1).all()


@torch.no_grad()
def test_without_the_causal_mask_the_future_leaks():
    model, src, tgt = small_model(), sources(), targets()
    changed = tgt.clone()
    changed[:, -1] = (changed[:, -1] + 1) % SIZES["tgt_vocab_size"]
    leak = (model(src, changed, SRC_MASK) - model(src, tgt, SRC_MASK)).abs().amax(-1)
    assert (leak[:, :-1] > 1e-4).all()


@torch.no_grad()
def test_source_padding_has_no_influence():
    model, src, tgt = small_model(), sources(), targets()
    changed = torch.where(SRC_MASK[:, 0, 0], src, (src + 1) % SIZES["src_vocab_size"])
    assert not torch.equal(changed, src)
    assert torch.equal(model(changed, tgt, SRC_MASK, TGT_MASK), model(src, tgt, SRC_MASK, TGT_MASK))
    assert not torch.allclose(model(changed, tgt, None, TGT_MASK)[1], model(src, tgt, None, TGT_MASK)[1])


@torch.no_grad()
def test_a_padded_source_equals_its_own_length():
    model, src, tgt = small_model(), sources(), targets()
    together = model(src, tgt, SRC_MASK, TGT_MASK)
    for b, length in enumerate(LENGTHS.tolist()):
        alone = model(src[b : b + 1, :length], tgt[b : b + 1], None, TGT_MASK)
        torch.testing.assert_close(alone[0], together[b], rtol=0, atol=1e-5)


@torch.no_grad()
def test_sentences_of_a_batch_do_not_see_one_another():
    model, src, tgt = small_model(), sources(), targets()
    logits = model(src, tgt, SRC_MASK, TGT_MASK)
    both = torch.tensor([1, 0])
    swapped = model(src[both], tgt[both], SRC_MASK[both], TGT_MASK)
    torch.testing.assert_close(swapped, logits[both], rtol=0, atol=1e-5)


@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary", "none"])
@torch.no_grad()
def test_teacher_forced_logits_are_those_of_each_prefix(positional):
    model, src, tgt = small_model(positional=positional, d_head=4), sources(), targets()
    logits = model(src, tgt, SRC_MASK, TGT_MASK)
    for t in range(1, T + 1):
        prefix = model(src, tgt[:, :t], SRC_MASK, causal_mask(t))
        torch.testing.assert_close(prefix[:, -1], logits[:, t - 1], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("positional", "same"), [("none", True), ("sinusoidal", False), ("learned", False), ("rotary", False)]
)
@torch.no_grad()
def test_only_positions_tell_permuted_sources_apart(positional, same):
    model, src, order = small_model(positional=positional, d_head=4), sources(), torch.tensor([3, 0, 6, 2, 5, 1, 4])
    memory, permuted = model.encode(src), model.encode(src[:, order])
    assert torch.allclose(permuted, memory[:, order], rtol=0, atol=1e-5) is same
    # The decoder sums over the memory, so without positions it cannot tell at all.
    logits = model.project(model.decode(targets(), memory, TGT_MASK))
    others = model.project(model.decode(targets(), permuted, TGT_MASK))
    assert torch.allclose(others, logits, rtol=0, atol=1e-5) is same


# nothing to attend to


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_empty_sentence_gives_finite_numbers_and_gradients(norm):
    model = small_model(norm=norm, dropout=0.1).train()
    trace = Trace()
    logits = model(sources(), targets(), padding_mask(torch.tensor([7, 0]), S), TGT_MASK, trace)
    assert logits.isfinite().all()
    for site, record in trace.attention.items():
        if (site.stack, site.kind) != ("decoder", "self"):
            assert (record.weights[1] == 0).all()
            assert (record.weights[0] > 0).all()
    logits.square().mean().backward()
    for name, p in model.named_parameters():
        assert p.grad.isfinite().all(), name
        assert (p.grad != 0).any() or name.endswith("w_k.bias"), name  # a shift of all keys shifts all scores alike


def test_a_batch_of_empty_sentences_gives_no_gradient_to_what_finds_keys():
    model = small_model()
    model(sources(), targets(), padding_mask(torch.tensor([0, 0]), S), TGT_MASK).square().mean().backward()
    for layer in model.decoder:
        assert (layer.cross_attention.w_q.weight.grad == 0).all()
        assert (layer.cross_attention.w_v.weight.grad == 0).all()
        assert (layer.self_attention.w_q.weight.grad != 0).any()


@torch.no_grad()
def test_a_row_of_padding_equals_a_source_of_no_tokens():
    model, tgt = small_model(), targets()
    nothing = padding_mask(torch.tensor([0, 0]), 0)
    memory = model.encode(torch.zeros(B, 0, dtype=torch.int64), nothing)
    assert memory.shape == (B, 0, D)
    without = model.project(model.decode(tgt, memory, TGT_MASK, nothing))
    assert without.isfinite().all()
    padded = model(sources(), tgt, padding_mask(torch.tensor([0, 0]), S), TGT_MASK)
    torch.testing.assert_close(padded, without, rtol=0, atol=1e-5)


# a pass leaves nothing behind


def state_of(model: nn.Module) -> dict[str, list[str]]:
    return {name: sorted(vars(module)) for name, module in model.named_modules()}


@torch.no_grad()
def test_a_pass_leaves_nothing_on_the_modules():
    model = small_model()
    before = state_of(model)
    values = {name: value.clone() for name, value in model.state_dict().items()}
    model(sources(), targets(), SRC_MASK, TGT_MASK, Trace())
    assert state_of(model) == before
    assert all(torch.equal(value, values[name]) for name, value in model.state_dict().items())


@torch.no_grad()
def test_a_pass_does_not_change_what_it_is_given():
    src, tgt, src_mask, tgt_mask = sources(), targets(), SRC_MASK.clone(), TGT_MASK.clone()
    small_model()(src, tgt, src_mask, tgt_mask)
    assert torch.equal(src, sources())
    assert torch.equal(tgt, targets())
    assert torch.equal(src_mask, SRC_MASK)
    assert torch.equal(tgt_mask, TGT_MASK)


# wrong requests


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (torch.tensor([[3, 17]]), "token id 17 is outside the vocabulary of 17"),
        (torch.tensor([[-1, 3]]), "token id -1 is outside the vocabulary of 17"),
        (torch.zeros(1, 14, dtype=torch.int64), "14 encoder positions are more than max_len 13"),
        (torch.zeros(1, 3), "whole numbers of shape (B, T); got torch.float32 of shape (1, 3)"),
        (torch.zeros(3, dtype=torch.int64), "got torch.int64 of shape (3,)"),
        (torch.zeros(1, 3, dtype=torch.bool), "got torch.bool of shape (1, 3)"),
    ],
)
def test_ids_that_no_embedding_has_are_refused(ids, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        small_model().encode(ids)


def test_targets_have_a_vocabulary_and_positions_of_their_own():
    model, memory = small_model(), torch.zeros(1, S, D)
    assert model.decode(torch.tensor([[18]]), memory).shape == (1, 1, D)
    with pytest.raises(ValueError, match="token id 19 is outside the vocabulary of 19"):
        model.decode(torch.tensor([[19]]), memory)
    with pytest.raises(ValueError, match="14 decoder positions are more than max_len 13"):
        model.decode(torch.zeros(1, 14, dtype=torch.int64), memory)


def test_the_longest_input_is_max_len():
    assert small_model().encode(sources(length=13)).shape == (B, 13, D)


@pytest.mark.parametrize("shape", [(3, S, D), (B, S, D + 1), (S, D)])
def test_memory_that_does_not_fit_is_refused(shape):
    said = f"memory of shape {shape} does not fit targets of shape (2, 5) and d_model 14"
    with pytest.raises(ValueError, match=re.escape(said)):
        small_model().decode(targets(), torch.zeros(shape))


@pytest.mark.parametrize(
    ("masks", "said"),
    [
        ((SRC_MASK.float(), None), "must be boolean, True = may attend; got torch.float32"),
        ((SRC_MASK[:, 0, 0], None), "mask of shape (2, 7) does not fit scores of shape (2, 3, 7, 7)"),
        ((padding_mask(LENGTHS, 8), None), "mask of shape (2, 1, 1, 8) does not fit scores of shape (2, 3, 7, 7)"),
        ((None, causal_mask(6)), "mask of shape (1, 1, 6, 6) does not fit scores of shape (2, 3, 5, 5)"),
        ((None, TGT_MASK.long()), "must be boolean, True = may attend; got torch.int64"),
    ],
)
def test_masks_that_do_not_fit_are_refused(masks, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        small_model()(sources(), targets(), *masks)


@pytest.mark.parametrize(
    "ask",
    [lambda m: m.decode(targets(), torch.zeros(B, S, D)), lambda m: m.project(torch.zeros(B, D)),
     lambda m: m(sources(), targets())],
    ids=["decode", "project", "forward"],
)  # fmt: skip
def test_an_encoder_alone_refuses_to_decode(ask):
    with pytest.raises(ValueError, match="encoder alone"):
        ask(small_model(n_decoder_layers=0))


def test_an_encoder_decoder_needs_targets():
    with pytest.raises(ValueError, match="needs target ids"):
        small_model()(sources())


# size


def test_parameters_by_hand():
    # Width 14, heads 3 x 5 = 15 wide, hidden 23.
    attention = 3 * (14 * 15 + 15) + (15 * 14 + 14)
    ffn, norm = (14 * 23 + 23) + (23 * 14 + 14), 2 * 14
    encoder = 2 * (attention + ffn + 2 * norm)
    decoder = 3 * (2 * attention + ffn + 3 * norm)
    words = (17 + 19) * 14 + (14 * 19 + 19)
    assert sum(p.numel() for p in small_model().parameters()) == encoder + decoder + words
    assert sum(p.numel() for p in small_model(norm="pre").parameters()) == encoder + decoder + words + 2 * norm


def test_the_feed_forward_network_is_twice_the_attention():
    # 2 * 512 * 2048 + 2048 + 512 over 4 * (512^2 + 512) = 1.99854.
    layer = Transformer(
        small_config(d_model=512, n_heads=8, d_head=None, d_ff=2048, n_encoder_layers=1, n_decoder_layers=0), seeded()
    ).encoder[0]
    ffn, attention = (sum(p.numel() for p in part.parameters()) for part in (layer.ffn, layer.self_attention))
    assert math.isclose(ffn / attention, 1.99854, abs_tol=1e-5)
