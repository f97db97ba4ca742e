"""The code behind a picture, shown from the very functions that ran."""

import inspect
from collections.abc import Callable

import streamlit as st


def code(*functions: Callable) -> None:
    """Under a closed heading: where each function stands, and its source."""
    with st.expander("Show me the code"):
        for function in functions:
            st.caption(f"`{function.__module__}.{function.__qualname__}`")
            st.code(inspect.getsource(inspect.unwrap(function)), language="python")
