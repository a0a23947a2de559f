"""Plots of the weightings: TF-IDF as a map, the term part of BM25, the variants of idf.

All values come from the weightings that search uses, through `Weighting.postings`; no formula is written here again. With an
index the statistics are its own; without one they are those of an imagined collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from .plot import Plot, drawn, label_ends, look, plain_ticks, require_terms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..index import Index
    from ..lexical import Statistics, Weighting

Floats = NDArray[np.float64]
DOCUMENTS = 100_000
LENGTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
AVGDL = 100.0  # of an imagined collection; the tf part depends on dl / avgdl alone


def tfidf(
    index: Index | None = None,
    *,
    documents: int = DOCUMENTS,
    sublinear_tf: bool = False,
    smooth_idf: bool = False,
    tf: int = 20,
) -> Plot:
    """TF-IDF as a map: the weight of a term in a document over tf and df, tf · ln(N / df).

    The weights are those before a document's row is scaled to unit length, which depends on all terms of the document.

    Args:
        index: An index of texts, whose size is N.
        documents: N, without an index.
        sublinear_tf: As for `fontes.lexical.TFIDF`.
        smooth_idf: As for `fontes.lexical.TFIDF`.
        tf: The greatest tf.

    Raises:
        ParameterError: A number is out of its range.
        MissingExtraError: There is no matplotlib.
    """
    from ..lexical import TFIDFWeighting

    n = _documents(index, documents)
    if tf < 2:
        raise ParameterError(f"the map needs tf from 1 to 2 or more, not {tf}")
    tfs, dfs = np.linspace(1, tf, 60), np.geomspace(1, n, 80)
    weighting = TFIDFWeighting(sublinear_tf=sublinear_tf, smooth_idf=smooth_idf, norm=None)
    weights = _weights(weighting, _imagined(n, df=dfs), tfs)
    name = f"{'(1 + ln tf)' if sublinear_tf else 'tf'} · {'(ln((1 + N) / (1 + df)) + 1)' if smooth_idf else 'ln(N / df)'}"

    def draw(figure: Figure) -> str:
        axes = figure.subplots()
        levels = _levels(float(weights.max()))
        filled = axes.contourf(tfs, dfs, weights, levels=levels, cmap="cividis")
        # Without this, viewers of SVG show the page between two neighbouring areas.
        filled.set_edgecolor("face")
        shades = ["white" if level < 0.55 * levels[-1] else "black" for level in levels[1:]]
        lines = axes.contour(tfs, dfs, weights, levels=levels[1:], colors=shades, linewidths=0.6)
        axes.set_yscale("log")
        axes.clabel(lines, fontsize=8, fmt="%g", manual=_along_the_diagonal(tfs, dfs, weights, levels))
        axes.set(xlabel="term frequency tf (occurrences in the document)", ylabel="document frequency df (documents)")
        axes.set_xticks(_whole_ticks(1, tf))
        plain_ticks(axes.yaxis)
        figure.colorbar(filled, label=f"weight {name}", ticks=levels, pad=0.02)
        return f"TF-IDF, {name}, over tf from 1 to {tf} and df from 1 to N = {n:,}, rows not scaled to unit length"

    return drawn(draw, height=3.9)


def bm25(
    index: Index | None = None,
    *,
    variant: str = "lucene",
    k1: float | None = 1.2,
    b: float | None = 0.75,
    delta: float | None = None,
    lengths: Sequence[float] | None = None,
    tf: int = 20,
) -> Plot:
    """The tf part of BM25 over tf, one line for each document length: saturation by `k1`, influence of length by `b`.

    Args:
        index: An index of texts; without one the statistics are those of an imagined collection.
        variant: As for `fontes.lexical.BM25`.
        k1: As for `fontes.lexical.BM25`; None takes the variant's own.
        b: As for `fontes.lexical.BM25`; None takes the variant's own.
        delta: As for `fontes.lexical.BM25`; None takes the variant's own.
        lengths: Document lengths as multiples of the mean length, by default ¼, ½, 1, 2 and 4; with an index by default those
            of its 5th, 25th, 50th, 75th and 95th percentile, in terms.
        tf: The greatest tf.

    Raises:
        ParameterError: A number is out of its range, or there is no such variant.
        MissingExtraError: There is no matplotlib.
    """
    from ..lexical import BM25Weighting

    if tf < 2:
        raise ParameterError(f"the curves need tf from 1 to 2 or more, not {tf}")
    names, statistics = _of_lengths(index, lengths)
    weighting = BM25Weighting.of(variant, k1, b, delta=delta)
    tfs = np.arange(1, tf + 1, dtype=np.float64)
    of_term = weighting.idf(statistics, statistics.df)
    parts = [_weights(weighting, statistics, tfs, doc)[0] / of_term for doc in range(len(names))]
    numbers = [f"k1 = {weighting.k1:g}", f"b = {weighting.b:g}", *([f"delta = {weighting.delta:g}"] if weighting.delta else [])]
    setting = f"BM25 {weighting.variant}, {', '.join(numbers)}"

    def draw(figure: Figure) -> str:
        axes = figure.subplots()
        lines = []
        for number, (part, name) in enumerate(zip(parts, names, strict=True)):
            (line,) = axes.plot(tfs, part, marker="o", markersize=2.4, **look(number))
            lines.append((line, name))
        axes.set_xlim(0, tf)
        axes.set_ylim(0, 1.06 * max(float(part.max()) for part in parts))
        axes.set_xticks(_whole_ticks(0, tf))
        axes.set(xlabel="term frequency tf (occurrences in the document)", ylabel="tf part (weight = idf · tf part)")
        axes.set_title(setting, loc="left")
        label_ends(axes, lines)
        return f"the tf part of {setting}, over tf from 1 to {tf} for documents of different lengths dl"

    return drawn(draw)


def idf(index: Index | None = None, *, documents: int = 1_000, epsilon: float = 0.25) -> Plot:
    """The variants of idf over df: those of BM25 (lucene, robertson, okapi, atire, plus, l) and of TF-IDF (plain, smooth).

    On the left are all df, on the right the common terms, in more than a tenth of the documents, where the variants differ
    most.

    Args:
        index: An index of texts, whose size is N.
        documents: N, without an index.
        epsilon: Okapi's: its idf below 0 becomes epsilon times the mean idf of the vocabulary, that of the index or, without
            one, of a vocabulary by Zipf's law (the term of rank r is in N / r documents).

    Raises:
        ParameterError: A number is out of its range.
        MissingExtraError: There is no matplotlib.
    """
    n = _documents(index, documents)
    if n < 20:
        raise ParameterError(f"the variants of idf are compared over 20 documents or more, not {n}")
    rare, common = np.geomspace(1, n, 241), np.linspace(n / 10, n, 181)
    curves = _idf_curves(index, n, rare, common, epsilon)

    def draw(figure: Figure) -> str:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
        lines = []
        for number, (name, (of_rare, of_common)) in enumerate(curves.items()):
            left.plot(rare, of_rare, **look(number))
            lines += [(line, name) for line in right.plot(100 * common / n, of_common, **look(number))]
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

    return drawn(draw)


def _idf_curves(index: Index | None, n: int, rare: Floats, common: Floats, epsilon: float) -> dict[str, tuple[Floats, Floats]]:
    """By name the idf over the rare and over the common df; names of variants that are the same are joined."""
    from ..lexical import BM25Weighting, Statistics, TFIDFWeighting
    from ..lexical.bm25 import VARIANTS

    # Half of the terms of this vocabulary are in one document, as in many collections.
    statistics = _imagined(n, df=np.ceil(n / np.arange(1, n + 1))) if index is None else Statistics.of(index)
    weightings: dict[str, Any] = {variant: BM25Weighting.of(variant, epsilon=epsilon) for variant in VARIANTS}
    weightings |= {"tf-idf": TFIDFWeighting(), "tf-idf, smooth": TFIDFWeighting(smooth_idf=True)}
    curves: dict[str, tuple[Floats, Floats]] = {}
    for name, weighting in weightings.items():
        own = weighting.idf(statistics, rare), weighting.idf(statistics, common)
        same = next((other for other, curve in curves.items() if np.allclose(curve[0], own[0])), None)
        curves[name if same is None else f"{same} = {name}"] = own if same is None else curves.pop(same)
    return curves


def _of_lengths(index: Index | None, lengths: Sequence[float] | None) -> tuple[list[str], Statistics]:
    """The names of the document lengths, and statistics of a collection that has them as its first documents."""
    one = np.ones(1)
    if index is not None:
        _documents(index, 0)
        avgdl = index.tokens / len(index)
        if lengths is None:
            shares = (5, 25, 50, 75, 95)
            percentiles = np.percentile(index.lengths, shares, method="nearest").astype(np.float64)
            names = [f"dl = {dl:.0f} ({share}th percentile)" for dl, share in zip(percentiles, shares, strict=True)]
            return names, _imagined(DOCUMENTS, df=one, lengths=percentiles, avgdl=avgdl)
    multiples = tuple(LENGTHS if lengths is None else lengths)
    if not multiples or not min(multiples) > 0:
        raise ParameterError(f"document lengths are multiples of the mean length, above 0, not {list(multiples)}")
    avgdl = AVGDL if index is None else avgdl
    names = [f"dl = {length:g} avgdl" if length != 1 else "dl = avgdl" for length in multiples]
    return names, _imagined(DOCUMENTS, df=one, lengths=avgdl * np.array(multiples), avgdl=avgdl)


def _documents(index: Index | None, documents: int) -> int:
    """N. Raises ParameterError for an index of vectors, an empty one, and too small a number."""
    if index is None:
        if documents < 2:
            raise ParameterError(f"a collection to plot has 2 documents or more, not {documents}")
        return documents
    require_terms(index)
    return len(index)


class _Imagined:
    """As much of an index as `Statistics` asks for."""

    def __init__(self, documents: int, df: Floats, lengths: Floats, avgdl: float) -> None:
        self.documents = documents
        self.tokens = documents * avgdl
        self.df = df
        self.lengths = lengths

    def __len__(self) -> int:
        return self.documents


def _imagined(documents: int, df: Floats, lengths: Floats | None = None, avgdl: float = AVGDL) -> Statistics:
    """The statistics of a collection with terms of these df and some documents of these lengths."""
    from ..lexical import Statistics

    return Statistics(_Imagined(documents, df, np.full(1, avgdl) if lengths is None else lengths, avgdl))  # type: ignore[arg-type]


def _weights(weighting: Weighting, statistics: Statistics, tf: Floats, doc: int = 0) -> Floats:
    """The weights of all terms, a row for each, at each tf in one document."""
    from ..lexical import Postings

    terms = np.arange(len(statistics.df))
    df = np.full(len(terms), len(tf))
    # The weightings take any number for tf; postings of an index have whole ones.
    tfs: Any = np.tile(tf, len(terms))
    docs = np.full(len(tfs), doc, dtype=np.int32)
    return weighting.postings(statistics, Postings(terms, df, docs, tfs)).reshape(len(terms), len(tf))


def _levels(highest: float) -> Floats:
    """About ten round steps from 0 up to the highest weight or just above it."""
    step = highest / 10
    size = 10 ** np.floor(np.log10(step))
    step = float(size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= step))
    return np.arange(0, highest + step, step)


def _along_the_diagonal(tfs: Floats, dfs: Floats, weights: Floats, levels: Floats) -> list[tuple[float, float]]:
    """Where each level is crossed on the way from the smallest tf and greatest df to the greatest tf and smallest df."""
    way = np.linspace(0, 1, 400)
    columns = np.rint(way * (len(tfs) - 1)).astype(int)
    rows = np.rint((1 - way) * (len(dfs) - 1)).astype(int)
    crossings = np.searchsorted(weights[rows, columns], levels[1:])
    return [(float(tfs[columns[i]]), float(dfs[rows[i]])) for i in crossings if 8 <= i <= 392]


def _whole_ticks(first: int, last: int) -> list[int]:
    """Whole numbers for an axis, six or fewer after the first."""
    step = next(s for m in (1, 10, 100, 1000, 10_000, 10**9) for s in (m, 2 * m, 5 * m) if (last - first) / s <= 6)
    return sorted({first, *range(step, last + 1, step)})
