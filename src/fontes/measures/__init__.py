"""Effectiveness measures, and `evaluate`, which applies them to a run."""

from .browsing import BPM, ERR, INSQ, INST, NERR8, NERR9, NERR10, NERR11, SDCG
from .evaluation import Evaluation, evaluate
from .formulas import AP, RBP, RR, Accuracy, Bpref, Compat, IPrec, Judged, P, R, Rprec, Success, infAP, nDCG
from .measure import MEASURES, Measure
from .names import DEFAULT, parse
from .sets import Complete, NumQ, NumRel, NumRelRet, NumRet, SetAP, SetF, SetP, SetR, SetRelP

__all__ = [
    "AP",
    "BPM",
    "DEFAULT",
    "ERR",
    "INSQ",
    "INST",
    "MEASURES",
    "NERR8",
    "NERR9",
    "NERR10",
    "NERR11",
    "RBP",
    "RR",
    "SDCG",
    "Accuracy",
    "Bpref",
    "Compat",
    "Complete",
    "Evaluation",
    "IPrec",
    "Judged",
    "Measure",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "R",
    "Rprec",
    "SetAP",
    "SetF",
    "SetP",
    "SetR",
    "SetRelP",
    "Success",
    "evaluate",
    "infAP",
    "nDCG",
    "parse",
]
