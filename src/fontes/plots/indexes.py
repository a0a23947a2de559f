"""Plots of an index: document lengths, Zipf's law and Heaps' law with fitted exponents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import ParameterError
from ..core.registry import provided
from ..core.values import text_of
from ..index.facts import sampled
from .plot import COLOURS, INK, Plot, drawn, plain_ticks, require_terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..index import Index

Floats = NDArray[np.float64]
POINTS = 200  # points of a fit and of a drawn curve, evenly spaced on the logarithmic axis
LIMITS = (512, 2048)  # maximum tokens of most encoders, and of encoders of long documents
RARE = 10  # occurrences; below, many terms share one frequency and the curve is a staircase
CHUNK = 1 << 21  # postings read at a time


@dataclass(frozen=True)
class PowerLaw:
    """y = factor · x^exponent, fitted by least squares of log y on log x.

    Fitted to up to 200 points of the curve, evenly spaced in log x, so that each decade counts equally.

    Args:
        factor: The factor.
        exponent: The exponent.
        first: Least x of the fit.
        last: Greatest x of the fit.
        r2: Share of the variance of log y that the line explains, from 0 to 1.
    """

    factor: float
    exponent: float
    first: int
    last: int
    r2: float

    def __call__(self, x: Any) -> Any:
        return self.factor * np.asarray(x, dtype=np.float64) ** self.exponent


def fit_zipf(index: Index, first: int = 1, last: int | None = None) -> PowerLaw:
    """Fit Zipf's law (Zipf 1949): collection frequency (cf) of terms over their rank by cf.

    Args:
        index: An index of texts.
        first: First rank of the fit.
        last: Last rank of the fit; by default that of the last term that occurs 10 times, or else the last rank.

    Raises:
        ParameterError: The index holds vectors, or there are fewer than two ranks.
    """
    return _fitted(*_frequencies(index), first, _last_frequent(index) if last is None else last, "ranks")


def fit_heaps(index: Index, first: int | None = None) -> PowerLaw:
    """Fit Heaps' law (Herdan 1960; Heaps 1978): number of distinct terms over number of tokens.

    Documents count in index order, which should be random: the vocabulary of a sorted collection grows in steps.

    Args:
        index: An index of texts.
        first: Least number of tokens of the fit; by default a hundredth of all.

    Raises:
        ParameterError: The index holds vectors, or there are fewer than two documents.
    """
    return _fitted(*_growth(index), index.tokens // 100 if first is None else first, index.tokens, "tokens")


def lengths(index: Index, tokenizer: str | Path | None = None) -> Plot:
    """Plot a histogram of document lengths, in terms or in tokens of a model, with mean and median.

    The axis ends at the 99.5th percentile; the plot counts the documents beyond. For tokens the caption has the shares of
    documents with more than 512 and more than 2,048, which most encoders do not read.

    Args:
        index: An index of texts.
        tokenizer: Model whose tokens are counted, special ones included: a folder, or a name on the hub. Of more than
            10,000 documents an evenly spaced 10,000. None: terms of the index.

    Raises:
        ParameterError: The index holds vectors, no terms or, with `tokenizer`, no texts.
        InputError: The tokenizer is not there.
        MissingExtraError: matplotlib, or with `tokenizer` a library of the extra `neural`, is missing.
    """
    require_terms(index)
    unit, of = "terms", f"{len(index):,} documents"
    if tokenizer is None:
        dl = np.asarray(index.lengths, dtype=np.int64)
    else:
        dl, unit = _tokens(index, tokenizer), "tokens"
        of = f"{len(dl):,}{f' of {len(index):,}' * (len(dl) < len(index))} documents in tokens of {_named(tokenizer)}"
    mean, median, longest = float(dl.mean()), float(np.median(dl)), int(dl.max())
    end = int(np.ceil(np.percentile(dl, 99.5)))
    width = next(m * size for size in (10**e for e in range(10)) for m in (1, 2, 5) if m * size * 60 >= end)
    edges = np.arange(0, end + width + 1, width) - 0.5
    counts, _ = np.histogram(dl, edges)
    beyond = int(np.count_nonzero(dl > edges[-1]))

    def draw(figure: Figure) -> str:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots()
        axes.bar(edges[:-1], counts, width=width, align="edge", color=COLOURS[0], edgecolor="white", linewidth=0.4)
        axes.set_xlim(edges[0], edges[-1])
        top = 1.16 * int(counts.max())
        axes.set_ylim(0, top)
        axes.grid(axis="x", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
        bars = "" if width == 1 else f", {width} a bar"
        axes.set(xlabel=f"document length dl ({unit}{bars})" if tokenizer is None else f"tokens{bars}", ylabel="documents")
        _mark(axes, sorted([(mean, "mean", "-"), (median, "median", "--")]))
        for limit in LIMITS if tokenizer is not None else ():
            if limit < edges[-1]:
                axes.axvline(limit, color=COLOURS[1], linestyle=":", linewidth=1.2)
                axes.annotate(f"{limit:,}", (limit, 0.8 * top), (4, 0), textcoords="offset points", color=COLOURS[1])
        if beyond:
            text = f"{beyond:,} longer,\nto {longest:,} →"
            axes.annotate(text, (1, 0.12), (-2, 0), xycoords="axes fraction", textcoords="offset points", ha="right")
        shortest = int(dl.min())
        shares = " and ".join(f"{np.mean(dl > limit):.1%} have more than {limit:,}" for limit in LIMITS)
        return (
            f"lengths of {of}: mean {mean:.1f}, median {median:g} {unit}, "
            f"from {shortest:,} to {longest:,}; {f'{shares}; ' * (tokenizer is not None)}{beyond:,} beyond the axis"
        )

    return drawn(draw)


def zipf(index: Index, first: int = 1, last: int | None = None) -> Plot:
    """Plot the frequency of terms over their rank, both logarithmic, with the line of `fit_zipf`.

    Args:
        index: An index of texts.
        first: First rank of the fit.
        last: Last rank of the fit. None: where cf = 10.

    Raises:
        ParameterError: As for `fit_zipf`.
        MissingExtraError: matplotlib is missing.
    """
    law = fit_zipf(index, first, last)
    ranks, cf = _frequencies(index)

    def draw(figure: Figure) -> str:
        axes = figure.subplots()
        _draw_law(axes, ranks, cf, law, f"cf = {_short(law.factor)} · rank$^{{{law.exponent:.2f}}}$", "ranks")
        axes.set(xlabel="rank of the term", ylabel="collection frequency cf (occurrences)")
        return _caption("Zipf", "cf", "rank", law, "ranks", f"{len(ranks):,} terms")

    return drawn(draw)


def heaps(index: Index, first: int | None = None) -> Plot:
    """Plot the vocabulary over the collection size, both logarithmic, with the line of `fit_heaps`.

    Args:
        index: An index of texts.
        first: Least number of tokens of the fit. None: a hundredth of all.

    Raises:
        ParameterError: As for `fit_heaps`.
        MissingExtraError: matplotlib is missing.
    """
    law = fit_heaps(index, first)
    tokens, terms = _growth(index)

    def draw(figure: Figure) -> str:
        axes = figure.subplots()
        _draw_law(axes, tokens, terms, law, f"V = {_short(law.factor)} · n$^{{{law.exponent:.2f}}}$", "tokens", below=True)
        axes.set(xlabel="tokens n, document after document", ylabel="vocabulary V (different terms)")
        return _caption("Heaps", "V", "n", law, "tokens", f"{len(index):,} documents")

    return drawn(draw)


def _tokens(index: Index, name: str | Path) -> NDArray[np.int64]:
    tokenizer = provided("fontes.tokenizers", "model")(name)
    counts = [count for docs in sampled(index) for count in tokenizer.counts([text_of(doc) for doc in docs])]
    return np.asarray(counts, dtype=np.int64) + int(tokenizer.special)


def _named(tokenizer: str | Path) -> str:
    """Name of a tokenizer for captions: a name on the hub, or the last part of a path."""
    return Path(tokenizer).resolve().name if Path(tokenizer).expanduser().is_dir() else str(tokenizer)


def _frequencies(index: Index) -> tuple[Floats, Floats]:
    require_terms(index)
    cf = np.sort(np.asarray(index.cf, dtype=np.float64))[::-1]
    cf = cf[cf > 0]
    return np.arange(1, len(cf) + 1, dtype=np.float64), cf


def _last_frequent(index: Index) -> int:
    frequent = int(np.count_nonzero(np.asarray(index.cf) >= RARE))
    return frequent if frequent >= RARE else len(index.terms)


def _growth(index: Index) -> tuple[Floats, Floats]:
    require_terms(index)
    new = np.zeros(len(index), dtype=np.int64)
    df = np.asarray(index.df, dtype=np.int64)
    ends = np.cumsum(df)
    for terms in np.split(np.arange(len(df)), np.searchsorted(ends, np.arange(CHUNK, int(ends[-1]), CHUNK))):
        docs, _ = index.postings(terms)
        # Postings are in document order: a term is new in the document of its first posting.
        new += np.bincount(docs[np.cumsum(df[terms]) - df[terms]], minlength=len(index))
    dl = np.asarray(index.lengths, dtype=np.int64)
    filled = dl > 0
    return np.cumsum(dl)[filled].astype(np.float64), np.cumsum(new)[filled].astype(np.float64)


def _fitted(x: Floats, y: Floats, first: int, last: int, unit: str) -> PowerLaw:
    inside = np.flatnonzero((x >= first) & (x <= last))
    if first < 0 or len(inside) < 2:
        raise ParameterError(f"a line needs two points: from {first:,} to {last:,} there are {len(inside)} {unit}")
    chosen = inside[_spaced(x[inside])]
    log_x, log_y = np.log(x[chosen]), np.log(y[chosen])
    exponent, offset = np.polyfit(log_x, log_y, 1)
    rest, variance = log_y - (exponent * log_x + offset), np.var(log_y)
    r2 = float(1 - np.var(rest) / variance) if variance > 0 else 1.0
    return PowerLaw(float(np.exp(offset)), float(exponent), int(x[chosen[0]]), int(x[chosen[-1]]), r2)


def _spaced(x: Floats) -> NDArray[np.int64]:
    """Positions of up to POINTS values, evenly spaced in log x; x ascends."""
    return np.unique(np.searchsorted(x, np.geomspace(x[0], x[-1], POINTS) * (1 - 1e-12)).clip(0, len(x) - 1))


def _draw_law(axes: Axes, x: Floats, y: Floats, law: PowerLaw, formula: str, unit: str, below: bool = False) -> None:
    shown = _spaced(x)
    axes.plot(x[shown], y[shown], ".", color=COLOURS[0], markersize=4)
    ends = np.array([law.first, law.last], dtype=np.float64)
    axes.plot(ends, law(ends), "--", color=COLOURS[1])
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis, axes.yaxis)
    text = f"{formula}\nleast squares, {unit} {law.first:,} to {law.last:,}, R² = {law.r2:.3f}"
    axes.text(0.98, 0.06 if below else 0.94, text, transform=axes.transAxes, ha="right", va="bottom" if below else "top")


def _mark(axes: Axes, values: list[tuple[float, str, Any]]) -> None:
    """Vertical lines at two ascending values, labelled on their outer sides."""
    low, high = axes.get_xlim()
    for (value, name, line), side in zip(values, ("right", "left"), strict=True):
        axes.axvline(value, color=INK, linestyle=line, linewidth=1.2)
        inside = side == "left" or value - low > 0.2 * (high - low)  # if the name fits between line and axis
        offset = (-4 if side == "right" and inside else 4, -1 if inside else -14)
        text = f"{name} {value:.1f}".removesuffix(".0")
        axes.annotate(
            text,
            (value, axes.get_ylim()[1]),
            offset,
            textcoords="offset points",
            ha=side if inside else "left",
            va="top",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
        )


def _short(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def _caption(name: str, y: str, x: str, law: PowerLaw, unit: str, of: str) -> str:
    return (
        f"{name}: {y} = {law.factor:.4g} · {x}^{law.exponent:.4f} over {of}; least squares of log {y} on log {x} at points "
        f"evenly spaced in log {x}, {unit} {law.first:,} to {law.last:,} (R² = {law.r2:.4f})"
    )
