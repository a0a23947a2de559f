"""Published systems, one file each."""

from .air2025 import Air2025
from .base import LearningRecipe, Need, Recipe, recipe, registry
from .cair2021 import Cair2021
from .cast2021 import Cast2021, CastPassages
from .claims import Claims
from .draws import DrawMean, Draws, run_draws
from .errors import RankChanges, TurnErrors, turn_errors
from .evidence import Evidence
from .learning import RecipeTraining
from .result import RecipeResult

__all__ = [
    "Air2025",
    "Cair2021",
    "Cast2021",
    "CastPassages",
    "Claims",
    "DrawMean",
    "Draws",
    "Evidence",
    "LearningRecipe",
    "Need",
    "RankChanges",
    "Recipe",
    "RecipeResult",
    "RecipeTraining",
    "TurnErrors",
    "recipe",
    "registry",
    "run_draws",
    "turn_errors",
]
