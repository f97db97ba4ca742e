"""Attention: what does one head compute, and what do all of them look at?"""

from app import attention_view
from app.frame import title
from app.source import chosen_run

title("Attention", "What does one head compute, and what do all of them look at?")
attention_view.show(*chosen_run(translation=True))
