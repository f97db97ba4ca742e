import math
import os
import signal
import subprocess
import sys
import time
from array import array
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.transformer.small import seeded
from transformer import (
    BOS,
    EOS,
    PAD,
    AttentionSite,
    ReversalTask,
    Trace,
    TrainSettings,
    TrainStep,
    Transformer,
    TransformerConfig,
    answer_share,
    causal_mask,
    load_checkpoint,
    sequence_loss,
)
from transformer.train import worker as worker_module
from transformer.train.loss import smoothed_loss
from transformer.train.plan import COMMAND, KEPT, MODEL, SNAPSHOT, Plan, put, read_state
from transformer.train.record import Rows, frame_layout, frame_rows, frame_width, parts, step_rows
from transformer.train.worker import Worker, main

CONFIG = TransformerConfig(
    src_vocab_size=12, tgt_vocab_size=12, d_model=6, n_heads=3, d_ff=10, n_encoder_layers=2, n_decoder_layers=1,
    max_len=64, dropout=0.1, norm="pre",
)  # fmt: skip
SRC, TARGET = [3, 11, 7, 4, 5], [5, 4, 7, 11, 3]


def plan(**settings) -> Plan:
    made = TrainSettings(**{"steps": 23, "batch_size": 7, "lr": 1e-2, "warmup": 5, **settings})
    return Plan("reverse", CONFIG, made, 3, SRC, TARGET)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a plan in it; a finished model is measured on few sequences."""
    monkeypatch.setattr(worker_module, "CHECKED", 16)
    plan().write(tmp_path)
    return tmp_path


def run(folder: Path) -> None:
    Worker(folder).run()


def recorded(folder: Path) -> tuple[list[tuple[float, ...]], bytes]:
    """Rows of steps without their seconds, and all frames."""
    numbers = array("f", step_rows(folder).read())
    return [tuple(numbers[i : i + 4]) for i in range(0, len(numbers), 5)], frame_rows(folder, Plan.read(folder)).read()


def other(folder: Path, name: str, made: Plan | None = None) -> Path:
    made = made or Plan.read(folder)
    sibling = folder / name
    sibling.mkdir()
    made.write(sibling)
    return sibling


def assert_the_same(one: Path, two: Path) -> None:
    assert recorded(one) == recorded(two)
    first, second = load_file(one / MODEL), load_file(two / MODEL)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert read_state(one) == read_state(two)


# from beginning to end


def test_a_plan_is_what_was_written(folder):
    assert Plan.read(folder) == plan()


def test_it_trains_records_and_measures(folder):
    run(folder)
    steps, frames = recorded(folder)
    assert [row[0] for row in steps] == list(range(1, 24))
    assert len(frames) == 4 * 24 * frame_width(plan())
    checkpoint = load_checkpoint(folder / MODEL)
    state = read_state(folder)
    assert (state["name"], state["step"]) == ("finished", 23)
    assert (
        state["metrics"]
        == checkpoint.metrics
        == {"exact_match": checkpoint.metrics["exact_match"], "exact_match_of": 16}
    )
    assert checkpoint.training["steps_done"] == 23
    assert not (folder / SNAPSHOT).exists()


def test_what_is_recorded_changes_nothing(folder):
    """The same steps as a bare loop with the same seed, dropout included."""
    from transformer import train

    run(folder)
    model = Transformer(CONFIG, torch.Generator().manual_seed(3))
    bare = [(s.step, s.loss, s.learning_rate, s.grad_norm) for s in train(model, ReversalTask(), plan().settings)]
    assert recorded(folder)[0] == [tuple(array("f", row)) for row in bare]
    kept = load_file(folder / MODEL)
    assert all(torch.equal(kept[f"model/{name}"], p) for name, p in model.named_parameters())


@pytest.mark.parametrize("step", [0, 10, 20])
def test_frames_are_a_trace_of_the_kept_weights(folder, step):
    run(folder)
    model = load_checkpoint(folder / KEPT / f"{step}.safetensors").model
    trace = Trace()
    with torch.no_grad():
        model(torch.tensor([SRC]), torch.tensor([[BOS, *TARGET]]), None, causal_mask(6), trace)
    frame = parted(folder, step)
    sites = {"encoder": ("encoder", "self", 2), "decoder": ("decoder", "self", 1), "cross": ("decoder", "cross", 1)}
    for kind, (stack, which, layers) in sites.items():
        weights = torch.cat([trace.attention[AttentionSite(stack, i, which)].weights for i in range(layers)])
        assert torch.equal(frame[kind], weights)
        torch.testing.assert_close(frame[f"focus_{kind}"], weights.max(dim=-1).values.mean(dim=-1))
    assert frame["step"].item() == step


def parted(folder: Path, index: int) -> dict[str, torch.Tensor]:
    made = Plan.read(folder)
    row = torch.tensor(array("f", frame_rows(folder, made).read(index))[: frame_width(made)])
    layout = frame_layout(made)
    sizes = [math.prod(shape) for shape in layout.values()]
    return {name: part.view(shape) for (name, shape), part in zip(layout.items(), row.split(sizes), strict=True)}


def test_gradients_of_the_parts_make_up_the_whole(folder):
    run(folder)
    assert len(parts(CONFIG)) == 6
    norms = [row[3] for row in recorded(folder)[0]]
    assert any(norm > 1 for norm in norms)  # so clipping happened, and is undone
    assert parted(folder, 0)["gradients"].tolist() == [0] * 6
    for step in (1, 7, 23):
        assert parted(folder, step)["gradients"].norm().item() == pytest.approx(norms[step - 1], rel=1e-4)


def test_every_parameter_belongs_to_one_part():
    for name, _ in Transformer(CONFIG, seeded()).named_parameters():
        assert sum(name.startswith(starts) for starts in parts(CONFIG).values()) == 1


# going on


class Killed(Exception):
    pass


@pytest.mark.parametrize(("snapshot_at", "killed_at"), [(9, 9), (9, 14), (22, 23), (None, 8)])
def test_killed_and_taken_up_is_one_run_to_the_bit(folder, monkeypatch, snapshot_at, killed_at):
    whole = other(folder, "whole")
    run(whole)

    class Mortal(Worker):
        def record(self, step):
            super().record(step)
            if self.state.step == snapshot_at:
                self.snapshot()
            if self.state.step == killed_at:
                with self.frames.path.open("ab") as torn:
                    torn.write(b"123")
                raise Killed

    with pytest.raises(Killed):
        Mortal(folder).run()
    assert read_state(folder)["name"] == "running"
    run(folder)
    assert_the_same(whole, folder)


def test_a_real_kill_is_survived(tmp_path):
    """SIGKILL to the process itself, at whatever step that is; it snapshots after every step."""
    killed, whole = other(tmp_path, "killed", plan(steps=40)), other(tmp_path, "whole", plan(steps=40))
    code = "import sys, pathlib\nfrom transformer.train import worker\nworker.SNAPSHOT_EVERY = 0\nworker.CHECKED = 16\n"
    command = [sys.executable, "-c", code + "worker.main(pathlib.Path(sys.argv[1]))"]
    root = Path(__file__).parents[2]
    process = subprocess.Popen([*command, str(killed)], cwd=root)
    while step_rows(killed).count() < 8 and process.poll() is None:
        time.sleep(0.01)  # looks again; it is over with eight rows or with the process
    process.kill()
    assert process.wait() == -signal.SIGKILL  # it was not done yet
    assert 0 < load_checkpoint(killed / SNAPSHOT).training["steps_done"] < 40
    for folder in (killed, whole):
        subprocess.run([*command, str(folder)], cwd=root, check=True)
    assert_the_same(killed, whole)


def test_paused_and_resumed_is_one_run(folder):
    whole = other(folder, "whole")
    run(whole)
    put(folder / COMMAND, b"pause")
    run(folder)
    assert (read_state(folder)["name"], read_state(folder)["step"]) == ("paused", 1)
    assert load_checkpoint(folder / SNAPSHOT).training["steps_done"] == 1
    (folder / COMMAND).unlink()
    run(folder)
    assert_the_same(whole, folder)


def test_stopped_it_keeps_the_model_as_it_is(folder):
    plan(steps=1000).write(folder)  # a frame every 7 steps, none at step 1
    put(folder / COMMAND, b"stop")
    run(folder)
    assert (read_state(folder)["name"], read_state(folder)["step"]) == ("stopped", 1)
    assert load_checkpoint(folder / MODEL).training["steps_done"] == 1
    assert frame_rows(folder, Plan.read(folder)).count() == 2  # the last frame shows that model
    assert parted(folder, 1)["step"].item() == 1


def test_it_ends_with_the_process_that_started_it(folder, monkeypatch):
    parents = iter([5, 5, 5, 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    run(folder)
    assert load_checkpoint(folder / SNAPSHOT).training["steps_done"] == 3
    assert read_state(folder)["name"] == "running"


def test_there_is_a_limit_to_its_time(folder, monkeypatch):
    monkeypatch.setattr(worker_module, "MOST_SECONDS", 0.0)
    run(folder)
    assert read_state(folder)["name"] == "stopped"
    assert "0 seconds of one core are the most" in read_state(folder)["said"]


def test_a_loss_that_is_no_number_is_said(folder, monkeypatch):
    monkeypatch.setattr(worker_module, "train", lambda *_: iter([TrainStep(1, math.nan, 0.1, math.nan)]))
    run(folder)
    assert read_state(folder)["name"] == "failed"
    assert "the loss is no number any more" in read_state(folder)["said"]
    assert not (folder / MODEL).exists()


def test_what_another_process_has_finished_is_not_done_again(folder, monkeypatch):
    monkeypatch.setattr(os, "nice", lambda by: by)
    main(folder)
    done = recorded(folder)
    (folder / SNAPSHOT).unlink(missing_ok=True)
    monkeypatch.setattr(worker_module, "Worker", None)
    main(folder)
    assert recorded(folder) == done


# rows, scores, smoothing


def test_rows_are_read_from_any_and_cut_after_any(tmp_path):
    rows = Rows(tmp_path / "rows", 2)
    rows.cut(5)
    assert (rows.count(), rows.read()) == (0, b"")
    for step in (1, 2, 4):
        rows.append(torch.tensor([float(step), 10.0 * step]))
    assert array("f", rows.read(1)).tolist() == [2, 20, 4, 40]
    assert rows.read(3) == rows.read(9) == b""
    with rows.path.open("ab") as file:
        file.write(b"\0\0\0")
    assert rows.count() == 3
    rows.cut(3)
    assert array("f", rows.read()).tolist() == [1, 10, 2, 20]
    assert rows.path.stat().st_size == 16


def test_answer_share_by_hand():
    src, tgt_out = torch.tensor([3, 4, 3]), torch.tensor([4, 3, EOS])
    weights = torch.tensor([[0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.0, 1.0, 0.0]])
    # 4 stands at 1: 0.5. 3 stands at 0 and 2: 0.1 + 0.3. EOS stands nowhere and does not count.
    assert answer_share(torch.stack([weights, weights.flip(1)]), src, tgt_out).tolist() == pytest.approx([0.45, 0.45])
    assert answer_share(weights, torch.tensor([5, 5, 5]), tgt_out).item() == 0


def test_smoothing_leaves_padding_out():
    logits = torch.randn(2, 3, 5, generator=seeded())
    target = torch.tensor([[3, EOS, PAD], [4, 3, EOS]])
    real = target != PAD
    expected = smoothed_loss(logits[real], target[real], 0.2)
    assert sequence_loss(logits, target, 0.2).item() == expected.item()
    assert sequence_loss(logits, target, 0.0).item() == sequence_loss(logits, target).item()
    assert sequence_loss(logits, torch.full_like(target, PAD), 0.2).item() == 0


def test_smoothed_training_stays_less_certain(folder):
    run(folder)
    smoothed = other(folder, "smoothed", replace(plan(), settings=replace(plan().settings, label_smoothing=0.3)))
    run(smoothed)
    # At the first step the weights are the same; later the loss cannot fall below the wanted distribution's entropy.
    share = 0.3 / 11
    least = -((0.7 + share) * math.log(0.7 + share) + 10 * share * math.log(share))
    assert all(row[1] > least for row in recorded(smoothed)[0])
    assert recorded(smoothed)[0][0][1] != recorded(folder)[0][0][1]


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_that_cannot_be_is_refused(share):
    with pytest.raises(ValueError, match="label_smoothing is"):
        TrainSettings(label_smoothing=share)


def test_a_plan_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="there is no task 'knit'"):
        replace(plan(), task="knit")
    with pytest.raises(ValueError, match="seed is -1"):
        replace(plan(), seed=-1)
