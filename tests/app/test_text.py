"""User text in Streamlit's Markdown."""

import pytest

from app.text import literal


@pytest.mark.parametrize(
    ("typed", "escaped"),
    [
        ("3 4", "3 4"),
        ("<b>", r"\<b\>"),
        ("$a$", r"\$a\$"),
        ("__x__", r"\_\_x\_\_"),
        ("`q`", r"\`q\`"),
        ("[a](b)", r"\[a\]\(b\)"),
        (":smile:", "\\:\u2060smile\\:"),
        ("a: b", r"a\: b"),
        ("\\", r"\\"),
        ("😀 é", "😀 é"),
    ],
)
def test_nothing_keeps_a_meaning(typed: str, escaped: str) -> None:
    assert literal(typed) == escaped
