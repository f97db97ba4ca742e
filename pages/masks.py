"""Masks: who may look at whom, and what breaks when they may?"""

from app import masks_view
from app.frame import title
from app.source import chosen_run

title("Masks", "Who may look at whom, and what breaks when they may?")
masks_view.show(*chosen_run())
