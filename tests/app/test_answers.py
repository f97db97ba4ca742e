"""Questions of live panels, asked without a browser."""

import json
from typing import Any
from urllib.parse import quote

import pytest
import streamlit as st
from starlette.requests import Request
from starlette.responses import Response

from app.answers import PANELS, answer, asked_about
from app.attention_view import panel_data
from transformer import ReversalTask

QUESTION = {"task": "reverse", "source": [3, 11, 7], "wish": {"d_model": 16, "heads": 2, "count": 5}}


def asked(panel: str, question: Any) -> Response:
    text = question if isinstance(question, str) else json.dumps(question)
    scope = {
        "type": "http",
        "headers": [],
        "query_string": f"q={quote(text)}".encode(),
        "path_params": {"panel": panel},
    }
    return answer(Request(scope))


def test_the_answer_is_what_the_page_itself_would_draw() -> None:
    response = asked("attention", QUESTION)
    block, _ = panel_data(ReversalTask(), QUESTION["source"], QUESTION["wish"])
    assert response.status_code == 200
    assert response.body == block


@pytest.mark.parametrize(
    "question",
    [
        "",
        "[",
        "7",
        "null",
        {},
        {**QUESTION, "task": "knit"},
        {**QUESTION, "task": None},
        {**QUESTION, "source": "3 4"},
        {**QUESTION, "source": [99]},
        {**QUESTION, "source": [-1]},
        {**QUESTION, "source": [3] * 17},
        {**QUESTION, "source": 3},
        {**QUESTION, "wish": 7},
        {**QUESTION, "wish": None},
    ],
    ids=str,
)
def test_nonsense_is_refused_in_words(question: Any) -> None:
    response = asked("attention", question)
    assert response.status_code == 400
    assert b"the question cannot be read: " in response.body


def test_an_unknown_panel_is_refused_with_the_known_ones() -> None:
    response = asked("piano", QUESTION)
    assert response.status_code == 404
    assert all(name.encode() in response.body for name in PANELS)


@pytest.mark.parametrize(
    "wish", [{"d_model": "x"}, {"heads": 1e300}, {"kind": []}, {"layer": None, "head": -3, "query": 10**9}], ids=str
)
def test_a_wish_that_cannot_be_is_answered_with_the_nearest_view(wish: dict[str, Any]) -> None:
    assert asked("attention", {**QUESTION, "wish": wish}).status_code == 200


@pytest.mark.parametrize(("prefix", "at"), [("", "/live/attention"), ("tools/tw", "/tools/tw/live/attention")])
def test_the_address_follows_the_servers_prefix(prefix: str, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "get_option", {"server.baseUrlPath": prefix}.get)
    assert asked_about("attention", "reverse", [3]) == {"at": at, "task": "reverse", "source": [3]}
