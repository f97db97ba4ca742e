"""Attention: what does one head compute, and what do all of them look at?"""

from app import attention_view
from app.frame import title
from app.own import model_choice
from app.source import source_rows

title("Attention", "What does one head compute, and what do all of them look at?")
task, src = source_rows()
attention_view.show(task, src, model_choice(task))
