"""Names of measures, as in ir_measures and trec_eval."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from types import NoneType
from typing import Any

from ..core import ParameterError
from .measure import MEASURES, Measure
from .ranks import FAR

OURS = re.compile(r"\s*(?P<name>\w+)\s*(\((?P<params>.*)\))?\s*(@\s*(?P<cutoff>[^@()]*))?\s*")
COMMA = re.compile(r",(?![^()]*\))")  # not inside parentheses
DEFAULT = ("nDCG@10", "AP", "R@100")
"""Measures where none are named."""
NEAREST = {
    "err_ia": "ERR",
    "nerr_ia": "ERR",
    "alpha_dcg": "nDCG",
    "alpha_ndcg": "nDCG",
    "α_dcg": "nDCG",
    "α_ndcg": "nDCG",
    "nrbp": "RBP",
    "nnrbp": "RBP",
    "ap_ia": "AP",
    "map_ia": "AP",
    "p_ia": "P",
    "strecall": "R",
}
"""The measures of ir_measures that need judgments of each aspect of a topic, in lower case, and the nearest without aspects."""
TREC = re.compile(r"\s*(?P<name>[A-Za-z_]+)[_.](?P<cutoff>\d+(\.\d+)?)\s*")


def parse(name: str | Measure) -> Measure:
    """Parse the name of a measure.

    Args:
        name: A name of ir_measures or trec_eval, case-insensitive: "nDCG@10", "P(rel=2)@5", "nDCG(dcg='exp-log2')@10",
            "ndcg_cut_10". A measure is returned unchanged.

    Raises:
        ParameterError: The measure is unknown (the message has the closest names), does not have the parameter or cutoff, or
            lacks a required cutoff.
    """
    if isinstance(name, Measure):
        return name.ready()
    trec = TREC.fullmatch(name)
    if trec and f"{trec['name'].lower()}_k" in MEASURES:
        return _of(f"{trec['name']}_K") @ _cutoff(trec["cutoff"])
    ours = OURS.fullmatch(name)
    if not ours:
        raise ParameterError(f"'{name}' is not the name of a measure; write it as in nDCG@10, AP or P(rel=2)@5")
    measure = _of(ours["name"])
    if ours["params"]:
        measure = measure(**_params(name, ours["params"]))
    if ours["cutoff"] is not None:
        measure = measure @ _cutoff(ours["cutoff"])
    return measure.ready()


def parse_all(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """Parse one or more measures, without repetitions, in order; a string may hold several, separated by commas.

    Raises ParameterError if there is none, or `parse` cannot read one.
    """
    each = [measures] if isinstance(measures, (str, Measure)) else measures
    parsed = list(dict.fromkeys(parse(name) for one in each for name in (_split(one) if isinstance(one, str) else [one])))
    if not parsed:
        raise ParameterError("there is no measure; give at least one, such as nDCG@10")
    return parsed


def _split(names: str) -> list[str]:
    """Split at commas outside parentheses, dropping empty names."""
    return [name for name in COMMA.split(names) if name.strip()]


def _of(name: str) -> Measure:
    """Return the measure of a name or alias, without cutoff; ParameterError with the closest names."""
    if name.lower() in NEAREST:
        nearest = NEAREST[name.lower()]
        raise ParameterError(
            f"Fontes has no {name}: it needs judgments of each aspect of a topic, which Qrels do not hold; "
            f"the nearest measure without aspects is {nearest}"
        )
    if name.lower() not in MEASURES:
        raise ParameterError(f"there is no measure '{name}'; {_closest(name)}")
    return MEASURES[name.lower()]()


def _params(name: str, text: str) -> dict[str, Any]:
    """Parse parameters such as "rel=2, dcg='exp-log2'"."""
    params = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ParameterError(f"'{part.strip()}' in '{name}' is no parameter; write it as in P(rel=2)@5")
        params[key.strip()] = _literal(value.strip())
    return params


def _cutoff(text: str) -> float:
    value = _literal(text.strip())
    if isinstance(value, (int, float)):
        return value
    raise ParameterError(f"the cutoff '{text}' is not a number")


def _literal(text: str) -> Any:
    """Parse a Python number, string or bool; return other text unchanged."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text
    return value if isinstance(value, (str, float, bool, NoneType)) or (isinstance(value, int) and abs(value) <= FAR) else text


def _closest(name: str) -> str:
    known = MEASURES.items()
    shown = {key.removesuffix("_k"): f"{key[:-1]}{cls.example}" for key, cls in known if key.endswith("_k")}
    shown |= {key: cls.name for key, cls in known if not key.endswith("_k")}
    close = difflib.get_close_matches(name.lower(), shown, n=3, cutoff=0.5)
    if not close:
        return f"there are {', '.join(dict.fromkeys(cls.name for _, cls in known))}"
    return "did you mean " + " or ".join(dict.fromkeys(shown[key] for key in close)) + "?"
