"""The Positions page under a real hand: scrubbing in the browser, the dial, moving tokens, links, saving."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from app.models import shipped
from app.positions_order import reordered
from app.positions_schemes import schemes, sizes
from app.positions_sections import LEARNED
from tests.browser.conftest import open_page, settle
from transformer import rotation, sinusoidal_encoding

EXAMPLE = [3, 11, 7, 4, 5, 6]


def slider(page: Page, name: str) -> Locator:
    return page.locator(f'input[type=range][aria-label="{name}"]')


def hold(page: Page, name: str) -> dict:
    """Press the thumb where it is; returns the track's box."""
    slider(page, name).scroll_into_view_if_needed()
    box = slider(page, name).bounding_box()
    low, high, value = (float(slider(page, name).evaluate(f"e => +e.{of}")) for of in ("min", "max", "value"))
    page.mouse.move(box["x"] + 8 + (box["width"] - 16) * (value - low) / (high - low), box["y"] + box["height"] / 2)
    page.mouse.down()
    return box


def pull(page: Page, box: dict, share: float) -> None:
    page.mouse.move(box["x"] + 8 + (box["width"] - 16) * share, box["y"] + box["height"] / 2, steps=12)


def drag(page: Page, name: str, share: float) -> None:
    box = hold(page, name)
    pull(page, box, share)
    page.mouse.up()


def expect_value(page: Page, value: str) -> None:
    expect(page.locator(".heat canvas")).to_have_attribute("data-v", value)


def shown(page: Page) -> dict:
    """What the first picture draws, read from the picture itself."""
    return page.locator(".tw.positions").evaluate(
        """root => { const { panel } = root, frame = panel.frame();
          return { view: panel.view, turned: Array.from(frame.turned), apart: frame.apart,
            heat: Array.from(panel.heat.grid.values) }; }"""
    )


def expect_turned(page: Page, d_model: int, p: int, k: int) -> None:
    """R_k PE(p) as drawn is the whole matrix times the row, computed here."""
    now = shown(page)
    assert (now["view"]["d_model"], now["view"]["p"], now["view"]["k"]) == (d_model, p, k)
    row = sinusoidal_encoding(1, d_model, torch.float64, offset=p)[0]
    expected = rotation(k, d_model, torch.float64) @ row
    np.testing.assert_allclose(now["turned"], expected, atol=1e-6)
    again = sinusoidal_encoding(1, d_model, torch.float64, offset=p + k)[0]
    assert now["apart"] == pytest.approx((expected - again).abs().max().item(), abs=1e-14)
    cells = page.locator(".equation .matrix span").all_inner_texts()
    pair = now["view"]["pair"]
    numbers = torch.cat([vector[2 * pair : 2 * pair + 2] for vector in (row, expected, again)]).tolist()
    assert [float(cell.replace("−", "-")) for cell in cells[4:]] == pytest.approx(numbers, abs=6e-4)


def test_opens_on_the_encoding_and_its_rotation(page: Page) -> None:
    open_page(page, "/positions")
    expect_turned(page, 64, 10, 7)
    table = sinusoidal_encoding(100, 64, torch.float64)
    np.testing.assert_allclose(np.reshape(shown(page)["heat"], (100, 64)), table, atol=1e-6)
    expect(page.locator(".checks dd").nth(2)).to_contain_text("·10⁻")
    expect(page.locator(".lower .note").nth(2)).to_have_text(
        "From 2π to 10000^(62/64)·2π: 7,499 × 2π, not 10,000 × 2π."
    )


@pytest.mark.parametrize(("name", "share", "p", "k"), [("k", 1.0, 10, 64), ("k", 0.0, 10, -64), ("p", 1.0, 99, 7)])
def test_dragging_offset_or_position_asks_nobody(page: Page, name: str, share: float, p: int, k: int) -> None:
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(len(data))))
    open_page(page, "/positions")
    box = hold(page, name)
    before = len(sent)
    pull(page, box, share)
    expect_value(page, str(k if name == "k" else p))
    expect_turned(page, 64, p, k)
    assert len(sent) == before
    page.mouse.up()
    page.wait_for_url(f"**/positions?*{name}=*")
    expect_turned(page, 64, p, k)


def test_the_picture_is_there_before_the_hand_moves_on(page: Page) -> None:
    """Drawn inside the event of the slider, so in the very next frame of the display."""
    open_page(page, "/positions")
    values = slider(page, "k").evaluate(
        """input => { const seen = [], all = input.closest('.tw').querySelectorAll('.heat canvas, .turn canvas');
          for (const k of [-20, 3, 41]) { input.value = k; input.dispatchEvent(new Event('input', { bubbles: true }));
            seen.push(...Array.from(all, canvas => canvas.dataset.v)); }
          return seen; }"""
    )
    assert values == ["-20"] * 3 + ["3"] * 3 + ["41"] * 3


def test_offset_then_position_then_pair(page: Page) -> None:
    open_page(page, "/positions")
    drag(page, "k", 0.0)
    page.wait_for_url("**/positions?*k=-64*")
    drag(page, "p", 0.5)
    page.wait_for_url("**/positions?*p=*")
    p = int(slider(page, "p").input_value())
    expect_turned(page, 64, p, -64)
    slider(page, "i").press("End")
    expect(page.locator(".said h3")).to_have_text("Pair i = 31: dimensions 62 and 63")
    expect_turned(page, 64, p, -64)


@pytest.mark.parametrize(("share", "width"), [(0.0, 2), (1.0, 128)])
def test_another_width_brings_its_own_table(page: Page, share: float, width: int) -> None:
    open_page(page, "/positions")
    drag(page, "d_model", share)
    expect_value(page, str(width))
    expect_turned(page, width, 10, 7)
    expect(slider(page, "i")).to_have_attribute("max", str(width // 2 - 1))
    nearest = "0 and 44, 0.018 apart" if width == 2 else "0 and 1,"
    expect(page.locator(".lower .note").nth(1)).to_contain_text(f"Nearest two of these positions: {nearest}")
    expect(page.locator(".lower .note").first).to_contain_text(f"|PE(p)|² = d/2 = {width // 2}")


def test_a_hand_points_up_at_position_0_and_turns_clockwise(page: Page) -> None:
    """The dot at the end of the turned hand is where (sin, cos) of p + k say, sin to the right and cos upwards."""
    open_page(page, "/positions?p=0&k=2&pair=0")
    expect(page.locator(".said p")).to_contain_text("turns clockwise")
    for k in (2, -1):
        slider(page, "k").evaluate("(e, k) => { e.value = k; e.dispatchEvent(new Event('input')); }", k)
        colour = page.locator("canvas.dial").evaluate(
            """(canvas, [sin, cos]) => {
              const half = canvas.width / 2, reach = half - 26, pen = canvas.getContext("2d");
              return Array.from(pen.getImageData(half + sin * reach, half - cos * reach, 1, 1).data); }""",
            [math.sin(k), math.cos(k)],
        )
        accent = page.locator(".tw.positions").evaluate("root => root.panel.page.colours.accent")
        assert bytes(colour[:3]).hex() == accent.lstrip("#")
    expect(page.locator(".said p")).to_contain_text("turns anticlockwise")


def test_the_large_hand_is_a_dial(page: Page) -> None:
    open_page(page, "/positions?p=0&k=0&pair=0")
    dial = page.locator("canvas.dial")
    dial.scroll_into_view_if_needed()
    box = dial.bounding_box()
    x, y, reach = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] / 3
    page.mouse.move(x, y - reach)
    page.mouse.down()
    for step in range(1, 31):  # 3 radians clockwise from the top
        page.mouse.move(x + reach * math.sin(step / 10), y - reach * math.cos(step / 10))
    page.mouse.up()
    expect(slider(page, "k")).to_have_value("3")
    expect_turned(page, 64, 0, 3)
    page.wait_for_url("**/positions?*k=3*")


def test_keys_move_sliders_and_pick_pairs(page: Page) -> None:
    open_page(page, "/positions")
    for _ in range(5):
        slider(page, "k").press("ArrowRight")
    expect_value(page, "12")
    expect_turned(page, 64, 10, 12)
    page.locator(".turn canvas").first.press("ArrowDown")
    expect(page.locator(".said h3")).to_have_text("Pair i = 10: dimensions 20 and 21")
    page.locator(".heat canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".controls .readout")).to_have_text("position 1, dimension 0: 0.841")


def test_a_position_outside_the_picture_is_told(page: Page) -> None:
    open_page(page, "/positions?p=3&k=-9")
    expect(page.locator(".heat .note")).to_contain_text("Position −6 is outside this picture")
    expect_turned(page, 64, 3, -9)


def outputs(order: list[int]) -> dict[str, np.ndarray]:
    return reordered(shipped("reverse-d64-h4").model, EXAMPLE, order)


def expect_order(page: Page, order: list[int]) -> None:
    expect(page.locator(".order .side canvas").first).to_have_attribute("data-v", "-".join(map(str, order)))
    chips = page.locator(".order button.chip")
    assert chips.all_inner_texts() == [str(EXAMPLE[place]) for place in order]
    expected = outputs(order)
    drawn = page.locator(".tw.order").evaluate(
        "root => root.panel.sides.map(({ sheets }) => sheets.map(s => Array.from(s.grid.values)))"
    )
    for side in range(2):
        np.testing.assert_allclose(drawn[side][0], expected["outputs"][side].ravel(), atol=1e-5)
        np.testing.assert_allclose(drawn[side][1], expected["again"][side].ravel(), atol=1e-5)
        assert max(map(abs, drawn[side][2])) == pytest.approx(expected["apart"][side], abs=1e-5)
    expect(page.locator(".order .verdict").first).to_have_class("verdict same")
    largest = f"largest difference {expected['apart'][1]:.3f}" if expected["apart"][1] > 0.1 else "largest difference 0"
    expect(page.locator(".order .verdict").last).to_have_text(largest)


def test_reordered_tokens_give_reordered_outputs_only_without_positions(page: Page) -> None:
    open_page(page, "/positions")
    expect_order(page, [5, 4, 3, 2, 1, 0])
    page.get_by_role("button", name="As written", exact=True).click()
    expect_order(page, [0, 1, 2, 3, 4, 5])
    page.locator(".order button.chip").first.press("ArrowRight")
    expect_order(page, [1, 0, 2, 3, 4, 5])
    page.wait_for_url("**/positions?*order=1-0-2-3-4-5*")
    page.reload()
    settle(page)
    expect_order(page, [1, 0, 2, 3, 4, 5])


def test_tokens_are_dragged(page: Page) -> None:
    open_page(page, "/positions?order=0-1-2-3-4-5")
    chips = page.locator(".order button.chip")
    chips.first.scroll_into_view_if_needed()
    start, end = chips.first.bounding_box(), chips.nth(3).bounding_box()
    page.mouse.move(start["x"] + 10, start["y"] + 10)
    page.mouse.down()
    page.mouse.move(end["x"] + 10, end["y"] + 10, steps=8)
    page.mouse.up()
    expect_order(page, [1, 2, 3, 0, 4, 5])


def test_shuffling_is_kept_in_the_link(page: Page) -> None:
    open_page(page, "/positions")
    page.get_by_role("button", name="Shuffle").click()
    expect(page.locator(".order .side canvas").first).not_to_have_attribute("data-v", "5-4-3-2-1-0")
    value = page.locator(".order .side canvas").first.get_attribute("data-v")
    page.wait_for_url(f"**/positions?*order={value}*")
    expect_order(page, [int(place) for place in value.split("-")])


def test_three_schemes_stand_side_by_side(page: Page) -> None:
    open_page(page, "/positions")
    learned = shipped(LEARNED).model.src_embedding.position.weight.detach()
    page.get_by_role("button", name="Another query and key").click()
    expect(page.locator(".schemes canvas").first).to_have_attribute("data-v", "1")
    drawn = page.locator(".tw.schemes").evaluate(
        "root => root.panel.columns.map(({ scores }) => Array.from(scores.grid.values))"
    )
    expected = schemes(learned, 1)
    np.testing.assert_allclose(np.reshape(drawn, (3, 40, 40)), expected["scores"], atol=1e-5)
    notes = page.locator(".schemes .way figure:last-child .note").all_inner_texts()
    assert notes[0].startswith(f"Along a diagonal they differ by up to {expected['spread'][0]:.3f}.")
    assert "·10⁻¹" in notes[2]
    page.wait_for_url("**/positions?*draw=1*")


def test_sizes_of_tokens_and_positions(page: Page) -> None:
    open_page(page, "/positions")
    expect(page.locator(".line.trained")).to_have_count(7)
    drag(page, "embedding width", 1.0)
    expect(page.locator(".bars")).to_have_attribute("data-v", "512")
    # In one go: the lines are laid anew with each answer.
    lines = "table => Array.from(table.querySelectorAll('.line:not(.head)'), (row) => row.innerText)"
    rows = [row.split("\n") for row in page.locator(".bars").evaluate(lines)]
    expected = sizes(512, 5_000)
    assert [float(row[-3]) for row in rows] == pytest.approx(expected["measured"], rel=5e-3)
    assert rows[0][-1] == "32.0"
    page.get_by_role("button", name="12 words").click()
    expect(page.locator(".line").nth(5)).to_contain_text(f"{sizes(512, 12)['measured'][4]:.2f}")
    page.wait_for_url("**/positions?*words=12*")


def test_the_link_holds_the_view_and_survives_a_reload_and_another_page(page: Page) -> None:
    open_page(page, "/positions")
    drag(page, "k", 1.0)
    page.wait_for_url("**/positions?*k=64*")
    drag(page, "d_model", 0.0)
    page.wait_for_url("**/positions?*d_model=2*")
    page.reload()
    settle(page)
    expect_turned(page, 2, 10, 64)
    page.get_by_role("link", name="Decode").click()
    expect(page.get_by_role("heading", name="Decode", exact=True)).to_be_visible()
    page.get_by_role("link", name="Positions").click()
    expect(slider(page, "k")).to_have_value("64")
    expect_turned(page, 2, 10, 64)
    page.wait_for_url("**/positions?*k=64*")


def test_nonsense_in_a_link_is_explained(page: Page) -> None:
    open_page(page, "/positions?d_model=9999&k=%3Cb%3E&order=2-0-1")
    expect(page.get_by_test_id("stAlert")).to_contain_text("d_model is '9999' in the link; showing 128.")
    expect(page.get_by_test_id("stAlert")).to_contain_text("k is '<b>' in the link; showing 7.")
    expect(page.get_by_test_id("stAlert")).to_contain_text("order names 3 places, and there are 6 tokens")
    expect_turned(page, 128, 10, 7)


@pytest.mark.parametrize("kind", ["PNG", "SVG", "CSV"])
def test_figures_are_saved_from_themselves(page: Page, kind: str, tmp_path: Path) -> None:
    open_page(page, "/positions?d_model=22")
    page.get_by_label("Save The encoding").click()
    with page.expect_download() as download:
        page.locator(".heat").get_by_role("button", name=kind, exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == f"the-encoding.{kind.lower()}"
    if kind == "PNG":
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        return
    text = path.read_text(encoding="utf-8")
    if kind == "SVG":
        assert text.count("<title>") == 2200
        return
    rows = list(csv.DictReader(text.splitlines()))
    table = sinusoidal_encoding(100, 22, torch.float64)
    assert len(rows) == table.numel()
    row = rows[22 * 13 + 5]
    assert (row["position"], row["dimension"]) == ("13", "5")
    assert float(row["value"]) == pytest.approx(table[13, 5].item(), abs=1e-6)


def test_a_curve_is_read_by_keys_and_by_pointer(page: Page) -> None:
    open_page(page, "/positions?d_model=22")
    figure = page.locator(".lower figure.curves").nth(1)
    canvas, note = figure.locator("canvas"), figure.locator(".note")
    said = note.inner_text()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(note).to_have_text("pair i 0: wavelength 6.28")
    page.keyboard.press("ArrowRight")
    expect(note).to_have_text(f"pair i 1: wavelength {2 * math.pi * 10000 ** (2 / 22):.1f}")
    canvas.blur()
    expect(note).to_have_text(said)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 15, box["y"] + 40)
    expect(note).to_have_text(f"pair i 10: wavelength {2 * math.pi * 10000 ** (20 / 22):.2g}".replace("e+04", "e4"))
    page.mouse.move(box["x"] + 20, box["y"] - 60)
    expect(note).to_have_text(said)


def test_curves_are_saved_as_their_numbers(page: Page, tmp_path: Path) -> None:
    open_page(page, "/positions?d_model=22")
    page.get_by_label("Save Wavelengths").click()
    with page.expect_download() as download:
        page.locator(".lower").get_by_role("button", name="CSV", exact=True).locator("visible=true").click()
    download.value.save_as(tmp_path / "waves.csv")
    rows = list(csv.DictReader((tmp_path / "waves.csv").read_text(encoding="utf-8").splitlines()))
    assert [int(row["pair i"]) for row in rows] == list(range(11))
    assert float(rows[-1]["wavelength"]) == pytest.approx(10000 ** (20 / 22) * 2 * math.pi, rel=1e-6)


def test_the_code_on_the_page_is_the_code_that_ran(page: Page) -> None:
    open_page(page, "/positions")
    page.get_by_text("Show me the code").first.click()
    shown = "def rotation_blocks(k: float | Tensor, d_model: int)"
    expect(page.get_by_test_id("stCode").filter(has_text=shown)).to_be_visible()


@pytest.mark.parametrize(
    "page",
    [{"viewport": {"width": 400, "height": 850}, "device_scale_factor": 2, "color_scheme": "dark"}],
    indirect=True,
    ids=["narrow"],
)
def test_fits_a_phone_in_the_dark(page: Page) -> None:
    open_page(page, "/positions?d_model=128")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    rights = page.locator(".tw *").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    assert max(rights) <= 400
    expect_turned(page, 128, 10, 7)


def test_no_tokens_have_no_order_and_every_picture(page: Page) -> None:
    open_page(page, "/positions?source-reverse=")
    expect(page.locator(".order .chips").last).to_have_text("No tokens, so no order.")
    expect_turned(page, 64, 10, 7)


def test_two_people_turn_their_own_dials(page: Page, browser, app_url: str) -> None:
    open_page(page, "/positions")
    other = browser.new_page(base_url=app_url)
    open_page(other, "/positions")
    drag(page, "k", 1.0)
    drag(other, "k", 0.0)
    page.wait_for_url("**/positions?*k=64*")
    other.wait_for_url("**/positions?*k=-64*")
    expect_turned(page, 64, 10, 64)
    expect_turned(other, 64, 10, -64)
    other.close()
