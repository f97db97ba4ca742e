"""Choices on the Masks page: links, cells, clamping."""

import pytest

from app.masks_state import View, cell_name, cell_of, checked, for_batch, from_link, within

FAR = View(
    lengths=(2, None, 0), causal=False, flips=(("d", 0, 2, 4), ("e", 2, 0, 10), ("c", 1, 0, 0)), spread=True,
    sentence=2, attend="cross", layer=1, head=3, row=0, place=6, token=11, draw=5,
)  # fmt: skip


def test_a_link_holds_only_what_differs() -> None:
    assert View().link() == {}
    assert FAR.link() == {
        "length1": "2", "length3": "0", "causal": "false", "spread": "true", "cells": "d1.3.5_e3.11_c2.1",
        "sentence": "3", "layer": "2", "head": "4", "row": "1", "place": "7", "attend": "cross", "token": "11",
        "draw": "5",
    }  # fmt: skip


@pytest.mark.parametrize("view", [View(), FAR, View(lengths=(None, 3, None), row=8)])
def test_a_link_leads_back(view: View) -> None:
    assert from_link(view.link()) == (view, [])


@pytest.mark.parametrize(
    ("link", "view", "said"),
    [
        ({"length1": "x"}, View(), "length1 is 'x' in the link; showing the usual."),
        ({"length2": "-3"}, View(), "length2 is '-3' in the link; showing the usual."),
        ({"causal": "maybe"}, View(), "causal is 'maybe' in the link; showing the usual."),
        ({"sentence": "4"}, View(sentence=2), "sentence is '4' in the link; showing 3."),
        ({"sentence": "0"}, View(), "sentence is '0' in the link; showing the usual."),
        ({"attend": "<b>"}, View(), "attend is '<b>' in the link; showing the usual."),
        ({"draw": "99999"}, View(draw=9_999), "draw is '99999' in the link; showing 9999."),
        ({"cells": "d1.3.5_x"}, View(flips=(("d", 0, 2, 4),)), "cells is 'd1.3.5_x' in the link; showing d1.3.5."),
        ({"cells": "e4.1"}, View(), "cells is 'e4.1' in the link; showing the usual."),
        ({"row": "１"}, View(), "row is '１' in the link; showing the usual."),
    ],
)
def test_nonsense_in_a_link_is_changed_and_said(link: dict, view: View, said: str) -> None:
    assert from_link(link) == (view, [said])


@pytest.mark.parametrize("value", [None, "64", True, float("nan"), float("inf"), [], {}, ["x", 3, None]])
def test_a_browser_can_send_anything(value: object) -> None:
    names = ("lengths", "flips", "sentence", "attend", "layer", "head", "row", "place", "token", "draw")
    view = checked(dict.fromkeys(names, value))
    assert (view.flips, view.sentence, view.attend, view.token) == ((), 0, "decoder", None)
    assert len(view.lengths) == 3


def test_switches_take_booleans_only() -> None:
    assert checked({"causal": "false", "spread": 1}) == View()
    assert checked({"causal": False, "spread": True}) == View(causal=False, spread=True)


@pytest.mark.parametrize("cell", [("d", 2, 98, 0), ("e", 0, 0, 98), ("c", 1, 0, 4)])
def test_a_cell_leads_back_from_its_name(cell: tuple) -> None:
    assert cell_of(cell_name(cell)) == cell


@pytest.mark.parametrize("name", ["", "d1.3", "e1.3.5", "d0.1.1", "e1.0", "e1.100", "d1.1.1_", "D1.1.1", "e1.１"])
def test_other_names_are_no_cells(name: str) -> None:
    assert cell_of(name) is None


def test_cells_are_kept_once_and_not_without_end() -> None:
    assert checked({"flips": ["e1.1", "e1.1", 5]}).flips == (("e", 0, 0, 0),)
    assert len(checked({"flips": [f"d1.{i}.{j}" for i in range(1, 20) for j in range(1, 20)]}).flips) == 99


def test_what_a_batch_does_not_have_is_left_out() -> None:
    view = View(lengths=(6, 7, 1), flips=(("e", 0, 0, 7), ("e", 0, 0, 8), ("d", 0, 4, 4), ("d", 0, 5, 0)), token=12)
    seen = for_batch(view, full=[6, 8, 3], T=5, vocab_size=12)
    assert seen.lengths == (None, 7, 1)
    assert seen.flips == (("e", 0, 0, 7), ("d", 0, 4, 4))
    assert seen.token is None


def test_places_end_where_the_model_and_the_sentence_end() -> None:
    view = within(View(layer=9, head=9, row=9, place=9), n_layers=2, n_heads=4, n_rows=8, n_read=1)
    assert (view.layer, view.head, view.row, view.place) == (1, 3, 7, 0)
