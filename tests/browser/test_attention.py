"""The Attention page under a real hand: dragging sliders, picking heads and rows, stages, links, saving."""

import csv
import json
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from app.attention_run import records, teacher_forced
from app.models import shipped, trained, untrained
from tests.browser.conftest import open_page, settle
from transformer import ReversalTask

EXAMPLE = [3, 11, 7, 4, 5, 6]


def slider(page: Page, name: str) -> Locator:
    return page.locator(f'input[type=range][aria-label="{name}"]')


def drag(page: Page, name: str, share: float, steps: int = 12) -> None:
    """Press the thumb where it is and pull it to a share of the track's width."""
    box = slider(page, name).bounding_box()
    low, high, value = (float(slider(page, name).evaluate(f"e => +e.{of}")) for of in ("min", "max", "value"))
    thumb, y = 8, box["y"] + box["height"] / 2
    start = box["x"] + thumb + (box["width"] - 2 * thumb) * (value - low) / (high - low)
    page.mouse.move(start, y)
    page.mouse.down()
    page.mouse.move(box["x"] + thumb + (box["width"] - 2 * thumb) * share, y, steps=steps)
    page.mouse.up()


def shown(page: Page, canvas: str = ".all canvas") -> torch.Tensor:
    """The weights that a picture draws, read from the picture itself: (L, H, T_q, T_k)."""
    grid = page.locator(".attention").evaluate(
        """(root, canvas) => { const pictures = [root.panel.overview, root.panel.large, root.panel.changed];
          const one = pictures.find(p => p.canvas === root.querySelector(canvas));
          return JSON.stringify({shape: one.grid.weights.shape, values: Array.from(one.grid.weights.values)}); }""",
        canvas,
    )
    read = json.loads(grid)
    return torch.tensor(read["values"]).view(read["shape"])


def computed(d_model: int, heads: int, d_k: int, kind: str) -> torch.Tensor:
    checkpoint = trained("reverse", d_model, heads, d_k)
    model = checkpoint.model if checkpoint else untrained("reverse", d_model, heads, d_k)
    trace, _, _ = teacher_forced(model, ReversalTask(), EXAMPLE)
    return torch.cat([record.weights for record in records(trace, kind)])


def expect_value(page: Page, value: str) -> None:
    expect(page.locator(".all canvas")).to_have_attribute("data-v", value)


def test_opens_on_the_trained_model(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    expect(page.locator(".status")).to_contain_text("Trained: ")
    torch.testing.assert_close(shown(page), computed(64, 4, 16, "cross"), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "share", "value", "sizes"),
    [("d_model", 1.0, "128", (128, 4, 32)), ("heads", 0.0, "1", (64, 1, 64)), ("d_k", 1.0, "128", (64, 4, 128))],
)
def test_dragging_ends_on_the_last_value_with_its_own_weights(
    page: Page, name: str, share: float, value: str, sizes: tuple[int, int, int]
) -> None:
    open_page(page, "/attention?task=Reverse")
    drag(page, name, share)
    expect_value(page, value)
    torch.testing.assert_close(shown(page), computed(*sizes, "cross"), atol=1e-6, rtol=0)
    is_trained = trained("reverse", *sizes) is not None
    expect(page.locator(".status")).to_contain_text("Trained: " if is_trained else "Untrained: ")


def test_the_page_runs_only_when_the_slider_is_let_go(page: Page) -> None:
    said: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda _: said.append("run")))
    page.on("request", lambda request: said.append("question") if "/live/attention" in request.url else None)
    open_page(page, "/attention?task=Reverse")
    said.clear()
    drag(page, "heads", 1.0)
    page.wait_for_url("**heads=8**")
    assert said.index("run") == said.count("question") >= 1


def test_a_question_without_an_answer_is_told_until_there_is_one(browser, app_url: str) -> None:
    page = browser.new_page(base_url=app_url)  # the page fixture would not bear the refusal in the console
    open_page(page, "/attention?task=Reverse")
    page.route("**/live/attention?*", lambda route: route.fulfill(status=418, body="the kettle is on"))
    slider(page, "heads").focus()
    slider(page, "heads").press("ArrowRight")
    expect(page.locator(".failure")).to_contain_text("Not up to date: the kettle is on. Move the control again")
    page.unroute("**/live/attention?*")
    slider(page, "heads").press("End")
    expect_value(page, "8")
    expect(page.locator(".failure")).to_have_count(0)
    page.close()


def test_nothing_is_torn_down_while_dragging(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    page.locator(".all canvas").evaluate("c => { c.marked = true; }")
    drag(page, "d_model", 0.0)
    expect_value(page, "8")
    assert page.locator(".all canvas").evaluate("c => c.marked === true && getComputedStyle(c).opacity === '1'")


def test_an_impossible_pair_snaps_and_says_so(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    slider(page, "heads").focus()
    slider(page, "heads").press("ArrowLeft")
    expect_value(page, "3")
    page.wait_for_url("**/attention?*d_model=72*")  # and it stays when the page has kept what was chosen
    settle(page)
    expect(page.locator(".snap")).to_have_text("3 heads do not divide d_model 64: d_model is 72.")
    assert slider(page, "d_model").input_value() == "72"


def test_a_head_width_of_its_own_unlinks(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    box = page.get_by_role("checkbox", name="d_k = d_model / heads")
    expect(box).to_be_checked()
    slider(page, "d_k").focus()
    slider(page, "d_k").press("ArrowRight")
    expect_value(page, "17")
    expect(box).not_to_be_checked()
    expect(page.locator(".status")).to_contain_text("--d-head 17")
    box.check()
    expect(slider(page, "d_k")).to_have_value("16")


def test_kinds_change_the_rows_and_the_mask(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    page.get_by_role("button", name="Decoder self").click()
    expect(page.get_by_role("button", name="Decoder self")).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'")
    expect(page.locator(".all .note")).to_contain_text("(1, 4, 7, 7)")
    torch.testing.assert_close(shown(page), computed(64, 4, 16, "decoder"), atol=1e-6, rtol=0)
    page.get_by_role("button", name="Encoder self").click()
    expect(page.locator(".all .note")).to_contain_text("(1, 4, 6, 6)")


def test_clicking_a_thumbnail_opens_its_head_and_row(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    box = page.locator(".all canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 20, box["y"] + box["height"] - 30)
    expect(page.locator(".one h3").first).to_have_text("Cross-attention, layer 2, head 4")
    large = shown(page, ".one canvas")
    torch.testing.assert_close(large[0, 0], computed(64, 4, 16, "cross")[1, 3], atol=1e-6, rtol=0)


def test_slow_motion_shows_the_real_numbers_stage_by_stage(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    trace, _, _ = teacher_forced(shipped("reverse-d64-h4").model, ReversalTask(), EXAMPLE)
    record = records(trace, "cross")[1]
    page.get_by_role("heading", name="Attention", exact=True).click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".slow h3")).to_have_text("Slow motion: query 4 (row 3)")
    page.keyboard.press("Home")
    numbers = page.locator(".table .number:not(.sum)")
    assert set(numbers.all_inner_texts()) == {""}
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    dots = record.q[0, 0, 2] @ record.k[0, 0].T
    columns = [dots, record.scores[0, 0, 2], record.scores[0, 0, 2], record.weights[0, 0, 2]]
    expected = [
        "<.001" if which == 3 and 0 < column[key] < 0.0005 else f"{column[key]:.3f}"
        for key in range(6)
        for which, column in enumerate(columns)
    ]
    assert [text.replace("-0.000", "0.000") for text in numbers.all_inner_texts()] == [
        text.replace("-0.000", "0.000") for text in expected
    ]
    expect(page.locator(".table .sum")).to_have_text("Σ 1.000")
    expect(page.locator(".tell")).to_contain_text("sum to 1")


def test_what_ifs_stand_beside_the_truth(page: Page) -> None:
    open_page(page, "/attention?kind=decoder&task=Reverse")
    expect(page.locator(".changed")).to_be_hidden()
    page.get_by_role("checkbox", name="no mask").check()
    expect(page.locator(".changed h3")).to_have_text("What if: no mask")
    assert shown(page, ".one canvas")[0, 0, 0, 1:].max() == 0
    assert shown(page, ".changed canvas")[0, 0, 0, 1:].max() > 0
    page.get_by_role("checkbox", name="no mask").uncheck()
    page.get_by_role("checkbox", name="no ÷ √d_k").check()
    expect(page.locator(".changed h3")).to_have_text("What if: no ÷ √d_k")


def test_the_link_holds_the_view_and_survives_a_reload_and_another_page(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    drag(page, "d_model", 1.0)
    expect_value(page, "128")
    page.get_by_role("button", name="Encoder self").click()
    page.wait_for_url("**/attention?*kind=encoder*")
    assert "d_model=128" in page.url
    page.reload()
    settle(page)
    expect(slider(page, "d_model")).to_have_value("128")
    page.get_by_role("link", name="Decode").click()
    expect(page.get_by_role("heading", name="Decode", exact=True)).to_be_visible()
    page.get_by_role("link", name="Attention").click()
    expect(slider(page, "d_model")).to_have_value("128")
    expect(page.get_by_role("button", name="Encoder self")).to_have_attribute("aria-pressed", "true")
    page.wait_for_url("**/attention?*d_model=128*")


def test_nonsense_in_a_link_is_explained(page: Page) -> None:
    open_page(page, "/attention?d_model=9999&kind=%3Cb%3E&task=Reverse")
    expect(page.get_by_test_id("stAlert")).to_contain_text("d_model is '9999' in the link; showing 512.")
    expect(slider(page, "d_model")).to_have_value("512")


def test_keys_walk_over_cells_and_read_them(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    page.locator(".all canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text("layer 1, head 1: 6 (row 1) to 3 (column 1)")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text("layer 1, head 2: 6 (row 1) to 3 (column 1)")


@pytest.mark.parametrize("kind", ["PNG", "SVG", "CSV"])
def test_figures_are_saved_from_themselves(page: Page, kind: str, tmp_path: Path) -> None:
    open_page(page, "/attention?task=Reverse")
    page.get_by_label("Save Every layer and head").click()
    with page.expect_download() as download:
        page.locator(".all").get_by_role("button", name=kind, exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == f"every-layer-and-head.{kind.lower()}"
    if kind == "PNG":
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        return
    text = path.read_text(encoding="utf-8")
    weights = computed(64, 4, 16, "cross")
    if kind == "SVG":
        assert text.count("<title>") == weights.numel()
        return
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == weights.numel()
    values = torch.tensor([float(row["weight"]) for row in rows]).view_as(weights)
    torch.testing.assert_close(values, weights, atol=1e-6, rtol=0)
    assert (rows[0]["row_label"], rows[0]["column_label"]) == ("6", "3")


def saved_lines(page: Page, name: str, tmp_path: Path) -> list[dict[str, str]]:
    page.get_by_label(f"Save {name}").click()
    with page.expect_download() as download:
        page.locator(".save[open]").get_by_role("button", name="CSV", exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_the_slow_motion_is_saved_with_all_its_numbers(page: Page, tmp_path: Path) -> None:
    open_page(page, "/attention?query=2&head=2&task=Reverse")
    lines = saved_lines(page, "Slow motion", tmp_path)
    trace, _, _ = teacher_forced(shipped("reverse-d64-h4").model, ReversalTask(), EXAMPLE)
    record = records(trace, "cross")[1]
    assert [(line["query"], line["key"]) for line in lines] == [("5", str(symbol)) for symbol in EXAMPLE]
    for name, expected in [("score", record.scores), ("weight", record.weights)]:
        read = torch.tensor([float(line[name]) for line in lines])
        torch.testing.assert_close(read, expected[0, 1, 1], atol=1e-5, rtol=1e-6)
    read = torch.tensor([[float(line[f"v_{i}"]) for i in range(1, 17)] for line in lines])
    torch.testing.assert_close(read, record.v[0, 1], atol=1e-5, rtol=1e-6)


def test_the_numbers_of_each_head_are_saved(page: Page, tmp_path: Path) -> None:
    open_page(page, "/attention?task=Reverse")
    lines = saved_lines(page, "Rows of each head", tmp_path)
    weights = computed(64, 4, 16, "cross")
    assert [(line["layer"], line["head"]) for line in lines] == [(str(i), str(h)) for i in (1, 2) for h in (1, 2, 3, 4)]
    largest = torch.tensor([float(line["mean largest weight"]) for line in lines]).view(2, 4)
    torch.testing.assert_close(largest, weights.amax(-1).mean(-1), atol=1e-6, rtol=0)


def test_the_layer_is_dragged_too(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    drag(page, "layer", 0.0)
    expect_value(page, "1")
    torch.testing.assert_close(shown(page, ".one canvas")[0], computed(64, 4, 16, "cross")[0, :1], atol=1e-6, rtol=0)
    page.wait_for_url("**layer=1**")


def test_a_what_if_stands_beside_the_true_picture(page: Page) -> None:
    open_page(page, "/attention?kind=decoder&task=Reverse")
    page.get_by_role("checkbox", name="no mask").check()
    changed = page.locator("figure.changed canvas")
    expect(changed).to_be_visible()
    true, what_if = page.locator(".one figure:not(.changed) canvas").first.bounding_box(), changed.bounding_box()
    assert abs(true["y"] - what_if["y"]) < 12
    assert what_if["x"] > true["x"] + true["width"]


@pytest.mark.parametrize(
    "page", [{"viewport": {"width": 400, "height": 850}, "device_scale_factor": 2}], indirect=True, ids=["narrow"]
)
def test_fits_a_phone(page: Page) -> None:
    open_page(page, "/attention?task=Reverse")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    visible = page.locator("figure:not([hidden]) canvas")
    assert visible.evaluate_all("all => all.every(c => c.getBoundingClientRect().right <= innerWidth)")


def test_two_people_drag_at_once(page: Page, browser, app_url: str) -> None:
    open_page(page, "/attention?task=Reverse")
    other = browser.new_page(base_url=app_url)
    open_page(other, "/attention?task=Reverse")
    drag(page, "d_model", 1.0)
    drag(other, "d_model", 0.0)
    expect_value(page, "128")
    expect_value(other, "8")
    torch.testing.assert_close(shown(page), computed(128, 4, 32, "cross"), atol=1e-6, rtol=0)
    torch.testing.assert_close(shown(other), computed(8, 4, 2, "cross"), atol=1e-6, rtol=0)
    other.close()


def test_an_empty_sequence_has_a_picture(page: Page) -> None:
    open_page(page, "/attention?source-reverse=&task=Reverse")
    expect(page.locator(".table")).to_contain_text("No key to attend to")
