"""Names of measures, as in ir_measures and trec_eval."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from types import NoneType

from ..core import ParameterError
from ..core.hints import meant
from ..core.tabular import join_with_or
from .measure import MEASURES, Measure
from .ranks import NOT_RETRIEVED

MEASURE_NAME = re.compile(r"\s*(?P<name>\w+)\s*(\((?P<params>.*)\))?\s*(@\s*(?P<cutoff>[^@()]*))?\s*")
COMMA = re.compile(r",(?![^()]{0,200}\))")  # not inside parentheses
DEFAULT = ("nDCG@10", "AP", "R@100")
"""Measures of an evaluation that names none."""
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
"""Measures of ir_measures (in lower case) that need judgments per aspect of a topic, and the nearest one without aspects."""
TREC_NAME = re.compile(r"\s*(?P<name>[A-Za-z_]+)[_.](?P<cutoff>\d+(\.\d+)?)\s*")


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
    trec_match = TREC_NAME.fullmatch(name)
    if trec_match and f"{trec_match['name'].lower()}_k" in MEASURES:
        return _measure_named(f"{trec_match['name']}_K") @ _cutoff(trec_match["cutoff"])
    match = MEASURE_NAME.fullmatch(name)
    if not match:
        raise ParameterError(f"'{name}' is not the name of a measure; write it as in nDCG@10, AP or P(rel=2)@5")
    measure = _measure_named(match["name"])
    if match["params"]:
        measure = measure(**_params(name, match["params"]))
    if match["cutoff"] is not None:
        measure = measure @ _cutoff(match["cutoff"])
    return measure.ready()


def parse_all(measures: str | Measure | Iterable[str | Measure]) -> list[Measure]:
    """Parse one or more measures, in order and without repetitions; a string may hold several, separated by commas.

    Raises ParameterError if there is no measure, or as `parse` does.
    """
    values = [measures] if isinstance(measures, (str, Measure)) else measures
    names = (name for value in values for name in (_split(value) if isinstance(value, str) else [value]))
    parsed = list(dict.fromkeys(parse(name) for name in names))
    if not parsed:
        raise ParameterError("there is no measure; give at least one, such as nDCG@10")
    return parsed


def need_groups(measures: str | Measure | Iterable[str | Measure]) -> bool:
    """Whether a measure depends on evidence sets, so that groups of judgments are read; raises as `parse_all` does."""
    return any(measure.grouped for measure in parse_all(measures))


def _split(names: str) -> list[str]:
    """Split at commas outside parentheses, dropping empty names."""
    return [name for name in COMMA.split(names) if name.strip()]


def _measure_named(name: str) -> Measure:
    """Return the measure with a name or alias, without cutoff; raise ParameterError with the closest names."""
    if name.lower() in NEAREST:
        nearest = NEAREST[name.lower()]
        raise ParameterError(
            f"Fontes has no {name}: it needs judgments of each aspect of a topic, which Qrels do not hold; "
            f"the nearest measure without aspects is {nearest}"
        )
    if name.lower() not in MEASURES:
        raise ParameterError(f"there is no measure '{name}'; {_closest(name)}")
    return MEASURES[name.lower()]()


def _params(name: str, text: str) -> dict[str, object]:
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


def _literal(text: str) -> object:
    """Parse a Python number, string or bool; return other text unchanged."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return text
    return (
        value
        if isinstance(value, (str, float, bool, NoneType)) or (isinstance(value, int) and abs(value) <= NOT_RETRIEVED)
        else text
    )


def _closest(name: str) -> str:
    spellings = MEASURES.items()
    suggestions = {key.removesuffix("_k"): f"{key[:-1]}{cls.example}" for key, cls in spellings if key.endswith("_k")}
    suggestions |= {key: cls.name for key, cls in spellings if not key.endswith("_k")}
    matches = meant(name, suggestions)
    if not matches:
        return f"there are {', '.join(dict.fromkeys(cls.name for _, cls in spellings))}"
    return f"did you mean {join_with_or(list(dict.fromkeys(suggestions[key] for key in matches)))}?"
