"""`fontes plot`: plots of models, indexes, measures and pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.errors import ParameterError
from ..options import Split, reads_files

commands = typer.Typer()

OPTIONS = {  # of each kind of plot
    "tfidf": ("docs", "tf", "sublinear_tf", "smooth_idf"),
    "bm25": ("variant", "k1", "b", "delta", "length", "tf"),
    "idf": ("docs", "epsilon"),
    "lengths": ("tokenizer",),
    "zipf": ("first", "last"),
    "heaps": ("first",),
    "measures": ("measures", "k", "bands", "seed", "split"),
    "pipeline": (),
}
OF_AN_INDEX = ("lengths", "zipf", "heaps")


@commands.command(rich_help_panel="Measure")
@reads_files("id", of="topics")
def plot(
    kind: Annotated[
        str, typer.Argument(help="tfidf, bm25, idf, lengths, zipf, heaps, measures or pipeline.", show_default=False)
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="An index directory; for measures judgments and then runs; for pipeline an expression.", show_default=False
        ),
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write: .svg, .png or .pdf.")] = Path("plot.svg"),
    docs: Annotated[
        int | None, typer.Option(help="tfidf, idf: N, without an index.", show_default="100,000; idf 1,000")
    ] = None,
    tf: Annotated[int | None, typer.Option(help="tfidf, bm25: the greatest tf.", show_default="20")] = None,
    sublinear_tf: Annotated[bool, typer.Option("--sublinear-tf", help="tfidf: 1 + ln tf for tf.")] = False,
    smooth_idf: Annotated[bool, typer.Option("--smooth-idf", help="tfidf: the smoothed idf.")] = False,
    variant: Annotated[
        str | None, typer.Option(help="bm25: lucene, robertson, okapi, atire, plus or l.", show_default="atire")
    ] = None,
    k1: Annotated[float | None, typer.Option(help="bm25: saturation of tf.", show_default="1.2")] = None,
    b: Annotated[float | None, typer.Option(help="bm25: influence of length, 0 to 1.", show_default="0.75")] = None,
    delta: Annotated[float | None, typer.Option(help="bm25: of plus and l.", show_default="1 and 0.5")] = None,
    length: Annotated[
        list[float] | None,
        typer.Option(help="bm25: a document length as a multiple of the mean; again for more.", show_default="¼ to 4"),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="idf: epsilon of okapi.", show_default="0.25")] = None,
    first: Annotated[
        int | None, typer.Option(help="zipf, heaps: where the fit starts.", show_default="rank 1; a hundredth of the tokens")
    ] = None,
    last: Annotated[int | None, typer.Option(help="zipf: the last rank of the fit.", show_default="cf = 10")] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option("-m", "--measures", help="measures: names without cutoff, with commas.", show_default="P,R,SetF,RR"),
    ] = None,
    k: Annotated[int | None, typer.Option("-k", help="measures: the greatest k.", show_default="20")] = None,
    no_bands: Annotated[bool, typer.Option("--no-bands", help="measures: no intervals around the lines.")] = False,
    seed: Annotated[int | None, typer.Option(help="measures: of the bootstrap.", show_default="0")] = None,
    split: Split = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="lengths: count tokens of a model: a folder or a name on the hub.", show_default="terms of the index"
        ),
    ] = None,
) -> None:
    """Draw TF-IDF, BM25 or idf as curves, the lengths, Zipf's or Heaps' law of an index, measures of runs, or a pipeline."""
    from ...plots.plot import format_of
    from ..output import say

    values: dict[str, Any] = {
        "docs": docs,
        "tf": tf,
        "sublinear_tf": sublinear_tf or None,
        "smooth_idf": smooth_idf or None,
        "variant": variant,
        "k1": k1,
        "b": b,
        "delta": delta,
        "length": length or None,
        "epsilon": epsilon,
        "first": first,
        "last": last,
        "measures": measures,
        "k": k,
        "bands": False if no_bands else None,
        "seed": seed,
        "split": split,
        "tokenizer": tokenizer,
    }
    parameters = {name: value for name, value in values.items() if value is not None}
    _check(kind, files or [], list(parameters))
    format_of(output)
    figure = _drawn(kind, files or [], parameters)
    figure.save(output)
    say(f"{output}: {figure.caption}")


def _check(kind: str, files: list[str], parameters: list[str]) -> None:
    if kind not in OPTIONS:
        raise ParameterError(f"there is no plot '{kind}'; there are {', '.join(OPTIONS)}")
    for name in parameters:
        if name not in OPTIONS[kind]:
            known = ", ".join(_option(n) for n in OPTIONS[kind]) or "none"
            raise ParameterError(f"fontes plot {kind} has no option {_option(name)}; its options are {known}")
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
    if kind in OF_AN_INDEX and not files:
        raise ParameterError(f"fontes plot {kind} needs an index: fontes plot {kind} INDEX -o FILE")
    if files and "docs" in parameters:
        raise ParameterError("--docs is the size of an imagined collection; leave it out where there is an index")


def _option(name: str) -> str:
    return "--no-bands" if name == "bands" else "-k" if name == "k" else f"--{name.replace('_', '-')}"


def _drawn(kind: str, files: list[str], parameters: dict[str, Any]) -> Any:
    if kind == "measures":
        return _of_runs(*files, **parameters)
    if kind == "pipeline":
        return _of_expression(*files)
    from ... import plots
    from ..pipelines import open_index

    names = {"docs": "documents", "length": "lengths"}
    index = open_index(files[0]) if files else None
    return getattr(plots, kind)(index, **{names.get(name, name): value for name, value in parameters.items()})


def _of_expression(text: str) -> Any:
    """The pipeline of an expression; drawing needs no index or model."""
    from ...core.expression import pipeline
    from ...experiments.problems import NOTHING
    from ...plots import pipeline as plot_pipeline

    return plot_pipeline(pipeline(text, NOTHING))


def _of_runs(qrels: str, *runs: str, split: str | None = None, **parameters: Any) -> Any:
    from ...comparison import plot_measures
    from ...datasets import qrels_of
    from ...experiments.systems import named

    return plot_measures(named(list(runs)), qrels_of(qrels, split=split), **parameters)
