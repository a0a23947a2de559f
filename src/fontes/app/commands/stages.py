"""`fontes stages`: list the parts of pipelines."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError
from ..options import Json

if TYPE_CHECKING:
    from ...core.part import Part

commands = typer.Typer()

INTRODUCTION = """# Stages

The parts of [pipelines](../guides/pipelines.md), on the command line, in files and in Python. `fontes stages` lists them, and
those of other installed packages; `fontes stages NAME` prints one. A parameter without a default must be given.
"""
SHARED = 3  # parts with the same parameter, from which on it is described once


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
    kinds: dict[str, list[str]] = {}
    for one in own:
        kinds.setdefault(_arrow(one) or "arguments of other parts", []).append(f"[`{one['name']}`](#{one['name']})")
    rows = [f"| {kind} | {', '.join(names)} |" for kind, names in sorted(kinds.items(), key=lambda kind: -len(kind[1]))]
    counts = Counter(_row(parameter) for one in own for parameter in one["parameters"])
    shared = [row for row, count in counts.items() if count >= SHARED]
    parts = [INTRODUCTION, _table("takes → gives | parts", rows)]
    parts += ["## Shared parameters\n\nParameters that several parts describe alike.\n", _table("parameter |", shared)]
    for one in own:
        parts.append(f"## {one['name']}\n\n{_plain(one['summary'])}\n")
        if rows := [row for parameter in one["parameters"] if (row := _row(parameter)) not in shared]:
            parts.append(_table("parameter |", rows))
        if names := [f"`{parameter['name']}`" for parameter in one["parameters"] if _row(parameter) in shared]:
            parts.append(f"[Shared](#shared-parameters): {', '.join(names)}\n")
    return "\n".join(parts)


def _table(header: str, rows: list[str]) -> str:
    return "\n".join([f"| {header} |", "|---|---|", *rows]) + "\n"


def _row(parameter: dict[str, Any]) -> str:
    default = f" = {parameter['default']}" if "default" in parameter else ""
    kind = parameter["type"].removesuffix(" | None") if default == " = None" else parameter["type"]
    return f"| `{_cell(parameter['name'] + ': ' + kind + default)}` | {_cell(parameter['description'])} |"


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
