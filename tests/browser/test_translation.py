"""The translator under a real hand: sentences typed, alignment as lines, words, narrow and dark windows."""

import csv
import json
import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page, expect

from app.models import TRANSLATION, chosen, translation
from tests.app.test_uploads import translator
from tests.browser.conftest import open_page, settle
from tests.transformer import translations
from transformer import Checkpoint, join_pieces, with_means
from transformer.translation.evaluate import translate

SENTENCES = [
    "The cat is sleeping on the chair.",
    "I don't know.",
    "Where did you buy this book?",
    "They live in a small white house.",
    "She lost her key.",
    "We are going to the beach tomorrow.",
    "My brother never drinks coffee.",
    "Can you help me?",
    "It is raining again.",
    "Tom wants to learn French.",
]


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return chosen(TRANSLATION)


def write(page: Page, text: str) -> None:
    field = page.get_by_role("textbox")
    field.fill(text)
    field.press("Enter")


def lines(page: Page, where: str = ".player") -> torch.Tensor:
    """What the picture of lines draws, read from the picture itself: (rows, columns)."""
    said = page.locator(where).evaluate(
        """(root) => { const { rows, columns, values } = (root.player ?? root.panel).alignment.lines;
          return JSON.stringify([rows.length, columns.length, Array.from(values)]); }"""
    )
    n_rows, n_columns, values = json.loads(said)
    return torch.tensor(values).view(n_rows, n_columns)


def cross(page: Page) -> torch.Tensor:
    said = page.locator(".player").evaluate(
        "root => JSON.stringify([root.player.array('cross').shape, Array.from(root.player.array('cross').values)])"
    )
    shape, values = json.loads(said)
    return torch.tensor(values).view(shape)


def test_ten_sentences_are_translated_as_the_model_does_it(page: Page, checkpoint: Checkpoint) -> None:
    open_page(page)
    for sentence, text in zip(SENTENCES, translate(checkpoint.model, checkpoint.task, SENTENCES), strict=True):
        write(page, sentence)
        expect(page.locator(".player .text")).to_have_text(text)
    expect(page.get_by_text("Trained on sentences of Tatoeba")).to_be_visible()


def test_text_and_cache_grow_with_the_steps(page: Page, checkpoint: Checkpoint) -> None:
    tokens = translation(checkpoint, checkpoint.tokenizer.encode(SENTENCES[0]))
    open_page(page)
    total = int(page.get_by_role("slider", name="step").get_attribute("max"))
    expect(page.locator(".count")).to_have_text(f"step {total} of {total}")  # it opens on the whole translation
    page.get_by_role("button", name="Restart", exact=True).click()
    expect(page.locator(".player .text")).to_have_text("")
    for step in range(1, 4):
        page.get_by_role("button", name="Step", exact=True).click()
        expect(page.locator(".player .text")).to_have_text(checkpoint.tokenizer.decode(tokens[:step]))
        expect(page.locator(".kept")).to_contain_text(f"self-attention's, {step * 2 * 3 * 192:,} numbers")
    expect(page.locator(".kept")).to_contain_text("cross-attention's keys and values of the memory, 9,216 numbers")
    page.wait_for_url("**/?*step=3*")
    page.reload()
    settle(page)
    expect(page.locator(".player .text")).to_have_text(checkpoint.tokenizer.decode(tokens[:3]))


def test_lines_are_means_or_one_heads_weights(page: Page) -> None:
    open_page(page)
    means = with_means(cross(page))
    torch.testing.assert_close(lines(page), means[-1, -1])
    page.get_by_role("group", name="layer of the lines").get_by_role("button", name="3").click()
    torch.testing.assert_close(lines(page), means[2, -1])
    page.get_by_role("group", name="head of the lines").get_by_role("button", name="2").click()
    torch.testing.assert_close(lines(page), means[2, 1])
    page.wait_for_url("**/?*lines=3.2*")
    page.reload()
    settle(page)
    torch.testing.assert_close(lines(page), means[2, 1])


def test_pieces_join_to_words_on_demand(page: Page, checkpoint: Checkpoint) -> None:
    text = "The grasshopper is unhappy."
    open_page(page, f"/?source-en-fr={text.replace(' ', '+')}")
    pieces, tokens = cross(page), page.locator(".player").evaluate("root => root.player.data.tokens")
    page.get_by_label("whole words").check()
    ids = checkpoint.tokenizer.encode(text)
    columns, rows = checkpoint.tokenizer.words(ids), checkpoint.tokenizer.words(tokens)
    assert len(columns) < len(ids)
    torch.testing.assert_close(lines(page), join_pieces(pieces, rows, columns).mean((0, 1)), atol=1e-6, rtol=0)
    assert (
        page.locator(".cross canvas").get_attribute("aria-label").count(f"{len(rows)} rows by {len(columns)} columns")
        == 1
    )
    page.wait_for_url("**/?*words=true*")


def test_a_token_of_the_lines_reads_out_by_pointer_and_by_keys(page: Page) -> None:
    open_page(page)
    canvas = page.locator(".lines canvas")
    place = page.locator(".player").evaluate("root => root.player.alignment.place.rows[1]")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + place["x"], box["y"] + place["y"])
    expect(page.locator(".foot")).to_contain_text("chat looks at cat")
    page.mouse.move(5, 5)
    canvas.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".foot")).to_contain_text("chat looks at cat")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".foot")).to_contain_text("cat is looked at by chat")


def test_the_lines_leave_as_csv_and_svg(page: Page, tmp_path: Path) -> None:
    open_page(page)
    drawn = lines(page)
    for kind in ("CSV", "SVG"):
        page.get_by_label("Save Alignment: cross-attention as lines").click()
        with page.expect_download() as download:
            page.locator(".lines").get_by_role("button", name=kind).click()
        download.value.save_as(tmp_path / kind)
    table = list(csv.DictReader((tmp_path / "CSV").read_text(encoding="utf-8").splitlines()))
    torch.testing.assert_close(torch.tensor([float(row["weight"]) for row in table]), drawn.flatten())
    assert table[0]["row_label"] == "Le"
    assert (tmp_path / "SVG").read_text(encoding="utf-8").count("<path") == int((drawn >= 0.02).sum())


def test_attention_takes_the_sentence_along(page: Page, checkpoint: Checkpoint) -> None:
    open_page(page)
    write(page, "She is looking for a tiny grasshopper.")
    expect(page.locator(".player .token.src").first).to_have_text("She")
    page.get_by_role("link", name="Attention").click()
    page.wait_for_url("**/attention?**")
    settle(page)
    expect(page.locator(".attention .status")).to_contain_text("BLEU")
    expect(page.get_by_role("slider", name="d_model")).to_have_value("192")
    assert "d_model" not in page.url  # it is the model's own
    one = lines(page, ".attention")
    page.get_by_role("group", name="Lines").get_by_role("button", name="mean of all").click()
    page.wait_for_url("**/attention?*mean=all*")
    assert not torch.equal(lines(page, ".attention"), one)
    page.get_by_label("whole words").check()
    page.wait_for_url("**/attention?*words=true*")
    expect(page.locator(".one canvas").first).to_have_attribute("aria-label", re.compile("grasshopper|looks|She|Elle"))
    page.get_by_role("radio", name="Reverse").click()
    expect(page.locator(".attention .status")).to_contain_text("fresh sequences right")
    expect(page.get_by_role("slider", name="d_model")).to_have_value("64")


def test_a_long_sentence_is_doubted_and_still_shown(page: Page) -> None:
    open_page(page)
    write(page, "the dog and the cat and the bird and the man and the boy")
    expect(page.get_by_text("14 words: the model learned from sentences of at most 10")).to_be_visible()
    expect(page.locator(".player .token.src")).to_have_count(14, timeout=30_000)


def test_a_translator_of_ones_own_is_uploaded_and_chosen(page: Page, tmp_path: Path) -> None:
    open_page(page, "/train")
    page.get_by_text("Bring a trained model back").click()
    contents = translator(tmp_path, translations.task())
    page.locator("input[type=file]").set_input_files(
        {"name": "mine.safetensors", "mimeType": "application/octet-stream", "buffer": contents}
    )
    expect(page.get_by_text("mine.safetensors is taken in.")).to_be_visible()
    page.get_by_role("link", name="Decode").click()
    settle(page)
    page.get_by_role("radio", name="Translation").click()
    settle(page)
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="Yours: uploaded").click()
    settle(page)
    expect(page.get_by_text("d_model 20, 2 heads of d_k 10")).to_be_visible()
    page.get_by_role("link", name="Attention").click()
    settle(page)
    expect(page.locator(".attention .status")).to_contain_text("Your model.")


@pytest.mark.parametrize("page", [{"viewport": {"width": 400, "height": 800}, "color_scheme": "dark"}], indirect=True)
@pytest.mark.parametrize("path", ["/", "/attention"])
def test_a_narrow_window_holds_it(page: Page, path: str) -> None:
    open_page(page, f"{path}?source-en-fr=We+are+going+to+the+beach+tomorrow+with+our+friends.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    where = ".player" if path == "/" else ".attention"
    assert page.locator(where).evaluate("root => (root.player ?? root.panel).alignment.place.upright") is False
