"""`fontes train`, `fontes mine` and `fontes split`: training of models, and their data."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from .mine import mine, split

__all__ = ["group", "mine", "split"]


class Trainings(TyperGroup):
    """Commands of `fontes train`, imported when one is looked up."""

    @property
    def commands(self) -> Any:
        from .training import group

        return typer.main.get_group(group).commands

    @commands.setter
    def commands(self, commands: Any) -> None:
        """Ignore assignment: no commands are known at first."""


group = typer.Typer(cls=Trainings)
group.callback()(lambda: None)
