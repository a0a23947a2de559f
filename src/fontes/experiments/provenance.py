"""Provenance of results: hashes of data, versions of libraries, facts of the machine, and the lock that holds them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..comparison import Report
from ..core import Doc, InputError, Qrels, Topic, Topics
from ..core.part import indexes_of, walk
from ..core.stage import AnyStage
from ..core.work import cpuinfo
from ..datasets import Dataset
from ..plots.tables import json_values
from ..storage.hashes import hash_file, hash_json

if TYPE_CHECKING:
    from ..index import Index


def hash_of(source: Path, use: str) -> str:
    """Return the SHA-256 of a file or of the files of a folder; an InputError names the file and its `use`."""
    if source.is_dir():
        files = sorted(path for path in source.rglob("*") if path.is_file())
        return hash_json([[path.relative_to(source).as_posix(), hash_of(path, use)] for path in files])
    try:
        return hash_file(source)
    except FileNotFoundError:
        raise InputError(f"{source}: there is no such file ({use})") from None
    except OSError as error:
        raise InputError(f"{source}: cannot be read ({error.strerror or error})") from None


def hash_of_dataset(dataset: Dataset, use: str) -> str:
    """Return the SHA-256 of the judgments (`use` is "qrels" or "machine"), "topics" or documents of a dataset."""
    if use in ("qrels", "machine"):
        return hash_of_qrels(dataset.qrels())
    if use == "topics":
        return hash_of_topics(dataset.topics())
    return hash_of_docs(dataset.corpus)


def hash_of_docs(docs: Iterable[Doc]) -> str:
    """Return the SHA-256 of documents, in order."""
    total = hashlib.sha256()
    for doc in docs:
        total.update(hash_json([doc.id, doc.title, doc.text, dict(doc.metadata)]).encode())
    return total.hexdigest()


def hash_of_topics(topics: Topics) -> str:
    """Return the SHA-256 of topics, in order."""
    return hash_json([topic_facts(topic) for topic in topics.values()])


def hash_of_qrels(qrels: Qrels) -> str:
    """Return the SHA-256 of judgments, in order."""
    return hash_json(list(qrels.rows()))


def topic_facts(topic: Topic) -> dict[str, object]:
    """Return all of a topic as JSON values."""
    query = {} if topic.query is None else {"query": topic.query.to_dict()}
    return {
        "id": topic.id,
        "text": topic.text,
        "narrative": topic.narrative,
        "description": topic.description,
        "turns": [[t.text, t.manual, t.automatic, t.answer, t.answer_id] for t in topic.turns],
        "weights": None if topic.weights is None else {term: float(weight) for term, weight in topic.weights.items()},
        "origin": None if topic.origin is None else topic_facts(topic.origin),
        "metadata": dict(topic.metadata),
        **query,
    }


# Distribution to the module whose import shows that it was used.
LIBRARIES = {
    "numpy": "numpy",
    "numba": "numba",
    "scipy": "scipy",
    "PyStemmer": "Stemmer",
    "ir-datasets": "ir_datasets",
    "nltk": "nltk",
    "simplemma": "simplemma",
    "spacy": "spacy",
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "sentence-transformers": "sentence_transformers",
    "faiss-cpu": "faiss",
    "annoy": "annoy",
    "nupunkt": "nupunkt",
}


def versions() -> dict[str, str]:
    """Return the versions of Fontes, Python and loaded libraries."""
    loaded = {"fontes": version("fontes"), "python": platform.python_version()}
    for name, module in LIBRARIES.items():
        if module in sys.modules:
            loaded[name] = _version(name) or str(getattr(sys.modules[module], "__version__", "unknown"))
    return loaded


@cache
def installed() -> dict[str, str | None]:
    """Return the versions of Python and of all libraries that affect results; None for missing libraries."""
    return {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}


def machine() -> dict[str, object]:
    """Return processor, cores, memory in GB, operating system, and the accelerator in use."""
    facts: dict[str, object] = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
        if hasattr(os, "sysconf")
        else None,
        "system": platform.platform(),
    }
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["accelerator"] = torch.cuda.get_device_name()
    return facts


def processor() -> str:
    """Return the name of the processor."""
    return cpuinfo("model name") or platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


LAYOUT = 2
SHA256 = re.compile("[0-9a-f]{64}")
TOLERANCE = 1e-12  # relative; sums differ in the last digits between processors
TEST_FIGURES = ("difference", "low", "high", "statistic", "p", "corrected", "d_z", "hedges_g", "wins", "ties", "losses")
INDEX_COUNTS = ("documents", "terms", "tokens")
# The parts of a lock that are compared, in this order, and their names in messages.
COMPARED = {
    "data": "data",
    "indexes": "index",
    "models": "models",
    "settings": "file",
    "systems": "system",
    "tests": "test",
    "topics": "topics",
}


@dataclass(frozen=True)
class Difference:
    """A difference from the lock.

    Args:
        what: The path of the value in the lock.
        locked: The locked value, or None.
        now: The present value, or None.
    """

    what: str
    locked: object
    now: object

    def __str__(self) -> str:
        return f"{self.what}: {_format(self.locked)} in the lock, {_format(self.now)} now"


@dataclass(frozen=True)
class Check:
    """Result of running an experiment again.

    Args:
        differences: Data, settings, runs and numbers that differ from the lock; empty if the experiment was reproduced.
        notes: Differing libraries and hardware, which do not count as differences.
        numbers: Count of compared numbers.
    """

    differences: tuple[Difference, ...]
    notes: tuple[Difference, ...]
    numbers: int

    def __bool__(self) -> bool:
        """Whether the experiment was reproduced."""
        return not self.differences

    @classmethod
    def of(cls, locked: Mapping[str, Any], now: Mapping[str, Any]) -> Check:
        """Compare a lock with the lock of a later run."""
        different = [
            difference for key, name in COMPARED.items() for difference in differences(locked.get(key, {}), now[key], name)
        ]
        loaded = locked.get("versions", {})  # the process may have loaded unrelated libraries
        notes = [
            *differences(loaded, {name: now["versions"].get(name) for name in loaded}, "versions"),
            *differences(locked.get("hardware", {}), now["hardware"], "hardware"),
        ]
        return cls(tuple(different), tuple(notes), sum(numbers(now[key]) for key in ("systems", "tests", "topics")))


def lock_of(
    settings: Mapping[str, object],
    data: Mapping[str, object],
    stages: Mapping[str, AnyStage],
    runs: Mapping[str, Mapping[str, object]],
    report: Report | None,
    topics: int,
) -> dict[str, object]:
    """Return the lock of a run, as JSON values.

    Args:
        settings: The parameters of the experiment.
        data: SHA-256 of each piece of data by its use, with its file if any.
        stages: The systems that are stages.
        runs: SHA-256 of the run file and number of documents, by system.
        report: The report; None if nothing was measured.
        topics: The number of topics.
    """
    indexes = {id(index): index for stage in stages.values() for index in indexes_of(stage).values()}
    return {
        "layout": LAYOUT,
        "settings": dict(settings),
        "data": dict(data),
        "indexes": [_index_facts(index) for index in indexes.values()],
        "models": {name: models for name, stage in stages.items() if (models := models_of(stage))},
        "systems": json_values({name: {**run, **_measure_facts(name, report)} for name, run in runs.items()}),
        "tests": {} if report is None else json_values(_test_facts(report)),
        "topics": topics,
        "versions": versions(),
        "hardware": machine(),
    }


def models_of(stage: AnyStage) -> list[str]:
    """Return the fingerprints of the models in a stage, in the order of its parts."""
    fingerprints = (getattr(part, "fingerprint", None) for part in walk(stage))
    return list(dict.fromkeys(fingerprint for fingerprint in fingerprints if isinstance(fingerprint, str)))


def read_lock(path: Path) -> dict[str, Any]:
    """Return the lock at a path; InputError if it is missing or unreadable."""
    try:
        lock = json.loads(path.read_text(encoding="utf-8"))
        layout = lock["layout"]
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such lock; run the experiment without --check first") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: the lock cannot be read ({error}); run the experiment again to make a new one") from None
    if not all(isinstance(lock.get(key, {}), dict) for key in ("versions", "hardware")):
        raise InputError(f"{path}: the lock is damaged; run the experiment again to make a new one")
    if layout != LAYOUT:
        raise InputError(f"{path}: the lock has the layout {layout}, and this Fontes reads {LAYOUT}; run the experiment again")
    return dict(lock)


def differences(locked: object, now: object, what: str = "") -> Iterator[Difference]:
    """Yield the differences of two JSON values by key; numbers are equal up to a relative 1e-12."""
    if isinstance(locked, dict) and isinstance(now, dict):
        for key in [*locked, *(key for key in now if key not in locked)]:
            yield from differences(locked.get(key), now.get(key), f"{what}, {key}" if what else key)
    elif isinstance(locked, list) and isinstance(now, list) and len(locked) == len(now):
        for number, (locked_item, item) in enumerate(zip(locked, now, strict=True), 1):
            yield from differences(locked_item, item, f"{what} {number}")
    elif not _equal(locked, now):
        yield Difference(what, locked, now)


def numbers(value: object) -> int:
    """Count the numbers in a JSON value."""
    if isinstance(value, dict):
        return sum(map(numbers, value.values()))
    if isinstance(value, list):
        return sum(map(numbers, value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def _index_facts(index: Index) -> dict[str, object]:
    facts = index.info()
    return {"fingerprint": index.fingerprint, **{key: facts[key] for key in INDEX_COUNTS if key in facts}}


def _measure_facts(name: str, report: Report | None) -> dict[str, object]:
    if report is None or name not in report.systems:
        return {}
    return {
        "measures": {str(measure): report.mean(name, measure) for measure in report.measures},
        "intervals": {str(measure): list(report.intervals[measure][name]) for measure in report.measures},
    }


def _test_facts(report: Report) -> dict[str, dict[str, object]]:
    tests: dict[str, dict[str, object]] = {}
    for comparison in report.comparisons:
        tests.setdefault(str(comparison.measure), {})[f"{comparison.system} - {comparison.against}"] = {
            key: getattr(comparison, key) for key in TEST_FIGURES
        }
    return tests


def _equal(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-300)
    return bool(a == b and type(a) is type(b))


def _format(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"{value[:12]}…" if SHA256.fullmatch(value) else value
    return json.dumps(value, ensure_ascii=False)
