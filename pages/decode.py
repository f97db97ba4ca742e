"""Decode: what happens, token by token, when the model answers my sequence?"""

from app import decode_view
from app.frame import title
from app.source import chosen_run

title("Decode", "What happens, token by token, when the model answers your sequence?")
decode_view.show(*chosen_run(translation=True))
