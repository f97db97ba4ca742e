"""Train with and without the division by sqrt(d_k), side by side: ``python -m transformer.scaling``.

Every run is one that ``python -m transformer.train reverse`` makes too; what is measured goes into one JSON file.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from .attention import attention_scores
from .model import Transformer
from .saturation import head_saturation
from .tasks import ReversalTask
from .trace import AttentionSite, Trace
from .train import TrainSettings, exact_match, train
from .train.__main__ import FRESH_SEED, QUICK_CONFIG

RESULTS = Path(__file__).resolve().parent.parent / "assets" / "measured" / "scaling.json"
SIZES = ((64, 4), (64, 2), (64, 1), (128, 1))  # d_model and heads: d_k 16, 32, 64 and 128
INITS, SEEDS = ("xavier", "default"), (0, 1, 2)
SETTINGS = TrainSettings(steps=300, batch_size=64, lr=5e-3, betas=(0.9, 0.98))
# From 3 symbols up: of length 0 and 1, which need no looking, hardly a model gets one wrong.
TASK = ReversalTask(min_len=3)
CHECKED, AVERAGED = 2048, 10  # fresh sequences decoded; steps whose losses are averaged into one point


def measure(d_model: int, n_heads: int, init: str, scaled: bool, seed: int) -> dict[str, object]:
    """Train one model; its losses, its exact match, and how saturated its cross-attention was before and after."""
    config = replace(QUICK_CONFIG, d_model=d_model, n_heads=n_heads, d_ff=4 * d_model, init=init, scale_scores=scaled)
    model = Transformer(config, torch.Generator().manual_seed(seed))
    before = _cross(model)
    losses = torch.tensor([step.loss for step in train(model, TASK, SETTINGS)])
    model.eval()
    return {
        "d_k": config.head_width,
        "d_model": d_model,
        "heads": n_heads,
        "init": init,
        "scaled": scaled,
        "seed": seed,
        "exact": exact_match(model, TASK, CHECKED, torch.Generator().manual_seed(FRESH_SEED + seed)),
        "loss": [round(float(loss), 4) for loss in losses.view(-1, AVERAGED).mean(dim=1)],
        "before": before,
        "after": _cross(model),
        "command": command(d_model, n_heads, init, scaled, seed),
    }


def command(d_model: int, n_heads: int, init: str, scaled: bool, seed: int) -> str:
    """The same run by the command line."""
    return (
        f"python -m transformer.train reverse --d-model {d_model} --heads {n_heads} --steps {SETTINGS.steps} "
        f"--batch-size {SETTINGS.batch_size} --lr {SETTINGS.lr:g} --betas {' '.join(map(str, SETTINGS.betas))} "
        f"--min-len {TASK.min_len} --seed {seed} "
        f"--check {CHECKED} --set init={init} --set scale_scores={str(scaled).lower()}"
    )


@torch.no_grad()
def _cross(model: Transformer) -> dict[str, float]:
    """Means over the heads of the first cross-attention, on 256 fresh sequences."""
    batch = TASK.batch(256, torch.Generator().manual_seed(FRESH_SEED))
    trace = Trace()
    model(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask, trace)
    record = trace.attention[AttentionSite("decoder", 0, "cross")]
    real = (batch.tgt_out != TASK.tokenizer.pad_id)[:, None, :, None]  # (B, 1, T, 1)
    mask = batch.src_mask & real
    rows = head_saturation(record.scores, mask)
    dots = head_saturation(attention_scores(record.q, record.k, scaled=False), mask)
    return {
        "dots_variance": round(float(dots["variance"].mean()), 4),
        **{name: round(float(rows[name].mean()), 4) for name in ("gap", "entropy", "largest", "trace")},
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Train all, print a line each, write the file. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m transformer.scaling", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=RESULTS, metavar="FILE", help="default assets/measured/scaling.json"
    )
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    runs = []
    for d_model, n_heads in SIZES:
        for init in INITS:
            for seed in SEEDS:
                for scaled in (True, False):
                    run = measure(d_model, n_heads, init, scaled, seed)
                    runs.append(run)
                    how = "divided" if scaled else "not divided"
                    said = f"d_k {run['d_k']:>3}  {init:<7}  seed {seed}  {how:<11}  {run['exact']:>5,} of {CHECKED:,}"
                    print(said, flush=True)
    about = {
        "task": {"name": TASK.name, **asdict(TASK)},
        "settings": asdict(SETTINGS),
        "config": asdict(QUICK_CONFIG),
        "exact_of": CHECKED,
        "averaged_steps": AVERAGED,
    }
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(run) for run in runs)
    args.out.write_text(f'{{"about": {json.dumps(about)},\n"runs": [\n{lines}\n]}}\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
