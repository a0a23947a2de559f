"""`fontes recipe`: published systems on your own collection; `fontes demo`: the examples of README, and four tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ....core.errors import FontesError, ParameterError
from ....core.parameters import parameters, summary
from ...options import IdPrefixes, Json, argument, option, reads_files
from ...output import console, note, print_json, print_report, reporting, say

if TYPE_CHECKING:
    from ....core import Doc
    from ....recipes import Recipe

group = typer.Typer()

Name = Annotated[str, argument("The recipe.")]


@group.command("list")
def list_(json: Json = False) -> None:
    """List the recipes."""
    from rich.table import Table
    from rich.text import Text

    from ....recipes import registry

    recipes = dict(registry.items())
    if json:
        print_json([_facts(cls) for cls in recipes.values()])
        return
    table = Table("recipe", "from", "source", "needs", "published", box=None)
    for name, cls in recipes.items():
        best = max(cls.published.values(), key=lambda figures: next(iter(figures.values())), default={})
        cells = (
            cls.task,
            cls.cite or cls.source,
            "\n".join(need.rpartition("/")[2] for need in cls.needs),
            "\n".join(_figures(best)),
        )
        table.add_row(Text(name, style="bold"), *map(Text, cells))
    console().print(table, soft_wrap=False)
    note("'fontes recipe show NAME' describes a recipe; 'fontes recipe run NAME --sample -o FOLDER' tries it.")


@group.command()
def show(name: Name, json: Json = False) -> None:
    """Show a recipe's description, parameters and published results."""
    from ....recipes import recipe
    from ....recipes.result import shown, written

    chosen = recipe(name)
    values = chosen.params()
    if json:
        print_json({**_facts(type(chosen)), "parameters": {key: shown(value) for key, value in values.items()}})
        return
    console().print(f"[bold]{chosen.name}[/]")
    say(f"{chosen.source}\n\n{_description(type(chosen))}")
    console().print("\n[bold]Parameters[/]")
    for parameter in parameters(type(chosen)).values():
        say(f"  {parameter.name}={written(values[parameter.name])}\n      {parameter.description}")
    if chosen.presets:
        console().print("\n[bold]Presets[/]")
    for preset, changes in chosen.presets.items():
        say(f"  as={preset}\n      {', '.join(f'{key}={written(value)}' for key, value in changes.items()) or 'the defaults'}")
    if chosen.published:
        console().print(f"\n[bold]Published[/]{chosen.published_on and f', on {chosen.published_on}'}")
    for system, figures in chosen.published.items():
        say(f"  {system}: {', '.join(_figures(figures))}")


@group.command()
@reads_files()
def run(
    name: Name,
    output: Annotated[Path | None, option("Folder to write.", False, "-o", "--output")] = None,
    sample: Annotated[bool, option("Documents, topics and judgments of this recipe's sample.", True, "--sample")] = False,
    collection: Annotated[
        list[str] | None, option("Documents: files, a folder, an index, irds:NAME or sample:NAME.", False)
    ] = None,
    id_prefix: IdPrefixes = None,
    topics: Annotated[
        list[str] | None, option("Topics: a file, a BEIR folder, irds:NAME, sample:NAME, -; several are merged.", False)
    ] = None,
    qrels: Annotated[list[str] | None, option("Judgments, to measure and compare; several are merged.", False)] = None,
    split: Annotated[
        list[str] | None, option("Of a BEIR folder, irds:NAME or sample:NAME; several are merged.", "the only one")
    ] = None,
    train: Annotated[
        str | None, option("Judgments to learn from: a file, or a split.", "a part of those to measure with")
    ] = None,
    dev: Annotated[str | None, option("Judgments to choose weights, likewise.", "a part of those to learn from")] = None,
    runs: Annotated[list[str] | None, option("Another run to measure; repeatable.", False, "--run")] = None,
    settings: Annotated[
        list[str] | None, option("A parameter, NAME=VALUE, as in a pipeline; repeatable.", False, "-s", "--set")
    ] = None,
    measures: Annotated[list[str] | None, option("With commas, or more than once.", "the recipe's", "-m", "--measures")] = None,
    leaks: Annotated[str | None, option("Topics with the same text on two sides: error or drop.", "error")] = None,
    allow_empty: Annotated[bool, option("Compare systems that found nothing, too.", True, "--allow-empty")] = False,
    draws: Annotated[
        int | None,
        option(
            "Draws of the topics to measure with, for a recipe that divides them, with mean and interval over draws.", "one"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run a recipe on a collection, or on its sample, and write runs and a report."""
    from ....recipes import recipe, run_draws

    chosen = recipe(name).set(settings or [])
    if sample:
        sample_name = _sample_name(type(chosen), {"collection": collection, "topics": topics, "qrels": qrels})
        collection = topics = qrels = [sample_name]
    if not collection or not topics or output is None:
        options = {"--collection": collection, "--topics": topics, "-o": output}
        _refuse_incomplete(chosen, [option for option, value in options.items() if not value])
    assert collection is not None  # checked above
    assert topics is not None
    assert output is not None
    data: tuple[Any, ...] = _documents(collection, id_prefix or []), tuple(topics), tuple(qrels) if qrels else None, output
    with reporting(json, steps=True, compiling=True):
        how: dict[str, Any] = {
            "split": split or None,
            "train": train,
            "dev": dev,
            "runs": runs or (),
            "measures": measures or None,
            "leaks": leaks or "error",
            "allow_empty": allow_empty,
        }
        if draws is not None:
            drawn = run_draws(chosen, *data, draws=draws, **how)
        else:
            result = chosen.run(*data, **how)
    if draws is not None:
        print_report(drawn, json=json)
    elif json:
        print_json(result.to_dict())
    else:
        note(result.summary)
        sys.stdout.write(f"{result}\n")


def _refuse_incomplete(recipe: Recipe, missing: list[str]) -> NoReturn:
    """Raise ParameterError for missing options, and for the models and libraries that the recipe lacks as well."""
    options = {"--collection": "--collection DOCUMENTS", "--topics": "--topics FILE", "-o": "-o FOLDER"}
    needed = " and ".join(filter(None, [", ".join(options[name] for name in missing[:-1]), options[missing[-1]]]))
    sample = "; --sample stands for documents, topics and judgments" if recipe.sample and missing != ["-o"] else ""
    lines = [f"recipe {recipe.name} needs {needed}{sample}"]
    try:
        recipe.check_models()
    except FontesError as error:
        lines += str(error).splitlines()
    raise ParameterError.of_lines(lines)


def _documents(collection: list[str], prefixes: list[str]) -> object:
    from ....datasets import corpus_of
    from ....formats.corpus import join_corpora, with_prefixes

    if len(collection) == 1 and not prefixes:
        return collection[0]

    def read(names: list[str]) -> Iterable[Doc]:
        parts = [corpus_of(name) for name in names]
        return parts[0] if len(parts) == 1 else join_corpora(parts)

    return with_prefixes(collection, prefixes, read)


def _sample_name(recipe: type[Recipe], inputs: dict[str, list[str] | None]) -> str:
    """Return the name of a recipe's sample; ParameterError if it has none, or if one of the other inputs is given."""
    if not recipe.sample:
        raise ParameterError(f"recipe {recipe.name} has no sample; give --collection and --topics")
    if options := [f"--{option}" for option, value in inputs.items() if value]:
        raise ParameterError(f"--sample stands for documents, topics and judgments; leave out {' and '.join(options)}")
    return f"sample:{recipe.sample}"


def _figures(published: Mapping[str, float]) -> list[str]:
    return [f"{measure} {value:.4f}" for measure, value in published.items()]


def _description(recipe: type[Recipe]) -> str:
    """Return the docstring of a recipe without its arguments."""
    import inspect

    return (inspect.getdoc(recipe) or "").partition("Args:")[0].strip()


def _facts(recipe: type[Recipe]) -> dict[str, object]:
    return {
        "name": recipe.name,
        "about": summary(recipe),
        "task": recipe.task,
        "source": recipe.source,
        "cite": recipe.cite,
        "needs": recipe.needs,
        "sample": recipe.sample,
        "measures": recipe.measures,
        "presets": recipe.presets,
        "published": recipe.published,
        "published_on": recipe.published_on,
    }


def demo(
    directory: Annotated[Path | None, option("Keep indexes and runs here.", "a temporary place")] = None, json: Json = False
) -> None:
    """Run the examples of README, and measure four tasks on the sample collection."""
    from ...demo import run_demo

    run_demo(directory, json)
