"""Working folder of a training: its identity and checkpoints, from which the same command resumes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ...core.errors import FontesError, InputError
from ...storage.arrays import sync
from ...storage.artifact import commit, staging, umask
from ...storage.system import locked

IDENTITY = "training.json"  # record of the training in a working folder and in a model's folder
STATE = "trainer_state.json"  # written last: a checkpoint without it is incomplete


class CheckpointFolder:
    """An existing folder with the checkpoints of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def facts(self) -> dict[str, Any]:
        """Facts of the folder's training, empty without a training; raises InputError for a damaged file."""
        file = self.folder / IDENTITY
        try:
            facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise InputError(f"{file} is damaged: {error}; remove {self.folder} to begin anew") from None
        return facts

    def record(self, **facts: object) -> None:
        """Write further facts of the training; raise InputError if they cannot be written."""
        draft = self.folder / f".{IDENTITY}"
        try:
            with draft.open("w", encoding="utf-8") as file:
                json.dump({**self.facts, **facts}, file, indent=2)
                sync(file)
            draft.replace(self.folder / IDENTITY)
        except OSError as error:
            raise InputError(f"{self.folder} cannot be written: {error.strerror or error}") from error

    def begin(self, identity: Mapping[str, object], advice: str) -> None:
        """Assign the folder to a training, or check that it belongs to this training.

        Args:
            identity: Identity of the training, as JSON values.
            advice: Advice in the InputError for a folder with another training or other files.
        """
        facts = self.facts
        if not facts:
            other_files = [path.name for path in self.folder.iterdir() if path.name != f".{IDENTITY}"]
            if other_files:
                raise InputError(f"{self.folder} contains other files ({other_files[0]}) and no training; {advice}")
            self.record(identity=identity)
        elif facts.get("identity") != identity:
            difference = _first_difference(facts.get("identity"), identity)
            raise InputError(f"{self.folder} contains another training, with another {difference}; {advice}")

    def checkpoint(self, step: int) -> Path:
        """Return the folder of the checkpoint after a step."""
        return self.folder / f"checkpoint-{step}"

    def last(self) -> int:
        """Return the step of the last complete checkpoint; 0 if there is none."""
        return max((step for step, path in self._checkpoints() if _read_object(path / STATE)), default=0)

    def keep(self, steps: Iterable[int]) -> None:
        """Remove all checkpoints except those after some steps."""
        for step, path in self._checkpoints():
            if step not in steps:
                shutil.rmtree(path, ignore_errors=True)

    def clear(self) -> None:
        """Remove the training, so that another one can begin."""
        self.keep(())
        for path in (self.folder / IDENTITY, self.folder / f".{IDENTITY}"):
            path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder, unless it contains other files."""
        self.clear()
        with suppress(OSError):
            self.folder.rmdir()

    def _checkpoints(self) -> list[tuple[int, Path]]:
        paths = [path for path in self.folder.glob("checkpoint-*") if path.name.rpartition("-")[2].isdecimal()]
        return [(int(path.name.rpartition("-")[2]), path) for path in paths]


@contextmanager
def open_checkpoints(folder: Path) -> Iterator[CheckpointFolder]:
    """Create and lock the working folder of a training; raises FontesError if another process trains there."""
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder, FontesError(f"another process trains in {folder}; wait until it is done")))
        except OSError as error:
            raise InputError(f"{folder} cannot be created: {error.strerror or error}") from None
        yield CheckpointFolder(folder)


def check_output_folder(
    target: Path, overwrite: bool, mark: str = IDENTITY, noun: str = "model trained by Fontes", key: str = "fingerprint"
) -> None:
    """Raise InputError, before training, if a model could not be written to the folder `target`.

    Only a folder with a file `mark`, a JSON object that has the key `key`, is ever overwritten; `noun` describes such a folder
    in the error.
    """
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists already; give another folder, or overwrite it")
    if target.exists() and key not in _read_object(target / mark):
        raise InputError(f"{target} is not a {noun} (it has no {mark} of one), so it is not overwritten; give another folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{target.parent} cannot be created: {error.strerror}") from None
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{target.parent} cannot be written to")


@contextmanager
def new_model_folder(target: Path) -> Iterator[Path]:
    """Create a draft folder, which becomes `target` on success; raise InputError if it cannot be written."""
    try:
        with staging(target) as folder:
            yield folder
            for path in folder.rglob("*"):
                path.chmod((0o777 if path.is_dir() else 0o666) & ~umask())  # safetensors writes for the owner only
            commit(folder, target)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from error


def _read_object(file: Path) -> dict[str, object]:
    with suppress(OSError, ValueError, RecursionError):
        value = json.loads(file.read_text(encoding="utf-8"))
        return value if isinstance(value, dict) else {}
    return {}


def _first_difference(first: object, second: Mapping[str, Any]) -> str:
    """Return the name of the first difference between the identities of two trainings."""
    if not isinstance(first, dict):
        return "form"
    for name in second:
        if first.get(name) != second[name]:
            if isinstance(first.get(name), dict) and isinstance(second[name], dict):
                return _first_difference(first[name], second[name])
            return name
    return "form"
