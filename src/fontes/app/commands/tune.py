"""`fontes tune`: tune the parameters of a pipeline on judged topics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ...core.parameters import parameters
from ...lexical import BM25
from ...tuning import tune as tune_stage
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
    TopicsFile,
    Verify,
    option,
    options_of,
    reads_files,
)
from ..output import print_report
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
