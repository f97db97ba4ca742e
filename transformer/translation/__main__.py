"""Train and measure a translator: ``python -m transformer.translation train`` and ``... evaluate``."""

import argparse
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from ..checkpoint import load_checkpoint
from ..config import TransformerConfig
from ..model import Transformer
from ..subwords import SubwordTokenizer, train_subwords
from ..tasks import TranslationTask
from ..zoo import checkpoint_name
from .batches import Ids, digest, encode_pairs
from .evaluate import Scores, score, short, translate
from .pairs import Sentence, Side, read_sentences, split, without_near_twin
from .run import mean_loss, train_on_pairs
from .settings import TranslationSettings
from .snapshot import Run, cooled_down, load_snapshot, save_finished, save_snapshot

MAX_LEN = 128  # positions of the model: far beyond training, so that a person can see what happens there
LONGEST = 64  # tokens; a longer pair is left out of training
WATCHED = 400  # validation sentences that are translated for each line of the log
SIZES = {"d_model": 192, "heads": 4, "layers": 3, "vocab_size": 8_000, "dropout": 0.1}
_SETTINGS = [field.name for field in fields(TranslationSettings)]
Sides = dict[Side, list[Sentence]]


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
    run, sides, pairs = _resumed(args) if args.resume else _fresh(args)
    n_parameters = sum(p.numel() for p in run.model.parameters())
    n_sentences = ", ".join(f"{len(sentences):,} for {side}" for side, sentences in sides.items())
    print(f"sentences: {n_sentences}; {len(pairs):,} training pairs")
    print(f"{n_parameters:,} parameters, step {run.state.step:,} of {run.settings.steps:,}", flush=True)
    last = min(args.stop_at or run.settings.steps, run.settings.steps)
    with _asked_to_stop() as stop:
        for step in train_on_pairs(run.model, pairs, run.settings, run.state, run.progress):
            if step.step % run.settings.every == 0 or step.step == run.settings.steps:
                _log(run, step.learning_rate, sides["validation"])
                save_snapshot(run, args.out)
            if stop.is_set() or step.step >= last:
                break
    if run.state.step < run.settings.steps:
        print(f"stopped; go on with --resume {save_snapshot(run, args.out)}")
        return 1
    run.model.half().float()  # what is measured is what is saved
    metrics = _measure(run.model, run.task, sides)
    config = run.model.config
    path = args.out / f"{checkpoint_name(run.task.name, config.d_model, config.n_heads, config.d_head)}.safetensors"
    save_finished(run, path, metrics)
    print(f"saved {path}")
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    checkpoint = load_checkpoint(args.checkpoint)
    if not isinstance(checkpoint.task, TranslationTask):
        raise ValueError(f"{args.checkpoint} was trained on the task {checkpoint.task.name!r}, not on translation")
    sides = _sides(args.pairs, checkpoint.training["settings"]["max_words"])
    _measure(checkpoint.model, checkpoint.task, sides)
    shown = sides["test"][: args.show]
    texts = [sentence.english for sentence in shown]
    for sentence, french in zip(shown, _translated(checkpoint.model, checkpoint.task, texts), strict=True):
        right = "=" if french in sentence.french else " "
        print(f"\n  {sentence.english}\n{right} {french}\n  ({' | '.join(sentence.french)})")
    return 0


def _fresh(args: argparse.Namespace) -> tuple[Run, Sides, list[Ids]]:
    settings = TranslationSettings(**_given(args, _SETTINGS))
    sizes = SIZES | _given(args, SIZES)
    sides = _sides(args.pairs, settings.max_words)
    texts = (text for sentence in sides["train"] for text in (sentence.english, *sentence.french))
    subwords = train_subwords(texts, sizes["vocab_size"])
    tokenizer = SubwordTokenizer(subwords, MAX_LEN)
    pairs = encode_pairs(sides["train"], tokenizer, LONGEST)
    task = TranslationTask(
        subwords=subwords,
        max_positions=MAX_LEN,
        longest_source=max(len(source) for source, _ in pairs),
        longest_target=max(len(target) for _, target in pairs),
    )
    config = TransformerConfig(
        src_vocab_size=tokenizer.vocab_size,
        tgt_vocab_size=tokenizer.vocab_size,
        d_model=sizes["d_model"],
        n_heads=sizes["heads"],
        d_ff=4 * sizes["d_model"],
        n_encoder_layers=sizes["layers"],
        n_decoder_layers=sizes["layers"],
        max_len=MAX_LEN,
        dropout=sizes["dropout"],
        norm="pre",
        tie_embeddings=True,
    )
    return Run.new(config, task, settings, digest(pairs), args.attribution or ""), sides, pairs


def _resumed(args: argparse.Namespace) -> tuple[Run, Sides, list[Ids]]:
    chosen = [name for name in _given(args, (*_SETTINGS, *SIZES, "attribution")) if name != "cooldown"]
    if chosen:
        raise ValueError(f"--{chosen[0].replace('_', '-')} is that of {args.resume}; with --resume leave it out")
    run = load_snapshot(args.resume)
    if args.cooldown is not None:
        run = cooled_down(run, args.cooldown)
    sides = _sides(args.pairs, run.settings.max_words)
    pairs = encode_pairs(sides["train"], run.task.tokenizer, LONGEST)
    if digest(pairs) != run.pairs:
        raise ValueError(f"{args.pairs} does not hold the pairs that {args.resume} was trained on")
    return run, sides, pairs


def _sides(path: Path, max_words: int) -> Sides:
    sides = split(read_sentences(path), max_words)
    for side in ("validation", "test"):
        if not short(sides[side]):
            raise ValueError(
                f"{path} is too small: of its sentences of 3 to 8 words none falls to the {side} side, "
                "and only about one in a hundred does"
            )
    return sides


def _log(run: Run, learning_rate: float, validation: Sequence[Sentence]) -> None:
    """Add a line to the run's log, and print it."""
    progress = run.progress
    watched = short(validation)[:WATCHED]
    found = score(_translated(run.model, run.task, [sentence.english for sentence in watched]), watched)
    held_out = encode_pairs(validation, run.task.tokenizer, LONGEST)
    line = {
        "step": run.state.step,
        "epoch": progress.epoch,
        "minutes": round(progress.minutes, 2),
        "learning_rate": learning_rate,
        "loss": round(progress.loss_sum / progress.losses, 4),
        "validation_loss": round(mean_loss(run.model, held_out, run.settings.batch_tokens), 4),
        "bleu": round(found.bleu, 2),
        "chrf": round(found.chrf, 2),
    }
    progress.log.append(line)
    progress.loss_sum, progress.losses = 0.0, 0
    print("  ".join(f"{name} {value:g}" for name, value in line.items()), flush=True)


def _measure(model: Transformer, task: TranslationTask, sides: Sides) -> dict[str, dict[str, float]]:
    """Print and return the scores on test sentences: the short ones, all, and those with no near twin in training."""
    found = dict(
        zip(sides["test"], _translated(model, task, [sentence.english for sentence in sides["test"]]), strict=True)
    )
    alone = without_near_twin(sides["test"], sides["train"])
    groups = {
        "short": short(sides["test"]),
        "short_without_twin": short(alone),
        "all": sides["test"],
        "all_without_twin": alone,
    }
    scores = {name: score([found[sentence] for sentence in group], group) for name, group in groups.items() if group}
    for name, values in scores.items():
        print(f"{name:<18}  {_words(values)}")
    return {name: asdict(values) for name, values in scores.items()}


def _words(scores: Scores) -> str:
    return (
        f"BLEU {scores.bleu:.1f}, with one reference {scores.bleu_one_reference:.1f}; chrF {scores.chrf:.1f}; "
        f"exact {scores.exact_match:,} of {scores.exact_match_of:,}"
    )


def _translated(model: Transformer, task: TranslationTask, texts: Sequence[str]) -> list[str]:
    return translate(model, task.tokenizer, texts, task.max_target + 1)


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Set by Ctrl-C or a termination request: the step under way is finished and saved first."""
    event = threading.Event()
    before = {s: signal.signal(s, lambda *_: event.set()) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _given(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Those of these options that were given."""
    return {name: value for name in names if (value := getattr(args, name, None)) is not None}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer.translation", description="Train and measure an English-French translator."
    )
    parser.add_argument("--threads", type=int, default=1, help="torch threads (default 1)")
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
        "lr": "learning rate",
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
    train.add_argument("--stop-at", type=int, metavar="STEP", help="stop after this step, to be resumed later")
    evaluate = commands.add_parser("evaluate", help="measure a model on the test sentences of a file")
    evaluate.set_defaults(command=_evaluate)
    evaluate.add_argument("checkpoint", type=Path, metavar="MODEL")
    evaluate.add_argument("pairs", type=Path, metavar="PAIRS", help="the file it was trained on")
    evaluate.add_argument("--show", type=int, metavar="N", default=20, help="translations to show (default 20)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
