"""Scores as probabilities, and promises: calibrated pipelines, cuts with guarantees, topics without an answer."""

from .held_out import PROMISES, HeldOutTopics, Promise, least_units, promises_of, refused
from .maps import ProbabilityMap
from .model import Calibration
from .reliability import Reliability, ReliabilityBin, reliability
from .stages import Abstain, Calibrated, PromisedCut

__all__ = [
    "PROMISES",
    "Abstain",
    "Calibrated",
    "Calibration",
    "HeldOutTopics",
    "ProbabilityMap",
    "Promise",
    "PromisedCut",
    "Reliability",
    "ReliabilityBin",
    "least_units",
    "promises_of",
    "refused",
    "reliability",
]
