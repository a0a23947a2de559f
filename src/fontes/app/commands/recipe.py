"""`fontes recipe`: published systems on your own collection."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..options import Json

if TYPE_CHECKING:
    from ...recipes import Recipe

commands = typer.Typer()
group = typer.Typer(name="recipe", help="Published systems: list them, show one, run it on a collection.", no_args_is_help=True)
commands.add_typer(group, rich_help_panel="Reproduce")

Name = Annotated[str, typer.Argument(help="The recipe.", show_default=False)]


@group.command("list")
def list_(json: Json = False) -> None:
    """The recipes that there are."""
    from ...core.parameters import summary
    from ...recipes import registry
    from ..output import console, print_json

    recipes = dict(registry.items())
    if json:
        print_json([_facts(one) for one in recipes.values()])
        return
    width = max(map(len, recipes))
    for name, one in recipes.items():
        console.print(f"[bold]{name:<{width}}[/]  {summary(one)}")


@group.command()
def show(name: Name, json: Json = False) -> None:
    """What a recipe does, its parameters and what was published about it."""
    from ...core.parameters import parameters
    from ...recipes import recipe
    from ...recipes.result import shown, written
    from ..output import console, print_json, say

    one = recipe(name)
    values = one.params()
    if json:
        print_json({**_facts(type(one)), "parameters": {key: shown(value) for key, value in values.items()}})
        return
    console.print(f"[bold]{one.name}[/]")
    say(f"{one.source}\n\n{_about(type(one))}")
    console.print("\n[bold]Parameters[/]")
    for parameter in parameters(type(one)).values():
        say(f"  {parameter.name}={written(values[parameter.name])}\n      {parameter.description}")
    if one.published:
        console.print(f"\n[bold]Published[/]{one.published_on and f', on {one.published_on}'}")
    for system, figures in one.published.items():
        say(f"  {system}: {', '.join(f'{measure} {value:.4f}' for measure, value in figures.items())}")


@group.command()
def run(
    name: Name,
    collection: Annotated[
        str, typer.Option(help="Documents: a file, a folder, an index, irds:NAME, sample:NAME.", show_default=False)
    ],
    topics: Annotated[
        list[str],
        typer.Option(help="Topics: a file, a BEIR folder, irds:NAME, sample:NAME, -; several are merged.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.", show_default=False)],
    qrels: Annotated[
        list[str] | None, typer.Option(help="Judgments, to measure and compare; several are merged.", show_default=False)
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(help="Of a BEIR folder, irds:NAME or sample:NAME; several are merged.", show_default="the only one"),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(help="Judgments to learn from: a file, or a split.", show_default="a part of those to measure with"),
    ] = None,
    dev: Annotated[
        str | None, typer.Option(help="Judgments to choose with, likewise.", show_default="a part of those to learn from")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("-s", "--set", help="A parameter, NAME=VALUE, as in a pipeline; more than once.", show_default=False),
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option("-m", "--measures", help="With commas, or more than once.", show_default="the recipe's"),
    ] = None,
    json: Json = False,
) -> None:
    """Run a recipe on a collection into a folder of runs, with a report where there are judgments."""
    from ...recipes import recipe
    from ..output import print_json
    from ..progress import note, reporting

    chosen = recipe(name).set(settings or [])
    with reporting(json, steps=True, compiling=True) as report:
        result = chosen.run(
            collection,
            tuple(topics),
            tuple(qrels) if qrels else None,
            output,
            split=split or None,
            train=train,
            dev=dev,
            measures=measures or None,
            progress=report,
        )
    if json:
        print_json(result.to_dict())
    else:
        note(result.results.summary)
        sys.stdout.write(f"{result}\n")


def _about(recipe: type[Recipe]) -> str:
    """What the docstring says before its parameters."""
    import inspect

    return (inspect.getdoc(recipe) or "").partition("Args:")[0].strip()


def _facts(recipe: type[Recipe]) -> dict[str, Any]:
    from ...core.parameters import summary

    return {
        "name": recipe.name,
        "about": summary(recipe),
        "source": recipe.source,
        "measures": recipe.measures,
        "published": recipe.published,
        "published_on": recipe.published_on,
    }
