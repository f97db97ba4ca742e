"""The pair of models on the Masks page: one trained with the causal mask, one without."""

import pytest

from app.masks_models import FRESH, is_causal, measured, on_one, two_models
from app.models import shipped
from transformer import ReversalTask

SRC = [3, 11, 7, 4, 5, 6]
RIGHT = SRC[::-1]


def test_the_pair_differs_in_the_mask_and_in_nothing_else_of_how_it_was_trained() -> None:
    causal, leaky = shipped("reverse-d64-h4"), shipped("reverse-d64-h4-leaky")
    assert is_causal(causal)
    assert not is_causal(leaky)
    assert causal.config == leaky.config
    assert {**causal.training["settings"], "causal": False} == leaky.training["settings"]
    assert leaky.task == ReversalTask(min_len=1)


def test_without_the_mask_the_loss_is_almost_nothing_and_not_one_sequence_is_decoded() -> None:
    leaky, causal = (shipped(name) for name in ("reverse-d64-h4-leaky", "reverse-d64-h4"))
    cheat, honest = measured(leaky, leaky.task, 0), measured(causal, leaky.task, 0)
    assert cheat["loss_open"] < 0.0002
    assert cheat["exact"] == 0
    assert cheat["loss_causal"] > 1
    assert honest["loss_causal"] < 0.0002
    assert honest["exact"] == FRESH


def test_it_reads_the_next_token_where_the_other_cannot() -> None:
    task = shipped("reverse-d64-h4-leaky").task
    tokens, cheat = on_one(shipped("reverse-d64-h4-leaky"), task, SRC, RIGHT)
    assert tokens["read"] == [1, *RIGHT, 0, 0]
    assert tokens["forced"] == tokens["right"] == [*RIGHT, 2]
    assert tokens["greedy"] != tokens["right"]
    assert cheat["weights"].shape == (2, 4, 9, 9)
    assert cheat["ahead"].max() > 0.9
    tokens, honest = on_one(shipped("reverse-d64-h4"), task, SRC, RIGHT)
    assert tokens["greedy"] == tokens["right"]
    assert honest["ahead"].max() == 0


@pytest.mark.parametrize("src", [(), (7,), tuple(range(3, 11)) * 2])
def test_every_length_is_told(src: tuple[int, ...]) -> None:
    said, arrays = two_models("reverse", src, 0)
    assert said["causal"]["right"] == said["open"]["right"] == [*map(str, src[::-1]), "<eos>"]
    assert arrays["open_weights"].shape == arrays["causal_weights"].shape
    assert said["open"]["trained"]["exact_match"] == 0
