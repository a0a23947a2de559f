"""Evaluation: measures as objects, `evaluate`, which applies them to a run, and `compare`, which puts systems side by side."""

from .comparison import compare
from .curves import plot_bm25, plot_idf, plot_tfidf
from .evaluation import Evaluation, evaluate
from .experiment import Experiment
from .measure import Measure
from .measures import (
    AP,
    MEASURES,
    RBP,
    RR,
    Bpref,
    Complete,
    IPrec,
    Judged,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    Rprec,
    SetF,
    SetP,
    SetR,
    Success,
    nDCG,
)
from .names import parse
from .plots import Plot
from .plots_index import PowerLaw, heaps, plot_heaps, plot_lengths, plot_zipf, zipf
from .report import Comparison, Report, System
from .tuning import tune
from .tuning_result import Tuning
from .weights import Fold, LearnedWeights, fit_weights

__all__ = [
    "AP",
    "MEASURES",
    "RBP",
    "RR",
    "Bpref",
    "Comparison",
    "Complete",
    "Evaluation",
    "Experiment",
    "Fold",
    "IPrec",
    "Judged",
    "LearnedWeights",
    "Measure",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "Plot",
    "PowerLaw",
    "R",
    "Report",
    "Rprec",
    "SetF",
    "SetP",
    "SetR",
    "Success",
    "System",
    "Tuning",
    "compare",
    "evaluate",
    "fit_weights",
    "heaps",
    "nDCG",
    "parse",
    "plot_bm25",
    "plot_heaps",
    "plot_idf",
    "plot_lengths",
    "plot_tfidf",
    "plot_zipf",
    "tune",
    "zipf",
]
