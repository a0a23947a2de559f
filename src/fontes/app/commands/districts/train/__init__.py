"""`fontes train`, `fontes mine` and `fontes split`: training of models, and their data."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from ....options import reads_files
from .mine import mine, split


class Trainings(TyperGroup):
    """Commands of `fontes train`, imported when one is looked up."""

    @property
    def commands(self) -> Any:
        from .training import group

        return typer.main.get_group(group).commands

    @commands.setter
    def commands(self, commands: Any) -> None:
        """Ignore assignment: no commands are known at first."""


commands = typer.Typer()
commands.command(rich_help_panel="Models")(reads_files("id", "text", of="topics")(mine))
commands.command(rich_help_panel="Measure")(reads_files("id", "text", of="topics")(split))
train = typer.Typer(name="train", help="Train a model from your own data.", no_args_is_help=True, cls=Trainings)
train.callback()(lambda: None)
commands.add_typer(train, rich_help_panel="Models")
