"""Choices on the Attention page: links, clamping, pairs that cannot be."""

import pytest

from app.attention_state import HEADS, WIDTHS, View, checked, from_link, snapped, within


def test_a_link_holds_only_what_differs() -> None:
    assert View().link() == {}
    view = View(d_model=128, d_k=5, layer=0, query=3, masked=False, temperature=0.5)
    assert view.link() == {
        "d_model": "128",
        "d_k": "5",
        "layer": "1",
        "query": "4",
        "masked": "false",
        "temperature": "0.5",
    }


@pytest.mark.parametrize("view", [View(), View(16, 8, 7, "decoder", 0, 3, 2, False, False, 4.0), View(heads=1)])
def test_a_link_leads_back(view: View) -> None:
    assert from_link(view.link()) == (view, [])


@pytest.mark.parametrize(
    ("link", "view", "said"),
    [
        ({"d_model": "4000"}, View(d_model=512), "d_model is '4000' in the link; showing 512."),
        ({"d_model": "x"}, View(), "d_model is 'x' in the link; showing 64."),
        ({"d_model": "21"}, View(d_model=24), "d_model is '21' in the link; showing 24."),
        ({"heads": "0"}, View(heads=1), "heads is '0' in the link; showing 1."),
        ({"layer": "0"}, View(layer=0), "layer is '0' in the link; showing 1."),
        ({"kind": "<b>"}, View(), "kind is '<b>' in the link; showing cross."),
        ({"masked": "maybe"}, View(), "masked is 'maybe' in the link; showing True."),
        ({"temperature": "nan"}, View(), "temperature is 'nan' in the link; showing 1.0."),
        ({"temperature": "99"}, View(temperature=4.0), "temperature is '99' in the link; showing 4.0."),
    ],
)
def test_nonsense_in_a_link_is_changed_and_said(link: dict, view: View, said: str) -> None:
    assert from_link(link) == (view, [said])


@pytest.mark.parametrize("value", [None, "64", True, float("nan"), float("inf"), [], {}])
def test_a_browser_can_send_anything(value: object) -> None:
    names = ("d_model", "heads", "layer", "head", "query", "kind", "temperature")
    assert checked(dict.fromkeys(names, value)) == View()


@pytest.mark.parametrize("moved", ["d_model", "heads", None])
def test_snapping_always_ends_at_a_whole_head(moved: str | None) -> None:
    for d_model in WIDTHS:
        for heads in HEADS:
            view, said = snapped(View(d_model=d_model, heads=heads), moved)
            assert view.d_model % view.heads == 0
            assert bool(said) == (d_model % heads != 0)
            assert (view.heads if moved == "heads" else view.d_model) == (heads if moved == "heads" else d_model)


def test_snapping_takes_the_nearest_and_names_both() -> None:
    assert snapped(View(d_model=64, heads=5), "d_model")[0].heads == 4
    view, said = snapped(View(d_model=64, heads=3), "heads")
    assert view.d_model == 72
    assert said == "3 heads do not divide d_model 64: d_model is 72."


def test_a_head_of_its_own_width_needs_no_snapping() -> None:
    view = View(d_model=40, heads=3, d_k=5)
    assert snapped(view, "heads") == (view, "")


def test_places_end_where_the_model_and_the_sequence_end() -> None:
    view = within(View(heads=2, layer=9, head=7, query=30), n_layers=2, n_rows=5)
    assert (view.layer, view.head, view.query) == (1, 1, 4)
    assert within(View(query=3), n_layers=2, n_rows=0).query == 0
