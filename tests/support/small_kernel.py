"""The lexical search with windows, blocks and depths so small that some dozens of documents have many of them."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.compiled_code import CACHE

from fontes.index import build, inversion as postings, postings as inverted, texts as documents
from fontes.lexical import kernel, weighting
from fontes.storage.compiled import load
from fontes.storage.files import write

SMALL = {"BLOCK": 2, "WINDOW": 8, "DEPTHS": (1, 3, 10)}  # in place of 64, 4,096 and 10, 100, 1,000
CHUNKS = (
    (build, "SOME", 4),
    (build, "BATCH", 500),
    (documents, "BLOCK", 200),
    (inverted, "CHUNK", 50),
    (postings, "CHUNK", 40),
    (weighting, "CHUNK", 30),
)


@pytest.fixture(scope="module")
def small_kernel() -> Iterator[None]:
    """The search is compiled with SMALL, in a copy of its module, and all that is done in portions is done in small ones."""
    load()  # or plain functions would be put back in the place of compiled ones
    compiled, large = _copy(), dict(vars(kernel))
    with pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in sys.modules.items() if name.startswith("fontes.")]:
            for name, value in vars(compiled).items():
                if (name in SMALL or callable(value)) and _plain(getattr(module, name, None)) is _plain(large[name]):
                    patch.setattr(module, name, value)
        for module, name, size in CHUNKS:
            assert hasattr(module, name)
            patch.setattr(module, name, size)
        from fontes.lexical import impacts, searching

        assert (impacts.WINDOW, searching.search) == (SMALL["WINDOW"], compiled.search)
        patch.setattr(impacts, "CHUNK", 40)
        patch.setattr(searching, "RESULTS", 20)
        yield


def _plain(value: Any) -> Any:
    """The function of a loop as it was written."""
    return getattr(value, "py_func", value)


def _copy() -> ModuleType:
    """The module of the kernel with small numbers, whose compiled code stays in a folder of the user's cache."""
    source = Path(kernel.__file__).read_text(encoding="utf-8")
    for name, value in SMALL.items():
        source, count = re.subn(rf"^{name} = \S.*?(?=  #|$)", f"{name} = {value}", source, flags=re.MULTILINE)
        assert count == 1
    path = CACHE / "small-kernels" / hashlib.sha256(source.encode()).hexdigest()[:16] / "small_kernel.py"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, [source.encode()])
    name = f"fontes.lexical.{path.stem}"  # from where it imports what it needs
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where Numba looks for what it has compiled
    spec.loader.exec_module(module)
    return module
