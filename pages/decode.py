"""Decode: what happens, token by token, when the model answers my sequence?"""

from app import decode_view
from app.frame import title
from app.source import source_rows

title("Decode", "What happens, token by token, when the model answers your sequence?")
decode_view.show(*source_rows())
