"""Published systems, each in one file that reads like its paper."""

from .base import Recipe, recipe, registry
from .cair2021 import Cair2021
from .cast2021 import Cast2021
from .cast2021_parts import CastPassages
from .result import RecipeResult

__all__ = ["Cair2021", "Cast2021", "CastPassages", "Recipe", "RecipeResult", "recipe", "registry"]
