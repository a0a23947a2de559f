"""Plots of models and indexes."""

from .indexes import PowerLaw, heaps, plot_heaps, plot_lengths, plot_zipf, zipf
from .models import plot_bm25, plot_idf, plot_tfidf
from .plot import Plot

__all__ = [
    "Plot",
    "PowerLaw",
    "heaps",
    "plot_bm25",
    "plot_heaps",
    "plot_idf",
    "plot_lengths",
    "plot_tfidf",
    "plot_zipf",
    "zipf",
]
