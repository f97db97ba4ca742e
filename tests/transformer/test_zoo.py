"""The shipped checkpoints are those of the recipes, and do what their headers say."""

import pytest
import torch

from transformer import exact_match, load_checkpoint
from transformer.train.__main__ import FRESH_SEED
from transformer.zoo import CHECKPOINTS, checkpoint_name, main, recipes

FILES = sorted(CHECKPOINTS.glob("*.safetensors"))


def test_every_recipe_ships_and_nothing_else() -> None:
    assert {path.stem for path in FILES} == set(recipes())


def test_all_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FILES) <= 20_000_000
    assert sum(path.stat().st_size for path in FILES if path.stem.startswith("reverse")) <= 15_000_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_checkpoint_is_what_its_name_and_its_header_say(path) -> None:
    checkpoint = load_checkpoint(path)
    config = checkpoint.config
    name = checkpoint_name(checkpoint.task.name, config.d_model, config.n_heads, config.head_width, config.positional)
    assert name == path.stem
    assert checkpoint.training["steps_done"] == 4000
    fresh = torch.Generator().manual_seed(FRESH_SEED + checkpoint.training["seed"])
    right = exact_match(checkpoint.model, checkpoint.task, checkpoint.metrics["exact_match_of"], fresh)
    assert right == checkpoint.metrics["exact_match"]


def test_names() -> None:
    assert checkpoint_name("reverse", 64, 4) == checkpoint_name("reverse", 64, 4, 16) == "reverse-d64-h4"
    assert checkpoint_name("reverse", 64, 4, 8) == "reverse-d64-h4-k8"
    assert checkpoint_name("reverse", 64, 4, positional="learned") == "reverse-d64-h4-learned"


def test_an_unknown_name_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["reverse-d65-h4"])
    assert "no recipe for reverse-d65-h4" in capsys.readouterr().err
