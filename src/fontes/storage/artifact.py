"""Artifacts: folders that appear atomically, each described by one JSON file.

`staging` and `drafting` yield a folder beside the final path; `seal` records settings, file sizes and SHA-256 hashes;
`commit` moves the folder to its path; `Artifact` opens and checks it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..core.errors import FontesError, IndexFormatError
from .arrays import Arrays, sync, unreadable
from .files import refuse_links, write
from .hashes import hash_file, hash_json
from .system import exchange, is_at, locked, sync_file, sync_folder, uninterrupted
from .threads import pool_of

META = "artifact.json"  # the file with the metadata
SYNCS = 4  # files that are flushed at the same time
LABEL = "name"  # setting with a user's name for an artifact; no part of its digest
FileTable = dict[str, dict[str, Any]]
T = TypeVar("T")
_BUSY = FontesError("the folder is in use")


@dataclass(frozen=True)
class ArtifactKind:
    """Kind of artifact.

    Args:
        format: Format name in the metadata.
        version: Format version that this Fontes reads and writes.
        noun: Name of the content in messages.
        remedy: Advice in error messages.
        older: Format versions that this Fontes reads, but does not write.
    """

    format: str
    version: int
    noun: str
    remedy: str
    older: tuple[int, ...] = ()


ANY = ArtifactKind("", 0, "files", "make them again with overwrite=True (--overwrite)")
"""Artifacts of every format and version."""


class Artifact:
    """Open artifact with verified metadata and file sizes.

    Attributes:
        folder: Folder of the artifact.
        meta: Metadata: format, version, settings, files and digest.
        files: Size in bytes and SHA-256 of each file, by name.
        digest: SHA-256 of settings and files.
        arrays: Arrays, checked when opened.

    Raises:
        IndexFormatError: The metadata or a file is missing or damaged, or the format version differs.
    """

    def __init__(self, folder: Path, kind: ArtifactKind) -> None:
        self.folder = folder
        self._kind = kind
        self.meta = read_meta(folder, kind)
        self.files: FileTable = self.meta["files"]
        self.digest: str = self.meta["digest"]
        self.arrays = Arrays(folder, kind.remedy)
        self._refuse(wrong_size(folder, self.files))

    def __contains__(self, name: object) -> bool:
        return f"{name}.npy" in self.files

    def fact(self, name: str, kind: type[T]) -> T:
        """Return a setting; raise IndexFormatError if it is missing or of another type."""
        value = self.meta.get(name)
        if type(value) is not kind:
            raise self.damaged(f"{self.folder / META} has no valid {name}")
        return value

    def damaged(self, problem: str) -> IndexFormatError:
        """Return an error with the kind's remedy."""
        return IndexFormatError(f"{problem}; {self._kind.remedy}")

    @property
    def bytes(self) -> int:
        """Total size of the files in bytes."""
        return sum(int(file["bytes"]) for file in self.files.values())

    def check(self) -> None:
        """Verify the hash of every file; raise IndexFormatError on a mismatch."""
        self._refuse(changed(self.folder, self.files))

    def _refuse(self, problem: str | None) -> None:
        if problem is not None:
            raise self.damaged(problem)


def read_meta(folder: Path, kind: ArtifactKind) -> dict[str, Any]:
    """Read the metadata of an artifact. Raises IndexFormatError as `read_description` does."""
    return read_description(folder / META, kind, lambda meta: meta["digest"] == _digest(meta) and is_table(meta["files"]))


def read_description(file: Path, kind: ArtifactKind, is_sound: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Read the JSON file that describes a folder, of this format and version.

    `is_sound` checks its contents; it may raise ValueError, KeyError, TypeError or AttributeError. Raises IndexFormatError if
    the file is missing or damaged, or of another format or version.
    """
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        name, version = facts["format"], facts["version"]
        is_expected = kind is ANY or (name == kind.format and version in (kind.version, *kind.older))
        if not isinstance(version, int) or (is_expected and not is_sound(facts)):
            raise ValueError
    except OSError as error:
        raise unreadable(file, error, f"cannot be read; {kind.remedy}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IndexFormatError(f"{file} is damaged; {kind.remedy}") from error
    if is_expected:
        return facts
    if name != kind.format:
        raise IndexFormatError(f"{file.parent} has no {kind.noun} of Fontes: its format is '{name}'; {kind.remedy}")
    age, remedy = ("newer", f"upgrade Fontes, or {kind.remedy}") if version > kind.version else ("older", kind.remedy)
    raise IndexFormatError(
        f"{file.parent} has {kind.noun} of the format {version}, {age} than the {kind.version} that this Fontes reads; {remedy}"
    )


def read_settings(folder: Path) -> dict[str, Any]:
    """Return settings and size of an artifact of any kind; empty if its metadata are missing or damaged."""
    with suppress(IndexFormatError):
        artifact = Artifact(folder, ANY)
        return {**settings(artifact.meta), "bytes": artifact.bytes}
    return {}


def check_folder(folder: Path) -> None:
    """Verify every file of an artifact of any kind; raise IndexFormatError on a mismatch."""
    Artifact(folder, ANY).check()


def facts_of(meta: Mapping[str, object], names: Sequence[str]) -> dict[str, Any]:
    """Return settings of an artifact's metadata, None for missing ones, and its label if it has one."""
    labelled = {LABEL: meta[LABEL]} if LABEL in meta else {}
    return {**{name: meta.get(name) for name in names}, **labelled}


def settings(meta: Mapping[str, object]) -> dict[str, object]:
    """Return the settings in an artifact's metadata."""
    return {key: value for key, value in meta.items() if key not in ("format", "version", "files", "digest")}


def seal(folder: Path, kind: ArtifactKind, facts: Mapping[str, object], pattern: str = "*") -> None:
    """Write the metadata of a folder to disk: the settings `facts`, and its complete files that match `pattern`."""
    meta = {"format": kind.format, "version": kind.version, **facts, "files": file_table(folder, pattern, META)}
    with (folder / META).open("w", encoding="utf-8") as file:
        json.dump({**meta, "digest": _digest(meta)}, file, indent=1, ensure_ascii=False)
        sync(file)
    sync_folder(folder)


def reseal(folder: Path, kind: ArtifactKind, changes: Mapping[str, object]) -> None:
    """Change settings of an artifact in place, atomically; a value of None removes one.

    Raises:
        IndexFormatError: The metadata are missing or damaged.
        InputError: The metadata cannot be written.
    """
    meta = {
        key: value for key, value in {**read_meta(folder, kind), **changes}.items() if value is not None or key not in changes
    }
    meta["digest"] = _digest(meta)
    write(folder / META, [json.dumps(meta, indent=1, ensure_ascii=False).encode()])


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside `target`, removed on exit unless committed.

    Several processes may stage the same target. Folders of killed processes are removed.

    Raises:
        OSError: The folder cannot be created or written.
    """
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = None
    try:
        with ExitStack() as stack:
            with locked(target.parent):
                _remove_leftovers(target)
                with uninterrupted():
                    folder = Path(tempfile.mkdtemp(prefix=_staging_prefix(target), dir=target.parent))
                    stack.enter_context(locked(folder, _BUSY))
            yield folder
    finally:
        if folder is not None:
            with uninterrupted():
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def drafting(target: Path, busy: FontesError) -> Iterator[Path]:
    """Yield the single draft folder beside `target`; it survives a kill, so that work can resume.

    Args:
        target: Final path of the artifact.
        busy: Error raised if another process or thread holds the draft.

    Raises:
        OSError: The draft cannot be created.
        FontesError: A symbolic link is in the way.
    """
    draft = target.with_name(f".{target.name}")
    with ExitStack() as stack:
        while True:
            refuse_links(draft)
            if not target.parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
            with suppress(FileNotFoundError), uninterrupted():
                with suppress(FileExistsError):
                    draft.mkdir()
                handle = stack.enter_context(locked(draft, busy))
                if is_at(handle, draft):  # otherwise another process has just committed it
                    stack.callback(_remove_empty, handle, draft)
                    break
            stack.close()
        with locked(target.parent):
            _remove_leftovers(target)
        yield draft


def commit(folder: Path, target: Path) -> None:
    """Move a finished folder to `target` atomically, replacing any folder or symbolic link there."""
    with uninterrupted(target), locked(target.parent):
        folder.chmod(0o777 & ~umask())
        if os.path.lexists(target):
            old = _swap_in(folder, target)
            if old.is_symlink():
                old.unlink()
            shutil.rmtree(old, ignore_errors=True)
        else:
            folder.rename(target)
        sync_folder(target.parent)


def file_table(folder: Path, pattern: str = "*", without: str = "") -> FileTable:
    """Flush the files matching a pattern to disk, except the file `without`; return size and SHA-256 of each, by name."""
    files = sorted(file for file in folder.glob(pattern) if file.name != without)
    with pool_of(SYNCS) as pool:
        syncs = [pool.submit(sync_file, file) for file in files]
        table: FileTable = {file.name: {"bytes": file.stat().st_size, "sha256": hash_file(file)} for file in files}
        for sync_of_file in syncs:
            sync_of_file.result()
    return table


def is_table(files: object) -> bool:
    """Whether a value has the form returned by `file_table`."""
    return isinstance(files, dict) and all(
        is_plain(name) and isinstance(file, dict) and isinstance(file.get("bytes"), int) and isinstance(file.get("sha256"), str)
        for name, file in files.items()
    )


def is_plain(name: object) -> bool:
    """Whether a value is a file name without folders."""
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"}


def wrong_size(folder: Path, files: FileTable) -> str | None:
    """Describe the first file that is missing, not regular or of the wrong size; None if there is none."""
    if folder.is_symlink():
        return f"{folder} is a link to another place"
    for name, expected in files.items():
        try:
            status = (folder / name).lstat()
        except OSError:
            return f"{folder / name} is missing"
        if not stat.S_ISREG(status.st_mode):
            return f"{folder / name} is no plain file"
        if status.st_size != expected["bytes"]:
            return f"{folder / name} has {status.st_size} bytes instead of {expected['bytes']}"
    return None


def changed(folder: Path, files: FileTable) -> str | None:
    """Describe the first file whose content has changed; None if there is none."""
    for name, expected in files.items():
        try:
            if hash_file(folder / name) != expected["sha256"]:
                return f"{folder / name} has changed"
        except OSError as error:
            return f"{folder / name} cannot be read ({error.strerror})"
    return None


def umask() -> int:
    """Return the process's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _digest(meta: Mapping[str, object]) -> str:
    settings = {key: value for key, value in meta.items() if key not in ("files", "digest", LABEL)}
    return hash_json([settings, meta["files"]])


def _remove_empty(handle: int, draft: Path) -> None:
    with uninterrupted(), suppress(OSError):
        if is_at(handle, draft):
            draft.rmdir()


def _swap_in(folder: Path, target: Path) -> Path:
    """Replace the folder `target` by `folder`, and return the new path of the old one. Atomic on Linux only."""
    temporary = Path(tempfile.mkdtemp(prefix=_staging_prefix(target), dir=target.parent))
    folder.rename(temporary)
    if exchange(temporary, target):
        return temporary
    old = Path(tempfile.mkdtemp(prefix=_staging_prefix(target), dir=target.parent))
    target.rename(old)
    temporary.rename(target)
    return old


def _staging_prefix(target: Path) -> str:
    return f".{target.name}.building-"


def _remove_leftovers(target: Path) -> None:
    """Remove staged folders of killed processes: those with a free lock."""
    for staged in target.parent.iterdir():
        if staged.name.startswith(_staging_prefix(target)):
            with suppress(OSError, FontesError), locked(staged, _BUSY):
                shutil.rmtree(staged, ignore_errors=True)
