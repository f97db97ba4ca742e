"""What is each part for? Twins trained on the same data, one of them with a part removed or spoiled."""

from .parts import PARTS, Part, Recipe, outcome
from .twins import Measured, decoded, fresh_model, measure, training

__all__ = ["PARTS", "Measured", "Part", "Recipe", "decoded", "fresh_model", "measure", "outcome", "training"]
