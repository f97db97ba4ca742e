import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from tests.transformer.translations import sentences, task, tsv
from transformer import BOS, EOS, PAD, Batch, TransformerConfig, load_checkpoint
from transformer.translation.__main__ import main
from transformer.translation.batches import digest, encode_pairs
from transformer.translation.run import batch_loss, mean_loss, train_on_pairs
from transformer.translation.settings import TranslationSettings
from transformer.translation.snapshot import Progress, Run, cooled_down, load_snapshot, save_snapshot

TASK = task()
PAIRS = encode_pairs(sentences(), TASK.tokenizer, 64)
CONFIG = TransformerConfig(
    src_vocab_size=TASK.tokenizer.vocab_size, tgt_vocab_size=TASK.tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=24,
    n_encoder_layers=1, n_decoder_layers=1, max_len=64, dropout=0.1, norm="pre", tie_embeddings=True,
)  # fmt: skip
SETTINGS = TranslationSettings(steps=24, cooldown=6, warmup=4, lr=1e-2, batch_tokens=500, seed=3)  # 8 batches an epoch


def new(**changes) -> Run:
    return Run.new(CONFIG, TASK, replace(SETTINGS, **changes), digest(PAIRS), "by hand")


def trained(run: Run, steps: int | None = None) -> list[float]:
    """The losses of so many steps, or of all that are left."""
    steps_done = train_on_pairs(run.model, PAIRS, run.settings, run.state, run.progress)
    return [step.loss for step in islice(steps_done, steps)]


def same(one: Run, other: Run) -> bool:
    """Whether weights, Adam's moments, the generator and the place in the data are equal."""
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    states = one.state.tensors(), other.state.tensors()
    return (
        all(torch.equal(a, b) for a, b in pairs)
        and states[0].keys() == states[1].keys()
        and all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
        and without_minutes(one.progress) == without_minutes(other.progress)
    )


def without_minutes(progress: Progress) -> Progress:
    return replace(progress, minutes=0, log=[{**line, "minutes": 0} for line in progress.log])


# the learning rate


@pytest.mark.parametrize(
    ("step", "rate"), [(1, 0.25), (4, 1.0), (5, 1.0), (18, 1.0), (19, 6 / 7), (21, 4 / 7), (24, 1 / 7)]
)
def test_the_rate_rises_stays_and_falls(step, rate):
    assert SETTINGS.learning_rate(step) == pytest.approx(1e-2 * rate)


def test_without_a_cooldown_the_rate_stays_to_the_end():
    settings = replace(SETTINGS, cooldown=0)
    assert [settings.learning_rate(step) for step in (4, 23, 24)] == [1e-2] * 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"cooldown": 25}, "cooldown is 25; it must lie between 0 and steps = 24"),
        ({"cooldown": -1}, "cooldown is -1"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"every": 0}, "every is 0"),
        ({"max_words": 0}, "max_words is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"lr": 0.0}, "lr is 0.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        replace(SETTINGS, **changes)


# the loss of a batch


def test_padding_changes_nothing():
    model = new().model.eval()
    rows = [[30, 31], [40, 41, 42]], [[50], [60, 61, 62]]
    one_by_one = [Batch.of(*(x for row in pair for x in (torch.tensor([row]), torch.tensor([len(row)])))) for pair in
                  zip(*rows, strict=True)]  # fmt: skip
    both = Batch.of(
        torch.tensor([[30, 31, PAD], [40, 41, 42]]), torch.tensor([2, 3]),
        torch.tensor([[50, PAD, PAD], [60, 61, 62]]), torch.tensor([1, 3]),
    )  # fmt: skip
    assert both.tgt_in.tolist() == [[BOS, 50, PAD, PAD], [BOS, 60, 61, 62]]
    assert both.tgt_out.tolist() == [[50, EOS, PAD, PAD], [60, 61, 62, EOS]]
    losses = [batch_loss(model, batch, 0.1).item() for batch in one_by_one]
    assert batch_loss(model, both, 0.1).item() == pytest.approx((2 * losses[0] + 4 * losses[1]) / 6, rel=1e-5)


def test_the_loss_of_held_out_pairs_is_a_mean_over_their_tokens_however_they_are_cut():
    model = new().model
    assert mean_loss(model, PAIRS, 100) == pytest.approx(mean_loss(model, PAIRS, 10_000), rel=1e-5)
    assert mean_loss(model, PAIRS, 100) == mean_loss(model, PAIRS, 100)


def test_sixteen_bits_are_nearly_as_good():
    losses = [trained(new(bfloat16=choice), 3) for choice in (True, False)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


# the loop


def test_a_run_learns_and_can_be_repeated():
    one, other = new(steps=60), new(steps=60)
    losses = trained(one)
    assert losses == trained(other)
    assert same(one, other)
    assert losses[-1] < losses[0] / 2
    assert one.state.step == 60
    assert trained(one) == []


def test_seeds_differ():
    assert trained(new(), 2) != trained(new(seed=4), 2)


def test_what_it_has_seen_is_counted():
    run = new()
    losses = trained(run, 11)
    assert (run.progress.epoch, run.progress.batch) == (1, 3)
    assert run.progress.loss_sum / run.progress.losses == pytest.approx(sum(losses) / 11)
    assert 0 < run.progress.minutes < 1


@pytest.mark.parametrize(
    ("stop", "bfloat16"), [(0, False), (1, False), (7, False), (8, False), (9, True), (20, False), (23, True)]
)
def test_stopped_and_resumed_is_one_run_to_the_bit(stop, bfloat16, tmp_path):
    whole, broken = new(bfloat16=bfloat16), new(bfloat16=bfloat16)
    losses = trained(whole)
    assert trained(broken, stop) == losses[:stop]
    resumed = load_snapshot(save_snapshot(broken, tmp_path))
    assert same(resumed, broken)
    assert trained(resumed) == losses[stop:]
    assert same(resumed, whole)


def test_a_snapshot_holds_everything(tmp_path):
    run = new()
    trained(run, 5)
    run.progress.log.append({"step": 5, "bleu": 1.5})
    path = save_snapshot(run, tmp_path)
    assert path == tmp_path / "step-000005.safetensors"
    found = load_snapshot(path)
    assert (found.settings, found.task, found.pairs) == (run.settings, TASK, digest(PAIRS))
    assert (found.progress, found.attribution) == (run.progress, "by hand")
    assert (tmp_path / "log.csv").read_text() == "step,bleu\n5,1.5\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log.csv", "step-000005.safetensors"]


# cooling down


def test_a_cooldown_starts_from_any_snapshot():
    run = new(steps=1_000, cooldown=0)
    trained(run, 10)
    cooled = cooled_down(run, 4)
    assert [cooled.settings.learning_rate(step) for step in (10, 11, 14)] == pytest.approx([1e-2, 0.8e-2, 0.2e-2])
    assert len(trained(cooled)) == 4
    assert cooled.state.step == 14


def test_a_cooldown_from_a_snapshot_is_the_one_that_was_planned(tmp_path):
    planned, late = new(steps=16, cooldown=6), new(steps=1_000, cooldown=0)
    losses = trained(planned)
    trained(late, 10)
    late = cooled_down(load_snapshot(save_snapshot(late, tmp_path)), 6)
    assert trained(late) == losses[10:]
    assert same(planned, late)


def test_what_is_cooling_cannot_be_cooled_from_above_again():
    run = new()
    trained(run, 18)
    assert cooled_down(run, 2).settings.steps == 20
    trained(run, 1)
    with pytest.raises(ValueError, match="a cooldown starts from a snapshot of step 18 or before"):
        cooled_down(run, 2)


def test_a_finished_run_can_be_warmed_up_and_cooled_down_again():
    run = new()
    trained(run)
    again = cooled_down(run, 4, lr=4e-3)
    assert [again.settings.learning_rate(step) for step in (25, 28)] == pytest.approx([3.2e-3, 0.8e-3])
    assert len(trained(again)) == 4


# the command

SMALL = ("--d-model", "16", "--heads", "2", "--layers", "1", "--vocab-size", "500", "--batch-tokens", "500",
         "--warmup", "4", "--every", "10")  # fmt: skip


@pytest.fixture
def pairs(tmp_path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text(tsv())
    return path


def command(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def log(folder: Path) -> list[list[str]]:
    """The rows of log.csv, without the minutes."""
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    return [[value for name, value in zip(rows[0], row, strict=True) if name != "minutes"] for row in rows]


def same_model(one: Path, other: Path) -> bool:
    a, b = load_checkpoint(one), load_checkpoint(other)
    return a.metrics == b.metrics and all(
        torch.equal(p, q) for p, q in zip(a.model.parameters(), b.model.parameters(), strict=True)
    )


def test_it_trains_measures_and_saves(pairs, tmp_path, capsys):
    out = tmp_path / "run"
    options = ("--steps", 25, "--cooldown", 10, "--attribution", "Who wrote it")
    assert command("train", pairs, "--out", out, *SMALL, *options) == 0
    said = capsys.readouterr().out
    assert "step 25 " in said
    assert "short               BLEU" in said
    assert [row[0] for row in log(out)] == ["step", "10", "20", "25"]
    assert sorted(path.name for path in out.iterdir()) == [
        "en-fr-d16-h2.safetensors", "log.csv", "step-000010.safetensors", "step-000020.safetensors",
        "step-000025.safetensors",
    ]  # fmt: skip
    made = load_checkpoint(out / "en-fr-d16-h2.safetensors")
    assert made.training["attribution"] == "Who wrote it"
    assert made.training["settings"]["cooldown"] == 10
    assert made.training["progress"]["log"][-1]["step"] == 25
    assert made.metrics["short"].keys() == {"bleu", "bleu_one_reference", "chrf", "exact_match", "exact_match_of"}
    assert made.task.max_source < made.config.max_len
    assert made.tokenizer.vocab_size == made.config.src_vocab_size

    assert command("evaluate", out / "en-fr-d16-h2.safetensors", pairs, "--show", 2) == 0
    again = capsys.readouterr().out
    measured = [line for line in said.splitlines() if "BLEU" in line]
    assert again.splitlines()[: len(measured)] == measured
    assert again.count("\n\n") == 2


def test_stopped_and_resumed_the_command_gives_the_same_model_and_log(pairs, tmp_path, capsys):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert command("train", pairs, "--out", whole, *SMALL, "--steps", 24, "--cooldown", 9) == 0
    assert command("train", pairs, "--out", broken, *SMALL, "--steps", 24, "--cooldown", 9, "--stop-at", 13) == 1
    stopped = broken / "step-000013.safetensors"
    assert f"go on with --resume {stopped}" in capsys.readouterr().out
    assert command("train", pairs, "--out", broken, "--resume", stopped) == 0
    assert same_model(whole / "en-fr-d16-h2.safetensors", broken / "en-fr-d16-h2.safetensors")
    assert log(whole) == log(broken)


def test_a_cooldown_can_be_chosen_later(pairs, tmp_path):
    out = tmp_path / "run"
    endless = ("--steps", 1_000_000, "--cooldown", 0, "--stop-at", 10)
    assert command("train", pairs, "--out", out, *SMALL, *endless) == 1
    cooled = tmp_path / "cooled"
    snapshot = out / "step-000010.safetensors"
    assert command("train", pairs, "--out", cooled, "--resume", snapshot, "--cooldown", 5) == 0
    assert load_checkpoint(cooled / "en-fr-d16-h2.safetensors").training["steps_done"] == 15


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_nothing_is_lost_when_it_is_ended_from_outside(how, pairs, tmp_path):
    out = tmp_path / "run"
    options = [*SMALL, "--steps", "100000", "--cooldown", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", "transformer.translation", "train", str(pairs), "--out", str(out), *options],
        stdout=subprocess.DEVNULL, env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
    ) as process:  # fmt: skip
        while not (out / "step-000020.safetensors").exists() and process.poll() is None:
            time.sleep(0.05)  # looks again; it is over with the file or with the process
        process.send_signal(how)
        process.wait(30)
    latest = max(out.glob("step-*.safetensors"))
    steps = int(latest.stem.removeprefix("step-"))
    assert steps >= 20
    if how != signal.SIGKILL:
        assert process.returncode == 1
    whole = tmp_path / "whole"
    assert command("train", pairs, "--out", whole, *options, "--stop-at", steps) == 1
    assert same(load_snapshot(whole / latest.name), load_snapshot(latest))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--steps", 5), "cooldown is 7500; it must lie between 0 and steps = 5"),
        (("--heads", 5), "d_model 192 is not divisible by n_heads 5"),
        (("--vocab-size", 200), "a vocabulary of 200 subwords is too small"),
        (("--max-words", 2), "is too small: of its sentences of 3 to 8 words none falls to the validation side"),
        (("--batch-tokens", 3, "--every", 1), "does not fit into batches of 3 tokens"),
    ],
)
def test_a_wrong_request_is_explained(options, said, pairs, tmp_path, capsys):
    assert command("train", pairs, "--out", tmp_path / "run", *options) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_tab_separated_is_explained(tmp_path, capsys):
    path = tmp_path / "pairs.csv"
    path.write_text("Go.\tVa !\nHi.,Salut !\n")
    assert command("train", path, "--out", tmp_path / "run") == 2
    assert f"line 2 of {path} is not a pair: it must be an English sentence, a tab" in capsys.readouterr().err


def test_what_cannot_be_resumed_is_explained(pairs, tmp_path, capsys):
    out = tmp_path / "run"
    command("train", pairs, "--out", out, *SMALL, "--steps", 3, "--cooldown", 1)
    snapshot, finished = out / "step-000003.safetensors", out / "en-fr-d16-h2.safetensors"
    other = tmp_path / "other.tsv"
    other.write_text(tsv().replace("bread", "milk"))
    for arguments, said in [
        ((pairs, "--resume", finished), "holds a finished model"),
        ((pairs, "--resume", snapshot, "--lr", 0.1), "--lr is that of"),
        ((pairs, "--resume", snapshot, "--batch-tokens", 9), "--batch-tokens is that of"),
        ((pairs, "--resume", snapshot, "--cooldown", 9), "the learning rate is falling already"),
        ((pairs, "--resume", snapshot, "--cooldown", 9, "--lr", -1), "lr is -1.0"),
        ((other, "--resume", snapshot), "does not hold the pairs that"),
    ]:
        capsys.readouterr()
        assert command("train", *arguments, "--out", tmp_path / "again") == 2
        assert said in capsys.readouterr().err


def test_only_a_translator_is_evaluated(pairs, capsys):
    shipped = Path(__file__).parents[2] / "assets" / "checkpoints" / "reverse-d16-h1.safetensors"
    assert command("evaluate", shipped, pairs) == 2
    assert "was trained on the task 'reverse', not on translation" in capsys.readouterr().err


def test_settings_survive_json():
    assert TranslationSettings(**json.loads(json.dumps(asdict(SETTINGS))) | {"betas": SETTINGS.betas}) == SETTINGS


def test_training_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    trained(new(), 2)
    assert torch.equal(torch.random.get_rng_state(), before)
