"""Findings of an audit, and their report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..measures.measure import Measure
from ..plots.tables import EMPTY_CELL, ResultTable, TableReport, json_values

Means: TypeAlias = Mapping[Measure, float]
MAX_NAMED, MAX_LENGTH = 3, 80  # topics or examples named in the text, and characters of each; JSON has all


@dataclass(frozen=True)
class Finding:
    """A line of an audit.

    Args:
        text: The finding, as a sentence without its full stop.
        topics: Ids of the topics concerned.
        scores: The score in other versions, such as "best order", by measure; NaN where a version has no such measure.
        examples: The evidence, such as "q1: d3 (grade 1) = d9 (not judged)".
    """

    text: str
    topics: tuple[str, ...] = ()
    scores: Mapping[str, Means] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = self.examples or self.topics
        shown = [name if len(name) <= MAX_LENGTH else f"{name[:MAX_LENGTH]}…" for name in names[:MAX_NAMED]]
        return f"{self.text}: {', '.join([*shown, *['…'] * (len(names) > MAX_NAMED)])}" if names else self.text


@dataclass(frozen=True, eq=False)
class AuditReport(TableReport, Mapping[str, Finding]):
    """Result of `audit`: a mapping from the name of a line, such as "ties", to its `Finding`.

    `print` shows the scores and the findings, `save` and `to_json` give all topics and examples.

    Args:
        findings: The findings by line.
        topics: Number of judged topics.
        score: The means of the run as it is; empty without a run.
    """

    TITLE = "Audit"
    LABEL = "tab:audit"

    findings: Mapping[str, Finding]
    topics: int
    score: Means

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each version of the score and measure, with the number of topics concerned."""
        return [
            {"line": line, "version": version, "topics": topics, "measure": measure, "value": value}
            for line, version, topics, means in self._versions()
            for measure, value in (means if self.score else {"": math.nan}).items()
        ]

    _rows = rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with None for NaN."""
        lines = {
            name: {
                "finding": finding.text,
                "topics": list(finding.topics),
                "scores": {version: _plain(means) for version, means in finding.scores.items()},
                "examples": list(finding.examples),
            }
            for name, finding in self.findings.items()
        }
        score = _plain(self.score)
        values: dict[str, object] = json_values(
            {"topics": self.topics, "score": score, "lines": lines, "rows": self._plain_rows()}
        )
        return values

    def __getitem__(self, line: str) -> Finding:
        return self.findings[line]

    def __iter__(self) -> Iterator[str]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def _versions(self) -> Iterator[tuple[str, str, int, Means]]:
        """Yield line, version, number of topics and means of each row of the table; without a run, of each line."""
        yield "the score", "as it is" if self.score else "", self.topics, self.score
        for line, finding in self.findings.items():
            for version, means in finding.scores.items():
                yield line, version, len(finding.topics), means
            if not finding.scores and finding.topics:
                yield line, "", len(finding.topics), {}

    def _tables(self) -> Sequence[ResultTable]:
        rows, previous = [], ""
        for line, version, topics, means in self._versions():
            name, count = ("", "") if line == previous else (line, f"{topics:,}")
            rows.append((name, version, count, *(_shown(measure, means) for measure in self.score)))
            previous = line
        caption = f"Audit of a score over {self.topics:,} topics."
        return [ResultTable.of(("line", "version", "topics", *map(str, self.score)), rows, 2, caption=caption)]

    def _notes(self) -> list[str]:
        return [f"{line}: {finding}" for line, finding in self.findings.items()]

    def __repr__(self) -> str:
        concerned = [line for line, finding in self.findings.items() if finding.topics]
        return f"AuditReport({self.topics} topics: {', '.join(concerned) or 'nothing found'})"


def _plain(means: Means) -> dict[str, float]:
    return {str(measure): value for measure, value in means.items()}


def _shown(measure: Measure, means: Means) -> str:
    value = means.get(measure, math.nan)
    return EMPTY_CELL if math.isnan(value) else f"{value:.{0 if measure.summed else 4}f}"
