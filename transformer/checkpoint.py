"""Trained models as safetensors files: weights as tensors, everything else as JSON in the header."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .config import TransformerConfig
from .model import Transformer
from .tasks import TASKS, MarianTask, Task, TranslationTask
from .tokenizer import Tokenizer
from .train import AdamSettings, TrainSettings, TrainState

FORMAT = "transformer-workbench 1"
_KINDS: dict[str, type[Task]] = {**TASKS, **{kind.name: kind for kind in (TranslationTask, MarianTask)}}
_WEIGHT, _STATE = "model/", "training/"

Settings = TypeVar("Settings", bound=AdamSettings)


@dataclass(frozen=True)
class Checkpoint:
    """A model in eval mode and what is known of it.

    metrics   what was measured, by name, for example {"exact_match": 4096, "exact_match_of": 4096}.
    training  how it came to be: settings, seed, steps done.
    """

    model: Transformer
    config: TransformerConfig
    task: Task
    tokenizer: Tokenizer
    metrics: dict[str, Any]
    training: dict[str, Any]


def save_checkpoint(
    path: str | Path,
    model: Transformer,
    task: Task,
    *,
    training: dict[str, Any] | None = None,
    metrics: dict[str, Any] | None = None,
    state: TrainState | None = None,
    half: bool = False,
) -> None:
    """Write a model; with ``state`` also what a stopped run needs to go on. The folder must exist.

    A run is resumed from training = {"settings": ..., "seed": ..., "steps_done": ...}.

    half stores 16 bits a weight, and loading gives float32 again: the same model only if it was rounded before.
    """
    dtype = torch.float16 if half else None
    tensors = {_WEIGHT + name: p.detach().to(dtype).contiguous() for name, p in model.named_parameters()}
    if state is not None:
        tensors |= {_STATE + name: tensor for name, tensor in state.tensors().items()}
    header = {
        "format": FORMAT,
        "config": json.dumps(asdict(model.config)),
        "task": json.dumps({"name": task.name, **asdict(task)}),
        "training": json.dumps(training or {}),
        "metrics": json.dumps(metrics or {}),
    }
    save_file(tensors, str(path), metadata=header)


def load_checkpoint(path: str | Path) -> Checkpoint:
    """Read a model back. Raises ValueError, naming what does not fit, for a file of another kind or a damaged one."""
    tensors, header = _read(path)
    config = _build(TransformerConfig, header["config"], path)
    task = _task(header["task"], path)
    model = Transformer(config, torch.Generator()).eval()
    _fill(model, {n.removeprefix(_WEIGHT): t for n, t in tensors.items() if n.startswith(_WEIGHT)}, path)
    return Checkpoint(model, config, task, task.tokenizer, header["metrics"], header["training"])


def read_header(path: str | Path) -> tuple[TransformerConfig, dict[str, Any]]:
    """The config of a checkpoint and what it says of its task, before anything of any size is built.

    Raises ValueError.
    """
    _, header = _read(path, weights=False)
    return _build(TransformerConfig, header["config"], path), header["task"]


def load_training(path: str | Path, kind: type[Settings] = TrainSettings) -> tuple[Checkpoint, Settings, TrainState]:
    """Read a stopped run, ready to go on with settings of its kind (TrainSettings: by ``train``).

    Raises ValueError when the file holds a finished model only, or a run of another kind.
    """
    checkpoint = load_checkpoint(path)
    tensors, _ = _read(path)
    saved = {n.removeprefix(_STATE): t for n, t in tensors.items() if n.startswith(_STATE)}
    if not saved:
        raise ValueError(f"{path} holds a finished model; only a run that was stopped can be resumed")
    try:
        settings = _build(kind, _tuples(checkpoint.training["settings"]), path)
        state = TrainState(checkpoint.model, settings)
        state.load(saved, checkpoint.training["steps_done"])
    except KeyError as error:
        raise ValueError(f"the training state in {path} is damaged: it lacks {error}") from error
    return checkpoint, settings, state


def _read(path: str | Path, weights: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(str(path), framework="pt") as file:
            header = file.metadata() or {}
            names = file.keys() if weights else ()
            tensors = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error
    if header.get("format") != FORMAT:
        raise ValueError(
            f"{path} is a safetensors file but not a checkpoint of this project (no “{FORMAT}” in its header)"
        )
    try:
        values = {key: json.loads(header[key]) for key in ("config", "task", "training", "metrics")}
    except (KeyError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"the header of {path} is damaged: {error}") from error
    if wrong := [key for key, value in values.items() if not isinstance(value, dict)]:
        raise ValueError(f"the header of {path} is damaged: {wrong[0]} is not a JSON object")
    return tensors, values


def _build(kind: type, values: dict[str, Any], path: str | Path) -> Any:
    known = {field.name for field in fields(kind) if field.init}
    if unknown := sorted(set(values) - known):
        raise ValueError(f"the header of {path} has unknown {kind.__name__} fields: {', '.join(unknown)}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"the header of {path} is damaged: {error}") from error


def _task(values: dict[str, Any], path: str | Path) -> Task:
    name = values.pop("name", None)
    if name not in _KINDS:
        raise ValueError(f"{path} was trained on the task {name!r}; known tasks are {', '.join(_KINDS)}")
    return _build(_KINDS[name], values, path)


def _fill(model: Transformer, tensors: dict[str, Tensor], path: str | Path) -> None:
    parameters = dict(model.named_parameters())
    if missing := sorted(parameters.keys() - tensors.keys()):
        raise ValueError(f"{path} lacks {len(missing)} of the model's tensors, the first is {missing[0]}")
    if extra := sorted(tensors.keys() - parameters.keys()):
        raise ValueError(f"{path} has {len(extra)} tensors that its config has no place for, the first is {extra[0]}")
    for name, parameter in parameters.items():
        if tensors[name].shape != parameter.shape:
            raise ValueError(
                f"{path}: {name} has shape {tuple(tensors[name].shape)}, its config needs {tuple(parameter.shape)}"
            )
        if not tensors[name].isfinite().all():
            raise ValueError(f"{path}: {name} holds numbers that are not finite")
        with torch.no_grad():
            parameter.copy_(tensors[name])


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
