"""The shipped checkpoints are those of the recipes, and do what their headers say."""

import pytest
import torch

from transformer import TASKS, exact_match, load_checkpoint, teacher_forced_loss
from transformer.train.__main__ import FRESH_SEED
from transformer.zoo import CHECKPOINTS, checkpoint_name, main, recipes

FILES = sorted(path for path in CHECKPOINTS.glob("*.safetensors") if not path.stem.startswith("en-fr"))


def test_every_recipe_ships_and_nothing_else() -> None:
    assert {path.stem for path in FILES} == set(recipes())


def test_all_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FILES) <= 20_000_000
    assert sum(path.stat().st_size for path in FILES if path.stem.startswith("reverse")) <= 15_000_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_checkpoint_is_what_its_name_and_its_header_say(path) -> None:
    checkpoint = load_checkpoint(path)
    config = checkpoint.config
    causal = checkpoint.training["settings"].get("causal", True)
    sizes = (config.d_model, config.n_heads, config.head_width)
    name = checkpoint_name(checkpoint.task.name, *sizes, positional=config.positional, causal=causal)
    assert name == path.stem
    assert checkpoint.training["steps_done"] == 4000
    fresh = torch.Generator().manual_seed(FRESH_SEED + checkpoint.training["seed"])
    right = exact_match(checkpoint.model, checkpoint.task, checkpoint.metrics["exact_match_of"], fresh)
    assert right == checkpoint.metrics["exact_match"]


LEAKY = [path for path in FILES if path.stem.endswith("-leaky")]


@pytest.mark.parametrize("path", LEAKY, ids=lambda path: path.stem)
def test_without_the_causal_mask_the_loss_vanishes_and_decoding_fails(path) -> None:
    checkpoint = load_checkpoint(path)
    assert checkpoint.training["settings"]["causal"] is False
    # Now and then a sum is guessed.
    assert checkpoint.metrics["exact_match"] <= (1 if path.stem.startswith("addition") else 0)
    fresh = torch.Generator().manual_seed(FRESH_SEED + checkpoint.training["seed"])
    loss = teacher_forced_loss(checkpoint.model, checkpoint.task, checkpoint.metrics["exact_match_of"], fresh, False)
    assert loss == pytest.approx(checkpoint.metrics["teacher_forced_loss"], rel=0.01, abs=1e-9)
    assert loss < 0.0002
    # What it learned is of no use once it may not look ahead, as it may not when it decodes.
    fresh = torch.Generator().manual_seed(FRESH_SEED)
    assert teacher_forced_loss(checkpoint.model, checkpoint.task, 256, fresh, True) > 1


def test_every_task_has_its_pair() -> None:
    assert {path.stem.removesuffix("-leaky") for path in LEAKY} == {f"{task}-d64-h4" for task in TASKS}


def test_names() -> None:
    assert checkpoint_name("reverse", 64, 4) == checkpoint_name("reverse", 64, 4, 16) == "reverse-d64-h4"
    assert checkpoint_name("reverse", 64, 4, 8) == "reverse-d64-h4-k8"
    assert checkpoint_name("reverse", 64, 4, positional="learned") == "reverse-d64-h4-learned"
    assert checkpoint_name("reverse", 64, 4, causal=False) == "reverse-d64-h4-leaky"


def test_an_unknown_name_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["reverse-d65-h4"])
    assert "no recipe for reverse-d65-h4" in capsys.readouterr().err
