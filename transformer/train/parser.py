"""The options of ``python -m transformer.train``."""

import argparse
import json
from dataclasses import fields
from pathlib import Path

from ..config import TransformerConfig
from ..tasks import TASKS
from .options import at_least

# Fields that have options of their own, or that the task decides.
_OPTIONS = ("src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "d_head", "d_ff", "n_encoder_layers",
            "n_decoder_layers", "dropout", "max_len")  # fmt: skip


def _field(text: str) -> tuple[str, object]:
    """FIELD=VALUE of the command line; true, false and numbers as such, anything else a word."""
    name, _, value = text.partition("=")
    allowed = [field.name for field in fields(TransformerConfig) if field.name not in _OPTIONS]
    if name not in allowed or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not FIELD=VALUE with a field of {', '.join(allowed)}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def parser() -> argparse.ArgumentParser:
    """All of them, each with its help."""
    options = argparse.ArgumentParser(
        prog="python -m transformer.train",
        description="Train a Transformer on a task and write a safetensors checkpoint.",
    )
    options.add_argument("task", choices=list(TASKS))
    options.add_argument("--out", type=Path, metavar="FILE", help="where to write the checkpoint")
    options.add_argument("--seed", type=int, default=0, help="of weights, data and dropout (default 0)")
    options.add_argument(
        "--setting", choices=("quick", "document"), default="quick",
        help="the quick model (default), or the 930,828 parameters and 6,000 steps of document 001",
    )  # fmt: skip
    for name in ("steps", "batch-size", "warmup"):
        options.add_argument(f"--{name}", type=int, metavar="N", help="in place of the setting's own")
    options.add_argument("--lr", type=float, help="in place of the setting's own")
    options.add_argument("--betas", type=float, nargs=2, metavar="B", help="Adam's, in place of the setting's own")
    for name in ("d-model", "heads", "d-head", "layers"):
        options.add_argument(f"--{name}", type=int, metavar="N", help="in place of the setting's own")
    options.add_argument("--d-ff", type=int, metavar="N", help="the setting's own, or 4 times --d-model")
    options.add_argument("--dropout", type=float, help="in place of the setting's own")
    options.add_argument(
        "--set", action="append", default=[], type=_field, metavar="FIELD=VALUE",
        help="any other field of TransformerConfig, such as init=xavier or positional=none; may be repeated",
    )  # fmt: skip
    options.add_argument("--label-smoothing", type=float, metavar="SHARE", help="default 0: none")
    options.add_argument("--no-causal-mask", action="store_true", help="let the decoder see what it is to predict")
    options.add_argument("--no-padding-mask", action="store_true", help="let padding be attended, in measuring too")
    options.add_argument("--min-len", type=int, metavar="N", help="shortest sequence (quick 0, document 3)")
    options.add_argument("--max-len", type=int, metavar="N", help="longest sequence (default 8)")
    options.add_argument("--half", action="store_true", help="round the finished weights to 16 bits and save those")
    options.add_argument(
        "--check",
        type=at_least(0),
        metavar="N",
        default=4096,
        help="fresh sequences to decode at the end (default 4096)",
    )
    options.add_argument(
        "--resume", type=Path, metavar="FILE", help="go on with a run that was stopped; sizes and settings are its own"
    )
    options.add_argument("--stop-at", type=at_least(1), metavar="STEP", help="stop after it, to be resumed later")
    options.add_argument("--threads", type=at_least(1), default=1, help="torch threads (default 1)")
    return options
