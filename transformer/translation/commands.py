"""What the commands do, once their options have been read."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from ..checkpoint import load_checkpoint, save_checkpoint
from ..tasks import TranslationTask
from ..zoo import checkpoint_name
from .batches import encode_pairs
from .evaluate import Scores, measure, score, short, translate
from .pairs import Sides
from .prepare import LONGEST, Prepared, read_sides
from .run import mean_loss, train_on_pairs
from .settings import TranslationSettings
from .snapshot import Run, save_snapshot

WATCHED = 400  # validation sentences that are translated for each line of the log


def train(prepared: Prepared, folder: Path, stop_at: int | None) -> int:
    """Train, with a snapshot now and then; at the end measure and save the model. Returns 0, or 1 when stopped."""
    run, sides, pairs = prepared
    n_parameters = sum(p.numel() for p in run.model.parameters())
    n_sentences = ", ".join(f"{len(sentences):,} for {side}" for side, sentences in sides.items())
    print(f"sentences: {n_sentences}; {len(pairs):,} training pairs")
    print(f"{n_parameters:,} parameters, step {run.state.step:,} of {run.settings.steps:,}", flush=True)
    last = min(stop_at or run.settings.steps, run.settings.steps)
    with _asked_to_stop() as stop:
        for step in train_on_pairs(run.model, pairs, run.settings, run.state, run.progress):
            if step.step % run.settings.every == 0 or step.step == run.settings.steps:
                _log(run, step.learning_rate, sides)
                save_snapshot(run, folder)
            if stop.is_set() or step.step >= last:
                break
    if run.state.step < run.settings.steps:
        print(f"stopped; go on with --resume {save_snapshot(run, folder)}")
        return 1
    run.model.half().float()  # what is measured is what is saved
    scores = measure(run.model, run.task, sides)
    _show(scores)
    config = run.model.config
    path = folder / f"{checkpoint_name(run.task.name, config.d_model, config.n_heads, config.d_head)}.safetensors"
    metrics = {name: asdict(values) for name, values in scores.items()}
    save_checkpoint(path, run.model, run.task, training=run.facts(), metrics=metrics, half=True)
    print(f"saved {path}")
    return 0


def evaluate(checkpoint_path: Path, pairs: Path, n_shown: int) -> None:
    """Print the scores of a model, and the first so many test sentences in the order of their hash, translated.

    Raises ValueError for a model of another task.
    """
    checkpoint = load_checkpoint(checkpoint_path)
    if not isinstance(checkpoint.task, TranslationTask):
        raise ValueError(f"{checkpoint_path} was trained on the task {checkpoint.task.name!r}, not on translation")
    # A model from elsewhere was trained on other sentences; it is measured on those that one of here would be.
    settings = checkpoint.training.get("settings", {})
    sides = read_sides(pairs, settings.get("max_words", TranslationSettings().max_words))
    _show(measure(checkpoint.model, checkpoint.task, sides))
    shown = sides["test"][:n_shown]
    translations = translate(checkpoint.model, checkpoint.task, [sentence.english for sentence in shown])
    for sentence, translation in zip(shown, translations, strict=True):
        right = "=" if translation in sentence.french else " "
        print(f"\n  {sentence.english}\n{right} {translation}\n  ({' | '.join(sentence.french)})")


def _log(run: Run, learning_rate: float, sides: Sides) -> None:
    """Add a line to the run's log, and print it."""
    progress, validation = run.progress, sides["validation"]
    watched = short(validation)[:WATCHED]
    found = score(translate(run.model, run.task, [sentence.english for sentence in watched]), watched)
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


def _show(scores: dict[str, Scores]) -> None:
    for name, found in scores.items():
        print(
            f"{name:<18}  BLEU {found.bleu:.1f}, with one reference {found.bleu_one_reference:.1f}; "
            f"chrF {found.chrf:.1f}; exact {found.exact_match:,} of {found.exact_match_of:,}"
        )


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
