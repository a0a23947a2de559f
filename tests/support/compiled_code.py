"""Compiled code of a run of tests: Numba compiles each loop once, and the next clone takes it over."""

import fcntl
import hashlib
import platform
import shutil
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import platformdirs

import fontes
from fontes.storage import compiled

KEPT = 5  # collections of code that are kept, the newest
PACKAGE = Path(fontes.__file__).resolve().parent


CACHE = platformdirs.user_cache_path("fontes-tests")  # compiled code outlives runs and clones


def compile_once() -> None:
    """Lets one process at a time compile a function; the next one to need it reads its code from disk."""
    locks = CACHE / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    plain = compiled._compiled

    def first(function: compiled.Function, **options: Any) -> Any:
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.dispatcher import Dispatcher

        plain_compile = Dispatcher.compile

        def locked(self: Any, signature: Any) -> Any:
            name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
            with global_compiler_lock, (locks / name).open("w") as file:  # in this order, so that threads cannot deadlock
                fcntl.flock(file, fcntl.LOCK_EX)
                return plain_compile(self, signature)

        Dispatcher.compile = locked
        compiled._compiled = plain
        return plain(function, **options)

    compiled._compiled = first


def take_over() -> None:
    """Copies what a clone with the same loops has compiled, if nothing is compiled here."""
    if not any(PACKAGE.rglob("*.nbi")) and (kept := _kept()).is_dir():
        shutil.copytree(kept, PACKAGE, dirs_exist_ok=True)


def keep() -> None:
    """Keeps what is compiled here for other clones, if it is more than is kept."""
    kept, files = _kept(), [*PACKAGE.rglob("*.nb[ci]")]
    if len(files) <= sum(1 for _ in kept.rglob("*.nb[ci]")):
        return
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(dir=kept.parent))
        for file in files:
            copy = new / file.relative_to(PACKAGE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
        shutil.rmtree(kept, ignore_errors=True)
        new.rename(kept)
        for other in sorted(kept.parent.iterdir(), key=lambda folder: folder.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(other, ignore_errors=True)


def _kept() -> Path:
    """A folder of the user's cache, named after the sources of all loops and what compiles them."""
    digest = hashlib.sha256(f"{platform.machine()} {platform.python_version()} {version('numba')}".encode())
    for file in sorted(PACKAGE.rglob("*.py")):
        if b"storage.compiled import" in (text := file.read_bytes()):
            digest.update(file.relative_to(PACKAGE).as_posix().encode() + text)
    return CACHE / "compiled" / digest.hexdigest()[:16]
