"""Plots of models, indexes and pipelines, and tables of results."""

from .indexes import PowerLaw, fit_heaps, fit_zipf, heaps, lengths, zipf
from .models import bm25, idf, tfidf
from .pipelines import pipeline
from .plot import Plot

__all__ = ["Plot", "PowerLaw", "bm25", "fit_heaps", "fit_zipf", "heaps", "idf", "lengths", "pipeline", "tfidf", "zipf"]
