"""Words on the screen."""

import re

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!$~|&^:])")


def literal(text: str) -> str:
    """Text that Streamlit's Markdown shows just as it was typed, whatever it holds.

    Every sign that could mean something is escaped; an invisible word joiner after a colon before a letter
    keeps ``:name:`` from becoming an emoji, which happens after escapes are resolved.
    """
    return _MARKDOWN.sub(r"\\\1", re.sub(r":(?=\w)", ":\u2060", text))
