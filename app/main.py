"""Streamlit's entry point, read twice: by the server for its routes, and as a script around every page.

Start it with ``python3 -m app``.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # streamlit puts only app/ there
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

if __name__ == "__main__":
    st.set_page_config(
        page_title="Transformer Workbench", page_icon=str(ROOT / "assets" / "images" / "icon.png"), layout="wide"
    )
    st.html(ROOT / "app" / "style.css")
    page = st.navigation(
        [
            st.Page(ROOT / "pages" / "decode.py", title="Decode", default=True),
            st.Page(ROOT / "pages" / "attention.py", title="Attention"),
            st.Page(ROOT / "pages" / "masks.py", title="Masks"),
            st.Page(ROOT / "pages" / "positions.py", title="Positions"),
            st.Page(ROOT / "pages" / "saturation.py", title="Saturation"),
            st.Page(ROOT / "pages" / "train.py", title="Train"),
            st.Page(ROOT / "pages" / "break.py", title="Break it"),
        ],
        position="top",
    )
    page.run()
else:
    from app import answers, breaking, training_answers

    server = st.App(__file__, routes=[*answers.routes(), *training_answers.routes(), *breaking.routes()])
