"""A model from a person's own file: what is refused, and in which words."""

import tempfile
from pathlib import Path

from transformer import TASKS, Checkpoint, TransformerConfig, load_checkpoint
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
            config, task = read_header(path)
            _check(config, task, name)
            checkpoint = load_checkpoint(path)
        except ValueError as error:
            said = str(error).replace(str(path), name)
            raise ValueError(said if name in said else f"{name}: {said}") from error
    ours = TASKS[task]().tokenizer.vocabulary()
    theirs = checkpoint.task.tokenizer.vocabulary()
    if theirs != ours or {config.src_vocab_size, config.tgt_vocab_size} != {len(ours)}:
        raise ValueError(
            f"{name} knows {len(theirs)} symbols in its task, {config.src_vocab_size} in sources and "
            f"{config.tgt_vocab_size} in targets; the task {task} has {len(ours)} here."
        )
    return checkpoint


def _check(config: TransformerConfig, task: str, name: str) -> None:
    """Before anything of the file's sizes is built."""
    if task == "en-fr":
        raise ValueError(f"{name} is a translator. Translators cannot be shown from a file yet; models of tasks can.")
    if task not in TASKS:
        raise ValueError(f"{name} was trained on the task {task!r}; known tasks are {', '.join(TASKS)}")
    for field, most in _MOST.items():
        if getattr(config, field) > most:
            raise ValueError(f"{name} has {field} {getattr(config, field):,}; models up to {most:,} are shown.")
    if config.n_decoder_layers == 0:
        raise ValueError(f"{name} is an encoder alone; the pages show encoder and decoder.")
    made = TASKS[task]()
    needed = 2 * max(made.max_source, made.max_target) + 3  # the pages show sources of twice the length
    if config.max_len < needed:
        raise ValueError(f"{name} has max_len {config.max_len}; the pages of this task need at least {needed}.")
