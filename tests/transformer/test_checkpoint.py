import json
import re
from collections.abc import Callable
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.transformer.small import CHOICES, seeded, small_model, sources, targets
from transformer import (
    ReversalTask,
    TrainSettings,
    TrainState,
    Transformer,
    TransformerConfig,
    load_checkpoint,
    load_training,
    save_checkpoint,
    train,
)

TASK = ReversalTask(n_symbols=5, min_len=2, max_len=6)
CONFIG = TransformerConfig(
    src_vocab_size=8, tgt_vocab_size=8, d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1,
    max_len=7, dropout=0.2, norm="pre",
)  # fmt: skip
SETTINGS = TrainSettings(steps=20, batch_size=7, lr=1e-2, warmup=5)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


def fresh() -> Transformer:
    return Transformer(CONFIG, seeded())


def saved(path: Path) -> None:
    save_checkpoint(path, fresh(), TASK, training={"seed": 3}, metrics={"exact_match": 4_091})


def stopped(path: Path, steps: int) -> None:
    model = fresh()
    state = TrainState(model, SETTINGS)
    list(islice(train(model, TASK, SETTINGS, state), steps))
    save_checkpoint(path, model, TASK, training={"settings": asdict(SETTINGS), "steps_done": state.step}, state=state)


def rewrite(path: Path, header: Callable = lambda _: None, tensors: Callable = lambda _: None) -> None:
    """Write a file again after its header and tensors, as dicts, have been changed in place."""
    with safe_open(path, framework="pt") as file:
        values = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        strings = file.metadata()
    header(strings)
    tensors(values)
    save_file(values, path, metadata=strings)


def set_in(part: str, **changes) -> Callable:
    """A change of a header: fields of one of its JSON objects, ... to leave one out."""

    def change(header: dict[str, str]) -> None:
        values = json.loads(header[part]) | changes
        header[part] = json.dumps({name: value for name, value in values.items() if value is not ...})

    return change


# there and back


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES.keys())
@torch.no_grad()
def test_a_model_comes_back_as_it_was(choice, path):
    model = small_model(**choice)
    save_checkpoint(path, model, TASK)
    checkpoint = load_checkpoint(path)
    assert checkpoint.config == checkpoint.model.config == model.config
    state = checkpoint.model.state_dict()
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(checkpoint.model(sources(), targets()), model(sources(), targets()))


def test_all_that_is_known_of_it_comes_back_too(path):
    training, metrics = {"seed": 3, "settings": asdict(SETTINGS)}, {"exact_match": 4_091, "bleu": 46.5}
    save_checkpoint(path, fresh(), TASK, training=training, metrics=metrics)
    checkpoint = load_checkpoint(str(path))
    assert checkpoint.task == TASK
    assert checkpoint.tokenizer == TASK.tokenizer
    assert checkpoint.metrics == metrics
    assert checkpoint.training["seed"] == 3
    assert not checkpoint.model.training


def test_one_matrix_for_all_words_is_saved_once_and_comes_back_as_one(path):
    model = small_model(tie_embeddings=True, src_vocab_size=19)
    save_checkpoint(path, model, TASK)
    with safe_open(path, framework="pt") as file:
        assert len(list(file.keys())) == len(list(model.parameters()))
    loaded = load_checkpoint(path).model
    assert loaded.output.weight is loaded.src_embedding.token.weight is loaded.tgt_embedding.token.weight


def test_everything_but_the_weights_is_json_in_the_header(path):
    saved(path)
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
    assert json.loads(header["config"]) == asdict(CONFIG)
    assert json.loads(header["task"]) == {"name": "reverse", "n_symbols": 5, "min_len": 2, "max_len": 6}
    assert json.loads(header["metrics"]) == {"exact_match": 4_091}


def test_a_file_loads_with_another_max_len(path):
    saved(path)
    rewrite(path, set_in("config", max_len=99))
    assert load_checkpoint(path).model(torch.full((1, 99), 3), torch.full((1, 5), 3)).shape == (1, 5, 8)


def test_saving_again_replaces_the_file(path):
    path.write_text("something else")
    saved(path)
    assert load_checkpoint(path).config == CONFIG


def test_saving_and_loading_leave_the_global_generator_alone(path):
    before = torch.random.get_rng_state()
    saved(path)
    load_checkpoint(path)
    assert torch.equal(torch.random.get_rng_state(), before)


# a stopped run


@pytest.mark.parametrize("stop", [0, 1, 10])
def test_saved_and_taken_up_a_run_is_the_same_to_the_bit(stop, path):
    whole = fresh()
    losses = [step.loss for step in train(whole, TASK, SETTINGS)]
    stopped(path, stop)
    checkpoint, settings, state = load_training(path)
    assert settings == SETTINGS
    assert state.step == stop
    rest = [step.loss for step in train(checkpoint.model, checkpoint.task, settings, state)]
    assert rest == losses[stop:]
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), checkpoint.model.parameters(), strict=True))


def test_a_stopped_run_can_be_looked_at_like_any_model(path):
    stopped(path, 2)
    assert load_checkpoint(path).config == CONFIG


def test_a_finished_model_cannot_be_taken_up(path):
    saved(path)
    with pytest.raises(ValueError, match="only a run that was stopped can be resumed"):
        load_training(path)


@pytest.mark.parametrize(
    ("header", "tensors", "said"),
    [
        (set_in("training", settings=...), lambda _: None, "lacks 'settings'"),
        (set_in("training", steps_done=...), lambda _: None, "lacks 'steps_done'"),
        (set_in("training", settings={"steps": 9, "speed": 1}), lambda _: None, "unknown TrainSettings fields: speed"),
        (set_in("training", settings={"steps": "9"}), lambda _: None, "is damaged"),
        (lambda _: None, lambda t: t.pop("training/generator"), "lacks 'generator'"),
    ],
)
def test_a_damaged_run_is_refused(header, tensors, said, path):
    stopped(path, 2)
    rewrite(path, header, tensors)
    with pytest.raises(ValueError, match=re.escape(said)) as refusal:
        load_training(path)
    assert str(path) in str(refusal.value)


# files of another kind


@pytest.mark.parametrize("content", [b"", b"a text", b'{"d_model": 16}', bytes(1_000)])
def test_a_file_that_is_no_safetensors_is_refused(content, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"{path} is not a safetensors file")):
        load_checkpoint(path)


def test_a_pickled_model_is_refused(path):
    torch.save(fresh().state_dict(), path)
    with pytest.raises(ValueError, match="is not a safetensors file"):
        load_checkpoint(path)


def test_half_a_file_is_refused(path):
    saved(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match="is not a safetensors file"):
        load_checkpoint(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "transformer-workbench 2"}])
def test_safetensors_of_others_are_refused(metadata, path):
    save_file({"w": torch.zeros(3)}, path, metadata=metadata)
    with pytest.raises(ValueError, match="is a safetensors file but not a checkpoint of this project"):
        load_checkpoint(path)


def test_a_missing_file_is_missing(path):
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
        load_checkpoint(path)


# damaged headers and weights


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (lambda h: h.pop("task"), "'task'"),
        (lambda h: h.update(config="{"), "is damaged"),
        (lambda h: h.update(config="[16, 2]"), "config is not a JSON object"),
        (lambda h: h.update(metrics="null"), "metrics is not a JSON object"),
        (set_in("config", d_modle=16, heads=2), "unknown TransformerConfig fields: d_modle, heads"),
        (set_in("config", src_vocab_size=...), "src_vocab_size"),
        (set_in("config", d_model=130, n_heads=4), "d_model 130 is not divisible by n_heads 4"),
        (set_in("config", norm="middle"), "norm is 'middle'"),
        (set_in("task", name="knit"), "was trained on the task 'knit'; known tasks are"),
        (set_in("task", name=...), "was trained on the task None"),
        (set_in("task", colours=3), "unknown ReversalTask fields: colours"),
        (set_in("task", n_symbols="5"), "is damaged"),
    ],
)
def test_a_damaged_header_is_refused(header, said, path):
    saved(path)
    rewrite(path, header)
    with pytest.raises(ValueError, match=re.escape(said)):
        load_checkpoint(path)


def put(name: str, value: torch.Tensor) -> Callable:
    return lambda tensors: tensors.update({f"model/{name}": value})


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (put("output.bias", torch.zeros(9)), "output.bias has shape (9,), its config needs (8,)"),
        (put("output.weight", torch.zeros(16, 8)), "output.weight has shape (16, 8), its config needs (8, 16)"),
        (put("output.bias", torch.full((8,), torch.nan)), "output.bias holds numbers that are not finite"),
        (put("output.bias", torch.full((8,), torch.inf)), "output.bias holds numbers that are not finite"),
        (put("encoder.1.ffn.w_1.bias", torch.zeros(32)), "1 tensors that its config has no place for"),
        (lambda t: t.pop("model/output.bias"), "lacks 1 of the model's tensors, the first is output.bias"),
        (lambda t: t.clear(), "model's tensors, the first is decoder.0"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tensors, said, path):
    saved(path)
    rewrite(path, tensors=tensors)
    with pytest.raises(ValueError, match=re.escape(said)) as refusal:
        load_checkpoint(path)
    assert str(path) in str(refusal.value)


def test_weights_of_another_config_are_refused(path):
    saved(path)
    rewrite(path, set_in("config", d_ff=64))
    with pytest.raises(ValueError, match=re.escape("its config needs (64,")):
        load_checkpoint(path)
