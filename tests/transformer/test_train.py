import importlib
import math
import re
import subprocess
import sys
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

from tests.transformer.small import seeded
from transformer import (
    BOS,
    EOS,
    PAD,
    PRESETS,
    Batch,
    ReversalTask,
    TrainSettings,
    TrainState,
    Transformer,
    TransformerConfig,
    exact_match,
    greedy_decode,
    load_checkpoint,
    padding_mask,
    sequence_loss,
    teacher_forced_loss,
    train,
)
from transformer.train.__main__ import DOCUMENT_SETTINGS, QUICK_CONFIG, main

COMMAND = importlib.import_module("transformer.train.__main__")
LOOP = importlib.import_module("transformer.train.loop")

TASK = ReversalTask(max_len=5)
CONFIG = TransformerConfig(
    src_vocab_size=12, tgt_vocab_size=12, d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1,
    max_len=6, dropout=0.1, norm="pre",
)  # fmt: skip
SETTINGS = TrainSettings(steps=20, batch_size=7, lr=1e-2, warmup=5)


def fresh(**changes) -> Transformer:
    return Transformer(replace(CONFIG, **changes), seeded())


# the learning rate


@pytest.mark.parametrize(
    ("step", "rate"),
    [
        (1, 1.10485e-5),  # 128^-0.5 * 400^-1.5 = 0.0883883 / 8,000
        (200, 2.20971e-3),  # halfway up
        (400, 4.41942e-3),  # the peak: 0.0883883 / 20
        (1_000, 2.79508e-3),  # 0.0883883 / 31.6228
        (6_000, 1.14109e-3),  # 0.0883883 / 77.4597
    ],
)
def test_the_papers_schedule_at_width_128_and_warmup_400(step, rate):
    assert DOCUMENT_SETTINGS.learning_rate(step, 128) == pytest.approx(rate, rel=1e-5)


def test_the_papers_schedule_turns_at_the_end_of_the_warmup():
    rates = [DOCUMENT_SETTINGS.learning_rate(step, 128) for step in range(1, 1_000)]
    assert max(range(len(rates)), key=rates.__getitem__) + 1 == 400


def test_the_linear_schedule_by_hand():
    # Up over 2 steps, then 9 equal steps down: 9/9 at step 2, 1/9 at step 10; step 11 would have 0.
    settings = TrainSettings(steps=10, warmup=2, lr=0.9)
    rates = [settings.learning_rate(step, 16) for step in range(1, 11)]
    assert rates == pytest.approx([0.45, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("schedule", ["linear", "inverse_sqrt"])
@pytest.mark.parametrize(("steps", "warmup"), [(1, 1), (5, 1), (5, 5), (5, 50)])
def test_every_rate_is_positive_and_none_above_lr(schedule, steps, warmup):
    settings = TrainSettings(steps=steps, warmup=warmup, lr=0.5, schedule=schedule)
    assert all(0 < settings.learning_rate(step, 1) <= 0.5 for step in range(1, steps + 1))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"batch_size": 0}, "batch_size is 0; it must be at least 1"),
        ({"warmup": 0}, "warmup is 0; it must be at least 1"),
        ({"lr": 0.0}, "lr is 0.0; it must be more than 0"),
        ({"lr": math.nan}, "lr is nan; it must be more than 0"),
        ({"clip": -1.0}, "clip is -1.0; it must be more than 0"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_their_numbers(changes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        TrainSettings(**changes)


# the loss


def test_without_a_preference_the_loss_is_the_logarithm_of_the_vocabulary():
    assert sequence_loss(torch.zeros(1, 2, 4), torch.tensor([[3, 2]])).item() == pytest.approx(math.log(4))


def test_the_loss_is_the_mean_over_tokens_that_are_not_padding():
    # exp of (0, 0, 0, ln 3) is 1, 1, 1, 3 of 6: a 3 costs ln 2 and a 2 costs ln 6.
    # Three 3s and one 2, over both rows alike: (3 * 0.693147 + 1.791759) / 4 = 0.967800.
    logits = torch.tensor([0.0, 0.0, 0.0, math.log(3)]).expand(2, 3, 4)
    tgt_out = torch.tensor([[3, 3, 2], [3, 0, 0]])
    assert sequence_loss(logits, tgt_out).item() == pytest.approx(0.967800, abs=1e-6)


def test_a_batch_of_padding_costs_nothing_and_has_no_gradient():
    logits = torch.randn(2, 3, 4, generator=seeded()).requires_grad_()
    loss = sequence_loss(logits, torch.zeros(2, 3, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0
    assert (logits.grad == 0).all()


# the loop


def test_it_equals_a_plain_loop_of_torchs_parts():
    # Keys' biases have no gradient but rounding; a larger eps keeps Adam from blowing that up.
    settings = replace(SETTINGS, eps=1e-4)
    model = fresh()
    steps = list(train(model, TASK, settings))

    plain = fresh().train()
    optimizer = torch.optim.Adam(plain.parameters(), lr=1.0, betas=settings.betas, eps=1e-4)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: settings.learning_rate(i + 1, 16))
    for step in steps:
        batch = TASK.batch(7, plain.generator)
        logits = plain(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask)
        loss = F.cross_entropy(logits.transpose(1, 2), batch.tgt_out, ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        assert step.learning_rate == pytest.approx(optimizer.param_groups[0]["lr"])
        assert step.loss == pytest.approx(loss.item(), rel=1e-5)
        assert step.grad_norm == pytest.approx(norm.item(), rel=1e-4)
        optimizer.step()
        schedule.step()
    for p, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, expected, rtol=0, atol=1e-5)


def test_without_the_causal_mask_the_first_step_sees_the_future():
    settings = replace(SETTINGS, causal=False)
    loss = next(train(fresh(dropout=0.0), TASK, settings)).loss
    plain = fresh(dropout=0.0)
    batch = TASK.batch(7, plain.generator)
    assert loss == pytest.approx(sequence_loss(plain(batch.src, batch.tgt_in, batch.src_mask), batch.tgt_out).item())
    assert loss != next(train(fresh(dropout=0.0), TASK, SETTINGS)).loss


def test_steps_count_from_1_to_the_last():
    assert [step.step for step in train(fresh(), TASK, SETTINGS)] == list(range(1, 21))


def test_the_gradient_is_clipped_and_its_norm_is_that_before():
    # With an eps that dwarfs it, Adam's first step is the gradient over eps: of norm clip / eps = 0.1 / 10.
    model = fresh(dropout=0.0)
    before = [p.detach().clone() for p in model.parameters()]
    step = next(train(model, TASK, TrainSettings(steps=2, batch_size=7, lr=1.0, warmup=1, clip=0.1, eps=10.0)))
    moved = torch.cat([(p - b).flatten() for p, b in zip(model.parameters(), before, strict=True)])
    assert step.grad_norm > 0.5
    assert moved.norm().item() == pytest.approx(0.01, rel=0.02)


def test_training_turns_dropout_on():
    model = fresh().eval()
    next(train(model, TASK, SETTINGS))
    assert model.training


def test_a_short_run_lowers_the_loss_and_can_be_repeated():
    settings = replace(SETTINGS, steps=60, batch_size=32)
    losses, again = ([step.loss for step in train(fresh(dropout=0.0), TASK, settings)] for _ in range(2))
    assert losses == again
    assert losses[0] == pytest.approx(math.log(12), abs=1)
    assert sum(losses[-10:]) < 0.75 * sum(losses[:10])


@pytest.mark.parametrize("stop", [0, 1, 10, 19])
def test_a_run_left_and_taken_up_is_the_same_to_the_bit(stop):
    whole, parted = fresh(), fresh()
    losses = [step.loss for step in train(whole, TASK, SETTINGS)]
    state = TrainState(parted, SETTINGS)
    first = [step.loss for step in islice(train(parted, TASK, SETTINGS, state), stop)]
    assert state.step == stop
    rest = [step.loss for step in train(parted, TASK, SETTINGS, state)]
    assert first + rest == losses
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parted.parameters(), strict=True))


def test_a_state_saved_and_loaded_into_another_model_goes_on_to_the_bit():
    whole, first, second = fresh(), fresh(), fresh()
    losses = [step.loss for step in train(whole, TASK, SETTINGS)]
    state = TrainState(first, SETTINGS)
    list(islice(train(first, TASK, SETTINGS, state), 10))
    second.load_state_dict(first.state_dict())
    taken_up = TrainState(second, SETTINGS)
    taken_up.load({name: tensor.clone() for name, tensor in state.tensors().items()}, state.step)
    assert [step.loss for step in train(second, TASK, SETTINGS, taken_up)] == losses[10:]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), second.parameters(), strict=True))


def test_a_finished_run_has_no_more_steps():
    model = fresh()
    state = TrainState(model, SETTINGS)
    list(train(model, TASK, SETTINGS, state))
    assert list(train(model, TASK, SETTINGS, state)) == []


def test_a_model_without_a_generator_cannot_be_trained():
    with torch.random.fork_rng(devices=[]):
        model = Transformer(CONFIG)
    with pytest.raises(ValueError, match="build the model with a generator"):
        next(train(model, TASK, SETTINGS))


def test_training_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    model = fresh()
    list(train(model, TASK, replace(SETTINGS, steps=3)))
    exact_match(model, TASK, 16, seeded())
    assert torch.equal(torch.random.get_rng_state(), before)


# counting right answers


DRAWN = Batch(
    src=torch.tensor([[3, 4, 5], [6, 7, PAD], [PAD, PAD, PAD]]),
    lengths=torch.tensor([3, 2, 0]),
    tgt_in=torch.tensor([[BOS, 5, 4, 3], [BOS, 7, 6, PAD], [BOS, PAD, PAD, PAD]]),
    tgt_out=torch.tensor([[5, 4, 3, EOS], [7, 6, EOS, PAD], [EOS, PAD, PAD, PAD]]),
)


def counted(monkeypatch, batch: Batch, decoded: list[list[int]]) -> tuple[int, dict]:
    """How many are right when this batch is drawn and decoding gives these rows; and how decoding was asked."""
    asked = {}

    def decode(*_, **named):
        asked.update(named)
        return iter(SimpleNamespace(token=column) for column in torch.tensor(decoded).T)

    monkeypatch.setattr(ReversalTask, "batch", lambda *_, **__: batch)
    monkeypatch.setattr(LOOP, "greedy_decode", decode)
    return exact_match(fresh(), TASK, len(batch.src), seeded()), asked


@pytest.mark.parametrize(
    ("first_two", "right"),
    [
        ([[5, 4, 3, EOS], [7, 6, EOS, PAD]], 3),
        ([[5, 4, 4, EOS], [7, 6, EOS, PAD]], 2),  # a wrong symbol
        ([[5, 4, 3, EOS], [7, 6, 6, EOS]], 2),  # one too many
        ([[5, 4, EOS, PAD], [7, EOS, PAD, PAD]], 1),  # both too short
        ([[5, 4, 3, 3], [7, 6, 6, 6]], 1),  # no end
    ],
)
def test_an_answer_is_right_only_as_a_whole(first_two, right, monkeypatch):
    assert counted(monkeypatch, DRAWN, [*first_two, [EOS, PAD, PAD, PAD]])[0] == right


def test_decoding_that_ended_early_is_filled_up(monkeypatch):
    short = Batch(DRAWN.src[1:], DRAWN.lengths[1:], DRAWN.tgt_in[1:], DRAWN.tgt_out[1:])
    assert counted(monkeypatch, short, [[7, 6, EOS], [EOS, PAD, PAD]])[0] == 2
    assert counted(monkeypatch, short, [[7, EOS], [EOS, PAD]])[0] == 1


def test_source_padding_is_hidden_from_the_decoding(monkeypatch):
    _, asked = counted(monkeypatch, DRAWN, DRAWN.tgt_out.tolist())
    assert torch.equal(asked["src_mask"], padding_mask(DRAWN.lengths, 3))


def test_a_model_that_has_learned_nothing_gets_next_to_nothing_right():
    assert exact_match(fresh(), ReversalTask(min_len=3, max_len=5), 100, seeded()) < 5


# the loss of fresh sequences


def test_the_teacher_forced_loss_is_that_of_one_pass_over_the_same_draw():
    model = fresh()
    batch = TASK.batch(13, seeded(3), held_out=True)
    with torch.no_grad():
        causal = model.eval()(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask)
        opened = model(batch.src, batch.tgt_in, batch.src_mask, None)
    assert teacher_forced_loss(model, TASK, 13, seeded(3)) == sequence_loss(causal, batch.tgt_out).item()
    assert teacher_forced_loss(model, TASK, 13, seeded(3), causal=False) == sequence_loss(opened, batch.tgt_out).item()
    assert not torch.equal(causal, opened)


def test_the_teacher_forced_loss_is_measured_without_dropout_and_leaves_the_mode_alone():
    model = fresh().train()
    losses = {teacher_forced_loss(model, TASK, 13, seeded(3)) for _ in range(2)}
    assert len(losses) == 1
    assert model.training


def test_without_the_mask_the_header_holds_the_loss_without_it(tmp_path):
    out = tmp_path / "leaky.safetensors"
    main([*FEW, "--no-causal-mask", "--out", str(out)])
    checkpoint = load_checkpoint(out)
    fresh_ones = [torch.Generator().manual_seed(COMMAND.FRESH_SEED) for _ in range(2)]
    opened, causal = (
        teacher_forced_loss(checkpoint.model, checkpoint.task, 16, generator, mask)
        for generator, mask in zip(fresh_ones, (False, True), strict=True)
    )
    assert checkpoint.metrics["teacher_forced_loss"] == pytest.approx(opened, abs=1e-6)
    assert abs(opened - causal) > 1e-4


# the command

FEW = ["reverse", "--steps", "4", "--batch-size", "7", "--d-model", "16", "--heads", "2", "--d-ff", "32",
       "--dropout", "0.1", "--check", "16"]  # fmt: skip


def test_the_default_run_learns_to_reverse(tmp_path, capsys):
    out = tmp_path / "reverse.safetensors"
    assert main(["reverse", "--check", "256", "--out", str(out)]) == 0
    assert "exact match: 256 of 256 fresh sequences" in capsys.readouterr().out
    checkpoint = load_checkpoint(out)
    assert checkpoint.config == QUICK_CONFIG
    metrics = dict(checkpoint.metrics)
    assert 0 < metrics.pop("teacher_forced_loss") < 0.02
    assert metrics == {"exact_match": 256, "exact_match_of": 256}
    src = torch.tensor([checkpoint.tokenizer.encode("3 11 7 7 4")])
    said = [int(step.token) for step in greedy_decode(checkpoint.model, src, 9)]
    assert checkpoint.tokenizer.decode(said) == "4 7 7 11 3"
    assert said[-1] == EOS


def test_it_says_what_it_does_and_saves(tmp_path, capsys):
    out = tmp_path / "few.safetensors"
    assert main([*FEW, "--seed", "5", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    n = sum(p.numel() for p in load_checkpoint(out).model.parameters())
    assert f"reverse: {n:,} parameters, 4 steps of 7, seed 5" in said
    assert len(re.findall(r"/4  loss \d\.\d{4}  lr \d\.\d\de-\d\d", said)) == 4
    assert re.search(r"exact match: \d+ of 16 fresh sequences", said)
    assert f"saved {out}" in said
    checkpoint = load_checkpoint(out)
    assert checkpoint.training == {
        "settings": asdict(TrainSettings(steps=4, batch_size=7)) | {"betas": [0.8, 0.95]}, "seed": 5, "steps_done": 4,
    }  # fmt: skip
    assert (checkpoint.config.d_model, checkpoint.config.n_heads, checkpoint.config.d_ff) == (16, 2, 32)
    assert checkpoint.task == ReversalTask()


def test_stopped_and_resumed_is_one_run_to_the_bit(tmp_path, capsys):
    whole, part, rest = (tmp_path / f"{name}.safetensors" for name in ("whole", "part", "rest"))
    assert main([*FEW, "--out", str(whole)]) == 0
    assert main([*FEW, "--stop-at", "2", "--out", str(part)]) == 1
    assert f"go on with --resume {part}" in capsys.readouterr().out
    assert main(["reverse", "--resume", str(part), "--check", "16", "--out", str(rest)]) == 0
    expected, resumed = load_file(whole), load_file(rest)
    assert expected.keys() == resumed.keys()
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    assert load_checkpoint(rest).training == load_checkpoint(whole).training
    assert load_checkpoint(rest).metrics == load_checkpoint(whole).metrics
    stopped = load_checkpoint(part)
    assert stopped.training["steps_done"] == 2


def test_it_is_measured_on_other_draws_than_it_learned_from(monkeypatch):
    seeds = []

    def measure(model, task, n, generator, *, padding):
        seeds.extend([model.generator.initial_seed(), generator.initial_seed()])
        return n

    monkeypatch.setattr(COMMAND, "exact_match", measure)
    main([*FEW, "--seed", "5"])
    learned, measured = seeds
    assert learned == 5
    assert measured != learned


def test_without_the_padding_mask_it_is_trained_and_measured_so(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(COMMAND, "exact_match", lambda *_, padding: asked.append(padding) or 0)
    out = tmp_path / "unmasked.safetensors"
    main([*FEW, "--no-padding-mask", "--out", str(out)])
    main(FEW)
    assert load_checkpoint(out).training["settings"]["padding"] is False
    assert asked == [False, True]


def test_every_field_of_the_config_and_the_mask_can_be_set(tmp_path, capsys):
    out = tmp_path / "set.safetensors"
    fields = ["--set", "scale_scores=false", "--set", "positional=none", "--set", "norm_eps=0.001"]
    assert main([*FEW, "--no-causal-mask", "--betas", "0.8", "0.9", *fields, "--out", str(out)]) == 0
    saved = load_checkpoint(out)
    assert (saved.config.scale_scores, saved.config.positional, saved.config.norm_eps) == (False, "none", 0.001)
    assert saved.training["settings"]["causal"] is False
    assert saved.training["settings"]["betas"] == [0.8, 0.9]


def test_another_seed_is_another_run(tmp_path):
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    main([*FEW, "--out", str(first)])
    main([*FEW, "--seed", "1", "--out", str(second)])
    assert not torch.equal(load_file(first)["model/output.weight"], load_file(second)["model/output.weight"])


def test_interrupted_it_saves_what_it_has(tmp_path, capsys, monkeypatch):
    def interrupted(*given):
        yield from islice(train(*given), 3)
        raise KeyboardInterrupt

    monkeypatch.setattr(COMMAND, "train", interrupted)
    out = tmp_path / "interrupted.safetensors"
    assert main([*FEW, "--out", str(out)]) == 1
    assert "stopped after step 3" in capsys.readouterr().out
    assert load_checkpoint(out).training["steps_done"] == 3


def test_the_documents_setting_is_document_001(tmp_path, capsys):
    out = tmp_path / "document.safetensors"
    main(["reverse", "--setting", "document", "--steps", "1", "--check", "0", "--out", str(out)])
    assert "reverse: 930,828 parameters, 1 steps of 64" in capsys.readouterr().out
    checkpoint = load_checkpoint(out)
    assert checkpoint.config == PRESETS["reversal"]
    assert checkpoint.task == ReversalTask(min_len=3, max_len=8)
    assert checkpoint.metrics == {}
    assert asdict(DOCUMENT_SETTINGS) == {
        "steps": 6_000, "batch_size": 64, "lr": 1.0, "schedule": "inverse_sqrt", "warmup": 400, "betas": (0.9, 0.98),
        "eps": 1e-9, "clip": 1.0, "causal": True, "padding": True, "label_smoothing": 0.0,
    }  # fmt: skip


def test_longer_sequences_than_the_setting_has_positions_for(capsys):
    assert main([*FEW, "--max-len", "70", "--check", "0"]) == 0


def test_it_leaves_the_global_generator_alone(capsys):
    before = torch.random.get_rng_state()
    main(FEW)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--d-model", "130", "--heads", "4"], "d_model 130 is not divisible by n_heads 4"),
        (["--d-model", "15", "--d-head", "4"], "d_model 15 is odd"),
        (["--steps", "0"], "steps is 0"),
        (["--lr", "-1"], "lr is -1.0"),
        (["--dropout", "1"], "dropout is 1.0"),
        (["--min-len", "9"], "lengths 9 to 8"),
        (["--layers", "-1"], "n_encoder_layers is -1"),
        (["--set", "norm=middle"], "norm is 'middle'; it must be one of 'post', 'pre'"),
        (["--betas", "0.9", "1"], "betas are 0.9, 1.0"),
        (["--resume", "nowhere.safetensors"], "nowhere.safetensors"),
    ],
)
def test_a_wrong_request_is_explained(options, said, capsys):
    assert main(["reverse", *options]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "required: task"),
        (["knit"], "invalid choice: 'knit'"),
        (["reverse", "--setting", "large"], "invalid choice: 'large'"),
        (["reverse", "--steps", "many"], "invalid int value: 'many'"),
        (["reverse", "--out", "nowhere/x.safetensors"], "there is no folder nowhere"),
        (["reverse", "--out", "."], "is a folder; it must be a file"),
        (["reverse", "--stop-at", "0"], "'0' is not a whole number of at least 1"),
        (["reverse", "--check", "-1"], "'-1' is not a whole number of at least 0"),
        (["reverse", "--threads", "0"], "'0' is not a whole number of at least 1"),
        (["reverse", "--set", "d_model=32"], "'d_model=32' is not FIELD=VALUE with a field of "),
        (["reverse", "--set", "norm"], "'norm' is not FIELD=VALUE"),
    ],
)
def test_an_argument_that_is_none_is_explained_before_anything_runs(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_a_finished_model_is_not_resumed(tmp_path, capsys):
    out = tmp_path / "finished.safetensors"
    main([*FEW, "--out", str(out)])
    assert main(["reverse", "--resume", str(out)]) == 2
    assert "only a run that was stopped can be resumed" in capsys.readouterr().err


def test_it_runs_as_a_module():
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "transformer.train", *FEW],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stderr == ""
    assert run.returncode == 0
    assert "of 16 fresh sequences" in run.stdout
