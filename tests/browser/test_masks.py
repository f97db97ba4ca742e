"""The Masks page under a real hand: dragging lengths, turning cells, the leak detector, empty rows, two models."""

import csv
import json
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from app.masks_models import FRESH
from app.masks_run import Masks, Sentences, masks, records, run, sentences, with_companions
from app.models import shipped
from tests.browser.conftest import open_page, settle
from transformer import ReversalTask, Trace, causal_mask, leak

EXAMPLE = [3, 11, 7, 4, 5, 6]
TASK = ReversalTask()
FULL = with_companions(TASK, EXAMPLE, 0)
LENGTHS = [len(one) for one in FULL]
MODEL = shipped("reverse-d64-h4").model


def slider(page: Page, name: str) -> Locator:
    return page.locator(f'input[type=range][aria-label="{name}"]')


def drag(page: Page, name: str, share: float, steps: int = 12) -> None:
    """Press the thumb where it is and pull it to a share of the track's width."""
    slider(page, name).scroll_into_view_if_needed()
    box = slider(page, name).bounding_box()
    low, high, value = (float(slider(page, name).evaluate(f"e => +e.{of}")) for of in ("min", "max", "value"))
    thumb, y = 8, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + thumb + (box["width"] - 2 * thumb) * (value - low) / (high - low), y)
    page.mouse.down()
    page.mouse.move(box["x"] + thumb + (box["width"] - 2 * thumb) * share, y, steps=steps)
    page.mouse.up()


def drawn(page: Page, picture: str) -> torch.Tensor:
    """What a picture draws, read from the picture itself."""
    read = page.locator(".masks").evaluate(
        """(root, path) => { const { weights } = path.split(".").reduce((at, name) => at[name], root.panel).grid;
          return JSON.stringify({shape: weights.shape, values: Array.from(weights.values)}); }""",
        picture,
    )
    read = json.loads(read)
    return torch.tensor(read["values"], dtype=torch.float32).view(read["shape"])


def computed(
    lengths: list[int], causal: bool = True, flips: tuple = (), kind: str = "decoder", sentence: int = 0
) -> tuple[torch.Tensor, Sentences, Masks]:
    """Weights (L, H, T_q, T_k) of one sentence, the batch and its masks, as torch has them."""
    batch, trace = sentences(MODEL, TASK, FULL, lengths), Trace()
    made = masks(batch, causal, flips)
    run(MODEL, batch, made, trace)
    return torch.stack([record.weights[sentence] for record in records(trace, kind)]), batch, made


def answered(page: Page) -> None:
    """Wait until nothing is asked any more and the last answer is drawn whole."""
    panel = page.locator(".masks").element_handle()
    page.wait_for_function(
        """({ panel }) => panel.header.whole && panel.header.count === panel.latch.count
          && panel.latch.next === null && !panel.wantsCommit""",
        arg=panel,
    )
    panel.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def expect_weights(page: Page, weights: torch.Tensor) -> None:
    answered(page)
    torch.testing.assert_close(drawn(page, "weights"), weights, atol=1e-6, rtol=0)


def cell(page: Page, picture: str, layer: int, head: int, row: int, column: int) -> dict[str, float]:
    """The middle of one cell of a picture's canvas."""
    return page.locator(".masks").evaluate(
        """(root, [path, layer, head, row, column]) => {
          const { canvas, grid } = path.split(".").reduce((at, name) => at[name], root.panel);
          const { left, top, pitch, cell } = grid.place;
          canvas.scrollIntoView({ block: "center" });
          const box = canvas.getBoundingClientRect();
          const x = left + head * pitch.x + (column + 0.5) * cell, y = top + layer * pitch.y + (row + 0.5) * cell;
          return { x: box.x + x, y: box.y + y };
        }""",
        [picture, layer, head, row, column],
    )


def click_cell(page: Page, *where) -> None:
    at = cell(page, *where)
    page.mouse.click(at["x"], at["y"])


def test_opens_on_the_usual_masks_with_their_shapes(page: Page) -> None:
    open_page(page, "/masks")
    weights, _, made = computed(LENGTHS)
    expect_weights(page, weights)
    shapes = page.locator(".shelf .shape").all_inner_texts()
    assert shapes == [
        "(B, 1, 1, S) = (3, 1, 1, 8)",
        "(B, 1, 1, S) = (3, 1, 1, 8)",
        "(B, 1, 1, T) = (3, 1, 1, 9)",
        "(1, 1, T, T) = (1, 1, 9, 9)",
        "(B, 1, T, T) = (3, 1, 9, 9)",
    ]
    for name in ("encoder", "padding", "causal", "decoder", "cross"):
        assert drawn(page, f"pictures.{name}").flatten().tolist() == getattr(made, name).float().flatten().tolist()


@pytest.mark.parametrize(("name", "share"), [("length 1", 0.5), ("length 2", 0.0), ("length 3", 0.34)])
def test_dragging_a_length_moves_masks_weights_and_output(page: Page, name: str, share: float) -> None:
    open_page(page, "/masks")
    page.locator(".group.encoder canvas").evaluate("c => { c.marked = true; }")
    b = int(name[-1]) - 1
    page.get_by_role("button", name=f"Sentence {b + 1}", exact=True).click()
    expect(page.get_by_role("button", name=f"Sentence {b + 1}", exact=True)).to_have_attribute("aria-pressed", "true")
    drag(page, name, share)
    length = round(share * LENGTHS[b])
    expect(page.locator(".group.encoder canvas")).to_have_attribute("data-v", str(length))
    lengths = [length if i == b else n for i, n in enumerate(LENGTHS)]
    weights, batch, made = computed(lengths, sentence=b)
    expect_weights(page, weights)
    assert drawn(page, "pictures.encoder")[0, 0].tolist() == made.encoder[:, 0, 0].float().tolist()
    expect(page.locator(".next tr")).to_have_count(1 + int(batch.tgt_lengths[b]))
    assert page.locator(".group.encoder canvas").evaluate("c => c.marked === true")
    page.wait_for_url(f"**/masks?*length{b + 1}={length}*")


def test_without_the_causal_mask_the_future_is_seen_and_the_output_moves(page: Page) -> None:
    open_page(page, "/masks")
    expect(page.locator(".out .note")).to_contain_text("The masks are the usual ones.")
    page.get_by_role("checkbox", name="causal mask").uncheck()
    page.wait_for_url("**/masks?causal=false")
    weights, _, _ = computed(LENGTHS, causal=False)
    expect_weights(page, weights)
    assert weights[:, :, 0, 1:].max() > 0
    expect(page.locator(".out .note")).to_contain_text("Against the usual masks logits move by up to")
    assert drawn(page, "pictures.causal").min() == 1


def test_a_click_turns_one_cell_and_another_turns_it_back(page: Page) -> None:
    open_page(page, "/masks")
    click_cell(page, "pictures.decoder", 0, 0, 2, 4)
    page.wait_for_url("**/masks?cells=d1.3.5")
    expect_weights(page, computed(LENGTHS, flips=(("d", 0, 2, 4),))[0])
    assert drawn(page, "pictures.decoder")[0, 0, 2].tolist() == [1, 1, 1, 0, 1, 0, 0, 0, 0]
    expect(page.locator(".leak .column:not([hidden])")).to_have_count(3)
    click_cell(page, "pictures.encoder", 0, 0, 0, 1)
    page.wait_for_url("**/masks?cells=d1.3.5_e1.2")
    page.get_by_role("button", name="Undo 2 cells").click()
    page.wait_for_url("**/masks")
    expect_weights(page, computed(LENGTHS)[0])
    expect(page.get_by_role("button", name="Undo")).to_be_hidden()


def test_keys_walk_over_a_mask_and_turn_its_cells(page: Page) -> None:
    open_page(page, "/masks")
    page.locator(".group.cross canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".controls .readout")).to_have_text(
        "sentence 1, key 1 (3): may be attended, for every head and query"
    )
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**/masks?cells=c1.2")
    page.locator(".group.cross canvas").press("ArrowDown")
    expect(page.locator(".controls .readout")).to_contain_text("sentence 2, key 2")


def test_spread_out_the_masks_are_what_broadcasting_makes_of_them(page: Page) -> None:
    open_page(page, "/masks")
    page.get_by_role("button", name="over heads and queries").click()
    page.wait_for_url("**/masks?spread=true")
    answered(page)
    _, _, made = computed(LENGTHS)
    for name, shape in {
        "encoder": (3, 4, 8, 8),
        "cross": (3, 4, 9, 8),
        "causal": (3, 4, 9, 9),
        "decoder": (3, 4, 9, 9),
    }.items():
        assert torch.equal(drawn(page, f"pictures.{name}"), getattr(made, name).expand(shape).float())
    click_cell(page, "pictures.encoder", 2, 3, 5, 0)
    page.wait_for_url("**/masks?*cells=e3.1*")
    answered(page)
    assert drawn(page, "pictures.encoder")[2, :, :, 0].max() == 0


def test_the_leak_detector_says_exactly_0_with_the_causal_mask_only(page: Page) -> None:
    open_page(page, "/masks")
    _, batch, made = computed(LENGTHS)
    page.get_by_label("new token").select_option("9")
    page.wait_for_url("**/masks?token=9")
    answered(page)
    drag(page, "position", 1.0)
    page.wait_for_url("**/masks?*place=7*")
    expect(page.locator(".leak canvas").first).to_have_attribute("data-v", "7")
    with torch.no_grad():
        memory = MODEL.encode(batch.src[:1], made.encoder[:1])
    both = torch.cat((causal_mask(7), torch.ones(1, 1, 7, 7, dtype=torch.bool)))
    causal, opened = leak(MODEL, memory, batch.tgt[:1, :7], 9, both, made.cross[:1])
    columns = page.locator(".leak .column:not([hidden])")
    assert columns.nth(0).locator(".value").all_inner_texts() == ["exactly 0"] * 6 + [f"{causal[6, 6]:.3f}"]
    assert columns.nth(1).locator(".value").all_inner_texts() == [f"{moved:.3f}" for moved in opened[6].tolist()]
    expect(columns.nth(0).locator(".told")).to_have_text("The 6 positions before it: exactly 0.")
    expect(columns.nth(1).locator(".told")).to_have_text(
        f"Before it logits move by up to {opened[6, :6].max():.3f}: a leak."
    )


def test_the_same_token_again_moves_nothing_and_says_so(page: Page) -> None:
    open_page(page, "/masks?place=3&token=5")
    for told in page.locator(".leak .column:not([hidden]) .told").all():
        expect(told).to_have_text("It is that token already: nothing moves.")


def test_a_row_with_nothing_to_attend_four_ways(page: Page) -> None:
    open_page(page, "/masks")
    rows = page.locator(".empty tr")
    assert rows.nth(1).locator("td").all_inner_texts()[1:5] == ["NaN", "NaN", "0", "NaN"]
    assert rows.nth(2).locator("td").all_inner_texts()[1] == "1.000"
    assert rows.nth(2).locator(".cells span").all_inner_texts() == ["0.111"] * 9
    assert rows.nth(3).locator("td").all_inner_texts()[1:5] == ["0", "0", "NaN", "0"]
    assert rows.nth(4).locator("td").all_inner_texts()[1:5] == ["0", "0", "0", "0"]
    click_cell(page, "weights", 1, 2, 4, 0)
    page.wait_for_url("**/masks?*row=5*")
    expect(page.locator(".empty .tell").first).to_contain_text("Row 5 (7) of layer 2, head 3")
    expect(page.locator(".empty .tell").last).to_contain_text("7 of the encoder's 24 rows have no key left")


def test_a_sentence_of_length_0_marks_its_rows_and_stays_finite(page: Page) -> None:
    open_page(page, "/masks?length1=0&attend=cross")
    assert drawn(page, "weights").abs().max() == 0
    expect(page.locator(".next .guess.first")).to_contain_text("<eos>")
    expect(page.locator(".attend .pair canvas").last).to_have_attribute("data-v", "0")


def test_two_models_stand_side_by_side(page: Page) -> None:
    open_page(page, "/masks")
    rows = page.locator(".models tr")
    assert rows.nth(4).locator("td").nth(0).inner_text().split() == [*map(str, EXAMPLE[::-1]), "<eos>", "✓"]
    assert rows.nth(4).locator("td").nth(1).inner_text().split()[-1] == "✗"
    assert rows.nth(5).locator("td").all_inner_texts() == [f"{FRESH} of {FRESH}", f"0 of {FRESH}"]
    assert rows.nth(6).locator("td").all_inner_texts() == ["4,096 of 4,096", "0 of 4,096"]
    losses = [float(text.removesuffix(" nats")) for text in rows.nth(1).locator("td").all_inner_texts()]
    assert max(losses) < 0.0002
    assert float(rows.nth(2).locator("td").nth(1).inner_text().removesuffix(" nats")) > 1
    assert drawn(page, "cheat").diagonal(1, -2, -1)[..., :7].mean(-1).max() > 0.9
    assert drawn(page, "honest").triu(1).max() == 0


def test_the_link_holds_the_view_and_survives_a_reload_and_another_page(page: Page) -> None:
    link = "/masks?length2=3&cells=d2.1.2&sentence=2&attend=cross&place=2"
    open_page(page, link)
    page.reload()
    settle(page)
    expect(slider(page, "length 2")).to_have_value("3")
    expect(page.get_by_role("button", name="Undo 1 cell")).to_be_visible()
    weights, _, _ = computed([LENGTHS[0], 3, LENGTHS[2]], flips=(("d", 1, 0, 1),), kind="cross", sentence=1)
    expect_weights(page, weights)
    page.get_by_role("link", name="Decode").click()
    expect(page.get_by_role("heading", name="Decode", exact=True)).to_be_visible()
    page.get_by_role("link", name="Masks").click()
    expect(slider(page, "length 2")).to_have_value("3")
    page.wait_for_url("**/masks?*length2=3*")


def test_lengths_and_cells_belong_to_their_batch(page: Page) -> None:
    open_page(page, "/masks?length2=3&cells=d2.1.2&causal=false")
    page.get_by_role("button", name="Other companions").click()
    page.wait_for_url("**/masks?causal=false&draw=1")
    expect(page.get_by_role("button", name="Undo")).to_be_hidden()
    page.get_by_role("button", name="Repeats").click()
    expect(slider(page, "length 1")).to_have_value("5")


def test_nonsense_in_a_link_is_explained(page: Page) -> None:
    open_page(page, "/masks?sentence=9&cells=%3Cb%3E")
    expect(page.get_by_test_id("stAlert")).to_contain_text("sentence is '9' in the link; showing 3.")
    expect(page.get_by_role("button", name="Sentence 3")).to_have_attribute("aria-pressed", "true")


def test_the_code_that_computed_it_is_shown(page: Page) -> None:
    open_page(page, "/masks")
    page.get_by_text("Show me the code").click()
    expect(page.get_by_test_id("stCode").first).to_contain_text("def padding_mask(lengths: Tensor, T: int)")
    expect(page.get_by_test_id("stCode").nth(1)).to_contain_text("def causal_mask(T: int")


def test_a_mask_is_saved_with_all_its_cells(page: Page, tmp_path: Path) -> None:
    open_page(page, "/masks?length1=2")
    page.get_by_label("Save Both").click()
    with page.expect_download() as download:
        page.locator(".group.decoder figure").last.get_by_role("button", name="CSV", exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == "both.csv"
    values = [float(row["weight"]) for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
    _, _, made = computed([2, *LENGTHS[1:]])
    assert values == made.decoder.float().flatten().tolist()


@pytest.mark.parametrize("link", ["/masks", "/masks?spread=true", "/masks?source-reverse=&length2=1"])
@pytest.mark.parametrize(
    "page", [{"viewport": {"width": 400, "height": 850}, "color_scheme": "dark"}], indirect=True, ids=["narrow"]
)
def test_fits_a_phone_in_the_dark(page: Page, link: str) -> None:
    open_page(page, link)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    visible = page.locator("figure:not([hidden]) canvas:visible")
    assert visible.count() >= 9
    assert visible.evaluate_all("all => all.every(c => c.getBoundingClientRect().right <= innerWidth)")
