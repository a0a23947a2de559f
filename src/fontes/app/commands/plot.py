"""`fontes plot`: plots of models, indexes, measures and pipelines."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from ... import plots
from ...comparison import plot_measures
from ...core import Qrels
from ...core.errors import ParameterError
from ...core.expression import pipeline
from ...core.parameters import parameters
from ...plots.plot import format_of
from ..options import Split, argument, option, options_of, reads_files
from ..output import say
from ..pipelines import open_index

PLOTS: dict[str, Any] = {
    "tfidf": plots.tfidf,
    "bm25": plots.bm25,
    "idf": plots.idf,
    "lengths": plots.lengths,
    "zipf": plots.zipf,
    "heaps": plots.heaps,
    "measures": plot_measures,
    "pipeline": plots.pipeline,
}
FLAGS = {"documents": ("--docs",), "lengths": ("--length",), "measures": (), "k": ("-k",), "bands": ("--no-bands",)}
OPTIONS = {
    kind: [name for name, parameter in parameters(plot).items() if not parameter.required] for kind, plot in PLOTS.items()
}
OPTIONS["measures"].append("split")
INDEX_PLOTS = ("lengths", "zipf", "heaps")


@reads_files("id", of="topics")
@options_of(
    PLOTS, *chain(*OPTIONS.values()), flags=FLAGS, first="Where the fit starts.", bands="No intervals around the lines."
)
def plot(
    settings: dict[str, object],
    kind: Annotated[str, argument("tfidf, bm25, idf, lengths, zipf, heaps, measures or pipeline.")],
    files: Annotated[
        list[str] | None, argument("An index directory; for measures judgments and then runs; for pipeline an expression.")
    ] = None,
    output: Annotated[Path, option("File to write: .svg, .png or .pdf.", True, "-o", "--output")] = Path("plot.svg"),
    measures: Annotated[
        list[str] | None, option("measures: names without cutoff, with commas.", "P,R,SetF,RR", "-m", "--measures")
    ] = None,
    split: Split = None,
) -> None:
    """Draw TF-IDF, BM25 or idf as curves, the lengths, Zipf's or Heaps' law of an index, measures of runs, or a pipeline."""
    settings |= {name: value for name, value in (("measures", measures), ("split", split)) if value is not None}
    _check_arguments(kind, files or [], list(settings))
    format_of(output)
    figure = _draw(kind, files or [], settings)
    figure.save(output)
    say(f"{output}: {figure.caption}")


def _check_arguments(kind: str, files: list[str], settings: list[str]) -> None:
    if kind not in OPTIONS:
        raise ParameterError(f"there is no plot '{kind}'; there are {', '.join(OPTIONS)}")
    for name in settings:
        if name not in OPTIONS[kind]:
            options = ", ".join(map(_flag, OPTIONS[kind])) or "none"
            raise ParameterError(f"fontes plot {kind} has no option {_flag(name)}; its options are {options}")
    if kind == "measures":
        if len(files) < 2:
            raise ParameterError("fontes plot measures needs judgments and runs: fontes plot measures QRELS RUN… -o FILE")
        return
    if kind == "pipeline":
        if len(files) != 1:
            raise ParameterError(
                "fontes plot pipeline needs one expression: fontes plot pipeline 'bm25() >> rm3() >> bm25()' -o FILE"
            )
        return
    if len(files) > 1:
        raise ParameterError(f"fontes plot {kind} takes one index, not {len(files)} files")
    if kind in INDEX_PLOTS and not files:
        raise ParameterError(f"fontes plot {kind} needs an index: fontes plot {kind} INDEX -o FILE")
    if files and "documents" in settings:
        raise ParameterError("--docs is the size of a hypothetical collection; leave it out for an index")


def _flag(name: str) -> str:
    return FLAGS[name][-1] if FLAGS.get(name) else f"--{name.replace('_', '-')}"


def _draw(kind: str, files: list[str], settings: dict[str, Any]) -> Any:
    if kind == "measures":
        return _draw_measures(*files, **settings)
    if kind == "pipeline":
        return _draw_pipeline(*files)

    index = open_index(files[0]) if files else None
    return PLOTS[kind](index, **settings)


def _draw_pipeline(text: str) -> object:
    """Draw the pipeline of an expression, without an index or a model."""
    from ...experiments.problems import planned_index

    return plots.pipeline(pipeline(text, planned_index()))


def _draw_measures(qrels: str, *runs: str, split: str | None = None, **settings: Any) -> Any:
    from ...experiments.systems import named

    groups = "complete" in str(settings.get("measures")).lower()
    return plot_measures(named(list(runs)), Qrels.of(qrels, split=split, groups=groups), **settings)
