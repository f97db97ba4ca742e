"""A person's own model, of sizes that no shipped one has, under a real hand: from its file over all pages and back."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page, expect

from app.masks_run import masks, records, run, sentences, with_companions
from app.positions_order import reordered
from app.saturation_run import NUMBERS, of_sequence
from tests.app.test_own_pages import CONFIG as ODD
from tests.browser.conftest import open_page, settle
from transformer import ReversalTask, Trace, Transformer, TransformerConfig, save_checkpoint

SRC = [3, 11, 7, 4, 5, 6]
TASK = ReversalTask()
CONFIG = replace(ODD, d_head=6, positional="rotary")
LABEL = "Yours: uploaded, d_model 22, 3 heads, 1 + 2 layers"
STATUS = "Your model: 1 + 2 layers, d_model 22, 3 heads of d_k 6"


@pytest.fixture
def model() -> Transformer:
    return Transformer(CONFIG, torch.Generator().manual_seed(5)).eval()


def choose(page: Page, model: Transformer, tmp_path: Path) -> None:
    """Upload it on Train and choose it on Decode."""
    file = tmp_path / "mine.safetensors"
    save_checkpoint(file, model, TASK)
    open_page(page, "/train")
    page.get_by_text("Bring a trained model back").click()
    page.locator("input[type=file]").set_input_files(str(file))
    expect(page.get_by_text("mine.safetensors is taken in.")).to_be_visible()
    go_to(page, "Decode")
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name=LABEL).click()
    page.wait_for_url("**model-reverse=*")
    settle(page)


def go_to(page: Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).click()
    page.wait_for_url(re.compile(f"/{name.lower()}" if name != "Decode" else "/(decode)?($|[?])"))
    settle(page)


def expect_chosen(page: Page) -> None:
    expect(page.get_by_role("combobox", name="Model")).to_have_value(LABEL)
    page.wait_for_url("**model-reverse=*")


def drawn(page: Page, panel: str, path: str) -> torch.Tensor:
    """Weights (or values) that a picture draws, read from the picture itself."""
    read = page.locator(panel).evaluate(
        """(root, path) => { const at = path.split(".").reduce((at, name) => at[name], root.panel);
          const { weights, values } = at.grid;
          return JSON.stringify(Array.from((weights ?? { values }).values)); }""",
        path,
    )
    return torch.tensor(json.loads(read))


def expect_masks(page: Page, model: Transformer, lengths: list[int]) -> None:
    batch, trace = sentences(model, TASK, with_companions(TASK, SRC, 0), lengths), Trace()
    run(model, batch, masks(batch, causal=True), trace)
    weights = torch.stack([record.weights[0] for record in records(trace, "decoder")])
    page.wait_for_function(
        "root => root.panel.header.whole && root.panel.header.count === root.panel.latch.count",
        arg=page.locator(".masks").element_handle(),
    )
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    torch.testing.assert_close(drawn(page, ".masks", "weights").view(weights.shape), weights, atol=1e-6, rtol=0)


def expect_order(page: Page, model: Transformer, order: list[int]) -> None:
    expect(page.locator(".order .side canvas").first).to_have_attribute("data-v", "-".join(map(str, order)))
    outputs = torch.tensor(reordered(model, SRC, order)["outputs"])
    for side in (0, 1):
        shown = drawn(page, ".order", f"sides.{side}.sheets.0").view(6, 22)
        torch.testing.assert_close(shown, outputs[side], atol=1e-5, rtol=0)


def expect_heads(page: Page, model: Transformer) -> None:
    found = of_sequence(model, TASK, SRC)["cross"]
    rows = json.loads(page.locator(".own").evaluate("root => JSON.stringify(root.panel.figure.rows().slice(1))"))
    assert len(rows) == 2 * 3 * 2
    for layer, head, divided, number in rows:
        expected = found[layer - 1, head - 1, NUMBERS.index("variance"), int(divided == "no")]
        assert number == pytest.approx(expected, rel=1e-4)


def test_chosen_on_decode_it_is_shown_on_every_page_and_after_a_reload(
    page: Page, model: Transformer, tmp_path: Path
) -> None:
    choose(page, model, tmp_path)

    go_to(page, "Masks")
    lengths = [len(one) for one in with_companions(TASK, SRC, 0)]
    for _ in range(2):
        expect_chosen(page)
        expect(page.locator(".masks .attend .tell")).to_contain_text(STATUS)
        expect_masks(page, model, lengths)
        page.reload()
        settle(page)
    # What is dragged is answered from it too.
    length = page.locator('input[aria-label="length 1"]')
    length.press("ArrowLeft")
    length.press("ArrowLeft")
    page.wait_for_url("**length1=4*")
    expect_masks(page, model, [4, *lengths[1:]])

    go_to(page, "Positions")
    for _ in range(2):
        expect_chosen(page)
        expect(page.get_by_text(STATUS)).to_be_visible()
        expect(page.get_by_role("heading", name="Positions in, by turning q and k")).to_be_visible()
        expect_order(page, model, [5, 4, 3, 2, 1, 0])
        page.reload()
        settle(page)
    page.locator(".order button.chip").first.press("ArrowRight")
    expect_order(page, model, [4, 5, 3, 2, 1, 0])
    expect(page.locator(".sizes .bars")).to_contain_text("yours: d_model 22")
    expect(page.locator(".schemes")).to_contain_text("Your model turns q and k")

    go_to(page, "Saturation")
    for _ in range(2):
        expect_chosen(page)
        expect(page.locator(".own output")).to_have_text("6 (yours: 3 heads, d_model 22)")
        expect(page.locator(".own .note").last).to_contain_text(STATUS)
        expect_heads(page, model)
        page.reload()
        settle(page)
    # The shipped ones are beside it on the slider; the choice above stays, and so does the way back.
    slider = page.locator('input[aria-label="trained model\'s d_k"]')
    slider.press("End")
    expect(page.locator(".own .note").last).to_contain_text(re.compile("^Model: .* heads of d_k 128"))
    page.wait_for_url("**model=reverse-d128-h1*")
    expect_chosen(page)
    go_to(page, "Masks")
    expect_chosen(page)

    # A new visit without a link offers it as well.
    open_page(page, "/masks")
    page.get_by_role("combobox", name="Model").click()
    expect(page.get_by_role("option", name=LABEL)).to_be_visible()
    page.get_by_role("option", name=LABEL).click()
    expect_chosen(page)

    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="Shipped").click()
    expect(page.locator(".masks .attend .tell")).to_contain_text("Model: 2 + 2 layers, d_model 64")
    assert "model-reverse" not in page.url


def test_a_link_to_it_shows_it_and_one_to_a_model_that_is_gone_says_so(
    page: Page, model: Transformer, tmp_path: Path
) -> None:
    choose(page, model, tmp_path)
    model_id = page.url.split("model-reverse=")[1].split("&")[0]
    with page.context.browser.new_context(base_url=page.url.split("/?")[0]) as other:
        stranger = other.new_page()
        open_page(stranger, "/masks")
        assert not stranger.get_by_role("combobox", name="Model").count()
        open_page(stranger, f"/positions?model-reverse={model_id}")
        expect(stranger.get_by_text(STATUS)).to_be_visible()
        for name in ("masks", "positions", "saturation"):
            open_page(stranger, f"/{name}?model-reverse=AAAAAAAAAAAAAAAA")
            expect(stranger.get_by_text("The model in the link is not kept any more")).to_be_visible()
            assert not stranger.get_by_test_id("stException").count()


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_sixteen_heads_fit_a_phone(page: Page, tmp_path: Path) -> None:
    wide = TransformerConfig(
        src_vocab_size=12,
        tgt_vocab_size=12,
        d_model=16,
        n_heads=16,
        d_head=2,
        d_ff=7,
        n_encoder_layers=6,
        n_decoder_layers=5,
        max_len=19,
        positional="none",
        scale_scores=False,
    )
    file = tmp_path / "wide.safetensors"
    save_checkpoint(file, Transformer(wide, torch.Generator().manual_seed(1)), TASK)
    open_page(page, "/train")
    page.get_by_text("Bring a trained model back").click()
    page.locator("input[type=file]").set_input_files(str(file))
    expect(page.get_by_text("wide.safetensors is taken in.")).to_be_visible()
    go_to(page, "Masks")
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name=re.compile("Yours: uploaded, d_model 16")).click()
    page.wait_for_url("**model-reverse=*")
    links = {name: f"/{name}?{page.url.split('?')[1]}" for name in ("masks", "positions", "saturation")}
    page.set_viewport_size({"width": 400, "height": 850})
    said = {
        "masks": "Scores q·k, which this model does not divide",
        "positions": "This model has no positions",
        "saturation": "not divided, as in this model",
    }
    for name, link in links.items():
        open_page(page, link)
        expect(page.get_by_text(said[name])).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # Heads go onto a second line where their numbers would not fit side by side.
    canvas = page.locator(".own canvas")
    expect(canvas).to_have_attribute("aria-label", re.compile("layer 5 head 16: "))
    assert canvas.bounding_box()["height"] == 46 + 5 * 2 * 60
