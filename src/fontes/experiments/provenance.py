"""Provenance of results: hashes of data, library versions and facts of the machine."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ..core import Doc, InputError, Qrels, Topic, Topics
from ..datasets import Dataset
from ..storage.hashes import hash_file, hash_json


def hash_of(source: Path, use: str) -> str:
    """Return the SHA-256 of a file or of a folder's files.

    Raises:
        InputError: It cannot be read; the message names `use`.
    """
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
    """Return the SHA-256 of a collection's qrels, topics or documents, by `use`."""
    if use == "qrels":
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


def topic_facts(topic: Topic) -> dict[str, Any]:
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
            loaded[name] = _installed(name) or str(getattr(sys.modules[module], "__version__", "unknown"))
    return loaded


@cache
def installed() -> dict[str, str | None]:
    """Return the versions of Python and all libraries that affect results; None for missing ones."""
    return {"python": platform.python_version(), **{name: _installed(name) for name in LIBRARIES}}


def machine() -> dict[str, Any]:
    """Return processor, cores, memory in GB, operating system, and the accelerator in use."""
    facts = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
        if hasattr(os, "sysconf")
        else None,
        "system": platform.platform(),
    }
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["accelerator"] = torch.cuda.get_device_name()
    return facts


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
