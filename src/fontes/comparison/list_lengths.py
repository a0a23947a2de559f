"""Runs whose lists end at different lengths, as after `cut(recall=…)`, and the measures that longer lists never lower."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..core.run import Run
from ..measures.measure import Measure

LOWERED = ("SetP", "SetRelP", "SetF", "SetAP", "Judged", "Accuracy", "Compat", "NumQ", "NumRet", "NumRel")
"""Measures that further documents at the end of a list can lower, or that do not measure its quality."""
MUCH_SHORTER = 0.5  # mean length, as a share of the longest


def length_notes(runs: Mapping[str, Run], measures: Iterable[Measure]) -> list[str]:
    """Return a note if lists of a run are cut, or are much shorter than those of another, and a measure rewards longer ones.

    Args:
        runs: Runs by name.
        measures: The measures by which they are compared.

    Returns:
        The note, which names run, lengths and measures; empty if lengths do not matter.
    """
    noted: dict[str, None] = {}
    rewarding = []
    for measure in measures:
        if type(measure).name in LOWERED:
            continue
        lengths = {name: float(np.minimum(np.diff(run.bounds), measure.depth).mean()) for name, run in runs.items() if len(run)}
        longest = max(lengths.values(), default=0.0)
        shorter = [
            name
            for name, length in lengths.items()
            if length < longest and (length < MUCH_SHORTER * longest or runs[name].provenance.get("promises"))
        ]
        if shorter:
            rewarding.append(str(measure))
            noted |= dict.fromkeys(shorter)
    if not noted:
        return []
    means = ", ".join(f"{name} {np.diff(run.bounds).mean():,.1f}" for name, run in runs.items() if len(run))
    verb = "does" if len(rewarding) == 1 else "do"
    return [
        f"{', '.join(noted)}: shorter lists, and {', '.join(rewarding)} {verb} not fall when a list grows; measure SetP, SetR "
        f"and SetF too (documents a topic in the mean: {means})"
    ]
