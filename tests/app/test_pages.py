"""Every page opens without an exception, whatever its link says."""

import json
import struct
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.setup import ROOT

PAGES = sorted(path.name for path in (ROOT / "pages").glob("*.py"))


def run(**query: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=60)
    for name, value in query.items():
        app.query_params[name.replace("_", "-")] = value
    return app.run()


def header(app: AppTest) -> dict:
    block = app.get("bidi_component")[0].proto.bytes
    (length,) = struct.unpack_from("<I", block)
    return json.loads(block[4 : 4 + length])


def test_all_pages_are_in_the_navigation() -> None:
    main = Path(ROOT / "app" / "main.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in main for name in PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_opens(name: str) -> None:
    app = run()
    app.switch_page(f"../pages/{name}").run()
    assert not app.exception
    assert app.title[0].value
    assert app.get("bidi_component")


def test_decode_shows_what_is_typed() -> None:
    app = run(task="Reverse")
    app.text_input[0].set_value("9, 4 [4]").run()
    assert not app.exception
    assert header(app)["source"] == ["9", "4", "4"]
    assert header(app)["written"] == ["4", "4", "9", "<eos>"]


def test_decode_names_wrong_symbols_and_keeps_the_last_good_ones() -> None:
    app = run(task="Reverse")
    app.text_input[0].set_value("6 6").run()
    app.text_input[0].set_value("6 x 12").run()
    assert not app.exception
    assert "“x”, “12” are not symbols of this task" in app.warning[0].value
    assert header(app)["source"] == ["6", "6"]


@pytest.mark.parametrize("query", ["", "11", "3 3 3 3 3 3 3 3", "4 " * 16], ids=["empty", "one", "longest", "beyond"])
def test_decode_takes_its_sequence_from_the_link(query: str) -> None:
    app = run(task="Reverse", source_reverse=query)
    assert not app.exception
    assert header(app)["source"] == query.split()


@pytest.mark.parametrize("query", ["<script>", "3 " * 200, "0", "1e3", "３"])
def test_decode_survives_nonsense_in_the_link(query: str) -> None:
    app = run(task="Reverse", source_reverse=query)
    assert not app.exception
    assert app.warning
    assert header(app)["source"] == ["3", "11", "7", "4", "5", "6"]


def test_examples_are_on_buttons() -> None:
    app = run(task="Reverse")
    app.button(key="example-reverse-Nothing").click().run()
    assert not app.exception
    assert header(app)["source"] == []


@pytest.mark.parametrize("said", ["Copy", "copy"])
def test_a_task_is_linked_by_its_title_or_its_name_and_stays_on_the_next_page(said: str) -> None:
    app = run(task=said, source_copy="3 4 5")
    for page in ("decode", "masks", "decode"):
        app.switch_page(f"../pages/{page}.py").run()
        assert not app.exception
        assert app.session_state["task"] == "copy"
        assert app.text_input[0].value == "3 4 5"
        assert app.query_params["task"] in ("Copy", ["Copy"])


def test_an_unknown_task_in_the_link_is_named_with_the_known_ones() -> None:
    app = run(task="<knit>")
    assert not app.exception
    assert "The link's task '\\<knit\\>' is not one of Translation, Reverse, Copy" in app.info[0].value
    assert app.session_state["task"] == "en-fr"


def test_the_start_page_translates_a_sentence() -> None:
    app = run()
    assert app.session_state["task"] == "en-fr"
    shown = header(app)
    assert shown["source"][:2] == ["The", "cat"]
    assert shown["texts"][-1].startswith("Le chat")
    assert shown["step"] == shown["opens"] == len(shown["written"])
    app.text_input[0].set_value("I don't know.").run()
    assert header(app)["texts"][-1] == "Je ne sais pas."


def test_a_page_without_translations_shows_its_own_task_and_the_sentence_waits() -> None:
    app = run()
    app.text_input[0].set_value("She is tired.").run()
    app.switch_page("../pages/masks.py").run()
    assert not app.exception
    assert app.session_state["task"] == "reverse"
    app.switch_page("../pages/decode.py").run()
    assert app.session_state["task"] == "en-fr"
    assert app.text_input[0].value == "She is tired."


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("one two three four five six seven eight nine ten eleven", "11 words: the model learned from sentences of at"),
        ("ꙮꙮ", "6 of 7 pieces stand for characters that are not in the model's vocabulary"),
    ],
)
def test_what_the_model_cannot_do_is_said(text: str, doubt: str) -> None:
    app = run(source_en_fr=text)
    assert not app.exception
    assert doubt in app.info[0].value


@pytest.mark.parametrize("text", ["", "a", "<eos> <b> $a __ b$", "the " * 54, "😀" * 9])
def test_any_sentence_has_a_picture(text: str) -> None:
    app = run(source_en_fr=text)
    for page in ("attention", "decode"):
        app.switch_page(f"../pages/{page}.py").run()
        assert not app.exception
        assert app.get("bidi_component")


def test_too_long_a_sentence_is_counted_and_the_last_one_stays() -> None:
    app = run()
    app.text_input[0].set_value("cat " * 80).run()
    assert "80 tokens are too many" in app.warning[0].value
    assert header(app)["source"][:2] == ["The", "cat"]
