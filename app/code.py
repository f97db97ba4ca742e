"""Show me the code: the very functions that computed what is on the screen."""

import inspect
from collections.abc import Callable
from typing import Any

import streamlit as st


def code(*functions: Callable[..., Any]) -> None:
    """An expander with the functions' own source."""
    with st.expander("Show me the code"):
        st.code("\n\n".join(inspect.getsource(function) for function in functions), language="python")
