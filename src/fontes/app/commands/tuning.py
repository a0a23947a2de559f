"""`fontes tune`, `fit` and `fuse`: parameters, pipelines and weights chosen on judged topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...core import Qrels
from ...core.checks import real
from ...core.errors import ParameterError
from ...core.parameters import parameters
from ...fusion import fuse as fuse_runs
from ...lexical import BM25
from ...measures import DEFAULT
from ...measures.names import need_groups
from ...tuning import fit as fit_pipeline, fit_weights, tune as tune_stage
from ..completion import complete_pipeline
from ..flags import ray_of
from ..options import (
    Analyzer,
    Group,
    IndexPath,
    Json,
    QrelsFile,
    Ray,
    ReportFiles,
    Split,
    Tag,
    TopicsFile,
    Verify,
    argument,
    option,
    options_of,
    reads_files,
)
from ..output import print_json, print_report, reporting
from ..pipelines import open_index, read_judged

DEFAULT_PIPELINE = f"bm25({', '.join(f'{name}=tune()' for name, parameter in parameters(BM25).items() if parameter.usual)})"


@reads_files("id", "text", of="topics")
@options_of(tune_stage, "measure", "method", "trials", "folds", "seed", flags={"measure": ("-m", "--measure")})
def tune(
    settings: dict[str, Any],
    index: IndexPath,
    topics: TopicsFile,
    qrels: QrelsFile,
    split: Split = None,
    pipeline: Annotated[
        str, option("The pipeline, with tune() for values.", autocompletion=complete_pipeline)
    ] = DEFAULT_PIPELINE,
    group: Group = None,
    output: ReportFiles = None,
    plot: Annotated[Path | None, option("Draw the surface: .png, .svg or .pdf.", False)] = None,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Tune a pipeline by nested cross-validation, and measure it on held-out topics."""
    queries, judgments = read_judged(topics, qrels, split, settings, plot)
    result = tune_stage(
        pipeline, None, queries, judgments, groups=group, index=open_index(index, analyzer, verify), ray=ray_of(ray), **settings
    )
    if plot is not None:
        result.plot().save(plot)
    print_report(result, output, json)


@reads_files("id", "text", of="topics")
@options_of(
    fit_pipeline,
    *("measure", "folds", "seed", "memory"),
    flags={"measure": ("-m", "--measure"), "memory": ("--no-memory",)},
    memory="Do not measure the memory of the best pipelines.",
)
def fit(
    settings: dict[str, Any],
    index: IndexPath,
    topics: TopicsFile,
    qrels: QrelsFile,
    budget: Annotated[str, option("Longest time of a search, 95th percentile: 20ms, 1s.", False)],
    split: Split = None,
    rerank: Annotated[list[str] | None, option("A reranker to try: 'cross_encoder(\"MODEL\")'; repeatable.", "none")] = None,
    candidate: Annotated[list[str] | None, option("A further pipeline to try; repeatable.", "none")] = None,
    group: Group = None,
    output: ReportFiles = None,
    plot: Annotated[Path | None, option("Draw means against times and memory: .png, .svg or .pdf.", False)] = None,
    only: Annotated[bool, option("Print only the text of the pipeline.", True, "--only-pipeline")] = False,
    analyzer: Analyzer = None,
    verify: Verify = False,
    json: Json = False,
) -> None:
    """Choose the best pipeline within a time budget, and measure the choice on held-out topics."""
    queries, judgments = read_judged(topics, qrels, split, settings, plot)
    with reporting(json):
        result = fit_pipeline(
            open_index(index, analyzer, verify),
            queries,
            judgments,
            budget,
            rerankers=rerank or (),
            candidates=candidate or (),
            groups=group,
            **settings,
        )
    if plot is not None:
        result.plot().save(plot)
    if only and not json:
        typer.echo(result.pipeline)
    else:
        print_report(result, output, json)


@reads_files("id", of="topics")
@options_of({"--learn": fit_weights}, "measure", "folds", "seed", "step")
def fuse(
    settings: dict[str, Any],
    runs: Annotated[list[Path], argument("Two runs or more: TREC or MS MARCO.")],
    method: Annotated[
        str | None, option("rrf, combsum, combmnz, combmax, combmin, wsum, logodds, borda or isr.", "rrf; with --learn wsum")
    ] = None,
    normalize: Annotated[str, option("Scores: min-max, max, sum, z, rank or none.")] = "min-max",
    weights: Annotated[str | None, option("One a run, with commas: 0.3,0.7.", "1 for each run")] = None,
    rrf_k: Annotated[float, option("rrf: the constant k.")] = 60,
    missing: Annotated[
        str | None, option("Contribution of a run to missing documents: min, or a number.", "the method's rule")
    ] = None,
    k: Annotated[int | None, option("Documents a topic.", "all", "-k", min=1)] = None,
    output: Annotated[str, option("Run to write.", True, "-o", "--output")] = "-",
    tag: Tag = "fontes",
    learn: Annotated[str | None, option("Judgments to learn weights from by cross-validation.", False)] = None,
    split: Split = None,
    json: Annotated[bool, option("With --learn: print the weights as JSON.", True, "--json")] = False,
) -> None:
    """Fuse runs into one. With --learn the weights of each topic are learned on other topics."""
    from ...formats import read_run, write_run

    if learn is not None and weights is not None:
        raise typer.BadParameter("give either --weights or --learn")
    if split is not None and learn is None:
        raise typer.BadParameter("--split goes with --learn")
    if json and (learn is None or output == "-"):
        raise typer.BadParameter("--json prints the weights of --learn; it needs --learn, and -o FILE for the run")
    if [*map(str, runs), learn].count("-") > 1:
        raise typer.BadParameter("standard input can be read only once")
    fusion: dict[str, Any] = {
        "method": method or ("rrf" if learn is None else "wsum"),
        "normalize": None if normalize == "none" else normalize,
        "k": rrf_k,
        "missing": missing if missing in (None, "min") else _parse_number(missing, "--missing"),
    }
    systems = [read_run(path) for path in runs]
    if learn is None:
        numbers = None if weights is None else [_parse_number(weight, "--weights") for weight in weights.split(",")]
        run = fuse_runs(*systems, weights=numbers, **fusion)
    else:
        judgments = Qrels.of(learn, split=split, groups=need_groups(settings.get("measure", DEFAULT)))
        learned = fit_weights(systems, judgments, **settings, **fusion)
        run = learned.run
        if json:
            print_json(learned.to_dict())
        else:
            typer.echo(str(learned), err=output == "-")
    write_run(run if k is None else run.top(k), output, tag=tag)


def _parse_number(text: str, option: str) -> float:
    try:
        return real(text.strip())
    except ValueError:
        raise ParameterError(f"{option}: '{text}' is not a number") from None
