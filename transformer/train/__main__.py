"""Train a task from the command line: ``python -m transformer.train reverse``."""

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace

import torch

from ..checkpoint import load_training, save_checkpoint
from ..config import TransformerConfig
from ..model import Transformer
from ..presets import PRESETS
from ..tasks import TASKS, SymbolTask, Task
from .distributed import Share, process_group
from .loop import TrainState, TrainStep, exact_match, teacher_forced_loss, train
from .parser import parser
from .record import FRESH_SEED
from .settings import TrainSettings

QUICK_CONFIG = TransformerConfig(
    src_vocab_size=12,
    tgt_vocab_size=12,
    d_model=64,
    n_heads=4,
    d_ff=256,
    n_encoder_layers=1,
    n_decoder_layers=1,
    dropout=0.0,
    norm="pre",
    init="default",
    max_len=64,
)
DOCUMENT_SETTINGS = TrainSettings(
    steps=6_000, batch_size=64, betas=(0.9, 0.98), lr=1.0, schedule="inverse_sqrt", warmup=400
)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train, measure, save. Returns the exit status: 0 done, 1 stopped before the end, 2 a wrong request."""
    options = parser()
    args = options.parse_args(argv)
    if args.out and not args.out.parent.is_dir():
        options.error(f"--out {args.out}: there is no folder {args.out.parent}")
    if args.out and args.out.is_dir():
        options.error(f"--out {args.out} is a folder; it must be a file")
    torch.set_num_threads(args.threads)
    with process_group():
        return _train(args)


def _train(args: argparse.Namespace) -> int:
    try:
        model, task, settings, state, seed = _resumed(args) if args.resume else _fresh(args)
        share = Share.here(settings.batch_size)
    except (ValueError, OSError) as error:
        print(f"transformer.train: {error}", file=sys.stderr)
        return 2
    if share.rank:  # one process speaks, measures and saves for all
        with contextlib.redirect_stdout(io.StringIO()):
            _run(model, task, settings, state, args.stop_at)
        return 0
    n_parameters = sum(p.numel() for p in model.parameters())
    print(f"{task.name}: {n_parameters:,} parameters, {settings.steps:,} steps of {settings.batch_size}, seed {seed}")
    _run(model, task, settings, state, args.stop_at)

    finished = state.step == settings.steps
    half = args.half and finished
    if half:
        model.half().float()  # what is measured is what is saved
    metrics = {}
    if args.check:
        fresh = torch.Generator().manual_seed(FRESH_SEED + seed)
        right = exact_match(model, task, args.check, fresh, padding=settings.padding)
        fresh.manual_seed(FRESH_SEED + seed)
        loss = teacher_forced_loss(model, task, args.check, fresh, settings.causal, padding=settings.padding)
        metrics = {"exact_match": right, "exact_match_of": args.check, "teacher_forced_loss": loss}
        print(f"exact match: {right:,} of {args.check:,} fresh sequences; teacher-forced loss {loss:.6f}")
    if args.out:
        training = {"settings": asdict(settings), "seed": seed, "steps_done": state.step}
        unfinished = None if finished else state
        save_checkpoint(args.out, model, task, training=training, metrics=metrics, state=unfinished, half=half)
        print(f"saved {args.out}" + ("" if finished else f"; go on with --resume {args.out}"))
    return 0 if finished else 1


Run = tuple[Transformer, Task, TrainSettings, TrainState, int]


def _fresh(args: argparse.Namespace) -> Run:
    document = args.setting == "document"
    task = _task(args, document)
    config = PRESETS["reversal"] if document else QUICK_CONFIG
    d_ff = 4 * args.d_model if args.d_model and not args.d_ff else args.d_ff
    config = replace(config, **_given(
        src_vocab_size=task.tokenizer.vocab_size, tgt_vocab_size=task.tokenizer.vocab_size, d_model=args.d_model,
        n_heads=args.heads, d_head=args.d_head, d_ff=d_ff, n_encoder_layers=args.layers,
        n_decoder_layers=args.layers, dropout=args.dropout,
        max_len=max(config.max_len, task.max_source, task.max_target + 1),  # BOS makes the target one longer
        **dict(args.set),
    ))  # fmt: skip
    settings = DOCUMENT_SETTINGS if document else TrainSettings()
    settings = replace(
        settings,
        causal=not args.no_causal_mask,
        padding=not args.no_padding_mask,
        **_given(steps=args.steps, batch_size=args.batch_size, warmup=args.warmup, lr=args.lr),
        **_given(label_smoothing=args.label_smoothing),
        **({"betas": tuple(args.betas)} if args.betas else {}),
    )
    model = Transformer(config, torch.Generator().manual_seed(args.seed))
    return model, task, settings, TrainState(model, settings), args.seed


def _task(args: argparse.Namespace, document: bool) -> Task:
    """The task, with the lengths that were asked for where it has lengths."""
    kind = TASKS[args.task]
    asked = _given(min_len=args.min_len, max_len=args.max_len)
    if not issubclass(kind, SymbolTask):
        if asked:
            raise ValueError(f"the task {kind.name} has no lengths to choose; leave out --min-len and --max-len")
        return kind()
    return kind(**{"min_len": 3, **asked} if document else asked)


def _resumed(args: argparse.Namespace) -> Run:
    checkpoint, settings, state = load_training(args.resume)
    return checkpoint.model, checkpoint.task, settings, state, checkpoint.training["seed"]


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _run(model: Transformer, task: Task, settings: TrainSettings, state: TrainState, stop_at: int | None) -> None:
    """Train with a progress bar until the end, ``stop_at`` or Ctrl-C."""
    first, start = state.step, time.perf_counter()
    last = min(stop_at or settings.steps, settings.steps)
    try:
        while state.step < last:
            for step in train(model, task, settings, state):
                _show(step, settings.steps, (step.step - first) / (time.perf_counter() - start))
                if step.step >= last:
                    break
    except KeyboardInterrupt:
        print(f"\nstopped after step {state.step:,}")


def _show(step: TrainStep, steps: int, rate: float) -> None:
    """One line that renews itself on a terminal; ten lines in a log."""
    if not sys.stdout.isatty() and step.step % max(1, steps // 10):
        return
    filled = 24 * step.step // steps
    bar = "█" * filled + "░" * (24 - filled)
    line = f"{bar} {step.step:>6,}/{steps:,}  loss {step.loss:.4f}  lr {step.learning_rate:.2e}  {rate:.0f} steps/s"
    print(line, end="\n" if step.step == steps or not sys.stdout.isatty() else "\r", flush=True)


if __name__ == "__main__":
    sys.exit(main())
