"""What `compare` gives: the systems with their runs and values, and the tests between them."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import ParameterError, Qrels, Run, Topics
from ..measures.evaluation import Evaluation
from ..measures.measure import Measure
from ..measures.names import parse
from . import statistics

TESTS = {
    "t": "paired t-test",
    "wilcoxon": "Wilcoxon's signed rank test",
    "fisher": "Fisher's randomisation test",
    "tukey": "Tukey's HSD, topics as blocks",
}
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "none": "no correction"}
PERMUTATIONS = 100_000
RESAMPLES = 10_000
SUFFIXES = {".md": "to_markdown", ".tex": "to_latex", ".csv": "to_csv", ".json": "to_json", ".html": "to_html"}


@dataclass(frozen=True)
class Candidates:
    """What a reranker was given: how many documents a topic at most, and their recall, which it cannot exceed."""

    depth: int
    recall: float


@dataclass(frozen=True)
class System:
    """One of the systems: its run and how good it is.

    `description` is what its stage prints, or its file. `seconds` are those of all its steps, a topic, when they were run, or
    None; `cached` says that this was earlier. `candidates` is there for a pipeline that ends in a reranker.
    """

    name: str
    run: Run
    evaluation: Evaluation
    description: str = ""
    seconds: float | None = None
    candidates: Candidates | None = None
    cached: bool = False


@dataclass(frozen=True)
class Comparison:
    """A system against another, by one measure.

    `difference` is the mean of system minus other, over topics, with its bootstrap interval from `low` to `high`. `p` is of the
    test, `corrected` after the correction; `significant` is corrected <= alpha. NaN stands for what one topic cannot tell, and
    is never significant. `wins` are the topics where `system` is better.
    """

    measure: Measure
    system: str
    against: str
    difference: float
    low: float
    high: float
    statistic: float
    p: float
    corrected: float
    d_z: float
    hedges_g: float
    wins: int
    ties: int
    losses: int
    significant: bool


@dataclass(frozen=True)
class Method:
    """How differences are tested. Raises ParameterError for what is unknown or out of range."""

    test: str = "t"
    correction: str = "holm"
    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.test not in TESTS:
            raise ParameterError(f"unknown test '{self.test}'; there are {', '.join(TESTS)}")
        if self.correction not in CORRECTIONS:
            raise ParameterError(f"unknown correction '{self.correction}'; there are {', '.join(CORRECTIONS)}")
        if self.test == "tukey" and self.correction not in ("holm", "none"):
            raise ParameterError(f"Tukey's test corrects by itself; leave the correction '{self.correction}' out")
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, (int, float)) or not 0 < self.alpha < 1:
            raise ParameterError(f"alpha must lie between 0 and 1, as in 0.05, not {self.alpha!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ParameterError(f"the seed must be a whole number from 0 up, not {self.seed!r}")

    @property
    def applied_correction(self) -> str:
        """The correction after the test."""
        return "none" if self.test == "tukey" else self.correction

    def test_all(
        self, values: Sequence[NDArray[np.float64]], pairs: Sequence[tuple[int, int]], differences: NDArray[np.float64]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The statistic and p of each column of `differences`: of each pair of systems, measure after measure."""
        match self.test:
            case "t":
                return statistics.t_test(differences)
            case "wilcoxon":
                return statistics.wilcoxon(differences)
            case "fisher":
                return statistics.fisher(differences, PERMUTATIONS, self.seed)
        results = [statistics.tukey(of_measure, pairs) for of_measure in values]
        return np.concatenate([q for q, _ in results]), np.concatenate([p for _, p in results])

    def __str__(self) -> str:
        if self.test == "tukey":
            return TESTS[self.test]
        correction = CORRECTIONS[self.correction]
        return f"{TESTS[self.test]}, {correction if self.correction == 'none' else f'{correction} over each measure'}"


@dataclass(frozen=True, eq=False)
class Report:
    """What `compare` gives. `print(report)` shows it; `to_markdown` and so on give it in other forms; `save` writes it.

    systems      name to `System`: run, evaluation, seconds, candidates
    measures     in the order in which they were given
    judged       for each measure that has one, the measure Judged@k that belongs to it
    topics       all judged topics, in the order of the qrels, with their texts where they are known
    qrels        the judgments
    values       for each measure its value, float64, for each topic (row) and system (column); see `per_topic`
    intervals    for each measure and system the bootstrap interval of the mean
    comparisons  a `Comparison` for each measure and pair of systems that was tested
    baseline     the name of the system that the others were tested against, or None where all pairs were
    method       test, correction, alpha and seed
    """

    systems: Mapping[str, System]
    measures: tuple[Measure, ...]
    judged: Mapping[Measure, Measure]
    topics: Topics
    qrels: Qrels
    values: Mapping[Measure, NDArray[np.float64]]
    intervals: Mapping[Measure, Mapping[str, tuple[float, float]]]
    comparisons: tuple[Comparison, ...]
    baseline: str | None
    method: Method

    def mean(self, system: str, measure: str | Measure) -> float:
        """The mean of a system, or the sum for counts."""
        return self.systems[system].evaluation[measure]

    def per_topic(self, measure: str | Measure) -> dict[str, dict[str, float]]:
        """Topic id to system to value. Raises KeyError for a measure that was not compared by."""
        rows = self.values[parse(measure)].tolist()
        return {topic: dict(zip(self.systems, row, strict=True)) for topic, row in zip(self.topics, rows, strict=True)}

    def comparison(self, system: str, against: str, measure: str | Measure) -> Comparison:
        """The test of a system against another. Raises KeyError where there was none, or only the other way round."""
        wanted = parse(measure)
        for one in self.comparisons:
            if (one.measure, one.system, one.against) == (wanted, system, against):
                return one
        raise KeyError((system, against, str(wanted)))

    def best(self, measure: Measure) -> set[str]:
        """The systems with the highest mean as it is shown; none for counts of what there is, and with a single system."""
        if measure.name in ("NumRet", "NumRel", "Judged") or len(self.systems) < 2:
            return set()
        means = {name: round(self.mean(name, measure), 4) for name in self.systems}
        return {name for name, mean in means.items() if mean == max(means.values())}

    def beaten(self, system: str, measure: Measure) -> list[str]:
        """The systems than which this one is significantly better."""
        found = [c for c in self.comparisons if c.measure == measure and c.significant]
        ours = {c.against for c in found if c.system == system and c.difference > 0}
        theirs = {c.system for c in found if c.against == system and c.difference < 0}
        return [name for name in self.systems if name in ours | theirs]

    def to_dict(self) -> dict[str, Any]:
        """All but runs, texts and judgments, as JSON values; None for what is no number."""
        from importlib.metadata import version

        return {
            "fontes": version("fontes"),
            "baseline": self.baseline,
            **asdict(self.method),
            "correction": self.method.applied_correction,
            "permutations": PERMUTATIONS if self.method.test == "fisher" else None,
            "resamples": RESAMPLES,
            "topics": len(self.topics),
            "without_relevant": self._first.irrelevant,
            "measures": [str(m) for m in self.measures],
            "systems": {name: self._system(system) for name, system in self.systems.items()},
            "comparisons": [_plain({**vars(c), "measure": str(c.measure)}) for c in self.comparisons],
            "per_topic": {str(m): {name: s.evaluation.per_topic(m) for name, s in self.systems.items()} for m in self.measures},
        }

    def to_json(self) -> str:
        """`to_dict` in JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def to_csv(self) -> str:
        """One line for each measure, system and test of that system; columns are empty where there is nothing to say."""
        out = io.StringIO()
        lines = [line for m in self.measures for name in self.systems for line in self._lines(m, name)]
        writer = csv.DictWriter(out, list(lines[-1]), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: "" if value is None else value for key, value in line.items()} for line in lines)
        return out.getvalue()

    def to_markdown(self) -> str:
        """Tables in Markdown: means, best ones in bold; then the tests."""
        from .report_text import markdown

        return markdown(self)

    def to_latex(self) -> str:
        """The table of means for a paper, with the rules of booktabs; names are escaped."""
        from .report_text import latex

        return latex(self)

    def to_html(self, *, depth: int = 10, snippet: int = 200) -> str:
        """One page that needs no other file and no network: tables that sort, tests, curves, differences and rankings by topic.

        For each topic and system the page holds the best `depth` documents, and where a run knows its documents the first
        `snippet` characters of each, title included. Beyond 300,000 ranked documents the last topics are without rankings,
        and beyond 3,000,000 characters texts are shorter; the page says so. Raises ParameterError for a depth below 1 or a
        snippet below 0.
        """
        from .report_page import html

        return html(self, depth, snippet)

    def save(self, path: str | Path, form: str | None = None) -> None:
        """Writes the report in a form: "md", "tex", "csv", "json" or "html"; by default the one that the name ends in.

        Raises ParameterError for another form, InputError where the file cannot be written.
        """
        from ..storage.files import plain_name, write

        suffix = Path(plain_name(path)).suffix if form is None else f".{form}"
        if suffix not in SUFFIXES:
            raise ParameterError(f"{path}: the name of a report ends in one of {', '.join(SUFFIXES)}, which says its form")
        text: str = getattr(self, SUFFIXES[suffix])()
        write(path, [text.encode()])

    @property
    def _first(self) -> Evaluation:
        return next(iter(self.systems.values())).evaluation

    def _system(self, system: System) -> dict[str, Any]:
        evaluation = system.evaluation
        return {
            "description": system.description,
            "means": {str(m): evaluation[m] for m in self.measures},
            "intervals": {str(m): _numbers(self.intervals[m][system.name]) for m in self.measures},
            "judged": {str(m): evaluation[j] for m, j in self.judged.items()},
            "missing": evaluation.missing,
            "unjudged": evaluation.unjudged,
            "seconds_per_topic": system.seconds,
            "cached": system.cached,
            "candidates": None if system.candidates is None else asdict(system.candidates),
        }

    def _lines(self, measure: Measure, name: str) -> list[dict[str, Any]]:
        system = self.systems[name]
        low, high = _numbers(self.intervals[measure][name])
        line = {
            "measure": str(measure),
            "system": name,
            "mean": self.mean(name, measure),
            "mean_low": low,
            "mean_high": high,
            "judged": system.evaluation[self.judged[measure]] if measure in self.judged else None,
            "topics": len(self.topics),
            "missing": system.evaluation.missing,
            "seconds_per_topic": system.seconds,
            "candidates_depth": system.candidates.depth if system.candidates else None,
            "candidates_recall": system.candidates.recall if system.candidates else None,
        }
        own = [c for c in self.comparisons if c.measure == measure and c.system == name]
        nothing: dict[str, Any] = dict.fromkeys(f for f in Comparison.__dataclass_fields__ if f not in ("measure", "system"))
        return [{**line, **nothing, **_plain({key: vars(c)[key] for key in nothing})} for c in own] or [{**line, **nothing}]

    def __str__(self) -> str:
        from .report_text import plain

        return plain(self)

    def __rich__(self) -> Any:
        from .report_text import rich

        return rich(self)

    def __repr__(self) -> str:
        return f"Report({', '.join(self.systems)}: {', '.join(map(str, self.measures))})"


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same with None for NaN and infinity."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in facts.items()}


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]
