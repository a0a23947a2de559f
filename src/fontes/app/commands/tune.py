"""`fontes tune`: the parameters of BM25 or query likelihood that do best on judged topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import ParameterError

commands = typer.Typer()

VALUES = "LOW:HIGH:STEP, LOW:HIGH or a list with commas"


@commands.command()
def tune(
    index: Annotated[Path, typer.Argument(help="An index directory.", show_default=False)],
    topics: Annotated[str, typer.Option(help="A file of topics, irds:NAME, or -.", show_default=False)],
    qrels: Annotated[str, typer.Option(help="Judgments: TREC, BEIR, irds:NAME, or -.", show_default=False)],
    measure: Annotated[str, typer.Option("-m", "--measure", help="What the parameters are best by.")] = "nDCG@10",
    model: Annotated[str, typer.Option(help="bm25 or ql (query likelihood).")] = "bm25",
    variant: Annotated[str, typer.Option(help="BM25: lucene, robertson, okapi, atire, plus or l.")] = "lucene",
    k1: Annotated[str | None, typer.Option(help=f"BM25: {VALUES}.", show_default="0.1:4.5:0.2")] = None,
    b: Annotated[str | None, typer.Option(help="BM25, in the same way.", show_default="0:1:0.1")] = None,
    k3: Annotated[str | None, typer.Option(help="BM25, in the same way.", show_default="none,0,2,8")] = None,
    mu: Annotated[str | None, typer.Option(help="Query likelihood, in the same way.", show_default="100:3000:100")] = None,
    method: Annotated[str, typer.Option(help="grid, random or tpe.")] = "grid",
    trials: Annotated[int | None, typer.Option(help="Settings to try, with random and tpe.", show_default="100", min=1)] = None,
    folds: Annotated[int, typer.Option(help="How many folds.")] = 5,
    group: Annotated[
        str | None, typer.Option(help="Topics of one document or conversation in one fold.", show_default="none")
    ] = None,
    seed: Annotated[int, typer.Option(help="How topics are dealt into folds, and settings drawn.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the surface: .png, .svg or .pdf.", show_default=False)] = None,
    threads: Annotated[int | None, typer.Option(help="How many threads; default: all.", min=1, show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with all settings.")] = False,
) -> None:
    """Tune a model by nested cross-validation: what it finds, and what that is worth on topics held out.

    Where one or more of --k1, --b and --k3 is given, only these are tuned.
    """
    from ...datasets import qrels_of, topics_of
    from ...index import Index
    from ...plots.plot import format_of
    from ...tuning import tune as tune_stage
    from ..output import print_json

    if topics == "-" and qrels == "-":
        raise typer.BadParameter("topics and qrels cannot both be -")
    if plot is not None:
        format_of(plot)
    opened = Index.open(index)
    written = {"k1": k1, "b": b, "k3": k3, "mu": mu}
    space = {name: values_of(text, f"--{name}") for name, text in written.items() if text is not None}
    if model == "bm25":
        stage: Any = opened.bm25(variant=variant, threads=threads)
    elif model == "ql":
        stage, space = opened.ql(threads=threads), space or {"mu": (100, 3000, 100)}
    else:
        raise ParameterError(f"unknown model '{model}'; tune knows bm25 and ql")
    result = tune_stage(
        stage,
        space or None,
        topics_of(topics),
        qrels_of(qrels),
        measure,
        folds,
        method=method,
        trials=trials,
        groups=group,
        seed=seed,
    )
    if plot is not None:
        result.plot().save(plot)
    if json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))


def values_of(text: str, option: str) -> object:
    """The values that an option names: LOW:HIGH:STEP or LOW:HIGH as a range, anything else as a list."""
    parts = text.split(":")
    if len(parts) in (2, 3):
        return tuple(_number(part, option) for part in parts)
    if len(parts) > 3:
        raise ParameterError(f"{option}: '{text}' is none of LOW:HIGH:STEP, LOW:HIGH and a list with commas")
    return [None if part.strip().lower() == "none" else _number(part, option) for part in text.split(",")]


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{option}: '{text}' is not a number") from None
