"""Published systems, each in one file that reads like its paper."""

from .air2025 import Air2025
from .base import Recipe, recipe, registry
from .cair2021 import Cair2021
from .cast2021 import Cast2021
from .cast2021_parts import CastPassages
from .claims import Claims
from .evidence import Evidence
from .learned import LearningRecipe
from .learning import Learning
from .result import RecipeResult

__all__ = [
    "Air2025",
    "Cair2021",
    "Cast2021",
    "CastPassages",
    "Claims",
    "Evidence",
    "Learning",
    "LearningRecipe",
    "Recipe",
    "RecipeResult",
    "recipe",
    "registry",
]
