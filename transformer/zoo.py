"""Train every checkpoint that ships with the app: ``python -m transformer.zoo``."""

import argparse
import contextlib
import io
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from .checkpoint import load_checkpoint
from .tasks import TASKS, SymbolTask
from .train.__main__ import main as train

CHECKPOINTS = Path(__file__).resolve().parent.parent / "assets" / "checkpoints"
WIDTHS, HEADS, HEAD_WIDTHS = (16, 32, 64, 128), (1, 2, 4, 8), (2, 4, 8, 16, 32)
# Long after the answers are right the heads go on sharpening; these steps are for the picture.
_COMMON = ("--layers", "2", "--steps", "4000", "--half", "--set", "init=xavier", "--betas", "0.9", "0.98")


def recipes() -> dict[str, tuple[str, ...]]:
    """For each checkpoint's name the arguments of ``python -m transformer.train`` that make it.

    The reversal task at every width by every number of heads, at width 64 with 4 heads for every width of a
    head and once with learned positions, and each other task once. A name is TASK-dD-hH, with -kK where the
    head's width is not D / H and -POSITIONAL where positions are not sinusoidal. Each task once more, at width 64
    with 4 heads, without the causal mask: -leaky.
    """
    sizes = [(d, h, None) for d in WIDTHS for h in HEADS] + [(64, 4, k) for k in HEAD_WIDTHS if k != 16]
    made = {}
    for d_model, n_heads, d_head in sizes:
        arguments = ("reverse", "--d-model", str(d_model), "--heads", str(n_heads), *_COMMON)
        arguments += ("--d-head", str(d_head)) if d_head else ()
        # Twice as wide wants a smaller step.
        arguments += ("--lr", "5e-3") if d_model == 128 else ()
        made[checkpoint_name("reverse", d_model, n_heads, d_head)] = arguments
    made[checkpoint_name("reverse", 64, 4, positional="learned")] = ("reverse", *_COMMON, "--set", "positional=learned")
    for task in TASKS:
        if task != "reverse":
            extra = ("--batch-size", "64", "--lr", "3e-3") if task == "addition" else ()
            made[checkpoint_name(task, 64, 4)] = (task, *_COMMON, *extra)
    for task, kind in TASKS.items():
        # No empty sequences: a model that always ends at once would have them right.
        extra = ("--min-len", "1") if issubclass(kind, SymbolTask) else ()
        usual = made[checkpoint_name(task, 64, 4)]
        made[checkpoint_name(task, 64, 4, causal=False)] = (*usual, *extra, "--no-causal-mask")
    return made


def checkpoint_name(
    task: str,
    d_model: int,
    n_heads: int,
    d_head: int | None = None,
    *,
    positional: str = "sinusoidal",
    causal: bool = True,
) -> str:
    """The name under which such a model ships, if it does; d_head None or d_model / n_heads is left out."""
    usual = d_head is None or d_head * n_heads == d_model
    name = f"{task}-d{d_model}-h{n_heads}" + ("" if usual else f"-k{d_head}")
    return name + ("" if positional == "sinusoidal" else f"-{positional}") + ("" if causal else "-leaky")


def _make(name: str, out: Path) -> str:
    """Train one; returns what was measured. Runs in a process of its own, silently."""
    with contextlib.redirect_stdout(io.StringIO()):
        train([*recipes()[name], "--out", str(out / f"{name}.safetensors")])
    metrics = load_checkpoint(out / f"{name}.safetensors").metrics
    return f"{metrics['exact_match']:,} of {metrics['exact_match_of']:,}"


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train, report. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m transformer.zoo", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, such as reverse-d64-h4 (default: all)")
    parser.add_argument("--out", type=Path, default=CHECKPOINTS, metavar="FOLDER", help="default assets/checkpoints")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once, one core each (default 1)")
    args = parser.parse_args(argv)
    if unknown := [name for name in args.names if name not in recipes()]:
        parser.error(f"no recipe for {', '.join(unknown)}; there are {', '.join(recipes())}")
    names = args.names or list(recipes())
    with ProcessPoolExecutor(args.jobs) as pool:
        running = {pool.submit(_make, name, args.out): name for name in names}
        for done, future in enumerate(as_completed(running), start=1):
            print(f"{done}/{len(names)}  {running[future]:<20} {future.result()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
