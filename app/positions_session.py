"""One person's view of the Positions page: in the session and in the link, shared by the page's four panels."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import streamlit as st

from app.positions_state import FIELDS, View, checked, from_link, order_of
from app.text import literal

VIEW = "positions-view"


def open_view(length: int) -> None:
    """Take the view from the link on the first visit; say what of it cannot be. length: of the source."""
    if VIEW in st.session_state:
        return
    view, changed = from_link(st.query_params)
    if view.order and len(view.order) != length:
        changed.append(f"order names {len(view.order)} places, and there are {length} tokens; showing them backwards.")
        view = replace(view, order=())
    st.session_state[VIEW] = view
    if changed:
        st.info(literal(" ".join(changed)))


def take_commit(key: str, names: tuple[str, ...]) -> dict[str, Any]:
    """What a panel was left at: its own choices, checked, become the view's. Returns the view as a wish."""
    commit: Mapping[str, Any] = (st.session_state.get(key) or {}).get("commit") or {}
    asked = {name: commit[name] for name in names if name in commit}
    st.session_state[VIEW] = checked({**asdict(st.session_state[VIEW]), **asked})
    return {**asdict(st.session_state[VIEW]), "count": commit.get("count", 0)}


def keep_order(length: int) -> None:
    """Forget an order that does not fit this length, or is the default."""
    view = st.session_state[VIEW]
    order = order_of(view, length)
    st.session_state[VIEW] = replace(view, order=() if order == order_of(View(), length) else tuple(order))


def write_link() -> None:
    """Called at each run of the page and when a control is let go: the link holds what is shown."""
    link = st.session_state[VIEW].link()
    for name in FIELDS:
        if name in link and st.query_params.get(name) != link[name]:
            st.query_params[name] = link[name]
        elif name not in link and name in st.query_params:
            del st.query_params[name]
