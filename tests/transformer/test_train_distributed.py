"""Two processes train as one would."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from transformer import Batch, ReversalTask, TrainSettings, load_checkpoint
from transformer.train.__main__ import main
from transformer.train.distributed import Share

ROOT = Path(__file__).parents[2]
RUN = ["reverse", "--d-model", "16", "--heads", "2", "--steps", "30", "--batch-size", "6", "--check", "32"]


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}"]
    command = [sys.executable, *launcher, "-m", "transformer.train", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_two_processes_make_the_model_that_one_makes(tmp_path, capsys):
    one, two = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    assert main([*RUN, "--out", str(one)]) == 0
    run = torchrun(*RUN, "--out", str(two))
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("saved ") == 1  # one process speaks for both
    alone, shared = load_checkpoint(one), load_checkpoint(two)
    assert shared.training == alone.training
    for (name, p), q in zip(alone.model.named_parameters(), shared.model.parameters(), strict=True):
        if not name.endswith("w_k.bias"):  # softmax cancels it: its gradient is rounding alone, which Adam blows up
            torch.testing.assert_close(q, p, rtol=0, atol=1e-4)
    batch = ReversalTask().batch(11, torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = [m(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask) for m in (alone.model, shared.model)]
    torch.testing.assert_close(logits[1], logits[0], rtol=0, atol=1e-4)


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path):
    run = torchrun(*RUN, "--batch-size", "7")
    assert run.returncode != 0
    assert "a batch of 7 cannot be shared evenly by 2 processes" in run.stderr


@pytest.mark.parametrize("world", [1, 2, 3])
def test_shares_are_disjoint_and_together_the_batch(world):
    batch = ReversalTask().batch(6, torch.Generator().manual_seed(0))
    shares = [Share(rank, world).rows(batch) for rank in range(world)]
    for name in ("src", "lengths", "tgt_in", "tgt_out"):
        mixed = torch.stack([getattr(share, name) for share in shares], dim=1).flatten(0, 1)
        assert torch.equal(mixed, getattr(batch, name))
    assert all(isinstance(share, Batch) and share.src.shape[0] == 6 // world for share in shares)


def test_alone_the_share_is_everything():
    assert Share.here(TrainSettings().batch_size) == Share(0, 1)
