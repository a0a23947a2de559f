"""Plots of an index: document lengths, Zipf's law and Heaps' law with fitted exponents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arrays import Float64s, Int64s
from ..core.errors import ParameterError
from ..core.registry import provided
from ..core.values import text_of
from ..index.facts import sampled
from .plot import COLOURS, INK, Plot, draw_plot, plain_ticks, require_terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..index import Index

POINTS = 200  # points of a fit and of a drawn curve, evenly spaced on the logarithmic axis
TOKEN_LIMITS = (512, 2048)  # maximum tokens of most encoders, and of encoders of long documents
MIN_FREQUENCY = 10  # occurrences; below, many terms share one frequency and the curve is a staircase
POSTINGS_READ = 1 << 21  # postings read at a time


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

    def __call__(self, x: Float64s) -> Float64s:
        return self.factor * np.asarray(x, dtype=np.float64) ** self.exponent


def fit_zipf(index: Index, first: int = 1, last: int | None = None) -> PowerLaw:
    """Fit Zipf's law (Zipf 1949): collection frequency (cf) of terms over their rank by cf.

    Args:
        index: An index of texts.
        first: First rank of the fit.
        last: Last rank of the fit; by default the rank of the last term that occurs 10 times, or the last rank of all.

    Raises:
        ParameterError: The index holds vectors, or there are fewer than two ranks.
    """
    if last is None:
        last = _last_frequent(index)
    return _fit_power_law(*_ranked_frequencies(index), first, last, "ranks")


def fit_heaps(index: Index, first: int | None = None) -> PowerLaw:
    """Fit Heaps' law (Herdan 1960; Heaps 1978): number of distinct terms over number of tokens.

    Documents are counted in index order, which should be random: the vocabulary of a sorted collection grows in steps.

    Args:
        index: An index of texts.
        first: Least number of tokens of the fit; by default a hundredth of all.

    Raises:
        ParameterError: The index holds vectors, or there are fewer than two documents.
    """
    if first is None:
        first = index.tokens // 100
    return _fit_power_law(*_vocabulary_growth(index), first, index.tokens, "tokens")


def lengths(index: Index, tokenizer: str | Path | None = None) -> Plot:
    """Plot a histogram of document lengths, in terms or in tokens of a model, with mean and median.

    The axis ends at the 99.5th percentile; the plot shows the number of longer documents. For tokens the caption has the shares
    of documents with more than 512 and more than 2,048 tokens, beyond which most encoders do not read.

    Args:
        index: An index of texts.
        tokenizer: Model whose tokens are counted, special ones included: a folder, or a name on the hub. In a collection of
            more than 10,000 documents, 10,000 evenly spaced ones are counted. None: terms of the index.

    Raises:
        ParameterError: The index holds vectors, no terms or, with `tokenizer`, no texts.
        InputError: The tokenizer cannot be found.
        MissingExtraError: matplotlib, or with `tokenizer` a library of the extra `neural`, is missing.
    """
    require_terms(index)
    if tokenizer is None:
        dl, unit = np.asarray(index.lengths, dtype=np.int64), "terms"
        sample = f"{len(index):,} documents"
    else:
        dl, unit = _token_counts(index, tokenizer), "tokens"
        counted = f"{len(dl):,} of {len(index):,}" if len(dl) < len(index) else f"{len(dl):,}"
        sample = f"{counted} documents in tokens of {_tokenizer_name(tokenizer)}"
    mean, median, longest = float(dl.mean()), float(np.median(dl)), int(dl.max())
    end = int(np.ceil(np.percentile(dl, 99.5)))
    bin_width = next(m * size for size in (10**e for e in range(10)) for m in (1, 2, 5) if m * size * 60 >= end)
    edges = np.arange(0, end + bin_width + 1, bin_width) - 0.5
    counts, _ = np.histogram(dl, edges)
    beyond = int(np.count_nonzero(dl > edges[-1]))

    def draw(figure: Figure) -> str:
        from matplotlib.ticker import MaxNLocator

        axes = figure.subplots()
        axes.bar(edges[:-1], counts, width=bin_width, align="edge", color=COLOURS[0], edgecolor="white", linewidth=0.4)
        axes.set_xlim(edges[0], edges[-1])
        top = 1.16 * int(counts.max())
        axes.set_ylim(0, top)
        axes.grid(axis="x", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(9, integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
        bars = "" if bin_width == 1 else f", {bin_width} a bar"
        axes.set(xlabel=f"document length dl ({unit}{bars})" if tokenizer is None else f"tokens{bars}", ylabel="documents")
        _mark_values(axes, sorted([(mean, "mean", "-"), (median, "median", "--")]))
        for limit in TOKEN_LIMITS if tokenizer is not None else ():
            if limit < edges[-1]:
                axes.axvline(limit, color=COLOURS[1], linestyle=":", linewidth=1.2)
                axes.annotate(f"{limit:,}", (limit, 0.8 * top), (4, 0), textcoords="offset points", color=COLOURS[1])
        if beyond:
            text = f"{beyond:,} longer,\nto {longest:,} →"
            axes.annotate(text, (1, 0.12), (-2, 0), xycoords="axes fraction", textcoords="offset points", ha="right")
        shortest = int(dl.min())
        shares = " and ".join(f"{np.mean(dl > limit):.1%} have more than {limit:,}" for limit in TOKEN_LIMITS)
        return (
            f"lengths of {sample}: mean {mean:.1f}, median {median:g} {unit}, "
            f"from {shortest:,} to {longest:,}; {f'{shares}; ' * (tokenizer is not None)}{beyond:,} beyond the axis"
        )

    return draw_plot(draw)


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
    ranks, cf = _ranked_frequencies(index)

    def draw(figure: Figure) -> str:
        axes = figure.subplots()
        formula = f"cf = {_format_factor(law.factor)} · rank$^{{{law.exponent:.2f}}}$"
        _draw_law(axes, ranks, cf, law, formula, "ranks")
        axes.set(xlabel="rank of the term", ylabel="collection frequency cf (occurrences)")
        return _caption("Zipf", "cf", "rank", law, "ranks", f"{len(ranks):,} terms")

    return draw_plot(draw)


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
    tokens, terms = _vocabulary_growth(index)

    def draw(figure: Figure) -> str:
        axes = figure.subplots()
        formula = f"V = {_format_factor(law.factor)} · n$^{{{law.exponent:.2f}}}$"
        _draw_law(axes, tokens, terms, law, formula, "tokens", below=True)
        axes.set(xlabel="tokens n, document after document", ylabel="vocabulary V (different terms)")
        return _caption("Heaps", "V", "n", law, "tokens", f"{len(index):,} documents")

    return draw_plot(draw)


def _token_counts(index: Index, name: str | Path) -> Int64s:
    tokenizer = provided("tokenizer_of")(name)
    counts = [count for docs in sampled(index) for count in tokenizer.counts([text_of(doc) for doc in docs])]
    return np.asarray(counts, dtype=np.int64) + int(tokenizer.special)


def _tokenizer_name(tokenizer: str | Path) -> str:
    """Return the name of a tokenizer for captions: its name on the hub, or the last part of its path."""
    return Path(tokenizer).resolve().name if Path(tokenizer).expanduser().is_dir() else str(tokenizer)


def _ranked_frequencies(index: Index) -> tuple[Float64s, Float64s]:
    """Return the ranks of the terms by collection frequency, from 1, and these frequencies, descending."""
    require_terms(index)
    cf = np.sort(np.asarray(index.cf, dtype=np.float64))[::-1]
    cf = cf[cf > 0]
    return np.arange(1, len(cf) + 1, dtype=np.float64), cf


def _last_frequent(index: Index) -> int:
    """Return the last rank of a term that occurs MIN_FREQUENCY times, or the last rank of all if such terms are few."""
    frequent = int(np.count_nonzero(np.asarray(index.cf) >= MIN_FREQUENCY))
    return frequent if frequent >= MIN_FREQUENCY else len(index.terms)


def _vocabulary_growth(index: Index) -> tuple[Float64s, Float64s]:
    """Return the numbers of tokens and of distinct terms up to and including each non-empty document, in index order."""
    require_terms(index)
    new_terms = np.zeros(len(index), dtype=np.int64)
    df = np.asarray(index.df, dtype=np.int64)
    ends = np.cumsum(df)
    splits = np.searchsorted(ends, np.arange(POSTINGS_READ, int(ends[-1]), POSTINGS_READ))
    for terms in np.split(np.arange(len(df)), splits):
        docs, _ = index.postings(terms)
        # Postings are in document order: a term is new in the document of its first posting.
        new_terms += np.bincount(docs[np.cumsum(df[terms]) - df[terms]], minlength=len(index))
    dl = np.asarray(index.lengths, dtype=np.int64)
    non_empty = dl > 0
    return np.cumsum(dl)[non_empty].astype(np.float64), np.cumsum(new_terms)[non_empty].astype(np.float64)


def _fit_power_law(x: Float64s, y: Float64s, first: int, last: int, unit: str) -> PowerLaw:
    inside = np.flatnonzero((x >= first) & (x <= last))
    if first < 0 or len(inside) < 2:
        raise ParameterError(f"a line needs two points: from {first:,} to {last:,} there are {len(inside)} {unit}")
    chosen = inside[_spaced_points(x[inside])]
    log_x, log_y = np.log(x[chosen]), np.log(y[chosen])
    exponent, offset = np.polyfit(log_x, log_y, 1)
    residuals, variance = log_y - (exponent * log_x + offset), np.var(log_y)
    r2 = float(1 - np.var(residuals) / variance) if variance > 0 else 1.0
    return PowerLaw(float(np.exp(offset)), float(exponent), int(x[chosen[0]]), int(x[chosen[-1]]), r2)


def _spaced_points(x: Float64s) -> Int64s:
    """Return positions of up to POINTS values, evenly spaced in log x; x ascends."""
    return np.unique(np.searchsorted(x, np.geomspace(x[0], x[-1], POINTS) * (1 - 1e-12)).clip(0, len(x) - 1))


def _draw_law(axes: Axes, x: Float64s, y: Float64s, law: PowerLaw, formula: str, unit: str, below: bool = False) -> None:
    points = _spaced_points(x)
    axes.plot(x[points], y[points], ".", color=COLOURS[0], markersize=4)
    ends = np.array([law.first, law.last], dtype=np.float64)
    axes.plot(ends, law(ends), "--", color=COLOURS[1])
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis, axes.yaxis)
    text = f"{formula}\nleast squares, {unit} {law.first:,} to {law.last:,}, R² = {law.r2:.3f}"
    axes.text(0.98, 0.06 if below else 0.94, text, transform=axes.transAxes, ha="right", va="bottom" if below else "top")


def _mark_values(axes: Axes, values: list[tuple[float, str, object]]) -> None:
    """Draw vertical lines at two ascending values, labelled on their outer sides."""
    low, high = axes.get_xlim()
    for (value, name, line), side in zip(values, ("right", "left"), strict=True):
        axes.axvline(value, color=INK, linestyle=line, linewidth=1.2)
        inside = side == "left" or value - low > 0.2 * (high - low)  # whether the name fits between line and axis
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


def _format_factor(factor: float) -> str:
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


def _caption(name: str, y: str, x: str, law: PowerLaw, unit: str, collection: str) -> str:
    return (
        f"{name}: {y} = {law.factor:.4g} · {x}^{law.exponent:.4f} over {collection}; least squares of log {y} on log {x} at "
        f"points evenly spaced in log {x}, {unit} {law.first:,} to {law.last:,} (R² = {law.r2:.4f})"
    )
