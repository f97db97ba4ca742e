import json

import pytest
import torch

from transformer import sequence_loss
from transformer.gradient_norms import (
    MOST,
    NORMS,
    RESULTS,
    STEPS,
    TRAINED,
    at_start,
    batch_of,
    exponent,
    gradient_norms,
    in_training,
    main,
    slope,
    untrained,
)

SHIPPED = json.loads(RESULTS.read_text(encoding="utf-8"))
KINDS = ["encoder.w_2", "encoder.all", "decoder.w_2", "decoder.all"]


@pytest.mark.parametrize("norm", NORMS)
def test_they_are_the_norms_of_what_backward_gives(norm):
    model, batch = untrained(norm, 3, 1), batch_of(1)
    found = gradient_norms(model, batch)
    assert all(p.grad is None for p in model.parameters())
    sequence_loss(model(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask), batch.tgt_out).backward()
    assert list(found) == KINDS
    for stack in ("encoder", "decoder"):
        layers = getattr(model, stack)
        w_2 = torch.stack([layer.ffn.w_2.weight.grad.norm() for layer in layers])
        whole = torch.stack([torch.cat([p.grad.flatten() for p in layer.parameters()]).norm() for layer in layers])
        torch.testing.assert_close(found[f"{stack}.w_2"], w_2)
        torch.testing.assert_close(found[f"{stack}.all"], whole)


def test_both_norms_start_from_the_same_weights():
    post, pre = (dict(untrained(norm, 2, 0).named_parameters()) for norm in NORMS)
    assert set(pre) - set(post) == {
        f"{stack}_norm.{what}" for stack in ("encoder", "decoder") for what in ("weight", "bias")
    }
    assert all(torch.equal(post[name], pre[name]) for name in post)


def test_gradients_in_training_are_those_of_the_model_at_that_step():
    found, losses = in_training("pre", 0, n_layers=1, steps=(0, 2))
    assert len(found) == 2
    assert len(losses) == 2
    assert torch.equal(found[0]["decoder.w_2"], gradient_norms(untrained("pre", 1, 0), batch_of(0))["decoder.w_2"])
    assert not torch.equal(found[0]["decoder.w_2"], found[1]["decoder.w_2"])


def test_the_slope_of_powers_is_their_exponent():
    assert slope([1, 2, 4], [3, 6, 12]) == pytest.approx(1)
    assert slope([1, 4, 16], [8, 4, 2]) == pytest.approx(-0.5)
    assert slope([1, 2, 3], [5, 5, 5]) == pytest.approx(0)


def test_the_exponent_is_of_the_last_layers_mean_over_draws():
    # Last layers by hand: (1, 3) and (3, 13), whose means are 2 and 8: doubling N makes it four times as large.
    draws = [{"post": {"decoder.w_2": [[1.0], [9.0, 3.0]]}}, {"post": {"decoder.w_2": [[3.0], [9.0, 13.0]]}}]
    assert exponent(draws, "post", "decoder.w_2") == pytest.approx(2)


def test_the_command_writes_what_it_measured(tmp_path, capsys):
    out = tmp_path / "norms.json"
    assert main(["--seeds", "1", "--most", "2", "--no-training", "--out", str(out)]) == 0
    (draw,) = json.loads(out.read_text())["start"]
    assert draw["pre"]["encoder.all"][1] == pytest.approx(at_start(2, 0)["pre"]["encoder.all"].tolist(), rel=1e-4)
    assert "post-LN: gradient of W_2 in the last decoder layer ~ N^" in capsys.readouterr().out


# the shipped file


def test_the_shipped_file_has_every_depth_and_step():
    assert len(SHIPPED["start"]) >= 3
    for draw in SHIPPED["start"]:
        for norm in NORMS:
            assert list(draw[norm]) == KINDS
            assert all([len(layers) for layers in draw[norm][kind]] == list(range(1, MOST + 1)) for kind in KINDS)
    assert tuple(SHIPPED["steps"]) == STEPS
    for norm in NORMS:
        run = SHIPPED["training"][norm]
        assert all([len(layers) for layers in run[kind]] == [TRAINED] * len(STEPS) for kind in KINDS)
        assert len(run["loss"]) == STEPS[-1]


@pytest.mark.parametrize("norm", NORMS)
def test_the_shipped_numbers_are_computed_again(norm):
    for seed in (0, 1):
        now = at_start(3, seed)[norm]
        for kind in KINDS:
            assert SHIPPED["start"][seed][norm][kind][2] == pytest.approx(now[kind].tolist(), rel=2e-3)


def test_it_goes_as_the_theory_has_it():
    assert abs(exponent(SHIPPED["start"], "post", "decoder.w_2")) < 0.25
    assert -0.75 < exponent(SHIPPED["start"], "pre", "decoder.w_2") < -0.25
    for draw in SHIPPED["start"]:
        deepest = draw["post"]["decoder.w_2"][-1]
        assert deepest[-1] > 3 * deepest[0]
