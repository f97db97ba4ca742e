"""The Decode page under a real hand: typing, stepping, keys, branches, narrow and dark windows."""

import pytest
import torch
from playwright.sync_api import Page, expect

from app.models import CHECKPOINTS
from tests.browser.conftest import open_page, settle
from transformer import TASKS, Checkpoint, greedy_decode, load_checkpoint


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load_checkpoint(CHECKPOINTS / "reverse-d64-h4.safetensors")


def write(page: Page, text: str) -> None:
    field = page.get_by_role("textbox")
    field.fill(text)
    field.press("Enter")


def output(page: Page) -> list[str]:
    return page.locator("[data-role=output] .token:not(.open)").all_inner_texts()


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def expect_step(page: Page, step: int, of: int) -> None:
    expect(page.locator(".count")).to_have_text(f"step {step} of {of}")


def candidates(page: Page) -> list[tuple[str, str]]:
    rows = page.locator("ol button").all()
    return [(row.locator(".label").inner_text(), row.locator(".value").inner_text()) for row in rows]


def test_opens_on_an_example_with_its_first_token_written(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    expect(page.get_by_role("heading", name="Decode", exact=True)).to_be_visible()
    assert page.locator(".tokens .src").all_inner_texts() == ["3", "11", "7", "4", "5", "6"]
    assert output(page) == ["6"]
    expect_step(page, 1, 7)


def test_types_steps_back_and_runs_to_the_end(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    write(page, "5 5 9 10")
    expect_step(page, 1, 5)
    press(page, "Step")
    assert output(page) == ["10", "9"]
    press(page, "Back")
    assert output(page) == ["10"]
    press(page, "Run to end")
    assert output(page) == ["10", "9", "5", "5", "<eos>"]
    expect(page.locator(".verdict")).to_have_text("✓ the source backwards")
    expect(page.get_by_role("button", name="Step", exact=True)).to_be_disabled()
    press(page, "Restart")
    assert output(page) == []
    expect(page.get_by_role("button", name="Back", exact=True)).to_be_disabled()


def test_candidates_are_the_models_own(page: Page, checkpoint: Checkpoint) -> None:
    """Every label and probability on screen against a decode run here."""
    open_page(page, "/?task=Reverse")
    write(page, "8 3 3")
    expect_step(page, 1, 4)
    src = torch.tensor([checkpoint.tokenizer.encode("8 3 3")])
    for step in greedy_decode(checkpoint.model, src, 8):
        shown = candidates(page)
        assert [label for label, _ in shown] == checkpoint.tokenizer.labels(step.candidates[0, :6].tolist())
        for (_, value), probability in zip(shown, step.probabilities[0, :6].tolist(), strict=True):
            assert value == ("<.001" if 0 < probability < 0.0005 else f"{probability:.3f}")
        if step.stopped[0] is None:
            press(page, "Step")


def test_keys_step_play_and_jump(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    page.get_by_role("heading", name="Decode", exact=True).click()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect_step(page, 4, 7)
    page.keyboard.press("ArrowLeft")
    expect_step(page, 3, 7)
    page.keyboard.press("Home")
    expect_step(page, 0, 7)
    page.keyboard.press("End")
    expect_step(page, 7, 7)
    page.keyboard.press("Space")  # at the end it plays from the start
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    expect_step(page, 2, 7)
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_playing_ends_by_itself(page: Page) -> None:
    open_page(page, "/?source-reverse=7&task=Reverse")
    press(page, "Restart")
    press(page, "Play")
    expect_step(page, 2, 2)
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_keys_belong_to_the_text_field_while_it_has_the_focus(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    field = page.get_by_role("textbox")
    field.focus()
    field.press("ArrowRight")
    field.press("Space")
    expect_step(page, 1, 7)


def test_the_slider_scrubs(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    slider = page.get_by_role("slider", name="step", exact=True)
    slider.focus()
    slider.press("ArrowRight")
    expect_step(page, 2, 7)
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2, steps=9)
    page.mouse.up()
    expect_step(page, 7, 7)
    assert set(page.locator("canvas").evaluate_all("all => all.map(c => c.dataset.v)")) == {"7"}


def test_a_picture_reached_by_steps_is_the_one_drawn_anew(page: Page) -> None:
    """Steps draw only the rows that change; opening the page at a step draws everything: no pixel may differ."""
    pictures = "canvases => canvases.map(canvas => canvas.toDataURL())"
    open_page(page, "/?step=4&task=Reverse")
    anew = page.locator(".player canvas").evaluate_all(pictures)
    open_page(page, "/?step=2&task=Reverse")
    assert page.locator(".player canvas").evaluate_all(pictures) != anew
    for key in ("ArrowRight", "ArrowRight", "End", "Home", "ArrowRight", "End", "ArrowLeft", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    expect_step(page, 4, 7)
    assert page.locator(".player canvas").evaluate_all(pictures) == anew


def test_another_candidate_is_a_branch(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    press(page, "Step")
    page.locator("ol button").nth(2).click()
    expect(page.locator(".token.chosen")).to_have_count(2)
    assert page.locator("ol button.taken .label").inner_text() == output(page)[1] != "5"
    page.get_by_role("button", name="Back to the model's own choice").click()
    expect(page.locator(".token.chosen")).to_have_count(0)
    press(page, "Run to end")
    assert output(page) == ["6", "5", "4", "7", "11", "3", "<eos>"]


def test_a_branch_needs_no_run_of_the_page_and_comes_by_one_where_it_must(browser, app_url: str) -> None:
    page = browser.new_page(base_url=app_url)  # the page fixture would not bear the lost question in the console
    open_page(page, "/?task=Reverse")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/live/decode" in request.url else None)
    page.locator("ol button").nth(1).click()
    expect(page.locator(".token.chosen")).to_have_count(1)
    assert len(asked) == 1
    page.get_by_role("button", name="Back to the model's own choice").click()
    expect(page.locator(".token.chosen")).to_have_count(0)
    page.route("**/live/decode?*", lambda route: route.abort())
    page.locator("ol button").nth(1).click()
    expect(page.locator(".token.chosen")).to_have_count(1)
    page.wait_for_url("**/?*take=*")


@pytest.mark.parametrize(
    ("text", "written"),
    [("", ["<eos>"]), ("7", ["7", "<eos>"]), ("3 4 5 6 7 8 9 10", ["10", "9", "8", "7", "6", "5", "4", "3", "<eos>"])],
    ids=["empty", "one", "longest"],
)
def test_the_shortest_and_the_longest(page: Page, text: str, written: list[str]) -> None:
    open_page(page, "/?task=Reverse")
    write(page, text)
    expect_step(page, 1, len(written))
    if len(written) > 1:
        press(page, "Run to end")
    assert output(page) == written
    expect(page.locator(".verdict")).to_have_text("✓ the source backwards")


def test_wrong_symbols_are_named_as_typed_and_nothing_is_lost(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    write(page, "5 9")
    expect_step(page, 1, 3)
    write(page, "3 <b>x</b> $a$ __y__ :smile: <eos>")
    alert = page.get_by_test_id("stAlert")
    expect(alert).to_contain_text("are not symbols of this task")
    shown = alert.inner_text().replace("\u2060", "")
    for typed in ("“<b>x</b>”", "“$a$”", "“__y__”", "“:smile:”", "“<eos>”", "Still showing: 5 9"):
        assert typed in shown
    assert not alert.locator("b, .katex, img").count()
    assert page.locator(".tokens .src").all_inner_texts() == ["5", "9"]


def test_too_many_symbols_are_counted(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    write(page, "3 " * 17)
    expect(page.get_by_test_id("stAlert")).to_contain_text("17 tokens are too many")


def test_an_example_replaces_the_sequence_and_the_link_holds_it(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    press(page, "Repeats")
    expect(page.locator(".tokens .src").first).to_have_text("5")
    source = page.locator(".tokens .src").all_inner_texts()
    assert source == ["5", "5", "8", "5", "8"]
    page.reload()
    settle(page)
    assert page.locator(".tokens .src").all_inner_texts() == source


def test_the_link_holds_the_step_and_the_branch(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    press(page, "Step")
    page.locator("ol button").nth(2).click()
    expect(page.locator(".token.chosen")).to_have_count(2)
    press(page, "Step")
    page.wait_for_url("**/?*step=3*")
    written = output(page)
    page.reload()
    settle(page)
    assert output(page) == written
    expect(page.locator(".token.chosen")).to_have_count(2)


def test_another_page_and_back_keeps_sequence_and_step(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    write(page, "9 3 3")
    expect_step(page, 1, 4)
    press(page, "Step")
    page.wait_for_url("**/?*step=2*")
    page.get_by_role("link", name="Attention").click()
    expect(page.locator(".all canvas")).to_be_visible()
    page.get_by_role("link", name="Decode").click()
    expect(page.locator(".tokens .src")).to_have_text(["9", "3", "3"])
    expect_step(page, 2, 4)


@pytest.mark.parametrize("link", ["step=99", "step=x", "take=9999", "take=<b>", "step=-1"])
def test_nonsense_in_the_link_still_opens(page: Page, link: str) -> None:
    open_page(page, f"/?task=Reverse&{link}")
    assert output(page)[0] == "6"


def test_hovering_reads_a_weight(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    press(page, "Run to end")
    canvas = page.locator(".cross canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] - 20)
    expect(page.locator(".foot")).to_contain_text("layer 2, head 4")


def test_every_picture_has_a_text_alternative(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    pictures = page.get_by_role("img").filter(has_not=page.locator("svg"))
    labels = [label for label in pictures.evaluate_all("all => all.map(e => e.getAttribute('aria-label'))") if label]
    assert [label.split(":")[0] for label in labels] == [
        "Alignment",
        "Cross-attention",
        "Encoder self-attention",
        "Decoder self-attention",
    ]
    assert "Row 6: layer 1 head 1 most at 6, position 6" in labels[1]
    assert "as lines: 6 most at 6" in labels[0]


@pytest.mark.parametrize(
    "page",
    [
        {"viewport": {"width": width, "height": 850}, "color_scheme": scheme, "device_scale_factor": ratio}
        for width, scheme, ratio in [(1280, "dark", 1), (400, "light", 2), (400, "dark", 3), (760, "light", 1)]
    ],
    indirect=True,
    ids=["wide-dark", "narrow-light", "narrow-dark", "middle-light"],
)
def test_fits_every_window_and_is_sharp(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    inside = """all => all.every(c => c.getBoundingClientRect().right <= innerWidth
      && Math.abs(c.width - c.clientWidth * devicePixelRatio) <= 1)"""
    assert page.locator("canvas").evaluate_all(inside)


HAS_COLOUR = """([canvas, colour]) => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 0; i < data.length; i += 4) if (colour.every((c, j) => data[i + j] === c)) return true;
  return false;
}"""


def test_a_weight_of_one_is_the_themes_ink_and_follows_the_theme(page: Page) -> None:
    open_page(page, "/?task=Reverse")
    canvas = page.locator(".cross canvas").element_handle()
    light, dark = [0x17, 0x3B, 0x7A], [0x9C, 0xC2, 0xFF]
    assert page.evaluate(HAS_COLOUR, [canvas, light])
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(HAS_COLOUR, arg=[canvas, dark])
    assert not page.evaluate(HAS_COLOUR, [canvas, light])


@pytest.mark.parametrize(
    ("task", "text", "written"),
    [
        ("Copy", "8 3 11", "8 3 11 <eos>"),
        ("Sort", "8 3 11 3", "3 3 8 11 <eos>"),
        ("Date format", "May 3, 2021", "2 0 2 1 - 0 5 - 0 3 <eos>"),
        ("Number words", "nine hundred and seven", "9 0 7 <eos>"),
        ("Addition", "58+67", "5 2 1 0 <eos>"),
    ],
)
def test_every_task_answers(page: Page, task: str, text: str, written: str) -> None:
    open_page(page, "/?task=Reverse")
    page.get_by_text(task, exact=True).click()
    kind = next(kind() for kind in TASKS.values() if kind.title == task)
    example = kind.tokenizer.encode(next(iter(kind.examples.values())))
    first = kind.tokenizer.labels(kind.target(example))[0]
    expect(page.locator("[data-role=output] .token").first).to_have_text(first)  # the new task is on
    write(page, text)
    expect(page.locator(".tokens .src")).to_have_text(kind.tokenizer.labels(kind.tokenizer.encode(text)))
    press(page, "Run to end")
    assert output(page) == written.split()
    expect(page.locator(".verdict")).to_contain_text("✓")


def test_a_question_without_an_answer_says_so(page: Page) -> None:
    open_page(page, "/?task=Date+format&source-date=31.2.2000")
    press(page, "Run to end")
    expect(page.locator(".verdict")).to_contain_text("? ")


def test_two_people_do_not_share_their_choices(page: Page, browser, app_url: str) -> None:
    open_page(page, "/?task=Reverse")
    other = browser.new_page(base_url=app_url)
    open_page(other, "/?task=Reverse")
    write(page, "9 9 4")
    expect_step(page, 1, 4)
    press(other, "Step")
    expect_step(other, 2, 7)
    assert other.locator(".tokens .src").all_inner_texts() == ["3", "11", "7", "4", "5", "6"]
    other.close()
