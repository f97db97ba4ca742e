"""A person's own model on Masks, Positions and Saturation: its very numbers, whatever its sizes are."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from app import models, own
from app.masks_block import panel_block
from app.models import shipped
from app.positions_sections import order_data, schemes_data, sizes_data
from app.saturation_own import own_data
from app.saturation_run import NUMBERS
from app.setup import ROOT
from app.training import Runs
from tests.app.test_answers import asked
from tests.app.test_decoding import unpack
from tests.app.test_training import Pool
from tests.transformer.small import seeded
from transformer import (
    TASKS,
    AttentionSite,
    ReversalTask,
    Trace,
    Transformer,
    TransformerConfig,
    causal_mask,
    padding_mask,
    save_checkpoint,
    without_positions,
)

TASK, SRC = ReversalTask(), [3, 11, 7, 4, 5]
READ = [1, *SRC[::-1]]
CONFIG = TransformerConfig(
    src_vocab_size=12,
    tgt_vocab_size=12,
    d_model=22,
    n_heads=3,
    d_head=5,
    d_ff=13,
    n_encoder_layers=1,
    n_decoder_layers=2,
    max_len=23,
    dropout=0.0,
    positional="learned",
)
OTHERS = {
    "one layer each, odd width, learned": replace(CONFIG, d_model=15, n_decoder_layers=1, max_len=19),
    "deep encoder, rotary, pre-LN, not divided": replace(
        CONFIG, d_head=2, n_heads=7, n_encoder_layers=4, positional="rotary", norm="pre", scale_scores=False
    ),
    "deep decoder, sixteen heads, no positions": replace(
        CONFIG, d_model=16, n_heads=16, d_head=1, n_decoder_layers=6, positional="none"
    ),
    "widest, pre-LN without a last norm": replace(
        CONFIG, d_model=256, n_heads=16, d_head=None, n_encoder_layers=6, norm="pre", final_norm=False
    ),
    "one dimension": replace(CONFIG, d_model=1, n_heads=1, d_head=1),
    "no residual, no FFN, log-probabilities": replace(
        CONFIG, positional="sinusoidal", residual=False, ffn=False, output="log_probs", tie_embeddings=True
    ),
}
PANELS: dict[str, Callable[..., bytes]] = {
    "masks": panel_block,
    "order": order_data,
    "schemes": schemes_data,
    "sizes": sizes_data,
    "own": own_data,
}


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Pool(tmp_path)
    for module in (models, own):
        monkeypatch.setattr(module, "runs", lambda: made)
    return made


def model_of(config: TransformerConfig = CONFIG) -> Transformer:
    return Transformer(config, seeded()).eval()


def kept(pool: Runs, config: TransformerConfig = CONFIG, training: dict[str, Any] | None = None) -> str:
    """The id of an uploaded model."""
    path = pool.root.parent / "model.safetensors"
    save_checkpoint(path, model_of(config), TASK, training=training)
    return pool.keep(path.read_bytes(), "model.safetensors")


def traced(model: Transformer, width: int = len(READ)) -> Trace:
    """One pass over the source and its answer, the target padded to a width."""
    trace = Trace()
    read = torch.tensor([[*READ, *[0] * (width - len(READ))]])
    mask = causal_mask(width) & padding_mask(torch.tensor([len(READ)]), width)
    with torch.no_grad():
        model(torch.tensor([SRC]), read, None, mask, trace)
    return trace


def test_masks_show_its_scores_weights_and_next_tokens(pool: Runs) -> None:
    model_id = kept(pool)
    header, arrays = unpack(panel_block(TASK, SRC, {"layer": 1, "head": 2}, model_id))
    ours, _ = unpack(panel_block(TASK, SRC, {"layer": 1, "head": 2}))
    rows = arrays["weights"].shape[2]
    trace = traced(model_of(), rows)
    for name in ("scores", "weights"):
        expected = torch.cat([getattr(trace.attention[AttentionSite("decoder", i, "self")], name) for i in (0, 1)])
        np.testing.assert_allclose(arrays[name], expected, atol=1e-5)
    assert arrays["weights"].shape[:2] == (2, 3)
    assert header["heads"] == 3
    assert (header["view"]["layer"], header["view"]["head"]) == (1, 2)
    assert header["status"].startswith("Your model: 1 + 2 layers, d_model 22, 3 heads of d_k 5, ")
    assert header["status"].endswith("parameters; not measured.")
    assert (header["own"], ours["own"]) == (True, False)
    assert ours["status"].startswith("Model: 2 + 2 layers, d_model 64")
    # The pair below is the shipped one, whatever is chosen above.
    assert header["pair"] == ours["pair"]


def test_masks_of_another_depth_of_the_encoder(pool: Runs) -> None:
    header, arrays = unpack(panel_block(TASK, SRC, {"attend": "encoder", "layer": 7, "head": 7}, kept(pool)))
    expected = traced(model_of()).attention[AttentionSite("encoder", 0, "self")].weights[0]
    np.testing.assert_allclose(arrays["weights"][0, :, :5, :5], expected, atol=1e-5)
    assert (header["view"]["layer"], header["view"]["head"]) == (0, 2)
    assert header["query_axis"]["nan_1"] > 0
    assert header["query_axis"]["nan_2"] is None


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({"settings": {"causal": False}}, True),
        ({"settings": {"causal": True}}, False),
        ({"settings": 7}, False),
        ({}, False),
    ],
    ids=str,
)
def test_one_that_was_trained_without_the_causal_mask_is_said_to_be(
    pool: Runs, training: dict[str, Any], said: bool
) -> None:
    header, _ = unpack(panel_block(TASK, SRC, {}, kept(pool, training=training)))
    assert header["status"].endswith("It was trained without the causal mask.") == said


def test_the_order_experiment_is_its_own(pool: Runs) -> None:
    order = [3, 0, 4, 2, 1]
    header, arrays = unpack(order_data(TASK, SRC, {"order": order}, kept(pool)))
    model, moved = model_of(), torch.tensor([[SRC[place] for place in order]])
    with torch.no_grad():
        for side, which in enumerate((without_positions(model), model)):
            np.testing.assert_allclose(arrays["outputs"][side], which.encode(torch.tensor([SRC]))[0, order], atol=1e-6)
            np.testing.assert_allclose(arrays["again"][side], which.encode(moved)[0], atol=1e-6)
    assert (header["width"], header["positional"]) == (22, "learned")
    assert header["apart"][0] < 1e-5 < header["apart"][1]
    assert header["status"].startswith("Your model: 1 + 2 layers")


def test_without_positions_both_sides_of_the_order_experiment_agree(pool: Runs) -> None:
    header, arrays = unpack(order_data(TASK, SRC, {}, kept(pool, replace(CONFIG, positional="none"))))
    assert header["positional"] == "none"
    np.testing.assert_array_equal(arrays["outputs"][0], arrays["outputs"][1])
    assert max(header["apart"]) < 1e-5


def test_its_learned_table_is_the_one_shown(pool: Runs) -> None:
    header, arrays = unpack(schemes_data(TASK, SRC, {}, kept(pool)))
    np.testing.assert_allclose(arrays["added"][1], model_of().src_embedding.position.weight.detach(), atol=1e-7)
    assert (header["positions"], header["width"], header["taught"]) == (23, 22, 8)
    assert header["own"].startswith("Your model adds a learned table")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (replace(CONFIG, positional="rotary", d_head=6), "turns q and k, the last of these, 6 dimensions in each head"),
        (replace(CONFIG, positional="none"), "has no positions of any kind"),
        (replace(CONFIG, positional="sinusoidal"), "adds sinusoids, the first of these"),
        (replace(CONFIG, d_model=15), "is 15 wide, which makes no pairs"),
    ],
    ids=["rotary", "none", "sinusoidal", "odd"],
)
def test_a_model_without_such_a_table_leaves_the_shipped_one_and_says_so(
    pool: Runs, config: TransformerConfig, said: str
) -> None:
    header, arrays = unpack(schemes_data(TASK, SRC, {}, kept(pool, config)))
    usual, expected = unpack(schemes_data(TASK, SRC, {}))
    np.testing.assert_array_equal(arrays["added"], expected["added"])
    assert said in header["own"]
    assert usual["own"] == ""


def test_its_sizes_stand_beside_the_others(pool: Runs) -> None:
    header, _ = unpack(sizes_data(TASK, SRC, {"width": 32}, kept(pool)))
    embedding = model_of().src_embedding
    row = header["rows"][-1]
    assert row["name"] == "yours: d_model 22"
    assert row["measured"] == pytest.approx(22**0.5 * embedding.token.weight[3:].square().mean().sqrt().item())
    assert row["positions"] == pytest.approx(embedding.position.weight[:8].square().mean().sqrt().item())
    assert not any(row["name"].startswith("yours") for row in unpack(sizes_data(TASK, SRC, {}))[0]["rows"])


def test_its_own_q_and_k_by_hand(pool: Runs) -> None:
    model_id = kept(pool)
    header, arrays = unpack(own_data(TASK, SRC, {}, model_id))
    record = traced(model_of()).attention[AttentionSite("decoder", 1, "cross")]
    dots = record.q[0, 2] @ record.k[0, 2].T
    found = arrays["trained-cross"]
    assert found.shape == (2, 3, len(NUMBERS), 2)
    for side, scores in enumerate((dots / 5**0.5, dots)):
        assert found[1, 2, NUMBERS.index("variance"), side] == pytest.approx(scores.var(correction=0).item(), rel=1e-3)
        largest = scores.softmax(-1).amax(-1).mean().item()
        assert found[1, 2, NUMBERS.index("largest"), side] == pytest.approx(largest, rel=1e-4)
    assert arrays["trained-encoder"].shape[0] == arrays["untrained-encoder"].shape[0] == 1
    at = next(i for i, one in enumerate(header["models"]) if one["name"] == header["view"]["model"])
    assert header["models"][at] == {"name": "the chosen one", "d_k": 5, "label": "5  (yours: 3 heads, d_model 22)"}
    assert [one["d_k"] for one in header["models"]] == sorted(one["d_k"] for one in header["models"])
    assert header["divides"]


def test_the_shipped_ones_stay_on_the_slider_beside_it(pool: Runs) -> None:
    model_id = kept(pool)
    for name in ("reverse-d64-h4", "reverse-d16-h2"):
        header, arrays = unpack(own_data(TASK, SRC, {"model": name}, model_id))
        assert header["view"]["model"] == name
        assert arrays["trained-cross"].shape[1] == shipped(name).config.n_heads
        assert header["status"].startswith("Model: ")
    # Where nothing else is chosen the usual one is the chosen one, by whatever name.
    alone = [unpack(own_data(TASK, SRC, {"model": name}))[0] for name in ("the chosen one", "reverse-d64-h4", "x")]
    assert {header["view"]["model"] for header in alone} == {"the chosen one"}
    assert "reverse-d64-h4" not in [one["name"] for one in alone[0]["models"]]


@pytest.mark.parametrize("panel", PANELS)
def test_a_question_asked_while_dragging_is_answered_from_that_model(pool: Runs, panel: str) -> None:
    model_id = kept(pool)
    block = PANELS[panel](TASK, SRC, {"count": 3}, model_id)
    header, _ = unpack(block)
    assert header["ask"]["model"] == model_id
    question = {"task": header["ask"]["task"], "source": header["ask"]["source"], "wish": {"count": 3}}
    assert asked(panel, {**question, "model": model_id}).body == block
    assert asked(panel, question).body != block


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("wrong", ["AAAAAAAAAAAAAAAA", "../../x", "{id}@7", "@"])
def test_what_is_not_there_gives_way_to_the_shipped_model(pool: Runs, panel: str, wrong: str) -> None:
    model_id = wrong.format(id=kept(pool))
    header, arrays = unpack(PANELS[panel](TASK, SRC, {}, model_id))
    usual, expected = unpack(PANELS[panel](TASK, SRC, {}))
    assert {**header, "ask": None} == {**usual, "ask": None}
    assert all(np.array_equal(arrays[name], expected[name], equal_nan=True) for name in expected)


@pytest.mark.parametrize("panel", PANELS)
def test_a_model_of_another_task_gives_way_too(pool: Runs, panel: str) -> None:
    copy = TASKS["copy"]()
    header, _ = unpack(PANELS[panel](copy, SRC, {}, kept(pool)))
    usual, _ = unpack(PANELS[panel](copy, SRC, {}))
    assert {**header, "ask": None} == {**usual, "ask": None}


@pytest.mark.parametrize("config", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("src", [[], [7], SRC, [3, 4] * 8], ids=len)
def test_whatever_is_uploaded_has_its_pictures(pool: Runs, config: TransformerConfig, src: list[int]) -> None:
    model_id = kept(pool, config)
    for attend in ("encoder", "decoder", "cross"):
        wish = {"attend": attend, "layer": 9, "head": 20, "causal": False, "sentence": 2}
        _, arrays = unpack(panel_block(TASK, src, wish, model_id))
        layers = config.n_encoder_layers if attend == "encoder" else config.n_decoder_layers
        assert arrays["weights"].shape[:2] == (layers, config.n_heads)
        assert all(np.isfinite(array).all() for name, array in arrays.items() if not name.startswith("empty"))
    for panel in (order_data, schemes_data, sizes_data):
        header, arrays = unpack(panel(TASK, src, {}, model_id))
        assert "NaN" not in json.dumps(header)
        assert all(np.isfinite(array).all() for array in arrays.values())
    for sample in ("own", "batch"):
        header, arrays = unpack(own_data(TASK, src, {"sample": sample}, model_id))
        assert arrays["trained-cross"].shape[:2] == (config.n_decoder_layers, config.n_heads)
        assert header["divides"] == config.scale_scores


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
    for name, value in query.items():
        app.query_params[name] = value
    return app


def shown(app: AppTest) -> list[str]:
    return [unpack(each.proto.bytes)[0]["ask"].get("model", "") for each in app.get("bidi_component")]


def test_it_is_chosen_once_for_all_pages_and_is_in_every_link(pool: Runs) -> None:
    model_id = kept(pool)
    app = opened(task="Reverse")
    app.session_state[own.OWN] = [model_id]
    app.run()
    app.selectbox(key="model-reverse").select(model_id).run()
    for name in ("masks", "positions", "saturation", "attention"):
        app.switch_page(f"../pages/{name}.py").run()
        assert not app.exception
        assert app.selectbox(key="model-reverse").value == model_id
        assert app.query_params["model-reverse"] in (model_id, [model_id])
        assert model_id in shown(app)
    app.selectbox(key="model-reverse").select("shipped").run()
    app.switch_page("../pages/masks.py").run()
    assert app.selectbox(key="model-reverse").value == "shipped"
    assert set(shown(app)) == {""}


@pytest.mark.parametrize("name", ["masks", "positions", "saturation"])
def test_one_that_is_gone_gives_way_with_a_message(pool: Runs, name: str) -> None:
    app = opened(**{"model-reverse": "AAAAAAAAAAAAAAAA"})
    app.switch_page(f"../pages/{name}.py").run()
    assert not app.exception
    assert "The model in the link is not kept any more" in app.info[0].value
    assert set(shown(app)) == {""}


def test_one_that_was_followed_by_a_link_stays_on_the_next_page_until_it_is_gone(pool: Runs) -> None:
    model_id = kept(pool)
    app = opened(**{"model-reverse": model_id})
    app.switch_page("../pages/masks.py").run()
    del app.query_params["model-reverse"]  # as a click in the navigation does
    app.switch_page("../pages/positions.py").run()
    assert app.selectbox(key="model-reverse").value == model_id
    assert app.query_params["model-reverse"] in (model_id, [model_id])
    pool.known.clear()
    (pool.root / model_id).rename(pool.root.parent / "gone")
    del app.query_params["model-reverse"]
    app.switch_page("../pages/saturation.py").run()
    assert "The model chosen last is not kept any more" in app.info[0].value
    assert set(shown(app)) == {""}
    app.run()
    assert not app.info


@pytest.mark.parametrize("name", ["masks", "positions", "saturation"])
def test_another_person_is_not_offered_it(pool: Runs, name: str) -> None:
    first, second = opened(), opened()
    first.session_state[own.OWN] = [kept(pool)]
    for app in (first, second):
        app.switch_page(f"../pages/{name}.py").run()
        assert not app.exception
    assert [box.key for box in first.selectbox] == ["model-reverse"]
    assert not second.selectbox


def test_another_choice_above_moves_saturations_slider_to_it(pool: Runs) -> None:
    app = opened(model="reverse-d16-h2")
    app.session_state[own.OWN] = [kept(pool)]
    app.switch_page("../pages/saturation.py").run()

    def on_slider() -> str:
        return unpack(app.get("bidi_component")[1].proto.bytes)[0]["view"]["model"]

    assert on_slider() == "reverse-d16-h2"
    app.selectbox(key="model-reverse").select(app.session_state[own.OWN][0]).run()
    assert on_slider() == "the chosen one"
    assert "model" not in app.query_params
