"""Train: how do the heads come to look like that?"""

from app import train_view
from app.frame import title
from app.source import source_rows

title("Train", "How do the heads come to look like that?")
train_view.show(*source_rows())
