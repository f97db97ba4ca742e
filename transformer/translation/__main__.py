"""Train and measure a translator: ``python -m transformer.translation train`` and ``... evaluate``."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import torch

from ..train.options import at_least, given
from .commands import evaluate, train
from .prepare import SIZES, Prepared, fresh, resumed
from .settings import TranslationSettings

_SETTINGS = [field.name for field in fields(TranslationSettings) if field.name not in ("betas", "eps", "clip")]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 done, 1 stopped before the end, 2 a wrong request."""
    args = _parser().parse_args(argv)
    torch.set_num_threads(args.threads)
    try:
        return args.command(args)
    except (ValueError, OSError) as error:
        print(f"transformer.translation: {error}", file=sys.stderr)
        return 2


def _train(args: argparse.Namespace) -> int:
    args.out.mkdir(parents=True, exist_ok=True)
    return train(_resumed(args) if args.resume else _fresh(args), args.out, args.stop_at)


def _evaluate(args: argparse.Namespace) -> int:
    evaluate(args.checkpoint, args.pairs, args.show)
    return 0


def _fresh(args: argparse.Namespace) -> Prepared:
    settings = TranslationSettings(**given(args, _SETTINGS))
    return fresh(args.pairs, settings, SIZES | given(args, SIZES), args.attribution or "")


def _resumed(args: argparse.Namespace) -> Prepared:
    allowed = {"cooldown"} if args.cooldown is None else {"cooldown", "lr"}
    chosen = [name for name in given(args, (*_SETTINGS, *SIZES, "attribution")) if name not in allowed]
    if chosen:
        raise ValueError(f"--{chosen[0].replace('_', '-')} is that of {args.resume}; with --resume leave it out")
    return resumed(args.pairs, args.resume, args.cooldown, args.lr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer.translation", description="Train and measure an English-French translator."
    )
    parser.add_argument("--threads", type=at_least(1), default=1, help="torch threads (default 1)")
    commands = parser.add_subparsers(required=True)
    train = commands.add_parser("train", help="train on a file of sentence pairs")
    train.set_defaults(command=_train)
    train.add_argument("pairs", type=Path, metavar="PAIRS", help=".tsv or .tsv.gz: English, tab, French")
    train.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="for snapshots, log.csv and the model")
    train.add_argument("--resume", type=Path, metavar="SNAPSHOT", help="go on; sizes and settings are its own")
    defaults = TranslationSettings()
    for name, said in {
        "steps": "all steps, cooldown included",
        "cooldown": "last steps, over which the rate falls to 0; with --resume: from there on, and then the end",
        "warmup": "first steps, over which the rate rises",
        "lr": "learning rate; with --resume and --cooldown: the one to fall from",
        "max_words": "longer English sentences are left out",
        "batch_tokens": "most tokens of a batch on either side, padding included",
        "label_smoothing": "share of the target that goes to all words alike",
        "every": "steps between snapshots and lines of the log",
        "seed": "of weights, order and dropout",
    }.items():
        default = getattr(defaults, name)
        said = f"{said} (default {default:,})"
        train.add_argument(f"--{name.replace('_', '-')}", type=type(default), metavar="N", help=said)
    train.add_argument("--bfloat16", action="store_true", default=None, help="matrix products in 16 bits: faster")
    for name, default in SIZES.items():
        train.add_argument(f"--{name.replace('_', '-')}", type=type(default), metavar="N", help=f"default {default:,}")
    train.add_argument("--attribution", help="whose sentences these are; kept in the model's header")
    train.add_argument("--stop-at", type=at_least(1), metavar="STEP", help="stop after this step, to be resumed later")
    evaluate = commands.add_parser("evaluate", help="measure a model on the test sentences of a file")
    evaluate.set_defaults(command=_evaluate)
    evaluate.add_argument("checkpoint", type=Path, metavar="MODEL")
    evaluate.add_argument("pairs", type=Path, metavar="PAIRS", help="the file it was trained on")
    evaluate.add_argument("--show", type=at_least(0), metavar="N", default=20, help="translations to show (default 20)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
