"""Attention: what does one head compute, and what do all of them look at?"""

from app import attention_view
from app.frame import title
from app.source import source_rows

title("Attention", "What does one head compute, and what do all of them look at?")
attention_view.show(*source_rows())
