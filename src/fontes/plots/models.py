"""Plots of weightings: TF-IDF, the tf part of BM25, and variants of idf.

All values come from `Weighting.postings`, as in a search. Statistics come from an index or from an imagined collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import Float64s
from ..core.errors import ParameterError
from .plot import Plot, draw_plot, label_ends, line_style, plain_ticks, require_terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..index import Index
    from ..lexical import BM25Weighting, Statistics, Weighting

COLLECTION_SIZE = 100_000  # documents of an imagined collection
LENGTH_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # document lengths, over the mean length
AVGDL = 100.0  # of an imagined collection; the tf part depends on dl / avgdl alone
OCCURRENCES = (1, 2, 5, 10, 20, 50, 100)  # tf of the lines over the length, up to the greatest tf
CURVE_POINTS = 120  # points of a curve over the length


def tfidf(
    index: Index | None = None,
    *,
    documents: int = COLLECTION_SIZE,
    sublinear_tf: bool = False,
    smooth_idf: bool = False,
    tf: int = 20,
) -> Plot:
    """Plot the TF-IDF weight tf · ln(N / df), as a map over tf and df, and over tf at several df.

    The weights are not scaled to documents of unit length.

    Args:
        index: An index of texts, whose size is N.
        documents: N, without an index.
        sublinear_tf: 1 + ln(tf) for tf.
        smooth_idf: ln((1 + N) / (1 + df)) + 1 for ln(N / df).
        tf: The greatest tf.

    Raises:
        ParameterError: A number is out of its range.
        MissingExtraError: matplotlib is missing.
    """
    from ..lexical import TFIDFWeighting

    n = _collection_size(index, documents)
    if tf < 2:
        raise ParameterError(f"the map needs tf from 1 to 2 or more, not {tf}")
    tfs, dfs = np.linspace(1, tf, 60), np.geomspace(1, n, 80)
    weighting = TFIDFWeighting(sublinear_tf=sublinear_tf, smooth_idf=smooth_idf, norm=None)
    weights = _weight_grid(weighting, _imagined_statistics(n, df=dfs), tfs)
    frequencies = np.unique(np.rint(np.geomspace(1, n, 6)[:-1]))  # in N documents a term has no weight
    integer_tfs = np.arange(1, tf + 1, dtype=np.float64)
    curves = _weight_grid(weighting, _imagined_statistics(n, df=frequencies), integer_tfs)
    name = f"{'(1 + ln tf)' if sublinear_tf else 'tf'} · {'(ln((1 + N) / (1 + df)) + 1)' if smooth_idf else 'ln(N / df)'}"

    def draw(figure: Figure) -> str:
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        levels = _levels(float(weights.max()))
        areas = left.contourf(tfs, dfs, weights, levels=levels, cmap="cividis")
        # Otherwise viewers of SVG show gaps between neighbouring areas.
        areas.set_edgecolor("face")
        shades = ["white" if level < 0.55 * levels[-1] else "black" for level in levels[1:]]
        lines = left.contour(tfs, dfs, weights, levels=levels[1:], colors=shades, linewidths=0.6)
        left.set_yscale("log")
        left.clabel(lines, fontsize=7, fmt="%g", manual=_along_the_diagonal(tfs, dfs, weights, levels))
        left.set(xlabel="term frequency tf", ylabel="document frequency df (documents)", title="over tf and df")
        plain_ticks(left.yaxis)
        _draw_lines(right, integer_tfs, curves, [f"df = {df:,.0f}" for df in frequencies], float(curves.max()))
        right.set(xlabel="term frequency tf", ylabel=f"weight {name}", title="over tf, at several df")
        left.set_xticks(_integer_ticks(1, tf))
        return (
            f"TF-IDF, {name}, over tf from 1 to {tf} and df from 1 to N = {n:,}, and over tf for terms of different df, "
            "rows not scaled to unit length"
        )

    return draw_plot(draw)


def bm25(
    index: Index | None = None,
    *,
    variant: str = "atire",
    k1: float | None = 1.2,
    b: float | None = 0.75,
    delta: float | None = None,
    lengths: Sequence[float] | None = None,
    tf: int = 20,
) -> Plot:
    """Plot the tf part of BM25 over tf for several document lengths, and over the length for several tf.

    Shows saturation, by `k1`, and the influence of length, by `b`.

    Args:
        index: An index of texts, or None for an imagined collection.
        variant: Formulas: lucene, robertson, okapi, atire, plus or l. The tf part of "atire", "robertson" and "okapi" is that
            of textbooks: (k1 + 1) tf / (tf + k1 · (1 - b + b · dl / avgdl)).
        k1: Saturation of tf; None: the variant's.
        b: Influence of length, from 0 to 1; None: the variant's.
        delta: Shift of the tf part (plus) or of tf / length (l). None: the variant's.
        lengths: Document lengths as multiples of the mean. None: ¼, ½, 1, 2 and 4, or with an index percentiles 5, 25, 50,
            75 and 95, in terms.
        tf: The greatest tf.

    Raises:
        ParameterError: A number is out of its range, or there is no such variant.
        MissingExtraError: matplotlib is missing.
    """
    from ..lexical import BM25Weighting

    if tf < 2:
        raise ParameterError(f"the curves need tf from 1 to 2 or more, not {tf}")
    dl, names, avgdl, unit = _document_lengths(index, lengths)
    weighting = BM25Weighting.of(variant, k1=k1, b=b, delta=delta)
    tfs = np.arange(1, tf + 1, dtype=np.float64)
    frequencies = np.array([n for n in OCCURRENCES if n <= tf], dtype=np.float64)
    axis_lengths = np.linspace(0, max(float(dl.max()), 2 * avgdl * (unit == AVGDL)), CURVE_POINTS)[1:]
    over_tf = _tf_part(weighting, avgdl, tfs, dl)
    over_length = _tf_part(weighting, avgdl, frequencies, axis_lengths).T
    numbers = [f"k1 = {weighting.k1:g}", f"b = {weighting.b:g}", *([f"delta = {weighting.delta:g}"] if weighting.delta else [])]
    setting = f"BM25 {weighting.variant}, {', '.join(numbers)}"

    def draw(figure: Figure) -> str:
        left, right = figure.subplots(1, 2, sharey=True)
        highest = max(float(over_tf.max()), float(over_length.max()))
        _draw_lines(left, tfs, over_tf, names, highest)
        left.set(xlabel="term frequency tf", ylabel="tf part (weight = idf · tf part)", title="over tf")
        _draw_lines(right, axis_lengths / unit, over_length, [f"tf = {n:g}" for n in frequencies], highest)
        right.set(xlabel="document length " + ("dl (terms)" if unit == 1 else "dl / avgdl"), title="over length")
        left.set_xticks(_integer_ticks(0, tf))
        figure.suptitle(setting, x=0.01, ha="left", fontsize=9)
        described = "of different lengths dl" if unit != 1 else "of different lengths dl (5th to 95th percentile)"
        return f"the tf part of {setting}, over tf from 1 to {tf} for documents {described}, and over dl for several tf"

    return draw_plot(draw)


def idf(index: Index | None = None, *, documents: int = 1_000, epsilon: float = 0.25) -> Plot:
    """Plot variants of idf over df: BM25 (lucene, robertson, okapi, atire, plus, l) and TF-IDF (plain, smooth).

    The left plot shows all df, the right one the df of common terms, in more than a tenth of the documents, where the variants
    differ most.

    Args:
        index: An index of texts, whose size is N.
        documents: N, without an index.
        epsilon: Okapi's: an idf below 0 becomes epsilon times the mean idf. Without an index the mean is that of Zipf's law,
            where the term of rank r is in N / r documents.

    Raises:
        ParameterError: A number is out of its range.
        MissingExtraError: matplotlib is missing.
    """
    n = _collection_size(index, documents)
    if n < 20:
        raise ParameterError(f"the variants of idf are compared over 20 documents or more, not {n}")
    rare, common = np.geomspace(1, n, 241), np.linspace(n / 10, n, 181)
    curves = _idf_curves(index, n, rare, common, epsilon)

    def draw(figure: Figure) -> str:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        lines = []
        for number, (name, (of_rare, of_common)) in enumerate(curves.items()):
            left.plot(rare, of_rare, **line_style(number))
            lines += [(line, name) for line in right.plot(100 * common / n, of_common, **line_style(number))]
        left.set_xscale("log")
        left.set_xlim(1, n)
        left.set_ylim(-2.2)
        plain_ticks(left.xaxis)
        left.set(xlabel="document frequency df (documents)", ylabel="idf (natural logarithm)", title=f"all terms, N = {n:,}")
        right.set_xlim(10, 100)
        right.set_ylim(-2.2, 3.6)
        right.set(xlabel="df (% of the documents)", title="common terms")
        right.set_xticks(range(10, 101, 15))
        for axes in (left, right):
            axes.axhline(0, color="#555555", linewidth=0.8)
        label_ends(right, lines)
        vocabulary = "a vocabulary by Zipf's law" if index is None else "the index"
        return f"the variants of idf over df for N = {n:,}; okapi with epsilon = {epsilon:g} and the mean idf of {vocabulary}"

    return draw_plot(draw)


def _idf_curves(
    index: Index | None, n: int, rare: Float64s, common: Float64s, epsilon: float
) -> dict[str, tuple[Float64s, Float64s]]:
    """Return idf over the rare and the common df, by name; the names of equal variants are joined."""
    from ..lexical import BM25Weighting, Statistics, TFIDFWeighting
    from ..lexical.bm25 import VARIANTS

    # Half of the terms of this vocabulary are in one document, as in many collections.
    statistics = _imagined_statistics(n, df=np.ceil(n / np.arange(1, n + 1))) if index is None else Statistics.of(index.state)
    weightings: dict[str, BM25Weighting | TFIDFWeighting] = {
        variant: BM25Weighting.of(variant, epsilon=epsilon) for variant in VARIANTS
    }
    weightings |= {"tf-idf": TFIDFWeighting(), "tf-idf, smooth": TFIDFWeighting(smooth_idf=True)}
    curves: dict[str, tuple[Float64s, Float64s]] = {}
    for name, weighting in weightings.items():
        curve_pair = weighting.idf(statistics, rare), weighting.idf(statistics, common)
        same = next((other for other, curve in curves.items() if np.allclose(curve[0], curve_pair[0])), None)
        curves[name if same is None else f"{same} = {name}"] = curve_pair if same is None else curves.pop(same)
    return curves


def _document_lengths(index: Index | None, lengths: Sequence[float] | None) -> tuple[Float64s, list[str], float, float]:
    """Return document lengths in terms, their names, the mean length, and the unit of display: 1 for terms, or the mean."""
    if index is not None:
        _collection_size(index, 0)
        if lengths is None:
            shares = (5, 25, 50, 75, 95)
            dl = np.percentile(index.lengths, shares, method="nearest").astype(np.float64)
            names = [f"dl = {length:.0f} ({share}th)" for length, share in zip(dl, shares, strict=True)]
            return dl, names, index.tokens / len(index), 1.0
    multiples = np.asarray(LENGTH_MULTIPLES if lengths is None else lengths, dtype=np.float64)
    if not len(multiples) or not multiples.min() > 0:
        raise ParameterError(f"document lengths are multiples of the mean length, above 0, not {multiples.tolist()}")
    avgdl = AVGDL if index is None else index.tokens / len(index)
    names = [f"dl = {length:g} avgdl" if length != 1 else "dl = avgdl" for length in multiples]
    return avgdl * multiples, names, avgdl, avgdl


def _collection_size(index: Index | None, documents: int) -> int:
    if index is None:
        if documents < 2:
            raise ParameterError(f"a collection to plot has 2 documents or more, not {documents}")
        return documents
    require_terms(index)
    return len(index)


class _ImaginedCollection:
    """Collection without postings, for `Statistics`; `lengths` may cover some of the documents only."""

    def __init__(self, documents: int, df: Float64s, lengths: Float64s, avgdl: float) -> None:
        self.documents = documents
        self.tokens = documents * avgdl
        self.df = df
        self.lengths = lengths

    def __len__(self) -> int:
        return self.documents


def _imagined_statistics(documents: int, df: Float64s, lengths: Float64s | None = None, avgdl: float = AVGDL) -> Statistics:
    from ..lexical import Statistics

    return Statistics(_ImaginedCollection(documents, df, np.full(1, avgdl) if lengths is None else lengths, avgdl))  # type: ignore[arg-type]


def _weight_grid(weighting: Weighting, statistics: Statistics, tf: Float64s) -> Float64s:
    """Return the weights of all terms at each tf in one document, (terms, tfs)."""
    from ..lexical import Postings

    terms = np.arange(len(statistics.df))
    df = np.full(len(terms), len(tf))
    # Weightings accept any number as tf; the postings of an index have integers.
    tfs: Any = np.tile(tf, len(terms))
    docs = np.zeros(len(tfs), dtype=np.int32)
    return weighting.postings(statistics, Postings(terms, df, docs, tfs)).reshape(len(terms), len(tf))


def _tf_part(weighting: BM25Weighting, avgdl: float, tf: Float64s, dl: Float64s) -> Float64s:
    """Return the weights of a term divided by its idf, (lengths, tfs)."""
    from ..lexical import Postings

    statistics = _imagined_statistics(COLLECTION_SIZE, df=np.ones(1), lengths=dl, avgdl=avgdl)
    tfs: Any = np.tile(tf, len(dl))
    docs = np.repeat(np.arange(len(dl), dtype=np.int32), len(tf))
    weights = weighting.postings(statistics, Postings(np.zeros(1, dtype=np.int64), np.array([len(tfs)]), docs, tfs))
    part: Float64s = weights.reshape(len(dl), len(tf)) / weighting.idf(statistics, statistics.df)
    return part


def _draw_lines(axes: Axes, x: Float64s, curves: Float64s, names: Sequence[str], highest: float) -> None:
    lines = [
        (axes.plot(x, curve, **line_style(number))[0], name)
        for number, (curve, name) in enumerate(zip(curves, names, strict=True))
    ]
    axes.set_xlim(0, float(x[-1]))
    axes.set_ylim(0, 1.06 * highest)
    label_ends(axes, lines)


def _levels(highest: float) -> Float64s:
    step = highest / 10
    size = 10 ** np.floor(np.log10(step))
    step = float(size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= step))
    return np.arange(0, highest + step, step)


def _along_the_diagonal(tfs: Float64s, dfs: Float64s, weights: Float64s, levels: Float64s) -> list[tuple[float, float]]:
    """Return the points where each level crosses the diagonal from least tf and greatest df to greatest tf and least df."""
    diagonal = np.linspace(0, 1, 400)
    columns = np.rint(diagonal * (len(tfs) - 1)).astype(int)
    rows = np.rint((1 - diagonal) * (len(dfs) - 1)).astype(int)
    crossings = np.searchsorted(weights[rows, columns], levels[1:])
    return [(float(tfs[columns[i]]), float(dfs[rows[i]])) for i in crossings if 8 <= i <= 392]


def _integer_ticks(first: int, last: int) -> list[int]:
    step = next(s for m in (1, 10, 100, 1000, 10_000, 10**9) for s in (m, 2 * m, 5 * m) if (last - first) / s <= 6)
    return sorted({first, *range(step, last + 1, step)})
