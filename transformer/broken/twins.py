"""Train twins on the same data and measure both in the same way."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ..decode import greedy_decode
from ..masks import padding_mask
from ..model import Transformer
from ..presets import PRESETS
from ..tasks import ReversalTask
from ..tokenizer import BOS, EOS, PAD
from ..train import TrainSettings, teacher_forced_loss, train
from ..train.__main__ import DOCUMENT_SETTINGS, FRESH_SEED, QUICK_CONFIG
from .parts import Recipe

TASKS = {"quick": ReversalTask(), "document": ReversalTask(min_len=3)}
CONFIGS = {"quick": QUICK_CONFIG, "document": PRESETS["reversal"]}
SETTINGS = {"quick": TrainSettings(), "document": DOCUMENT_SETTINGS}
POINTS = 90  # of a curve; each is the mean over equally many steps
FRESH = 2048  # sequences to measure on
LONGEST = 8  # symbols of a source, in either task
EXAMPLE = [3, 11, 7, 4, 5, 6]  # shown where the broken twin gets everything right


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One twin after training, on fresh sequences.

    loss   teacher-forced, in nats per token, with the masks, dropout and start token that the recipe has.
    exact  how many are decoded without one wrong token, in one batch, padded to the same length.
    alone  how many when each comes without padding.
    wrong  the first source of at least 5 symbols that it gets wrong in the batch, and what it said, or None.
    """

    loss: float
    exact: int
    alone: int
    wrong: tuple[list[int], list[int]] | None


def fresh_model(recipe: Recipe, seed: int) -> Transformer:
    """The untrained model of a recipe, its generator at the same place for every recipe of this seed.

    Without that, a model with fewer parameters would draw fewer numbers and then see other data than its twin.
    """
    generator = torch.Generator().manual_seed(seed)
    model = Transformer(replace(CONFIGS[recipe.base], **recipe.config), generator)
    generator.manual_seed(seed)
    return model


def training(recipe: Recipe, model: Transformer, steps: int | None = None) -> Iterator[tuple[int, float]]:
    """Train in place, giving (step, mean loss since the last point) ``POINTS`` times; ``steps`` ends it early."""
    settings = replace(SETTINGS[recipe.base], **recipe.settings)
    every = -(-settings.steps // POINTS)
    losses: list[float] = []
    for step in train(model, TASKS[recipe.base], settings):
        losses.append(step.loss)
        if step.step % every == 0 or step.step in (steps, settings.steps):
            yield step.step, sum(losses) / len(losses)
            losses = []
        if step.step == steps:
            return


def measure(recipe: Recipe, model: Transformer, seed: int, n: int = FRESH) -> Measured:
    """Exact match and teacher-forced loss on the n fresh sequences of a seed, the same for every recipe.

    Dropout that is left on draws from the seed too, wherever training has left the model's generator.
    """
    model.generator.manual_seed(FRESH_SEED + seed)
    task = TASKS[recipe.base]
    causal = recipe.settings.get("causal", True)
    loss = teacher_forced_loss(model, task, n, _fresh(seed), causal, **recipe.decoding)
    batch = task.batch(n, _fresh(seed), held_out=True)
    sources = [row[:length] for row, length in zip(batch.src.tolist(), batch.lengths.tolist(), strict=True)]
    wrong = _wrong(recipe, model, sources)
    by_length = [[source for source in sources if len(source) == length] for length in range(task.max_source + 1)]
    return Measured(
        loss=loss,
        exact=n - len(wrong),
        alone=n - sum(len(_wrong(recipe, model, some, 0)) for some in by_length if some),
        wrong=next((pair for pair in wrong if len(pair[0]) >= 5), None),
    )


def empty_sources(recipe: Recipe, seed: int, n: int = FRESH) -> int:
    """How many of the fresh sequences are empty: a model that says EOS at once gets these right."""
    return int((TASKS[recipe.base].batch(n, _fresh(seed), held_out=True).lengths == 0).sum())


def decoded(recipe: Recipe, model: Transformer, sources: list[list[int]], least: int = LONGEST) -> list[list[int]]:
    """What the model makes of sources in one batch padded to at least ``least``: each up to EOS or the limit."""
    lengths = torch.tensor([len(source) for source in sources])
    src = torch.full((len(sources), max(least, int(lengths.max()))), PAD)
    for row, source in zip(src, sources, strict=True):
        row[: len(source)] = torch.tensor(source, dtype=torch.long)
    return _rows(recipe, model, src, lengths)


def _fresh(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(FRESH_SEED + seed)


def _wrong(
    recipe: Recipe, model: Transformer, sources: list[list[int]], least: int = LONGEST
) -> list[tuple[list[int], list[int]]]:
    """The sources that are answered wrongly, each with the answer."""
    target, answers = TASKS[recipe.base].target, decoded(recipe, model, sources, least)
    pairs = zip(sources, answers, strict=True)
    return [(source, answer) for source, answer in pairs if answer != [*target(source), EOS]]


def _rows(recipe: Recipe, model: Transformer, src: Tensor, lengths: Tensor) -> list[list[int]]:
    steps = greedy_decode(
        model,
        src,
        LONGEST + 1,
        src_mask=padding_mask(lengths, src.shape[1]) if recipe.decoding.get("padding", True) else None,
        dropout=recipe.decoding.get("dropout", False),
        bos_id=recipe.decoding.get("start", BOS),
    )
    rows = torch.stack([step.token for step in steps], dim=1).tolist()
    return [row[: row.index(EOS) + 1] if EOS in row else row for row in rows]
