"""Decode: what happens, token by token, when the model answers my sequence?"""

from app import decode_view
from app.frame import title
from app.own import model_choice
from app.source import source_rows

title("Decode", "What happens, token by token, when the model answers your sequence?")
task, src = source_rows()
decode_view.show(task, src, model_choice(task))
