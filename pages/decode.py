"""Decode: what happens, token by token, when the model rewrites my sequence?"""

from app import decode_view
from app.frame import title
from app.models import shipped
from app.source import source_row

title("Decode", "What happens, token by token, when the model writes your sequence backwards?")
checkpoint = shipped("reverse-d64-h4")
decode_view.show(checkpoint, source_row(checkpoint))
