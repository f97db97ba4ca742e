"""Break it: what is each part for?"""

from app import broken_view, gradients_view
from app.frame import title

title("Break it", "What is each part for? Take it out and see.")
broken_view.show()
gradients_view.show()
