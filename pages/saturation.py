"""Saturation: why divide by sqrt(d_k)?"""

from app import saturation_view
from app.frame import title
from app.source import chosen_run

title("Saturation", "Why divide by √d_k?")
saturation_view.show(*chosen_run())
