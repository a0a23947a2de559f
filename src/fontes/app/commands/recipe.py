"""`fontes recipe`: published systems on your own collection."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

commands = typer.Typer()
group = typer.Typer(name="recipe", help="Published systems: list them, show one, run it on a collection.", no_args_is_help=True)
commands.add_typer(group, rich_help_panel="Reproduce")

Name = Annotated[str, typer.Argument(help="The recipe.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@group.command("list")
def list_(json: Json = False) -> None:
    """The recipes that there are."""
    from ...recipes import RECIPES
    from ..output import console, print_json

    if json:
        print_json([_facts(recipe) for recipe in RECIPES.values()])
        return
    width = max(map(len, RECIPES))
    for name, recipe in RECIPES.items():
        console.print(f"[bold]{name:<{width}}[/]  {_first_line(recipe)}")


@group.command()
def show(name: Name, json: Json = False) -> None:
    """What a recipe does, its parameters and what was published about it."""
    from ...recipes import recipe
    from ...recipes.result import shown
    from ..output import console, print_json

    made = recipe(name)
    if json:
        print_json({**_facts(type(made)), "parameters": {key: shown(value) for key, value in made.params().items()}})
        return
    console.print(f"[bold]{made.name}[/]\n{made.source}\n", highlight=False)
    import inspect

    console.print(inspect.getdoc(type(made)), highlight=False, markup=False)
    console.print("\n[bold]Parameters[/]")
    for key, value in made.params().items():
        console.print(f"  {key}={_written(value)}", highlight=False, markup=False)
    if made.published:
        console.print(f"\n[bold]Published[/]{made.published_on and f', on {made.published_on}'}", highlight=False)
    for system, values in made.published.items():
        console.print(f"  {system}: {', '.join(f'{m} {v:.4f}' for m, v in values.items())}", highlight=False, markup=False)


@group.command()
def run(
    name: Name,
    collection: Annotated[
        str, typer.Option(help="Documents: a file, a folder, an index, irds:NAME, sample:NAME.", show_default=False)
    ],
    topics: Annotated[str, typer.Option(help="Topics: a file, irds:NAME, sample:NAME, or -.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.", show_default=False)],
    qrels: Annotated[str | None, typer.Option(help="Judgments, to measure and compare.", show_default=False)] = None,
    settings: Annotated[
        list[str] | None, typer.Option("-s", "--set", help="A parameter, as NAME=VALUE; more than once.", show_default=False)
    ] = None,
    measures: Annotated[
        str | None, typer.Option("-m", "--measures", help="With commas between them.", show_default="the recipe's")
    ] = None,
    json: Json = False,
) -> None:
    """Run a recipe on a collection into a folder of runs, with a report where there are judgments."""
    from ...recipes import recipe
    from ..inputs import collection_of, qrels_of, topics_of
    from ..output import print_json, told
    from .compare import COMMA

    made = recipe(name).set(settings or [])
    with told(json) as (tell, moving):
        result = made.run(
            collection_of(collection),
            topics_of(topics),
            None if qrels is None else qrels_of(qrels),
            output,
            measures=None if measures is None else [m for m in COMMA.split(measures) if m.strip()],
            tell=tell,
            moving=moving,
        )
    if json:
        print_json(result.to_dict())
    else:
        sys.stdout.write(f"{result}\n")


def _written(value: Any) -> str:
    """A value as `-s` reads it."""
    from ...recipes.result import shown

    return str(value).lower() if value is None or isinstance(value, bool) else str(shown(value))


def _first_line(recipe: Any) -> str:
    return str(recipe.__doc__).partition("\n")[0]


def _facts(recipe: Any) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "about": _first_line(recipe),
        "source": recipe.source,
        "measures": recipe.measures,
        "published": recipe.published,
        "published_on": recipe.published_on,
    }
