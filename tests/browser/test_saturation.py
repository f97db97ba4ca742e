"""The Saturation page under a real hand: what is dragged, chosen and saved, against numbers computed here."""

import csv
import json
import math
import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from app.models import shipped, untrained
from app.saturation_run import NUMBERS, WIDTHS, measured, of_batch, of_sequence, one_row, theory
from app.saturation_state import models_of, sizes
from tests.browser.conftest import open_page, settle
from transformer import ReversalTask
from transformer.scaling import RESULTS

SRC = [3, 11, 7, 4, 5, 6]


def slider(page: Page, name: str = "d_k") -> Locator:
    return page.locator(f'input[type=range][aria-label="{name}"]')


def drag(page: Page, share: float, name: str = "d_k", steps: int = 12, release: bool = True) -> None:
    """Press the thumb where it is and pull it to a share of the track's width."""
    slider(page, name).scroll_into_view_if_needed()
    box = slider(page, name).bounding_box()
    low, high, value = (float(slider(page, name).evaluate(f"e => +e.{of}")) for of in ("min", "max", "value"))
    thumb, y = 8, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + thumb + (box["width"] - 2 * thumb) * (value - low) / (high - low), y)
    page.mouse.down()
    page.mouse.move(box["x"] + thumb + (box["width"] - 2 * thumb) * share, y, steps=steps)
    if release:
        page.mouse.up()


def pictures(page: Page) -> dict[str, torch.Tensor]:
    """What the four pictures on top draw, read from themselves: weights (2, n) and jacobian (2, n, n)."""
    read = page.locator(".saturation").evaluate(
        """root => JSON.stringify(root.panel.sides.map(({ bars, jacobian }) => ({
          weights: bars.rows().slice(1).map((row) => row[2]), jacobian: Array.from(jacobian.grid.weights.values) })))"""
    )
    sides = json.loads(read)
    weights = torch.tensor([side["weights"] for side in sides])
    return {
        "weights": weights,
        "jacobian": torch.tensor([side["jacobian"] for side in sides]).unflatten(1, (-1, weights.shape[1])),
    }


def expect_row(page: Page, width: int, keys: int = 8, distribution: str = "normal", draw: int = 33) -> None:
    """All four pictures show this width of this draw."""
    at = WIDTHS.index(width)
    expect(page.locator(".side-1 canvas").first).to_have_attribute("data-v", str(at))
    drawn, shown = one_row(keys, distribution, draw), pictures(page)
    for name in ("weights", "jacobian"):
        torch.testing.assert_close(shown[name], torch.tensor(drawn[name][:, at]).float(), atol=1e-6, rtol=0)


def test_opens_at_d_k_64_with_the_treatises_numbers(page: Page) -> None:
    open_page(page, "/saturation")
    expect_row(page, 64)
    row = page.locator(".saturation tr", has=page.get_by_role("button", name="σ′ at the typical gap"))
    assert row.locator(".theory").all_inner_texts() == ["0.1573", "1.22e-5", "12,891"]
    mean = page.locator(".saturation tr", has=page.get_by_role("button", name="σ′, mean"))
    assert float(mean.locator(".theory").nth(2).inner_text()) == pytest.approx(5.2, abs=0.05)
    expect(page.locator(".numbers .tell")).to_contain_text(f"1/√(4π d_k) = {1 / math.sqrt(4 * math.pi * 64):.5f}")


def test_dragging_follows_the_hand_before_it_lets_go_and_asks_nobody(page: Page) -> None:
    sent: list[str | bytes] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    open_page(page, "/saturation")
    before = len(sent)
    assert before > 0
    drag(page, 1.0, release=False)
    expect_row(page, 1024)
    assert len(sent) == before
    assert pictures(page)["jacobian"][1].abs().max() < 1e-4
    assert pictures(page)["jacobian"][0].abs().max() > 0.05
    page.mouse.up()
    page.wait_for_url("**/saturation?*width=1024*")
    assert len(sent) > before
    drag(page, 0.0)
    expect_row(page, 1)
    shown = pictures(page)
    torch.testing.assert_close(shown["weights"][0], shown["weights"][1])


def test_every_width_of_the_slider_has_its_own_numbers(page: Page) -> None:
    open_page(page, "/saturation?width=1")
    slider(page).focus()
    lines, points = theory(8), measured(8, "normal", 33)
    for at in range(1, len(WIDTHS)):
        slider(page).press("ArrowRight")
        if at % 9:
            continue
        expect_row(page, WIDTHS[at])
        numbers = page.locator(".saturation tr", has=page.get_by_role("button", name="trace of the Jacobian"))
        upper, lower = numbers.locator(".theory"), numbers.locator("td .quiet")
        for side in (0, 1):
            assert float(upper.nth(side).inner_text()) == pytest.approx(lines[4, side, at], rel=1e-3)
            assert float(lower.nth(side).inner_text()) == pytest.approx(points[4, side, at, 0], rel=1e-3)


def test_columns_sum_to_zero_on_screen(page: Page) -> None:
    open_page(page, "/saturation?width=256")
    for side in (0, 1):
        note = page.locator(f".side-{side} .note").nth(1).inner_text()
        sums = note.split("columns sum to ")[1].replace("−", "-").split()
        assert len(sums) == 8
        assert max(abs(float(number)) for number in sums) < 1e-15


@pytest.mark.parametrize("keys", ["2", "32"])
def test_keys_distribution_and_draw_are_chosen(page: Page, keys: str) -> None:
    open_page(page, "/saturation")
    page.get_by_role("group", name="keys").get_by_role("button", name=keys, exact=True).click()
    page.wait_for_url(f"**/saturation?*keys={keys}*")
    expect_row(page, 64, int(keys))
    page.get_by_role("button", name="±1").click()
    page.wait_for_url("**/saturation?*distribution=sign*")
    page.get_by_role("button", name="Draw again").click()
    page.wait_for_url("**/saturation?*draw=34*")
    expect_row(page, 64, int(keys), "sign", 34)


def test_choosing_a_row_shows_its_curve(page: Page) -> None:
    open_page(page, "/saturation")
    expect(page.locator(".curve h3").first).to_have_text("Gradient σ′(gap) between two keys, against d_k")
    page.get_by_role("button", name="variance of q·k").first.click()
    expect(page.locator(".curve h3").first).to_have_text("Variance of q·k, against d_k")
    expect(page.locator(".curve canvas").first).to_have_attribute(
        "aria-label", re.compile("theory 1.000 divided, 64.00 not")
    )
    page.wait_for_url("**/saturation?*curve=variance*")


def test_the_curve_takes_keys_and_clicks(page: Page) -> None:
    open_page(page, "/saturation")
    curve = page.locator(".saturation .curve canvas")
    curve.focus()
    page.keyboard.press("End")
    expect(slider(page)).to_have_value(str(len(WIDTHS) - 1))
    page.keyboard.press("ArrowLeft")
    expect(slider(page)).to_have_value(str(len(WIDTHS) - 2))
    box = curve.bounding_box()
    page.mouse.click(box["x"] + 56, box["y"] + box["height"] / 2)
    expect(slider(page)).to_have_value("0")
    page.wait_for_url("**/saturation?*width=1")


def shown_heads(page: Page) -> list[list[float]]:
    """Layer, head, 0 divided or 1 not, and the number, from the figure's own table."""
    rows = json.loads(page.locator(".own").evaluate("root => JSON.stringify(root.panel.figure.rows().slice(1))"))
    return [[layer - 1, head - 1, divided == "no", number] for layer, head, divided, number in rows]


def expect_heads(page: Page, found, number: str) -> None:
    for layer, head, side, value in shown_heads(page):
        assert value == pytest.approx(found[layer, head, NUMBERS.index(number), int(side)], rel=1e-4, abs=1e-6)


def test_a_models_own_q_and_k_by_layer_and_head(page: Page) -> None:
    open_page(page, "/saturation")
    model = shipped("reverse-d64-h4").model
    expect_heads(page, of_sequence(model, ReversalTask(), SRC)["cross"], "variance")
    own = page.locator(".own")
    own.get_by_role("button", name="a batch of 128").click()
    own.get_by_role("button", name="Encoder self").click()
    own.get_by_role("button", name="trace of the Jacobian").click()
    expect(own.locator("h3")).to_have_text("Encoder self-attention: trace of the Jacobian, by layer and head")
    page.wait_for_url("**/saturation?*number=trace*")
    expect_heads(page, of_batch(model, ReversalTask())["encoder"], "trace")
    own.get_by_role("button", name="before training").click()
    page.wait_for_url("**/saturation?*learned=untrained*")
    expect_heads(page, of_batch(untrained("reverse", 64, 4, 16), ReversalTask())["encoder"], "trace")


def test_dragging_through_the_trained_models(page: Page) -> None:
    open_page(page, "/saturation")
    drag(page, 1.0, "trained model's d_k")
    widest = models_of("reverse")[-1]
    expect(page.locator(".own canvas")).to_have_attribute("data-v", str(len(models_of("reverse")) - 1))
    page.wait_for_url(f"**/saturation?*model={widest}*")
    assert sizes(widest) == (128, 1, 128)
    expect_heads(page, of_sequence(shipped(widest).model, ReversalTask(), SRC)["cross"], "variance")
    expect(page.locator(".own .tell")).to_contain_text("would give 1.000 and 128.0")


def test_a_task_with_one_model_has_no_slider_to_move(page: Page) -> None:
    open_page(page, "/saturation")
    expect(slider(page, "trained model's d_k")).to_be_visible()
    page.get_by_role("radio", name="Copy").click()
    expect(slider(page, "trained model's d_k")).to_be_hidden()
    checkpoint = shipped("copy-d64-h4")
    settle(page)
    expect_heads(page, of_sequence(checkpoint.model, checkpoint.task, SRC)["cross"], "variance")


def test_the_trainings_are_those_of_the_file(page: Page) -> None:
    open_page(page, "/saturation")
    runs = json.loads(RESULTS.read_text(encoding="utf-8"))["runs"]
    panel = page.locator(".runs")
    for init, label in (("xavier", "Xavier"), ("default", "torch's own")):
        panel.get_by_role("button", name=label).click()
        expect(panel.get_by_role("button", name=label)).to_have_attribute("aria-pressed", "true")
        for scaled, name in ((True, "with"), (False, "without")):
            told = [text.split() for text in panel.locator(f"td.{name}").all_inner_texts()]
            wanted = [
                [f"{r['exact']:,}" for r in runs if (r["d_k"], r["init"], r["scaled"]) == (d_k, init, scaled)]
                for d_k in (16, 32, 64, 128)
            ]
            assert told == wanted
    panel.get_by_role("button", name="d_k 16").click()
    expect(panel.locator("h3")).to_have_text("Training loss at d_k 16, nats a token")
    expect(panel.locator(".command")).to_contain_text("--d-model 64 --heads 4")
    page.wait_for_url("**/saturation?*head_width=16*")


def test_the_link_survives_a_reload(page: Page) -> None:
    open_page(page, "/saturation?width=256&keys=4&curve=mean&model=reverse-d16-h2&init=default")
    expect_row(page, 256, 4)
    slider(page).focus()
    slider(page).press("ArrowRight")
    page.wait_for_url("**/saturation?*width=304*")
    page.reload()
    settle(page)
    expect_row(page, 304, 4)
    expect(page.locator(".own output")).to_have_text("8 (2 heads, d_model 16)")
    expect(page.locator(".runs").get_by_role("button", name="torch's own")).to_have_attribute("aria-pressed", "true")


def test_nonsense_in_a_link_is_explained(page: Page) -> None:
    open_page(page, "/saturation?width=99999&curve=%3Cb%3E&site=$a$")
    told = page.get_by_test_id("stAlert")
    expect(told.first).to_contain_text("width is '99999' in the link; showing 1024. curve is '<b>' in the link")
    expect(told.last).to_contain_text("site is '$a$' in the link; showing cross.")


def test_nothing_to_choose_from_is_said(page: Page) -> None:
    open_page(page, "/saturation?source-reverse=7")
    expect(page.locator(".own .tell")).to_have_text(
        "Fewer than two keys leave nothing to choose between: no row to measure."
    )


def test_the_code_shown_is_the_code_that_ran(page: Page) -> None:
    open_page(page, "/saturation")
    page.get_by_text("Show me the code").first.click()
    shown = page.get_by_test_id("stExpander").filter(has_text="transformer.saturation.softmax_jacobian")
    expect(shown).to_contain_text("torch.diag_embed(weights * _complement(weights)) - _off_diagonal(weights)")


@pytest.mark.parametrize("kind", ["PNG", "SVG", "CSV"])
def test_the_curve_is_saved_with_its_numbers(page: Page, kind: str, tmp_path: Path) -> None:
    open_page(page, "/saturation?curve=trace")
    curve = page.locator(".saturation .curve")
    curve.locator("summary").click()
    with page.expect_download() as download:
        curve.get_by_role("button", name=kind, exact=True).click()
    assert download.value.suggested_filename == f"trace-of-the-jacobian-against-d-k.{kind.lower()}"
    path = tmp_path / "file"
    download.value.save_as(path)
    if kind == "PNG":
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        return
    text = path.read_text(encoding="utf-8")
    if kind == "SVG":
        assert text.count("<path") > 20
        assert ">1,024</text>" in text
        return
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 2 * len(WIDTHS)
    lines, points = theory(8), measured(8, "normal", 33)
    for row in rows:
        at, side = WIDTHS.index(int(row["d_k"])), int(row["divided"] == "no")
        assert row["quantity"] == "trace"
        assert float(row["theory"]) == pytest.approx(lines[4, side, at], rel=1e-5)
        assert float(row["measured"]) == pytest.approx(points[4, side, at, 0], rel=1e-5)


@pytest.mark.parametrize(
    "page",
    [
        {"viewport": {"width": 400, "height": 850}, "device_scale_factor": 2},
        {"viewport": {"width": 400, "height": 850}, "color_scheme": "dark"},
    ],
    indirect=True,
    ids=["light", "dark"],
)
def test_fits_a_phone(page: Page) -> None:
    open_page(page, "/saturation")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator("figure canvas").evaluate_all(
        "all => all.every(c => c.clientWidth > 100 && c.getBoundingClientRect().right <= innerWidth)"
    )
    drag(page, 1.0)
    expect_row(page, 1024)
