"""The Break it page under a real hand: predicting, revealing, training before one's eyes, dragging the depth."""

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.gradients_view import KINDS
from tests.browser.conftest import IDLE, open_page
from tests.browser.test_attention import drag, slider
from transformer.broken import PARTS, outcome
from transformer.broken.results import RESULTS, mean
from transformer.gradient_norms import at_start

SHIPPED = json.loads(RESULTS.read_text(encoding="utf-8"))


def means(name: str) -> tuple[float, float]:
    part = SHIPPED["parts"][name]
    return mean(part, "intact", "exact"), mean(part, "broken", "exact")


def pick(page: Page, name: str) -> None:
    page.locator(".breakit .list").get_by_role("button", name=PARTS[name].title, exact=True).click()
    expect(page.locator(".breakit .question")).to_have_text(PARTS[name].question)


def open_break(page: Page, query: str = "") -> None:
    open_page(page, f"/break{query}")
    page.wait_for_selector(".gradients canvas[data-v]")


def test_nothing_is_revealed_before_the_prediction(page: Page) -> None:
    open_break(page)
    expect(page.locator(".breakit .bar.broken output")).to_have_text("?")
    expect(page.locator(".breakit .bar.intact output")).to_have_text(f"{means('causal')[0]:,.0f}")
    expect(page.locator(".breakit .curves canvas").first).to_have_attribute("aria-label", re.compile("^Training loss"))
    assert "broken" not in page.locator(".breakit .key").inner_text()


@pytest.mark.parametrize("name", ["causal", "positions", "ffn", "padding-decoding"])
def test_a_prediction_reveals_the_files_numbers(page: Page, name: str) -> None:
    open_break(page)
    pick(page, name)
    intact, broken = means(name)
    truth = outcome(intact, broken)
    page.get_by_role("button", name=PARTS[name].answers[truth], exact=True).click()
    expect(page.locator(".breakit .verdict")).to_contain_text("✓ As you predicted")
    expect(page.locator(".breakit .verdict")).to_contain_text(f"{broken:,.0f} right against {intact:,.0f} of 2,048")
    expect(page.locator(".breakit .bar.broken output").first).to_have_text(f"{broken:,.0f}")
    expect(page.locator(".breakit .why")).to_have_text(PARTS[name].why)
    expect(page.locator(".breakit .score")).to_have_text("1 of 1 predicted")
    run = SHIPPED["parts"][name]["seeds"]["0"]
    right = [*run["source"][::-1], 2]
    shown = page.locator(".breakit .token.broken")
    expect(shown).to_have_count(max(len(right), len(run["broken"]["answer"])))
    wrong = sum(a != b for a, b in zip(run["broken"]["answer"], right, strict=False))
    wrong += abs(len(right) - len(run["broken"]["answer"]))
    expect(page.locator(".breakit .token.broken.wrong")).to_have_count(wrong)


def test_another_prediction_is_told_what_happened(page: Page) -> None:
    open_break(page)
    truth = outcome(*means("causal"))
    page.get_by_role("button", name=PARTS["causal"].answers[truth - 1], exact=True).click()
    expect(page.locator(".breakit .verdict")).to_contain_text(
        f"✗ It went otherwise: “{PARTS['causal'].answers[truth]}”"
    )
    expect(page.locator(".breakit .answers button.true")).to_have_text(PARTS["causal"].answers[truth])


def test_the_link_holds_part_and_prediction_and_survives_a_reload(page: Page) -> None:
    open_break(page)
    pick(page, "heads")
    page.get_by_role("button", name="Just show me").click()
    page.wait_for_url("**/break?*guess=shown*")
    assert "part=heads" in page.url
    page.reload()
    page.wait_for_selector(".breakit canvas[data-v]")
    expect(page.locator(".breakit .question")).to_have_text(PARTS["heads"].question)
    expect(page.locator(".breakit .bar.broken output").first).to_have_text(f"{means('heads')[1]:,.0f}")


def test_nonsense_in_a_link_is_explained(page: Page) -> None:
    open_break(page, "?part=%3Cb%3E&layers=999")
    expect(page.get_by_test_id("stAlert")).to_contain_text("part is '<b>' in the link; showing causal.")


def test_a_training_is_watched_survives_a_reload_and_is_stopped(page: Page) -> None:
    open_break(page, "?part=pre-ln")  # the deepest, so that it does not end before it is stopped
    page.get_by_label("seed").fill("5")
    page.get_by_role("button", name="Train it before my eyes").click()
    status = page.locator(".breakit .live .status")
    expect(status).to_contain_text("of 450", timeout=120_000)
    expect(page.locator(".breakit .key")).to_contain_text("broken twin, live")
    page.reload()
    expect(status).to_contain_text("of 450", timeout=60_000)
    page.get_by_role("button", name="Stop").click()
    expect(status).to_have_text("Stopped.")
    expect(page.get_by_role("button", name="Train it before my eyes")).to_be_visible()


def test_the_depth_is_dragged_and_computed_now(page: Page) -> None:
    open_break(page)
    drag(page, "N", 0.13)
    n = int(slider(page, "N").input_value())
    assert 1 < n < 8
    canvas = page.locator(".gradients .start canvas")
    expect(canvas).to_have_attribute("data-v", str(n))
    root = page.locator(".gradients").element_handle()
    page.wait_for_function("([root, n]) => root.panel.byLayer.chart.series[1].points.length === n", arg=[root, n])
    series = root.evaluate("root => root.panel.byLayer.chart.series.map(s => s.points)")
    for points, norm in ((series[1], "post"), (series[3], "pre")):
        expected = at_start(n, 0)[norm][KINDS[2]].tolist()
        assert [y for _, y in points] == pytest.approx(expected, rel=1e-4)
    page.wait_for_url(f"**/break?*layers={n}*")


def test_training_time_is_scrubbed_in_the_browser(page: Page) -> None:
    open_break(page)
    slider(page, "after step").focus()
    page.keyboard.press("End")
    canvas = page.locator(".gradients .training canvas")
    last = slider(page, "after step").evaluate("e => e.closest('.gradients').panel.header.steps.at(-1)")
    expect(canvas).to_have_attribute("data-v", str(last))


def test_a_curve_is_read_by_keys(page: Page) -> None:
    open_break(page, "?guess=shown")
    page.locator(".breakit .curves canvas").focus()
    page.keyboard.press("ArrowRight")
    curve = SHIPPED["parts"]["causal"]["seeds"]["0"]["intact"]["curve"]
    expect(page.locator(".breakit .curves .note")).to_contain_text("step 5: intact twin ")
    expect(page.locator(".breakit .curves .note")).to_contain_text(f"{float(f'{curve[0][1]:.3g}'):g}")


@pytest.mark.parametrize("kind", ["PNG", "SVG", "CSV"])
def test_curves_are_saved_from_themselves(page: Page, kind: str, tmp_path: Path) -> None:
    open_break(page, "?guess=shown")
    page.get_by_label("Save Training loss").click()
    with page.expect_download() as download:
        page.locator(".save[open]").get_by_role("button", name=kind, exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == f"training-loss.{kind.lower()}"
    if kind == "PNG":
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        return
    text = path.read_text(encoding="utf-8")
    if kind == "SVG":
        assert text.count("<path") >= 6
        return
    rows = list(csv.DictReader(text.splitlines()))
    curve = SHIPPED["parts"]["causal"]["seeds"]["1"]["broken"]["curve"]
    read = [[int(row["step"]), float(row["loss"])] for row in rows if row["series"] == "broken, seed 1"]
    assert read == [[step, pytest.approx(loss)] for step, loss in curve]


@pytest.mark.parametrize(
    "page",
    [{"viewport": {"width": 400, "height": 850}}, {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"}],
    indirect=True,
    ids=["narrow", "dark"],
)
def test_fits_a_phone_and_the_dark(page: Page) -> None:
    open_break(page, "?guess=shown")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator("canvas").evaluate_all("all => all.every(c => c.getBoundingClientRect().right <= innerWidth)")
    page.wait_for_function(IDLE)
