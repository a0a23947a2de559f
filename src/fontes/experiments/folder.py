"""The folder that results are written into: complete and of one run where it has a lock, and used by one process at a time."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..comparison.report import SUFFIXES
from ..core import InputError
from ..storage.files import write
from ..storage.links import links_in
from ..storage.locks import locked

LOCK = "experiment.lock"
UNFINISHED = "unfinished.json"  # which files are being written, so that the next run can remove those that are not its own
PAGES = (*(f"report{suffix}" for suffix in SUFFIXES), "recipe.md", "recipe.svg")
FOLDERS = ("runs", "indexes", "cache", "models")
RUN = re.compile(r"runs/.+\.run", re.DOTALL)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Makes the folder; no other process writes results into it while the block runs.

    Raises:
        InputError: Another process does, the folder cannot be written, or it holds results of something else.
    """
    busy = InputError(f"{folder}: another process writes results into this folder; wait, or give another one")
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder, busy))
        except OSError as error:
            raise InputError(f"{folder}: cannot be made a folder ({error.strerror or error}); give another one") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{folder}: nothing can be written there (Permission denied); give another folder")
        foreign = [name for name in ("runs", *PAGES) if (folder / name).exists()]
        if foreign and not (folder / LOCK).is_file() and not (folder / UNFINISHED).is_file():
            raise InputError(f"{folder}: holds results that are not of Fontes ({', '.join(foreign)}); give another folder")
        if link := next(_links(folder), None):
            raise InputError(f"{folder}: {link.relative_to(folder)} is a link, which may lead anywhere; give another folder")
        yield


@contextlib.contextmanager
def replacing(folder: Path, files: list[str]) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """What the block writes, `files`, replaces the files of earlier runs into the folder.

    A process that is killed in the block leaves no lock, and a list by which the next one removes what is not its own.

    Yields:
        What writes the lock, as the last file of all.
    """
    before = {*PAGES, *_files(folder / LOCK), *_files(folder / UNFINISHED)}
    write_json(folder / UNFINISHED, {"files": sorted(before | set(files))})
    (folder / LOCK).unlink(missing_ok=True)
    for name in before - set(files):
        path = folder / name
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # where it is empty now

    def finish(lock: Mapping[str, Any]) -> None:
        write_json(folder / LOCK, {**lock, "files": files})
        (folder / UNFINISHED).unlink()

    yield finish


def is_inside(name: str) -> bool:
    """Whether a path, its parts joined by "/", stays in the folder that it starts from."""
    return bool(name) and "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes JSON, keys in order."""
    write(path, [(json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()])


def _links(folder: Path) -> Iterator[Path]:
    """The links among what is written or removed in the folder, which somebody else may have filled."""
    for name in (LOCK, UNFINISHED, *PAGES, *FOLDERS):
        yield from links_in(folder / name)


def _files(path: Path) -> list[str]:
    """The files that a lock or a list names, none where it is damaged; only such as results may consist of."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["files"]
        return [name for name in names if isinstance(name, str) and _is_ours(name)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _is_ours(name: str) -> bool:
    return is_inside(name) and (name in PAGES or RUN.fullmatch(name) is not None)
