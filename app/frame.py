"""What every page wears."""

import streamlit as st


def title(name: str, question: str) -> None:
    """The page's name and the one question that it answers."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="title"):
        st.title(name, anchor=False, width="content")
        st.caption(question, width="content")
