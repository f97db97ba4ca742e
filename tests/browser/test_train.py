"""The Train page under a real hand: a tiny training from start to end, scrubbed, reloaded, shown on other pages."""

import json
import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from app.models import CHECKPOINTS
from app.recordings import recording
from tests.browser.conftest import open_page, settle
from transformer import load_checkpoint
from transformer.train.plan import Plan
from transformer.train.record import example_attention, frame_rows

EXAMPLE = [3, 11, 7, 4, 5, 6]  # of the copy task: source and target
LONG = 90_000  # a process is started, on a machine that may be busy


def standing(page: Page) -> Locator:
    return page.locator(".train .standing")


def number(page: Page, name: str) -> Locator:
    return page.locator(f"[data-number={name}]")


def slider(page: Page, name: str) -> Locator:
    return page.locator(f'.train input[type=range][aria-label="{name}"]')


def start(page: Page, path: str) -> None:
    open_page(page, path)
    page.get_by_role("button", name="Start", exact=True).click()


def shown(page: Page, kind: str) -> torch.Tensor:
    """The weights that a picture draws, read from the picture itself."""
    grid = page.locator(".train").evaluate(
        """(root, kind) => { const { weights } = root.panel.heads[kind].grid;
          return JSON.stringify({ shape: weights.shape, values: Array.from(weights.values) }); }""",
        kind,
    )
    read = json.loads(grid)
    return torch.tensor(read["values"]).view(read["shape"])


def test_opens_on_a_recording_that_can_be_scrubbed(page: Page) -> None:
    open_page(page, "/train")
    expect(standing(page)).to_contain_text("A training recorded earlier.")
    expect(number(page, "step")).to_have_text("450 of 450")
    folder = recording("reverse")
    rows = frame_rows(folder, Plan.read(folder))
    expect(slider(page, "step")).to_have_attribute("max", str(rows.count() - 1))
    slider(page, "step").focus()
    slider(page, "step").press("Home")
    expect(page.locator(".train figure.picture canvas").first).to_have_attribute("data-v", "0")
    expect(number(page, "exact")).to_have_text("0 of 64")
    # Before the first step every weight of an untrained head is near to uniform; at the end some head is sharp.
    assert shown(page, "cross").max() < 0.6
    slider(page, "step").press("End")
    assert shown(page, "cross").max() > 0.9


def test_a_curve_is_a_slider_too_and_the_link_holds_the_step(page: Page) -> None:
    open_page(page, "/train")
    canvas = page.locator(".train .curves canvas").first
    expect(canvas).to_have_attribute("data-v", "450")
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + 44 + (box["width"] - 74) / 2, box["y"] + 60)
    page.wait_for_url(re.compile(r"at=22\d"))
    step = int(canvas.get_attribute("data-v"))
    assert 215 <= step <= 225
    page.reload()
    settle(page)
    expect(page.locator(".train .curves canvas").first).to_have_attribute("data-v", str(step))


def test_a_pointer_that_only_passes_reads_a_curve_and_moves_nothing(page: Page) -> None:
    open_page(page, "/train")
    figure = page.locator(".train .curves").first
    canvas, note = figure.locator("canvas"), figure.locator(".note")
    expect(canvas).to_have_attribute("data-v", "450")
    said, box = note.inner_text(), canvas.bounding_box()
    page.mouse.move(box["x"] + 47, box["y"] + 60)
    expect(note).to_have_text(re.compile(r"^step [1-5]: loss 2\.\d+$"))
    expect(canvas).to_have_attribute("data-v", "450")
    page.mouse.move(box["x"] + 47, box["y"] - 60)
    expect(note).to_have_text(said)


def test_trains_to_the_end_and_survives_a_reload(page: Page, tmp_path: Path) -> None:
    start(page, "/train?task=Copy&d_model=8&heads=2&steps=50&batch=8")
    expect(standing(page)).to_contain_text("Finished.", timeout=LONG)
    expect(number(page, "step")).to_have_text("50 of 50")
    expect(number(page, "exact")).to_contain_text("of 4,096", timeout=LONG)
    assert "run=" in page.url

    page.reload()
    settle(page)
    expect(standing(page)).to_contain_text("Finished.")
    expect(number(page, "step")).to_have_text("50 of 50")

    # The model that comes down is the one whose heads are on the screen.
    with page.expect_download() as download:
        page.get_by_role("link", name="download it (.safetensors)").click()
    assert download.value.suggested_filename == "copy-d8-h2.safetensors"
    file = tmp_path / "model.safetensors"
    download.value.save_as(file)
    model = load_checkpoint(file).model
    for kind, weights in example_attention(model, EXAMPLE, EXAMPLE).items():
        torch.testing.assert_close(shown(page, kind), weights, atol=1e-6, rtol=0)

    slider(page, "step").focus()
    slider(page, "step").press("Home")
    untrained = shown(page, "cross")
    slider(page, "step").press("ArrowRight")
    expect(number(page, "step")).to_have_text("1 of 50")
    assert not torch.equal(shown(page, "cross"), untrained)
    # The weights of some steps were kept: the newest up to the slider can be opened.
    expect(page.get_by_text("The model as it was after step 0:")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="download it (.safetensors)").click()
    download.value.save_as(file)
    before = example_attention(load_checkpoint(file).model, EXAMPLE, EXAMPLE)
    torch.testing.assert_close(untrained, before["cross"], atol=1e-6, rtol=0)
    slider(page, "step").press("End")

    # It joins the choice of models, under a link of its own, and comes back from its file.
    on_attention = page.get_by_role("link", name="on Attention").get_attribute("href")
    page.get_by_role("link", name="open it on Decode").click()
    settle(page)
    expect(page.get_by_text("d_model 8, 2 heads of d_k 4")).to_be_visible()
    assert "model-copy=" in page.url
    page.reload()
    settle(page)
    expect(page.get_by_text("d_model 8, 2 heads of d_k 4")).to_be_visible()
    open_page(page, on_attention)
    expect(page.locator(".attention .status")).to_contain_text("Your model.")
    page.locator('.attention input[aria-label="d_model"]').press("ArrowRight")
    expect(page.locator(".attention .status")).to_contain_text("Not your model, which has d_model 8, 2 heads, d_k 4.")


def test_stopped_it_can_be_started_with_another_seed(page: Page) -> None:
    start(page, "/train?d_model=8&heads=2&steps=2000&batch=8")
    expect(standing(page)).to_contain_text("Training.", timeout=LONG)
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(standing(page)).to_contain_text("Paused at step", timeout=LONG)
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(standing(page)).to_contain_text("Training.", timeout=LONG)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(standing(page)).to_contain_text("Stopped at step", timeout=LONG)
    before = page.url
    page.get_by_role("button", name="Start with a new seed").click()
    page.wait_for_url(re.compile("seed=1"))
    assert page.url != before
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(standing(page)).to_contain_text("Stopped", timeout=LONG)


def test_sizes_that_cannot_be_are_said_before_a_start(page: Page) -> None:
    open_page(page, "/train?heads=5")
    expect(page.get_by_role("alert")).to_contain_text("d_model 64 is not divisible by n_heads 5")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    slider(page, "heads").press("ArrowLeft")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_enabled()


def test_a_run_that_is_gone_is_said(page: Page) -> None:
    open_page(page, "/train?run=AAAAAAAAAAAAAAAA")
    expect(page.get_by_text("is not kept any more, or is one of another task")).to_be_visible()
    expect(standing(page)).to_contain_text("A training recorded earlier.")


def test_an_uploaded_model_is_chosen_on_decode(page: Page) -> None:
    open_page(page, "/train")
    page.get_by_text("Bring a trained model back").click()
    page.locator("input[type=file]").set_input_files(str(CHECKPOINTS / "reverse-d16-h2.safetensors"))
    expect(page.get_by_text("reverse-d16-h2.safetensors is taken in.")).to_be_visible()
    page.get_by_role("link", name="Decode", exact=True).click()
    settle(page)
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name=re.compile("Yours: uploaded, d_model 16")).click()
    expect(page.get_by_text("d_model 16, 2 heads of d_k 8")).to_be_visible()


def test_an_upload_of_another_kind_is_refused_literally(page: Page, tmp_path: Path) -> None:
    wrong = tmp_path / "__x__.safetensors"
    wrong.write_bytes(b"no weights")
    open_page(page, "/train")
    page.get_by_text("Bring a trained model back").click()
    page.locator("input[type=file]").set_input_files(str(wrong))
    expect(page.get_by_text("__x__.safetensors is not a safetensors file")).to_be_visible()


@pytest.mark.parametrize("page", [{"viewport": {"width": 400, "height": 850}, "color_scheme": "dark"}], indirect=True)
def test_fits_a_phone_in_the_dark(page: Page) -> None:
    open_page(page, "/train")
    expect(number(page, "step")).to_have_text("450 of 450")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_curves_are_saved_as_what_was_recorded(page: Page) -> None:
    open_page(page, "/train")
    expect(number(page, "step")).to_have_text("450 of 450")
    figure = page.locator(".train .curves").first
    figure.locator("summary").click()
    with page.expect_download() as download:
        figure.get_by_role("button", name="CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0] == '"series","step","value"'
    assert len(lines) == 451
    assert lines[1].startswith('"loss",1,2.')
