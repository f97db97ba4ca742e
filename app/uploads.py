"""A model from a person's own file: what is refused, and in which words."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from transformer import TASKS, Batch, Checkpoint, MarianTask, TransformerConfig, TranslationTask, load_checkpoint
from transformer.checkpoint import read_header

MOST_MEGABYTES = 20
# What the pages can draw, and a server can hold for many people.
_MOST = {
    "d_model": 256,
    "n_heads": 16,
    "head_width": 128,
    "d_ff": 1024,
    "n_encoder_layers": 6,
    "n_decoder_layers": 6,
    "max_len": 1024,
}
_MOST_TRANSLATING = {"d_model": 512, "d_ff": 2048}
_MOST_WORDS = 100_000


def read_upload(contents: bytes, name: str) -> Checkpoint:
    """The checkpoint in a file's contents. Raises ValueError with what is wrong, calling it by its name."""
    if not name.lower().endswith(".safetensors"):
        raise ValueError(f"{name} is refused: only .safetensors files are read, as they cannot run any code.")
    if len(contents) > MOST_MEGABYTES * 10**6:
        raise ValueError(f"{name} is {len(contents) / 1e6:.1f} MB; up to {MOST_MEGABYTES} MB are read.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        path.write_bytes(contents)
        try:
            config, said = read_header(path)
            _check(config, said, name)
            checkpoint = load_checkpoint(path)
        except ValueError as error:
            said = str(error).replace(str(path), name)
            raise ValueError(said if name in said else f"{name}: {said}") from error
    if isinstance(checkpoint.task, TranslationTask):
        _check_translator(checkpoint, name)
    else:
        _check_symbols(checkpoint, name)
    return checkpoint


def _check_symbols(checkpoint: Checkpoint, name: str) -> None:
    task, config = TASKS[checkpoint.task.name](), checkpoint.config
    ours = task.tokenizer.vocabulary()
    theirs = checkpoint.tokenizer.vocabulary()
    if theirs != ours or {config.src_vocab_size, config.tgt_vocab_size} != {len(ours)}:
        raise ValueError(
            f"{name} knows {len(theirs)} symbols in its task, {config.src_vocab_size} in sources and "
            f"{config.tgt_vocab_size} in targets; the task {task.name} has {len(ours)} here."
        )
    _check_answers(checkpoint, task.batch(64, torch.Generator().manual_seed(0)), name)


def _check_answers(checkpoint: Checkpoint, batch: Batch, name: str) -> None:
    with torch.no_grad():
        logits = checkpoint.model(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask)
    if not logits.isfinite().all():
        raise ValueError(f"{name} answers with numbers that are not finite.")


def _check_translator(checkpoint: Checkpoint, name: str) -> None:
    task, config = checkpoint.task, checkpoint.config
    for field in ("longest_source", "longest_target", "max_positions"):
        value = getattr(task, field)
        if type(value) is not int or not 1 <= value <= config.max_len:
            raise ValueError(
                f"{name} has {field} {value!r}; it must be a number from 1 to its max_len, {config.max_len}."
            )
    known = task.tokenizer.vocab_size
    if {config.src_vocab_size, config.tgt_vocab_size} != {known}:
        raise ValueError(
            f"{name} knows {known:,} pieces, but the model has {config.src_vocab_size:,} for sources and "
            f"{config.tgt_vocab_size:,} for targets."
        )
    named = (task.title, task.prompt, *task.examples, *task.examples.values())
    if not all(isinstance(text, str) and len(text) <= 200 for text in named):
        raise ValueError(f"{name} has a title, a prompt or an example that is no short text.")
    some = torch.arange(known)[: task.max_positions].unsqueeze(0)
    whole = torch.tensor([some.shape[1]])
    _check_answers(checkpoint, Batch.of(some, whole, some[:, :-1], whole - 1), name)


def _check(config: TransformerConfig, said: dict[str, Any], name: str) -> None:
    """Before anything of the file's sizes is built. said: of its task."""
    task = str(said.get("name"))
    translates = task in (TranslationTask.name, MarianTask.name)
    if task not in TASKS and not translates:
        known = ", ".join((*TASKS, TranslationTask.name, MarianTask.name))
        raise ValueError(f"{name} was trained on the task {task!r}; known tasks are {known}")
    for field, most in (_MOST | (_MOST_TRANSLATING if translates else {})).items():
        if getattr(config, field) > most:
            raise ValueError(f"{name} has {field} {getattr(config, field):,}; models up to {most:,} are shown.")
    if max(config.src_vocab_size, config.tgt_vocab_size) > _MOST_WORDS:
        raise ValueError(f"{name} has a vocabulary of over {_MOST_WORDS:,}; models up to that are shown.")
    if config.n_decoder_layers == 0:
        raise ValueError(f"{name} is an encoder alone; the pages show encoder and decoder.")
    if translates:
        return
    made = TASKS[task]()
    for field, usual in asdict(made).items():
        value = said.get(field, usual)
        if type(value) is not int or value > _MOST["max_len"]:
            raise ValueError(f"{name} has {field} {value!r} in its task; whole numbers up to {_MOST['max_len']:,} fit.")
    needed = 2 * max(made.max_source, made.max_target) + 3  # the pages show sources of twice the length
    if config.max_len < needed:
        raise ValueError(f"{name} has max_len {config.max_len}; the pages of this task need at least {needed}.")
