"""`fontes tune`: tune the parameters of a pipeline on judged topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..options import Analyzer, IndexPath, Json, Qrels, Ray, Split, Topics, Verify, ray_of, reads_files

commands = typer.Typer()

BM25 = "bm25(k1=tune(0.1, 4.5, 0.2), b=tune(0, 1, 0.1), k3=tune([None, 0, 2, 8]))"


@commands.command(rich_help_panel="Measure")
@reads_files("id", "text", of="topics")
def tune(
    index: IndexPath,
    topics: Topics,
    qrels: Qrels,
    split: Split = None,
    pipeline: Annotated[
        str,
        typer.Option(help="The pipeline, with tune(), tune(low, high), tune(low, high, step) or tune([value, …]) for values."),
    ] = BM25,
    measure: Annotated[str, typer.Option("-m", "--measure", help="What the parameters are best by.")] = "nDCG@10",
    method: Annotated[str, typer.Option(help="grid, random or tpe.")] = "grid",
    trials: Annotated[int | None, typer.Option(help="Settings to try, with random and tpe.", show_default="100", min=1)] = None,
    folds: Annotated[int, typer.Option(help="How many folds.")] = 5,
    group: Annotated[
        str | None, typer.Option(help="Topics of one document or conversation in one fold.", show_default="none")
    ] = None,
    seed: Annotated[int, typer.Option(help="How topics are dealt into folds, and settings drawn.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the surface: .png, .svg or .pdf.", show_default=False)] = None,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Tune a pipeline by nested cross-validation, and measure it on held-out topics."""
    from ...datasets import judged_topics
    from ...plots.plot import format_of
    from ...tuning import tune as tune_stage
    from ..output import print_json
    from ..pipelines import open_index

    if topics == "-" and qrels == "-":
        raise typer.BadParameter("topics and qrels cannot both be -")
    if plot is not None:
        format_of(plot)
    known, judgments = judged_topics(topics, qrels, split)
    result = tune_stage(
        pipeline,
        None,
        known,
        judgments,
        measure,
        folds,
        method=method,
        trials=trials,
        groups=group,
        seed=seed,
        index=open_index(index, analyzer, verify),
        ray=ray_of(ray),
    )
    if plot is not None:
        result.plot().save(plot)
    if json:
        print_json(result.to_dict())
    else:
        typer.echo(str(result))
