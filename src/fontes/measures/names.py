"""The names of measures: as ir_measures writes them, and trec_eval's."""

from __future__ import annotations

import ast
import difflib
import re
from typing import Any

from ..core import ParameterError
from .formulas import AP, MEASURES, RR, IPrec, NumRel, NumRelRet, NumRet, P, R, SetF, SetP, SetR, Success, nDCG
from .measure import Measure

ALIASES: dict[str, Measure] = {
    "map": AP,
    "ndcg": nDCG,
    "precision": P,
    "recall": R,
    "mrr": RR,
    "recip_rank": RR,
    "num_ret": NumRet,
    "num_rel": NumRel,
    "num_rel_ret": NumRelRet,
    "set_p": SetP,
    "set_recall": SetR,
    "set_f": SetF,
}
CUT_ALIASES: dict[str, Measure] = {  # with a number after "_" or "."
    "map_cut": AP,
    "ndcg_cut": nDCG,
    "p": P,
    "recall": R,
    "success": Success,
    "iprec_at_recall": IPrec,
}
NAMES: dict[str, Measure] = {measure.name.lower(): measure for measure in MEASURES} | ALIASES

OURS = re.compile(r"\s*(?P<name>\w+)\s*(\((?P<params>.*)\))?\s*(@\s*(?P<cutoff>[^@()]*))?\s*")
TREC = re.compile(r"\s*(?P<name>[A-Za-z_]+)[_.](?P<cutoff>\d+(\.\d+)?)\s*")


def parse(name: str | Measure) -> Measure:
    """The measure of a name, such as "nDCG@10", "P(rel=2)@5", "nDCG(gain='exp')@10" or trec_eval's "ndcg_cut_10".

    Upper and lower case are the same. A measure comes back as it is. Raises ParameterError for an unknown name, with the
    closest ones, for a parameter or cutoff that the measure does not have, and for a measure that lacks the cutoff it needs.
    """
    if isinstance(name, Measure):
        return name.ready()
    trec = TREC.fullmatch(name)
    if trec and trec["name"].lower() in CUT_ALIASES:
        return CUT_ALIASES[trec["name"].lower()] @ _cutoff(trec["cutoff"])
    ours = OURS.fullmatch(name)
    if not ours:
        raise ParameterError(f"'{name}' is not the name of a measure; write it as in nDCG@10, AP or P(rel=2)@5")
    measure = NAMES.get(ours["name"].lower())
    if measure is None:
        raise ParameterError(f"there is no measure '{ours['name']}'; {_closest(ours['name'])}")
    if ours["params"]:
        measure = measure(**_params(name, ours["params"]))
    if ours["cutoff"] is not None:
        measure = measure @ _cutoff(ours["cutoff"])
    return measure.ready()


def _params(name: str, text: str) -> dict[str, Any]:
    """The parameters in `text`, such as "rel=2, gain='exp'"."""
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
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _closest(name: str) -> str:
    shown = {key: measure.name for key, measure in NAMES.items()} | {key: f"{key}_10" for key in ("map_cut", "ndcg_cut")}
    close = difflib.get_close_matches(name.lower(), shown, n=3, cutoff=0.5)
    if not close:
        return f"there are {', '.join(measure.name for measure in MEASURES)}"
    return "did you mean " + " or ".join(dict.fromkeys(shown[key] for key in close)) + "?"
