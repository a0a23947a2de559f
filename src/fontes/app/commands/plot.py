"""`fontes plot`: curves of the models and statistics of an index as figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...core.errors import ParameterError

if TYPE_CHECKING:
    from ...index import Index

commands = typer.Typer()

OPTIONS = {  # of each kind of plot, and which of them need an index
    "tfidf": ("docs", "tf", "sublinear_tf", "smooth_idf"),
    "bm25": ("variant", "k1", "b", "delta", "length", "tf"),
    "idf": ("docs", "epsilon"),
    "lengths": (),
    "zipf": ("first", "last"),
    "heaps": ("first",),
}
OF_AN_INDEX = ("lengths", "zipf", "heaps")


@commands.command(rich_help_panel="Measure")
def plot(
    kind: Annotated[str, typer.Argument(help="tfidf, bm25, idf, lengths, zipf or heaps.", show_default=False)],
    index: Annotated[Path | None, typer.Argument(help="An index directory.", show_default=False)] = None,
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
) -> None:
    """Draw TF-IDF, BM25 or idf as curves, or the lengths, Zipf's or Heaps' law of an index."""
    from ...index import Index
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
    }
    parameters = {name: value for name, value in values.items() if value is not None}
    _check(kind, index, list(parameters))
    format_of(output)
    figure = _drawn(kind, None if index is None else Index.open(index), parameters)
    figure.save(output)
    say(f"{output}: {figure.caption}")


def _check(kind: str, index: Path | None, parameters: list[str]) -> None:
    """Raises ParameterError for a kind that there is not, and for options that do not belong to it."""
    if kind not in OPTIONS:
        raise ParameterError(f"there is no plot '{kind}'; there are {', '.join(OPTIONS)}")
    for name in parameters:
        if name not in OPTIONS[kind]:
            known = ", ".join(_option(n) for n in OPTIONS[kind]) or "none"
            raise ParameterError(f"fontes plot {kind} has no option {_option(name)}; its options are {known}")
    if kind in OF_AN_INDEX and index is None:
        raise ParameterError(f"fontes plot {kind} needs an index: fontes plot {kind} INDEX -o FILE")
    if index is not None and "docs" in parameters:
        raise ParameterError("--docs is the size of an imagined collection; leave it out where there is an index")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _drawn(kind: str, index: Index | None, parameters: dict[str, Any]) -> Any:
    from ... import plots

    names = {"docs": "documents", "length": "lengths"}
    return getattr(plots, kind)(index, **{names.get(name, name): value for name, value in parameters.items()})
