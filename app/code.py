"""Show me the code: the very functions that computed what is on the screen."""

import inspect
from collections.abc import Callable

import streamlit as st


def code(*functions: Callable) -> None:
    """Their source, as it runs, behind an expander."""
    with st.expander("Show me the code"):
        for function in functions:
            st.caption(f"`{function.__module__}`")
            st.code(inspect.getsource(function), language="python")
