"""`fontes train`, `fontes mine` and `fontes split`: models from your own data, and what they are trained and measured on."""

from __future__ import annotations

import typer

from ....options import reads_files
from .bi_encoder import bi_encoder
from .causality import causality
from .cross_encoder import cross_encoder
from .mine import mine
from .rewriter import rewriter
from .split import split
from .terms import terms

commands = typer.Typer()
group = typer.Typer(name="train", help="Train a model from your own data.", no_args_is_help=True)
for name, command in (("cross-encoder", cross_encoder), ("bi-encoder", bi_encoder), ("terms", terms)):
    group.command(name)(reads_files("id", "text", of="topics")(command))
group.command("rewriter")(rewriter)
group.command("causality")(causality)
commands.command(rich_help_panel="Models")(reads_files("id", "text", of="topics")(mine))
commands.command(rich_help_panel="Measure")(reads_files("id", "text", of="topics")(split))
commands.add_typer(group, rich_help_panel="Models")
