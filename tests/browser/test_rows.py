"""How text becomes rows, on the Decode page under a real hand, against tensors looked up here."""

import csv
import json
from pathlib import Path
from urllib.parse import quote

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from app.models import shipped
from tests.browser.conftest import open_page, settle
from transformer import Checkpoint, sinusoidal_encoding

NARROW = {"viewport": {"width": 400, "height": 800}}
TEXT = "Is the tokenization of the 😀 fine?"


@pytest.fixture(scope="module")
def translator() -> Checkpoint:
    return shipped("en-fr-d192-h4")


def unfold(page: Page, path: str = "/") -> None:
    open_page(page, path)
    page.get_by_text("How text becomes rows").click()
    expect(page.locator(".rows-panel .chips")).to_be_visible()


def unfold_text(page: Page, text: str) -> None:
    unfold(page, f"/?source-en-fr={quote(text)}")


def chips(page: Page) -> Locator:
    return page.locator(".rows-panel .chip")


def expect_picked(page: Page, at: int) -> None:
    expect(chips(page).nth(at)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".rows-panel .chip[aria-pressed=true]")).to_have_count(1)
    for canvas in page.locator(".rows-panel canvas").locator("visible=true").all():
        expect(canvas).to_have_attribute("data-v", str(at))


def numbers(page: Page) -> torch.Tensor:
    """What the table says: a line for each of 8 dimensions."""
    lines = page.locator(".rows-panel .numbers tr").all()[1:]
    return torch.tensor([[float(x.replace("−", "-")) for x in line.locator("td").all_inner_texts()] for line in lines])


def sheets(page: Page) -> list[torch.Tensor]:
    """What the strips are drawn from."""
    read = page.locator(".rows-panel").evaluate(
        "root => JSON.stringify(root.panel.sheets.filter(({ box }) => !box.hidden)"
        ".map(({ grid }) => [grid.rows.length, Array.from(grid.values), grid.most]))"
    )
    found = [(torch.tensor(values).view(rows, -1), most) for rows, values, most in json.loads(read)]
    assert len({most for _, most in found}) == 1  # one scale for all
    assert max(values.abs().max().item() for values, _ in found) == pytest.approx(found[0][1])
    return [values for values, _ in found]


def test_pieces_show_their_spaces_ids_and_words(page: Page, translator: Checkpoint) -> None:
    tokenizer, ids = translator.tokenizer, translator.tokenizer.encode(TEXT)
    unfold_text(page, TEXT)
    expect(chips(page)).to_have_count(len(ids))
    shown = chips(page).locator(".text").all_inner_texts()
    assert [text.replace("␣", " ") for text in shown] == tokenizer.pieces(ids)
    assert shown[:2] == ["␣Is", "␣the"]
    assert [int(number) for number in chips(page).locator(".id").all_inner_texts()] == ids
    words = page.locator(".rows-panel .word")
    assert [words.nth(i).locator(".chip").count() for i in range(words.count())] == [
        len(word) for word in tokenizer.words(ids)
    ]


def test_rows_are_those_of_the_model_and_add_up(page: Page, translator: Checkpoint) -> None:
    ids = translator.tokenizer.encode(TEXT)
    unfold_text(page, TEXT)
    chips(page).nth(3).click()
    expect_picked(page, 3)
    matrix = translator.model.src_embedding.token.weight.detach()
    tokens, positions = matrix[ids] * 192**0.5, sinusoidal_encoding(len(ids), 192)
    for shown, expected in zip(sheets(page), (tokens, positions, tokens + positions), strict=True):
        torch.testing.assert_close(shown, expected, atol=1e-5, rtol=0)
    row = torch.stack((matrix[ids[3]], tokens[3], positions[3], tokens[3] + positions[3]), 1)[:8]
    torch.testing.assert_close(numbers(page), row, atol=0.00051, rtol=0)
    expect(page.locator(".rows-panel .numbers .note")).to_contain_text("differ by at most 0.")
    expect(page.locator(".rows-panel .strips")).to_contain_text(f"(8,000, 192) → ({len(ids)}, 192)")


def test_a_word_is_merged_step_by_step(page: Page, translator: Checkpoint) -> None:
    unfold_text(page, TEXT)
    tokenizer = translator.tokenizer
    at = tokenizer.pieces(tokenizer.encode(TEXT)).index("ken")
    chips(page).nth(at).click()
    steps = tokenizer.merges(" tokenization")
    lines = page.locator(".rows-panel .merges li")
    expect(lines).to_have_count(len(steps))
    for i, step in enumerate(steps):
        name, *cells = lines.nth(i).locator("> span").all_inner_texts()
        assert name == (f"merge {step.rank + 1:,}" if i else "characters")
        assert tuple(cell.replace("␣", " ") for cell in cells) == step.pieces
        if i:
            expect(lines.nth(i).locator(".new")).to_have_text(step.pieces[step.at].replace(" ", "␣"))
    expect(lines.last.locator(".now")).to_have_text("ken")
    # A character of the first line stands over the piece that it became part of.
    first, last = lines.first.locator(".cell"), lines.last.locator(".cell")
    begins, ends = first.nth(4).bounding_box(), last.nth(1).bounding_box()  # " token": the k
    assert ends["x"] <= begins["x"] + 4
    assert begins["x"] + begins["width"] <= ends["x"] + ends["width"] + 1


def test_a_rare_character_is_its_bytes(page: Page, translator: Checkpoint) -> None:
    unfold_text(page, TEXT)
    at = translator.tokenizer.pieces(translator.tokenizer.encode(TEXT)).index("<0xF0>")
    chips(page).nth(at).click()
    lines = page.locator(".rows-panel .merges li")
    assert lines.nth(0).locator("> span").all_inner_texts() == ["text", "␣", "😀"]
    assert lines.nth(1).locator("> span").all_inner_texts() == [
        "in bytes", "␣", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>",
    ]  # fmt: skip


def test_keys_walk_along_the_pieces_and_the_player_stays(page: Page) -> None:
    unfold(page, "/?task=Reverse&step=2")
    chips(page).first.focus()
    for key, at in {"ArrowRight": 1, "End": 5, "ArrowLeft": 4, "Home": 0}.items():
        page.keyboard.press(key)
        expect_picked(page, at)
        expect(chips(page).nth(at)).to_be_focused()
    strip = page.locator(".rows-panel canvas").first
    strip.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect_picked(page, 2)
    expect(page.locator(".rows-panel .readout")).to_contain_text("piece 7, dimension 0: ")
    expect(page.locator(".player .count")).to_have_text("step 2 of 7")


def test_clicking_a_row_picks_its_piece(page: Page) -> None:
    unfold(page, "/?task=Reverse")
    strip = page.locator(".rows-panel canvas").nth(1)
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 17 + 4.5 * 14)
    expect_picked(page, 4)
    expect(page.locator(".rows-panel .numbers h3")).to_have_text("“5” at position 4: the first 8 of 64 numbers")


def test_picking_asks_nobody_and_outlives_a_run_of_the_page(page: Page) -> None:
    sent: list[str | bytes] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    unfold(page, "/?task=Reverse")
    before = len(sent)
    assert before
    chips(page).nth(5).click()
    expect_picked(page, 5)
    assert len(sent) == before
    page.locator(".player ol button").nth(2).click()
    expect(page.locator(".player .token.chosen")).to_have_count(1)
    settle(page)
    expect_picked(page, 5)


def test_equal_pieces_are_told(page: Page) -> None:
    unfold_text(page, "the cat and the dog and the cow")
    chips(page).nth(3).click()
    expect(page.locator(".rows-panel .numbers .note")).to_contain_text("The same piece stands at positions 0, 6 too")


def test_another_text_is_drawn_while_open(page: Page) -> None:
    unfold(page, "/?task=Reverse")
    field = page.get_by_role("textbox")
    field.fill("9 9 4")
    field.press("Enter")
    expect(chips(page)).to_have_count(3)
    field.fill("")
    field.press("Enter")
    expect(page.locator(".rows-panel .pieces")).to_contain_text(
        "No text, so no pieces and no rows: the encoder is given (0, 64)."
    )
    expect(page.locator(".rows-panel .strips")).to_be_hidden()
    expect(page.locator(".rows-panel .numbers")).to_be_hidden()
    field.fill("7")
    field.press("Enter")
    expect_picked(page, 0)
    assert [tuple(values.shape) for values in sheets(page)] == [(1, 64)] * 3


def test_nothing_is_drawn_before_it_is_unfolded(page: Page) -> None:
    open_page(page)
    expect(page.locator(".rows-panel")).to_be_attached()
    assert page.locator(".rows-panel canvas").count() == 0
    page.get_by_text("How text becomes rows").click()
    expect(page.locator(".rows-panel canvas[data-v]").first).to_be_visible()


@pytest.mark.parametrize("kind", ["PNG", "SVG", "CSV"])
def test_strips_are_saved_from_themselves(page: Page, kind: str, tmp_path: Path, translator: Checkpoint) -> None:
    unfold(page, "/?task=Reverse")
    page.get_by_label("Save Encoder's input").click()
    with page.expect_download() as download:
        page.locator(".rows-panel .strips").get_by_role("button", name=kind, exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == f"encoder-s-input.{kind.lower()}"
    if kind == "PNG":
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    elif kind == "SVG":
        assert path.read_text(encoding="utf-8").count("<title>") == 6 * 64
    else:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        model = shipped("reverse-d64-h4").model
        with torch.no_grad():
            given = model.src_embedding(torch.tensor([[3, 11, 7, 4, 5, 6]]), 0, model.positions, None)[0]
        assert [float(row["value"]) for row in rows] == pytest.approx(given.flatten().tolist(), abs=1e-6)


def test_merges_and_pieces_are_saved_as_tables(page: Page, tmp_path: Path, translator: Checkpoint) -> None:
    unfold_text(page, "tokenization")
    for name, expected in {
        "merges": [[str(s.rank + 1) if s.at is not None else "", "|".join(s.pieces)]
                   for s in translator.tokenizer.merges(" tokenization")],
        "pieces": [[str(i), piece, str(id_)] for i, (piece, id_) in enumerate(
            zip([" to", "ken", "iz", "ation"], translator.tokenizer.encode("tokenization"), strict=True))],
    }.items():  # fmt: skip
        page.get_by_label(f"Save {name}", exact=True).click()
        with page.expect_download() as download:
            page.locator(f".rows-panel .{name}").get_by_role("button", name="CSV").click()
        download.value.save_as(tmp_path / name)
        assert list(csv.reader((tmp_path / name).read_text(encoding="utf-8").splitlines()))[1:] == expected


@pytest.mark.parametrize("page", [NARROW, NARROW | {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(page: Page) -> None:
    unfold_text(page, f"anticonstitutionnellement {TEXT}")
    expect_picked(page, 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for canvas in page.locator(".rows-panel canvas").all():
        assert 250 < canvas.bounding_box()["width"] <= 400
    width = page.locator(".rows-panel .merges .scroll").evaluate("box => [box.scrollWidth, box.clientWidth]")
    assert width[0] > width[1]  # a long word scrolls in its own box


def test_strips_follow_the_windows_width(page: Page) -> None:
    unfold(page)
    canvas = page.locator(".rows-panel canvas").first
    wide = canvas.bounding_box()["width"]
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(
        "([root, wide]) => root.querySelector('canvas').clientWidth < wide",
        arg=[page.locator(".rows-panel").element_handle(), wide],
    )
    strips = page.locator(".rows-panel .strips").bounding_box()
    assert abs(canvas.bounding_box()["width"] - strips["width"]) < 2


def test_the_code_is_that_which_ran(page: Page) -> None:
    unfold(page)
    section = page.get_by_test_id("stExpander").filter(has=page.locator(".rows-panel"))
    section.get_by_text("Show me the code").click()
    expect(section.get_by_test_id("stCode").first).to_contain_text("def merge_steps")
    expect(section.get_by_test_id("stCode").nth(1)).to_contain_text("tokens = self.token(ids) * self.scale")
