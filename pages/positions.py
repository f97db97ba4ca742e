"""Positions: how does order get in, and why is an offset a rotation?"""

from app import positions_view
from app.frame import title
from app.source import chosen_run

title("Positions", "How does order get in, and why is an offset a rotation?")
positions_view.show(*chosen_run())
