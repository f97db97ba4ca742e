"""What is kept of twins: a file of measured results, and the events of a run that is watched."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save

from ..model import Transformer
from ..tokenizer import EOS
from .parts import PARTS, Part, Recipe
from .twins import EXAMPLE, FRESH, TASKS, Measured, decoded, fresh_model, measure, training

RESULTS = Path(__file__).resolve().parents[2] / "assets" / "broken.json"
TWINS = ("intact", "broken")


def twins(part: Part) -> dict[str, Recipe]:
    """Both recipes of a part by their names."""
    return {"intact": part.intact, "broken": part.broken}


@dataclass(frozen=True)
class Trained:
    """One finished training, as it comes back from its process. state holds the parameters as safetensors."""

    curve: list[tuple[int, float]]
    seconds: float
    state: bytes


def train_one(recipe: Recipe, seed: int, steps: int | None = None) -> Trained:
    """Train one recipe with one seed. seconds are of the processor."""
    torch.set_num_threads(1)
    model, start = fresh_model(recipe, seed), time.process_time()
    curve = list(training(recipe, model, steps))
    return Trained(curve, time.process_time() - start, save(dict(model.named_parameters())))


def measure_one(recipe: Recipe, seed: int, state: bytes, n: int) -> Measured:
    """Measure a finished training, in a process of its own."""
    torch.set_num_threads(1)
    return measure(recipe, _rebuilt(recipe, seed, state), seed, n)


def train_and_measure(
    seeds: Mapping[str, Sequence[int]], pool: Executor, steps: int | None = None, n: int = FRESH
) -> dict[str, dict[int, dict[str, Any]]]:
    """By part and seed what was measured of both twins; ``seeds`` names the parts. What several share runs once."""
    runs = [(name, seed, twins(PARTS[name])) for name in seeds for seed in seeds[name]]
    needed = {(seed, _key(recipe)): recipe for _, seed, recipes in runs for recipe in recipes.values()}
    trainings: dict[tuple[int, str], Future[Trained]] = {}
    for (seed, _), recipe in needed.items():
        if (seed, _training_of(recipe)) not in trainings:
            trainings[seed, _training_of(recipe)] = pool.submit(train_one, recipe, seed, steps)
    by_future = {future: key for key, future in trainings.items()}
    measured: dict[tuple[int, str], Future[Measured]] = {}
    for future in as_completed(by_future):
        for (seed, key), recipe in needed.items():
            if (seed, _training_of(recipe)) == by_future[future]:
                measured[seed, key] = pool.submit(measure_one, recipe, seed, future.result().state, n)
    found: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in seeds}
    for name, seed, recipes in runs:
        done = {twin: trainings[seed, _training_of(recipe)].result() for twin, recipe in recipes.items()}
        models = {twin: _rebuilt(recipe, seed, done[twin].state) for twin, recipe in recipes.items()}
        numbers = {twin: measured[seed, _key(recipe)].result() for twin, recipe in recipes.items()}
        found[name][seed] = _side_by_side(PARTS[name], models, numbers)
        for twin, run in done.items():
            found[name][seed][twin]["curve"] = [[step, _short(loss)] for step, loss in run.curve]
            found[name][seed][twin]["seconds"] = round(run.seconds, 1)
    return found


def watched(part: Part, seed: int, steps: int | None = None, n: int = FRESH) -> Iterator[dict[str, Any]]:
    """Train both twins side by side: points of both curves as they come, and at the end what was measured."""
    recipes = twins(part)
    models = {twin: fresh_model(recipe, seed) for twin, recipe in recipes.items()}
    for points in zip(*(training(recipes[twin], models[twin], steps) for twin in TWINS), strict=True):
        for twin, (step, loss) in zip(TWINS, points, strict=True):
            yield {"twin": twin, "step": step, "loss": _short(loss)}
    measured = _side_by_side(part, models, {twin: measure(recipes[twin], models[twin], seed, n) for twin in TWINS})
    yield {"measured": {**measured, "target": target(part, measured["source"])}}


def written(measured: dict[str, dict[int, dict[str, Any]]], before: dict[str, Any]) -> dict[str, Any]:
    """The file's contents: these parts as measured now, the others as they stood before."""
    parts = dict(before.get("parts", {}))
    for name, by_seed in measured.items():
        recipes = {twin: asdict(recipe) for twin, recipe in twins(PARTS[name]).items()}
        runs = {str(seed): run for seed, run in by_seed.items()}
        parts[name] = {"command": f"python -m transformer.broken {name}", **recipes, "seeds": runs}
    parts = {name: parts[name] for name in PARTS if name in parts}
    return {"torch": torch.__version__.split("+")[0], "fresh": FRESH, "parts": parts}


def target(part: Part, source: list[int]) -> list[int]:
    """The right answer to a source, EOS included."""
    return [*TASKS[part.intact.base].target(source), EOS]


def mean(part: dict[str, Any], twin: str, what: str) -> float:
    """The mean over a part's seeds of what was measured of one twin."""
    values = [run[twin][what] for run in part["seeds"].values()]
    return sum(values) / len(values)


def table(results: dict[str, Any]) -> str:
    """Every part on one line of a Markdown table: means over the seeds of loss and exact match, and the command."""
    lines = [
        "| broken part | loss intact | loss broken | exact intact | exact broken | command |",
        "|---|---|---|---|---|---|",
    ]
    for name, part in results["parts"].items():
        losses = " | ".join(f"{mean(part, twin, 'loss'):.3g}" for twin in TWINS)
        exact = " | ".join(f"{mean(part, twin, 'exact'):,.0f}" for twin in TWINS)
        lines.append(f"| {PARTS[name].done} | {losses} | {exact} | `{part['command']}` |")
    return "\n".join(lines)


def _side_by_side(part: Part, models: dict[str, Transformer], measured: dict[str, Measured]) -> dict[str, Any]:
    """Both twins' numbers, and one example decoded by both: the broken twin's first error, if it makes any."""
    wrong = measured["broken"].wrong
    source = wrong[0] if wrong else EXAMPLE
    answers = {twin: decoded(recipe, models[twin], [source])[0] for twin, recipe in twins(part).items()}
    if wrong:
        answers["broken"] = wrong[1]  # with dropout on it need not say the same again
    found: dict[str, Any] = {"source": source, "first_error": wrong is not None}
    for twin in TWINS:
        numbers, model = measured[twin], models[twin]
        found[twin] = {
            "loss": _short(numbers.loss),
            "exact": numbers.exact,
            "alone": numbers.alone,
            "parameters": sum(p.numel() for p in model.parameters()),
            "answer": answers[twin],
        }
    return found


def _key(recipe: Recipe) -> str:
    return json.dumps(asdict(recipe), sort_keys=True)


def _training_of(recipe: Recipe) -> str:
    """Equal for recipes with the same training: what decoding changes needs no other."""
    return _key(replace(recipe, decoding={}))


def _rebuilt(recipe: Recipe, seed: int, state: bytes) -> Transformer:
    model = fresh_model(recipe, seed)
    model.load_state_dict(load(state))
    return model


def _short(loss: float) -> float:
    """Five digits: enough for a curve."""
    return float(f"{loss:.5g}")
