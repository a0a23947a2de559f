"""Measures as objects, and `evaluate`, which applies them to a run."""

from .evaluation import Evaluation, evaluate
from .formulas import (
    AP,
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
from .measure import MEASURES, Measure
from .names import parse

__all__ = [
    "AP",
    "MEASURES",
    "RBP",
    "RR",
    "Bpref",
    "Complete",
    "Evaluation",
    "IPrec",
    "Judged",
    "Measure",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "R",
    "Rprec",
    "SetF",
    "SetP",
    "SetR",
    "Success",
    "evaluate",
    "nDCG",
    "parse",
]
