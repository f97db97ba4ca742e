"""Choices on the Positions page: links, clamping, orders that fit."""

import pytest

from app.positions_state import View, checked, from_link, order_of


def test_a_link_holds_only_what_differs() -> None:
    assert View().link() == {}
    view = View(d_model=22, p=0, k=-13, pair=10, order=(2, 0, 1), draw=5, width=512, words=12)
    assert view.link() == {
        "d_model": "22",
        "p": "0",
        "k": "-13",
        "pair": "10",
        "order": "2-0-1",
        "draw": "5",
        "width": "512",
        "words": "12",
    }


@pytest.mark.parametrize("view", [View(), View(22, 0, -13, 10, (2, 0, 1), 5, 512, 12), View(2, 99, 64, 0, (0,))])
def test_a_link_leads_back(view: View) -> None:
    assert from_link(view.link()) == (view, [])


@pytest.mark.parametrize(
    ("link", "view", "said"),
    [
        ({"d_model": "4000"}, View(d_model=128), "d_model is '4000' in the link; showing 128."),
        ({"d_model": "7", "pair": "0"}, View(d_model=6, pair=0), "d_model is '7' in the link; showing 6."),
        ({"k": "-65"}, View(k=-64), "k is '-65' in the link; showing -64."),
        ({"p": "100"}, View(p=99), "p is '100' in the link; showing 99."),
        ({"p": "1e1"}, View(), "p is '1e1' in the link; showing 10."),
        ({"pair": "٣"}, View(), "pair is '٣' in the link; showing 2."),
        ({"pair": "40"}, View(pair=31), "pair is '40' in the link; showing 31."),
        ({"width": "100"}, View(width=128), "width is '100' in the link; showing 128."),
        ({"words": "9" * 12}, View(), f"words is '{'9' * 12}' in the link; showing 5000."),
        ({"order": "0-0-1"}, View(), "order is '0-0-1' in the link; showing it backwards."),
        ({"order": "1-2"}, View(), "order is '1-2' in the link; showing it backwards."),
        ({"order": "<b>"}, View(), "order is '<b>' in the link; showing it backwards."),
    ],
)
def test_nonsense_in_a_link_is_changed_and_said(link: dict, view: View, said: str) -> None:
    assert from_link(link) == (view, [said])


@pytest.mark.parametrize("value", [None, "64", True, float("nan"), float("inf"), [], {}, [1, 2], [True, False], [[0]]])
def test_a_browser_can_send_anything(value: object) -> None:
    names = ("d_model", "p", "k", "pair", "order", "draw", "width", "words")
    assert checked(dict.fromkeys(names, value)) == View()


def test_a_pair_ends_where_the_width_ends() -> None:
    assert checked({"d_model": 2, "pair": 40}).pair == 0
    assert checked({"d_model": 128, "pair": 63}).pair == 63


def test_an_order_that_does_not_fit_is_backwards() -> None:
    assert order_of(View(order=(1, 0, 2)), 3) == [1, 0, 2]
    assert order_of(View(order=(1, 0, 2)), 4) == [3, 2, 1, 0]
    assert order_of(View(), 0) == []
