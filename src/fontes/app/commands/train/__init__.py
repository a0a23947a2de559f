"""`fontes train`: models made from your own data."""

from __future__ import annotations

import typer

from ...options import reads_files
from .bi_encoder import bi_encoder
from .causality import causality
from .cross_encoder import cross_encoder
from .rewriter import rewriter
from .terms import terms

commands = typer.Typer()
group = typer.Typer(name="train", help="Train a model from your own data.", no_args_is_help=True)
for name, command in (("cross-encoder", cross_encoder), ("bi-encoder", bi_encoder), ("terms", terms)):
    group.command(name)(reads_files("id", "text", of="topics")(command))
group.command("rewriter")(rewriter)
group.command("causality")(causality)
commands.add_typer(group, rich_help_panel="Models")
