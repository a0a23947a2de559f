"""The libraries and the machine that an experiment was run with."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Distribution to the module that says whether it was used.
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
    """Versions of Fontes, Python and the libraries that have been loaded."""
    loaded = {"fontes": version("fontes"), "python": platform.python_version()}
    for name, module in LIBRARIES.items():
        if module in sys.modules:
            loaded[name] = _installed(name) or str(getattr(sys.modules[module], "__version__", "unknown"))
    return loaded


@cache
def installed() -> dict[str, str | None]:
    """Versions of Python and of all libraries that results may depend on, loaded or not; None for those that are not there."""
    return {"python": platform.python_version(), **{name: _installed(name) for name in LIBRARIES}}


def machine() -> dict[str, Any]:
    """Processor, cores, memory in GB, operating system, and the accelerator where one is in use."""
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
    """The name of the processor."""
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
