"""A paragraph for the working notes, whose figures all come from the locks of the experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..comparison.report_text import p_text
from ..comparison.testing import Testing
from ..plots.tables import latex_text
from .choosing import BASELINE
from .project import TaskProject

Lock = Mapping[str, Any]


def notes_of(project: TaskProject, locks: Mapping[str, Lock], systems: Mapping[str, str], submitted: str, measure: str) -> str:
    """Return the paragraph in LaTeX.

    Args:
        project: The project.
        locks: The lock of each measured side; the first is on held-out topics of the side used for choosing.
        systems: The expression of each system.
        submitted: The submitted system.
        measure: The measure by which systems were chosen.
    """
    chosen_on, *other_sides = locks
    sentences = [
        *_setting(project, locks[chosen_on], chosen_on, measure, systems),
        *_systems(systems, submitted),
        *_results(locks[chosen_on], chosen_on, submitted, measure, held_out=True),
        *(sentence for name in other_sides for sentence in _results(locks[name], name, submitted, measure, held_out=False)),
        _closing(locks, submitted),
    ]
    comment = f"% Written by `fontes task run` from {', '.join(f'results/{name}/experiment.lock' for name in locks)}."
    return f"{comment}\n{' '.join(sentences)}\n"


def _setting(project: TaskProject, lock: Lock, choose: str, measure: str, systems: Mapping[str, str]) -> Iterator[str]:
    count = next((index["documents"] for index in lock["indexes"] if "documents" in index), None)
    over = f" over {count:,} documents" if count is not None else ""
    yield f"For {latex_text(project.task.title)} we built our runs with Fontes {latex_text(lock['versions']['fontes'])}."
    yield f"The baseline is BM25{over}, {_code(systems[BASELINE])}."
    yield (
        f"Parameters and weights of fusion were chosen by {latex_text(measure)} on the {lock['topics']:,} topics of "
        f"{latex_text(choose)}; its figures are from nested cross-validation, in which no topic had a part in what was chosen "
        "for it."
    )


def _systems(systems: Mapping[str, str], submitted: str) -> Iterator[str]:
    listed = [f"{_code(name)} is {_code(text)}" for name, text in systems.items() if name != BASELINE]
    yield f"{_enumerated(listed)}."
    yield f"We submitted {_code(submitted)}."


def _results(lock: Lock, side: str, submitted: str, measure: str, *, held_out: bool) -> Iterator[str]:
    topics = f"held-out topics of {latex_text(side)}" if held_out else f"topics of {latex_text(side)}"
    systems = lock["systems"]
    base, best = systems[BASELINE]["measures"][measure], systems[submitted]["measures"][measure]
    interval = _interval(systems[submitted]["intervals"][measure])
    first = f"On the {lock['topics']:,} {topics}, {_code(BASELINE)} has {latex_text(measure)} {base:.4f}"
    if submitted == BASELINE:
        yield f"{first}{_interval(systems[BASELINE]['intervals'][measure])}."
        return
    test = lock["tests"].get(measure, {}).get(f"{submitted} - {BASELINE}")
    yield f"{first} and {_code(submitted)} {best:.4f}{interval}{_tested(test, lock)}."
    others = {name: systems[name]["measures"][measure] for name in systems if name not in (BASELINE, submitted)}
    if others:
        yield f"The other systems have {_enumerated([f'{_code(name)} {value:.4f}' for name, value in others.items()])}."


def _tested(test: Mapping[str, Any] | None, lock: Lock) -> str:
    if test is None or test["corrected"] is None:
        return ""
    settings = {
        key: value for key, value in lock["settings"].get("report", {}).items() if key in ("test", "correction", "alpha")
    }
    testing = Testing(**settings)
    p = p_text(test["corrected"])
    sign = "" if p.startswith("<") else "="
    return f", a difference of ${test['difference']:+.4f}$ ($p{sign}{p}$, {latex_text(str(testing))})"


def _interval(bounds: list[float | None]) -> str:
    low, high = bounds
    return "" if low is None or high is None else f" (95\\% interval {low:.4f} to {high:.4f})"


def _closing(locks: Mapping[str, Lock], submitted: str) -> str:
    last = list(locks.values())[-1]
    sha256 = last["systems"][submitted]["run"]
    return f"The experiment's lock names the run of {_code(submitted)} by its SHA-256, {sha256[:12]}\\ldots{{}}."


def _code(text: str) -> str:
    return rf"\texttt{{{latex_text(text)}}}"


def _enumerated(parts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else ""
