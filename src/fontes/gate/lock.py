"""The lock of a baseline: digests of its run, topics and judgments, and the changes accepted since the first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ..core import InputError, Qrels, Run, Topics
from ..experiments.provenance import hash_of_qrels, hash_of_topics
from ..formats.json_text import json_text
from ..measures.measure import Measure
from ..storage.files import reading, write
from .planning import Drift, drift

LAYOUT = 1
FACTS = ("source", "generations", "empty", "tokens", "bytes")


@dataclass(frozen=True)
class Change:
    """An accepted change.

    Args:
        date: The day.
        answer: The answer of the gate.
        because: Why a change was accepted that does not pass; "" for one that passes.
        differences: Candidate minus baseline by measure and topic; empty for the first baseline.
    """

    date: str
    answer: str
    because: str
    differences: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Lock:
    """The content of a lock.

    Args:
        digests: SHA-256 of `run`, `topics` and `qrels`.
        margins: The margins by measure.
        means: The means of the baseline by measure.
        facts: Facts of the run's provenance: source and generations of the index, unanswered topics, tokens, bytes.
        changes: The first baseline, and all accepted changes in order.
    """

    digests: Mapping[str, str]
    margins: Mapping[str, float]
    means: Mapping[str, float]
    facts: Mapping[str, object]
    changes: tuple[Change, ...]

    @classmethod
    def read(cls, path: Path) -> Lock:
        """Read a lock; InputError if it is damaged or of another version."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if values.pop("layout") != LAYOUT:
                raise InputError(f"{path}: the lock is of another version of Fontes; delete it and accept the baseline again")
            return cls(**{**values, "changes": tuple(Change(**change) for change in values["changes"])})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: the lock is damaged ({error}); restore it from version control") from None

    def save(self, path: Path) -> None:
        """Write the lock."""
        write(path, [(json_text({"layout": LAYOUT, **asdict(self)}, ensure_ascii=False, indent=1) + "\n").encode()])

    def differences(self, digests: Mapping[str, str], margins: Mapping[str, float]) -> list[str]:
        """Return what differs now, in words."""
        names = {"run": "the file of the run", "topics": "the topics", "qrels": "the judgments"}
        different = [names[name] for name, digest in digests.items() if self.digests.get(name) != digest]
        return [*different, *(["the margins"] if dict(margins) != dict(self.margins) else [])]

    @property
    def accepted(self) -> int:
        """Number of changes accepted since the first baseline."""
        return len(self.changes) - 1

    def drifts(
        self, now: Mapping[str, Mapping[str, float]], alpha: float, clusters: Mapping[str, Hashable] | None = None
    ) -> dict[str, Drift]:
        """Return the sum of accepted differences and of those of a candidate, by measure; see `drift`."""
        by_measure = {}
        for measure, differences in now.items():
            earlier = [change.differences[measure] for change in self.changes if measure in change.differences]
            by_measure[measure] = drift([*earlier, differences], alpha, clusters)
        return by_measure


def digest_of(run: Path) -> str:
    """Return the SHA-256 of the lines of a run, however its file is compressed and its lines end."""
    digest = hashlib.sha256()
    with reading(run) as file:
        for line in file.lines():
            digest.update(line.rstrip(b"\r\n") + b"\n")
    return digest.hexdigest()


def digests_of(run: Path, topics: Topics, qrels: Qrels) -> dict[str, str]:
    """Return the SHA-256 of a run, and of topics and judgments."""
    return {"run": digest_of(run), "topics": hash_of_topics(topics), "qrels": hash_of_qrels(qrels)}


def facts_of(run: Run) -> dict[str, object]:
    """Return the facts of a run's provenance that a lock keeps."""
    return {name: run.provenance[name] for name in FACTS if name in run.provenance}


def texts_of(margins: Mapping[Measure, float]) -> dict[str, float]:
    """Return margins by the names of the measures."""
    return {str(measure): margin for measure, margin in margins.items()}
