"""`fontes stages`: list the parts of pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError
from ..options import Json

if TYPE_CHECKING:
    from ...core.part import Part

commands = typer.Typer()

INTRODUCTION = """# Stages

All parts that a [pipeline](../guides/pipelines.md) can be written with, on the command line, in files and in Python.
`fontes stages` prints this table with the parts of other packages that are installed; `fontes stages NAME` one of them.

What a part *takes* and *gives* decides which parts it can be joined to. Parts without these are arguments of others, as an
encoder is of `dense`. A parameter without a default must be given.
"""


@commands.command(rich_help_panel="Search")
def stages(
    name: Annotated[str | None, typer.Argument(help="A stage or another part.", show_default="all")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the reference.")] = False,
    json: Json = False,
) -> None:
    """List the parts of pipelines, or show the parameters of one."""
    from ...core.part import stages as registry
    from ..output import print_json

    if markdown and (json or name is not None):
        raise ParameterError("--markdown prints the page of all parts; leave --json and the name out")
    if markdown:
        typer.echo(page(), nl=False)
    elif json:
        print_json([facts(part) for _, part in registry.items()] if name is None else facts(registry[name]))
    elif name is None:
        _print_all(dict(registry.items()))
    else:
        _print_one(registry[name])


def facts(part: type[Part]) -> dict[str, Any]:
    """The registry's facts about a part, as JSON values."""
    from ...core.parameters import parameters, signature, summary

    takes, gives = signature(part)
    return {
        "name": part.name,
        "takes": takes,
        "gives": gives,
        "summary": summary(part),
        "parameters": [
            {
                "name": one.name,
                "type": one.kind,
                **({} if one.required else {"default": _written(one.default)}),
                "description": one.description,
            }
            for one in parameters(part).values()
        ],
    }


def page() -> str:
    """The reference page of all parts of Fontes, in Markdown."""
    from ...core.part import stages as registry

    own = [facts(part) for _, part in registry.items() if part.__module__.startswith("fontes.")]
    rows = [f"| [`{one['name']}`](#{one['name']}) | {_arrow(one)} | {_cell(one['summary'])} |" for one in own]
    parts = [INTRODUCTION, "\n".join(["| name | takes → gives | |", "|---|---|---|", *rows]) + "\n"]
    for one in own:
        parts.append(f"## {one['name']}\n\n{_plain(one['summary'])}\n")
        if one["parameters"]:
            lines = ["| parameter | type | default | |", "|---|---|---|---|", *map(_row, one["parameters"])]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _row(parameter: dict[str, Any]) -> str:
    default = f"`{_cell(parameter['default'])}`" if "default" in parameter else ""
    return f"| `{parameter['name']}` | `{_cell(parameter['type'])}` | {default} | {_cell(parameter['description'])} |"


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    return text.replace("[", "\\[") if "](" in text else text


def _arrow(one: dict[str, Any]) -> str:
    return f"{one['takes']} → {one['gives']}" if one["takes"] else ""


def _written(default: Any) -> str:
    from ...core.part import Part

    return repr(default) if isinstance(default, Part) or not isinstance(default, str) else f'"{default}"'


def _print_all(parts: dict[str, type[Part]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ..output import console

    table = Table(box=None)
    for header in ("name", "takes → gives", ""):
        table.add_column(header, no_wrap=bool(header))
    for part in parts.values():
        one = facts(part)
        table.add_row(Text(one["name"], style="bold"), _arrow(one), Text(one["summary"]))
    console.print(table)


def _print_one(part: type[Part]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ..output import console, say

    one = facts(part)
    arrow = _arrow(one)
    console.print(Text.assemble((one["name"], "bold"), f"  {arrow}" if arrow else ""))
    say(one["summary"])
    if not one["parameters"]:
        return
    table = Table(box=None)
    for header in ("parameter", "type", "default", ""):
        table.add_column(header, no_wrap=bool(header))
    for parameter in one["parameters"]:
        cells = (parameter["name"], parameter["type"], parameter.get("default", "required"), parameter["description"])
        table.add_row(*map(Text, cells))
    console.print(table)
