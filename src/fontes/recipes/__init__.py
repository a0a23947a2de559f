"""Published systems, each in one file that reads like its paper."""

from __future__ import annotations

from typing import Any

from ..core import ParameterError
from .base import Recipe
from .cair2021 import Cair2021
from .cast2021 import Cast2021
from .cast2021_parts import CastPassages
from .collection import Collection
from .result import RecipeResult

RECIPES: dict[str, type[Recipe]] = {cls.name: cls for cls in (Cair2021, Cast2021)}


def recipe(name: str, **parameters: Any) -> Recipe:
    """The recipe of this name, with its published parameters save those given.

    Raises ParameterError for a recipe or a parameter that does not exist.
    """
    if name not in RECIPES:
        raise ParameterError(f"there is no recipe '{name}'; there are {', '.join(RECIPES)}")
    return RECIPES[name]().with_(**parameters)


__all__ = ["RECIPES", "Cair2021", "Cast2021", "CastPassages", "Collection", "Recipe", "RecipeResult", "recipe"]
