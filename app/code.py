"""Show me the code: the very functions that computed what is on the screen."""

import inspect
from collections.abc import Callable
from typing import Any

import streamlit as st


def code(*functions: Callable[..., Any]) -> None:
    """Under a closed heading: where each function stands, and its source."""
    with st.expander("Show me the code"):
        for function in functions:
            st.caption(f"`{function.__module__}.{function.__qualname__}`")
            st.code(inspect.getsource(inspect.unwrap(function)), language="python")
