"""How large gradients are in each layer, post-LN against pre-LN: ``python -m transformer.gradient_norms`` measures it.

Xiong et al. 2020 (On Layer Normalization in the Transformer Architecture) bound the gradient of the last layer's W_2 at
initialisation: with post-LN by a number free of the depth L, with pre-LN by one that falls like 1/sqrt(L). What is
measured here is the gradient of the mean loss over one batch of the reversal task, in the model with N + N layers.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .config import Norm
from .model import Transformer
from .tasks import ReversalTask
from .tasks.base import Batch
from .train import TrainSettings, sequence_loss, train
from .train.__main__ import QUICK_CONFIG
from .train.options import at_least

RESULTS = Path(__file__).resolve().parent.parent / "assets" / "gradient_norms.json"
NORMS: tuple[Norm, ...] = ("post", "pre")
MOST = 24
BATCH = 16
# The trained pair: its layers in each stack, and after how many steps gradients are taken.
TRAINED, STEPS = 12, (0, 5, 10, 20, 30, 40, 50, 60, 80, 100, 125, 150)


def untrained(norm: Norm, n_layers: int, seed: int) -> Transformer:
    """The quick model with n + n layers and every matrix Xavier, as the theory has it, in the state it starts from."""
    config = replace(QUICK_CONFIG, norm=norm, n_encoder_layers=n_layers, n_decoder_layers=n_layers, init="xavier")
    return Transformer(config, torch.Generator().manual_seed(seed))


def batch_of(seed: int) -> Batch:
    """The sequences over which the loss is taken, the same for every model of a seed."""
    return ReversalTask().batch(BATCH, torch.Generator().manual_seed(seed))


def gradient_norms(model: Transformer, batch: Batch) -> dict[str, Tensor]:
    """Norms of the gradient of the mean loss over one batch, layer by layer, the model left as it was.

    "encoder.w_2" and "decoder.w_2" (N,): of the matrix W_2 of each layer's feed-forward network; "encoder.all" and
    "decoder.all" (N,): of all of a layer's parameters together. Layers count from the input.
    """
    loss = sequence_loss(model(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask), batch.tgt_out)
    parameters = list(model.parameters())
    gradients = dict(zip(parameters, torch.autograd.grad(loss, parameters), strict=True))

    def norm(of: list[nn.Parameter]) -> Tensor:
        return torch.stack([gradients[p].norm() for p in of]).norm()

    found = {}
    for stack in ("encoder", "decoder"):
        layers = getattr(model, stack)
        found[f"{stack}.w_2"] = torch.stack([norm([layer.ffn.w_2.weight]) for layer in layers])
        found[f"{stack}.all"] = torch.stack([norm(list(layer.parameters())) for layer in layers])
    return found


def at_start(n_layers: int, seed: int) -> dict[Norm, dict[str, Tensor]]:
    """Both norms' gradients at initialisation, with the same weights and the same batch."""
    return {norm: gradient_norms(untrained(norm, n_layers, seed), batch_of(seed)) for norm in NORMS}


def in_training(
    norm: Norm, seed: int, n_layers: int = TRAINED, steps: Sequence[int] = STEPS
) -> tuple[list[dict[str, Tensor]], list[float]]:
    """Gradients after each of so many steps of the ordinary training, warmup included, and every step's loss."""
    model, batch = untrained(norm, n_layers, seed), batch_of(seed)
    found, losses = [gradient_norms(model, batch)] if 0 in steps else [], []
    for step in train(model, ReversalTask(), TrainSettings()):
        losses.append(step.loss)
        if step.step in steps:
            found.append(gradient_norms(model, batch))
        if step.step == max(steps):
            break
    return found, losses


def slope(n: Sequence[float], norms: Sequence[float]) -> float:
    """The exponent p of norms ~ n^p: a straight line through the logarithms, by least squares."""
    x, y = [math.log(value) for value in n], [math.log(value) for value in norms]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return covariance / sum((a - mean_x) ** 2 for a in x)


def sweep(seed: int, most: int) -> dict[str, dict[str, list[list[float]]]]:
    """At initialisation for N = 1 .. most: by norm and kind a list of the layers' gradients for each N."""
    by_depth = [at_start(n_layers, seed) for n_layers in range(1, most + 1)]
    return {norm: {kind: [_short(of[norm][kind]) for of in by_depth] for kind in by_depth[0][norm]} for norm in NORMS}


def trained(norm: Norm, seed: int) -> dict[str, Any]:
    """What is kept of one training: by kind a list of the layers' gradients for each of ``STEPS``, and the losses."""
    found, losses = in_training(norm, seed)
    return {**{kind: [_short(of[kind]) for of in found] for kind in found[0]}, "loss": _short(torch.tensor(losses))}


def _short(norms: Tensor) -> list[float]:
    return [float(f"{norm:.5g}") for norm in norms.tolist()]


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, measure, write, and say which way it goes. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m transformer.gradient_norms", description=__doc__)
    parser.add_argument("--seeds", type=at_least(1), default=5, metavar="N", help="draws at initialisation (default 5)")
    parser.add_argument("--most", type=at_least(2), default=MOST, metavar="N", help=f"deepest stacks (default {MOST})")
    parser.add_argument("--jobs", type=at_least(1), default=1, metavar="N", help="at once, one core each (default 1)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="default assets/gradient_norms.json")
    parser.add_argument("--no-training", action="store_true", help="only at initialisation")
    args = parser.parse_args(argv)
    with ProcessPoolExecutor(args.jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        runs = {} if args.no_training else {norm: pool.submit(trained, norm, 0) for norm in NORMS}
        sweeps = [future.result() for future in [pool.submit(sweep, seed, args.most) for seed in range(args.seeds)]]
        training = {norm: future.result() for norm, future in runs.items()}
    results = {
        "torch": torch.__version__.split("+")[0], "batch": BATCH, "start": sweeps,
        "trained_layers": TRAINED, "steps": STEPS, "training": training,
    }  # fmt: skip
    args.out.write_text(json.dumps(results, separators=(",", ":")) + "\n", encoding="utf-8")
    for norm in NORMS:
        print(f"{norm}-LN: gradient of W_2 in the last decoder layer ~ N^{exponent(sweeps, norm, 'decoder.w_2'):.2f}")
    return 0


def exponent(sweeps: Sequence[dict[str, dict[str, list[list[float]]]]], norm: Norm, kind: str) -> float:
    """The power of N with which the last layer's gradient goes, its mean over draws being taken."""
    last = [[layers[-1] for layers in one[norm][kind]] for one in sweeps]
    means = [sum(values) / len(values) for values in zip(*last, strict=True)]
    return slope(range(1, len(means) + 1), means)


if __name__ == "__main__":
    sys.exit(main())
