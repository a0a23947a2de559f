"""The folder that a recipe writes: complete and of one run where it has recipe.json, and used by one process at a time."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core import InputError
from ..storage.files import write
from ..storage.locks import locked

SUMMARY = "recipe.json"
UNFINISHED = "unfinished.json"  # which files are being written, so that the next run can remove those that are not its own
PAGES = ("recipe.md", "report.md", "report.json", "report.html")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Makes the folder; no other process runs a recipe into it meanwhile.

    Raises InputError where another one does, where the folder cannot be written, and where it holds results of something else.
    """
    busy = InputError(f"{folder}: another process runs a recipe into this folder; wait, or give another one")
    with contextlib.ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder, busy))
        except OSError as error:
            raise InputError(f"{folder}: cannot be made a folder ({error.strerror or error}); give another one") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{folder}: nothing can be written there (Permission denied); give another folder")
        foreign = [name for name in ("runs", *PAGES) if (folder / name).exists()]
        if foreign and not (folder / SUMMARY).is_file() and not (folder / UNFINISHED).is_file():
            raise InputError(f"{folder}: holds results that are not a recipe's ({', '.join(foreign)}); give another folder")
        yield


@contextlib.contextmanager
def replacing(folder: Path, files: list[str], summary: Mapping[str, Any]) -> Iterator[None]:
    """What is written inside, `files`, replaces the files of earlier runs into the folder; the summary is written last.

    A process that is killed inside leaves no summary, and a list by which the next one removes what is not its own.
    """
    before = {*PAGES, *_files(folder / SUMMARY), *_files(folder / UNFINISHED)}
    _write(folder / UNFINISHED, {"files": sorted(before | set(files))})
    (folder / SUMMARY).unlink(missing_ok=True)
    for name in before - set(files):
        path = folder / name
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # where it is empty now
    yield
    _write(folder / SUMMARY, {**summary, "files": files})
    (folder / UNFINISHED).unlink()


def _files(path: Path) -> list[str]:
    """The files that a summary or a list names, none where it is damaged; only such as are in the folder."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["files"]
        return [name for name in names if isinstance(name, str) and is_inside(name)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def is_inside(name: str) -> bool:
    """Whether a path, its parts joined by "/", stays in the folder that it starts from."""
    return bool(name) and "\\" not in name and "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


def _write(path: Path, value: Mapping[str, Any]) -> None:
    write(path, [(json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()])
