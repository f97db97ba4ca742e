"""``python -m transformer.convert MARIAN_FOLDER OUT.safetensors``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from ..checkpoint import save_checkpoint
from ..model import Transformer
from ..pieces import PieceTokenizer
from ..tasks import MarianTask
from ..tasks.marian import language
from ..train.options import at_least
from .folder import MarianFolder, read_folder
from .settings import config_of, symbols_of
from .weights import model_of

_LONGEST = 64


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 done, 2 a wrong request."""
    args = _parser().parse_args(argv)
    torch.set_num_threads(1)
    try:
        convert(args)
    except (ValueError, OSError) as error:
        print(f"transformer.convert: {error}", file=sys.stderr)
        return 2
    return 0


def convert(args: argparse.Namespace) -> None:
    """Read the folder, write the checkpoint, and say what it holds. Raises ValueError for what cannot be converted."""
    if args.out.suffix != ".safetensors":
        raise ValueError(f"{args.out} must end in .safetensors")
    if not args.out.parent.is_dir():
        raise ValueError(f"there is no folder {args.out.parent} to write to")
    folder = read_folder(args.folder)
    config = config_of(folder)
    task = _task(folder, config.max_len, args.longest, args.title)
    model = model_of(folder, config)
    if not args.float32:
        _check_range(model)
    facts = {"converted_from": f"Marian model {args.folder.resolve().name}", "attribution": args.attribution or ""}
    save_checkpoint(args.out, model, task, training=facts, half=not args.float32)
    n_parameters = sum(p.numel() for p in model.parameters())
    print(
        f"{task.title}: {config.n_encoder_layers} + {config.n_decoder_layers} layers, d_model {config.d_model}, "
        f"{config.n_heads} heads, {len(folder.symbols):,} symbols, {n_parameters:,} parameters"
    )
    print(f"saved {args.out} ({args.out.stat().st_size / 1e6:.1f} MB)")


def _task(folder: MarianFolder, max_len: int, longest: int | None, title: str | None) -> MarianTask:
    most = (max_len - 3) // 2  # the pages take sources of twice the length
    if longest is not None and longest > most:
        raise ValueError(f"--longest {longest} is too long: this model has {max_len} positions, so at most {most}")
    longest = min(_LONGEST, most) if longest is None else longest
    source, target = folder.languages or ("", "")
    named = f"{language(source)} to {language(target)}" if folder.languages else folder.path.resolve().name
    pieces = folder.source
    definition = PieceTokenizer.define(
        pieces.pieces, pieces.charsmap, pieces.dummy_prefix, pieces.single_spaces, symbols_of(folder)
    )
    return MarianTask(definition, max_len, longest, longest, title or named, source)


def _check_range(model: Transformer) -> None:
    most = torch.finfo(torch.float16).max
    for name, parameter in model.named_parameters():
        if parameter.abs().max() > most:
            raise ValueError(f"{name} holds numbers beyond {most:,.0f}, the most that 16 bits hold; use --float32")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer.convert",
        description="Make a checkpoint of this project from a Marian (opus-mt) model in Hugging Face's format.",
    )
    parser.add_argument(
        "folder",
        type=Path,
        metavar="MARIAN_FOLDER",
        help="with config.json, source.spm, vocab.json and model.safetensors or pytorch_model.bin",
    )
    parser.add_argument("out", type=Path, metavar="OUT.safetensors", help="the checkpoint to write")
    parser.add_argument("--title", help="languages as the pages name them (default: as the folder says them)")
    parser.add_argument("--attribution", help="whose model this is, and its licence; kept in the header")
    parser.add_argument(
        "--longest", type=at_least(1), metavar="N", help=f"tokens of a sentence to reckon with (default {_LONGEST})"
    )
    parser.add_argument("--float32", action="store_true", help="keep 32 bits a weight; else 16, half the size")
    return parser


if __name__ == "__main__":
    sys.exit(main())
