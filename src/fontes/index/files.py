"""Files of an index: the manifest, checks of the listed files, and the atomic commit of a build."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..core.errors import FontesError, IndexFormatError, InputError
from ..storage.arrays import REMEDY, sync
from ..storage.artifact import (
    ArtifactKind,
    FileTable,
    changed,
    file_table,
    is_table,
    read_description,
    read_settings,
    staging,
    umask,
    wrong_size,
)
from ..storage.files import as_path
from ..storage.hashes import hash_json
from ..storage.remote import address_of
from ..storage.system import locked, sync_folder, uninterrupted
from .columns.schema import Schema

FOLDER = re.compile(r"([a-z]\w*)-[0-9a-f]{16}(-\w+)*")  # of a component encoded after the build
FILE = re.compile(r"([a-z]\w*)\..*npy")  # of a component built with the documents
POSTINGS_FILES = {"doc_ids", "doc_lengths", "terms", "df", "cf"}  # prefixes of files without the name of a component
DELETIONS = "deleted"  # prefix of folders that belong to no component
FORMAT = "fontes-index"
VERSION = 4
OLDER = (2, 3)  # versions that are read too; a merge writes them anew
KIND = ArtifactKind(FORMAT, VERSION, "an index", REMEDY, OLDER)


@cache
def writer_facts() -> Mapping[str, object]:
    """Format and version in the manifest of every index that this version of Fontes writes; its number is read once."""
    return MappingProxyType({"format": FORMAT, "version": VERSION, "fontes": version("fontes")})


MANIFEST = "manifest.json"
SEGMENT = "segment"
SEGMENT_NAME = re.compile(rf"{SEGMENT}-[0-9a-f]{{16}}(-\d+)?")
DELETED = "deleted"
DELETED_NAME = re.compile(rf"{DELETED}-[0-9a-f]{{16}}")
WRITER = "writer"
DRAFT_OF_WRITER = f".{WRITER}"  # draft of the only writer
COUNTS = ("documents", "terms", "postings", "tokens")  # in a segment's entry
DELETED_COUNTS = ("documents", "postings", "tokens")  # in the entry of a segment's deletions


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of the index at `path`; raise IndexFormatError if there is none that this version can read."""
    if not path.exists():
        raise IndexFormatError(f"{path} does not exist; fontes index CORPUS -o {shlex.quote(str(path))} makes an index")
    if not (path / MANIFEST).is_file():
        raise IndexFormatError(f"{path} is not an index: it has no {MANIFEST}; fontes index CORPUS -o DIR makes one")
    return read_description(path / MANIFEST, KIND, _is_manifest)


def _is_manifest(manifest: dict[str, Any]) -> bool:
    names = [segment["name"] for segment in manifest["segments"]]
    Schema.read(manifest["columns"])
    if "ciff" in manifest:
        from ..formats.ciff import header_of

        header_of(manifest["ciff"])
    return (
        manifest["fingerprint"] == _fingerprint(manifest)
        and all(map(_is_segment, manifest["segments"]))
        and len(set(names)) == len(names)
        and _has_valid_settings(manifest)
        and _has_valid_shards(manifest)
    )


def _is_segment(segment: dict[str, Any]) -> bool:
    deleted = segment["deleted"]
    return _is_entry(segment, SEGMENT_NAME, COUNTS) and (
        deleted is None
        or (_is_entry(deleted, DELETED_NAME, DELETED_COUNTS) and all(deleted[name] <= segment[name] for name in DELETED_COUNTS))
    )


def _is_entry(entry: dict[str, Any], pattern: re.Pattern[str], counts: Iterable[str]) -> bool:
    is_named = pattern.fullmatch(entry["name"]) is not None and is_table(entry["files"])
    return is_named and all(type(entry[name]) is int and entry[name] >= 0 for name in counts)


def _has_valid_settings(manifest: dict[str, Any]) -> bool:
    fields, scale = manifest["fields"], manifest["scale"]
    return (
        isinstance(manifest["analyzer"], dict)
        and isinstance(manifest["fontes"], str)
        and isinstance(fields, list)
        and all(isinstance(field, str) for field in (*fields, *manifest.get("components", ())))
        and (scale is None or (type(scale) in (int, float) and len(fields) == 1 and 0 < scale < math.inf))
    )


def _has_valid_shards(manifest: dict[str, Any]) -> bool:
    if "shards" not in manifest:
        return True
    shards = manifest["shards"]
    return (
        type(shards) is int
        and shards > 0
        and all(type(segment["shard"]) is int and 0 <= segment["shard"] < shards for segment in manifest["segments"])
    )


def shard_of(segment: dict[str, Any]) -> int:
    """Return the shard in a segment's entry; 0 without shards."""
    return int(segment.get("shard", 0))


def manifest_file(path: Path) -> tuple[int, int] | None:
    """Identity of the manifest's file, which changes when it is replaced; None if there is none."""
    try:
        facts = (path / MANIFEST).stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns


def check_sizes(path: Path, manifest: dict[str, object]) -> None:
    """Raise IndexFormatError unless each file of the manifest exists and has its full length."""
    _check_files(path, manifest, wrong_size)


def check_contents(path: Path, manifest: dict[str, object]) -> None:
    """Raise IndexFormatError unless each file of the manifest has the content that was written."""
    _check_files(path, manifest, changed)


def _check_files(path: Path, manifest: dict[str, Any], problem_of: Callable[[Path, FileTable], str | None]) -> None:
    for segment in manifest["segments"]:
        for folder, files in folders(path, {"segments": [segment]}):
            if problem := problem_of(folder, files):
                shard = f"shard {shard_of(segment)} of {manifest['shards']}: " if "shards" in manifest else ""
                raise IndexFormatError(f"{path} is damaged: {shard}{problem}; {REMEDY}")


def folders(path: Path, manifest: dict[str, Any]) -> Iterator[tuple[Path, FileTable]]:
    """Yield the folders of a manifest's segments and deletions, each with its table of files."""
    for segment in manifest["segments"]:
        folder = path / segment["name"]
        yield folder, segment["files"]
        if segment["deleted"] is not None:
            yield folder / segment["deleted"]["name"], segment["deleted"]["files"]


def is_same_state(first: dict[str, object], second: dict[str, object]) -> bool:
    """Whether two manifests name the same folders with the same content.

    An index that is built again from the same documents has the same fingerprint, but other folders.
    """
    return bool(first["fingerprint"] == second["fingerprint"] and first["segments"] == second["segments"])


def real_path(path: Path) -> Path:
    """Return the real path of an index, so that all links to it share the lock on one parent folder."""
    return Path(os.path.realpath(as_path(path)))


def _fingerprint(manifest: dict[str, Any]) -> str:
    facts, segments = {k: v for k, v in manifest.items() if k not in ("fingerprint", "segments")}, manifest["segments"]
    return hash_json(
        [
            facts,
            [{**segment, "name": "", "deleted": segment["deleted"] and segment["deleted"]["files"]} for segment in segments],
        ]
    )


def entry_of(segment: Path, counts: dict[str, int], shard: int | None = None) -> dict[str, Any]:
    """Return the manifest's entry of a new segment: name, shard, counts, files."""
    files = file_table(segment)
    shard_entry = {} if shard is None else {"shard": shard}
    return {"name": f"{SEGMENT}-{hash_json(files)[:16]}", **shard_entry, **counts, "files": files, "deleted": None}


def with_segments(manifest: dict[str, object], segments: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Return a manifest with these segments."""
    new = {**manifest, "segments": list(segments)}
    return {**new, "fingerprint": _fingerprint(new)}


def write_manifest(folder: Path, manifest: dict[str, object]) -> Path:
    """Write a manifest to disk in a folder."""
    facts = {key: value for key, value in manifest.items() if key != "segments"}
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(json.dumps({**facts, "segments": manifest["segments"]}, indent=1, ensure_ascii=False) + "\n")
        sync(file)
    sync_folder(folder)
    return folder / MANIFEST


@contextlib.contextmanager
def building(path: Path, overwrite: bool, drop_vectors: bool) -> Iterator[Path]:
    """Yield a temporary folder beside `path` to build an index in.

    `overwrite` allows replacing an index, `drop_vectors` even one that holds vectors.

    Raises:
        InputError: Something at `path` may not be replaced.
        FontesError: The disk is full or cannot be written.
    """
    check_replaceable(path, overwrite, drop_vectors)
    try:
        with staging(real_path(path)) as folder:
            yield folder
    except OSError as e:
        if getattr(e, "of_documents", False):
            raise
        raise FontesError(f"{path} cannot be written: {e.strerror or e}; nothing was changed") from e


def commit(
    stage: Path,
    path: Path,
    segments: Sequence[tuple[Path, dict[str, int]]],
    manifest: dict[str, Any],
    overwrite: bool,
    drop_vectors: bool,
) -> None:
    """Make finished segments in `stage` the content of the index at `path`, in one atomic step.

    Args:
        stage: Folder from `building`.
        path: Path of the index.
        segments: Folder in `stage` and counts of each segment; one segment per shard if the manifest has "shards". Segments
            without documents are left out.
        manifest: The manifest without segments.
        overwrite: Replace an index.
        drop_vectors: Replace even one that holds vectors.

    Raises:
        InputError: An index that may not be replaced has appeared meanwhile.
    """
    user_path, path = path, real_path(path)
    entries = [
        (folder, entry_of(folder, counts, shard if "shards" in manifest else None))
        for shard, (folder, counts) in enumerate(segments)
        if counts["documents"]
    ]
    index_folder = stage / "index"
    index_folder.mkdir()
    index_folder.chmod(0o777 & ~umask())
    with uninterrupted(user_path), locked(path.parent):
        check_replaceable(user_path, overwrite, drop_vectors)
        for folder, entry in entries:
            entry["name"] = free_name(path, entry["name"])
            folder.rename(index_folder / entry["name"])
        write_manifest(index_folder, with_segments(manifest, [entry for _, entry in entries]))
        if not (path / MANIFEST).exists():
            index_folder.rename(path)
        else:
            try:
                for _, entry in entries:
                    (index_folder / entry["name"]).rename(path / entry["name"])
                replace_manifest(path, index_folder)
            except BaseException:
                remove_unnamed(path)
                raise
        sync_folder(path.parent)


def replace_manifest(path: Path, folder: Path) -> None:
    """Replace the manifest of the index at `path` atomically by the one in `folder`, and remove unnamed folders."""
    sync_folder(path)
    (folder / MANIFEST).replace(path / MANIFEST)
    sync_folder(path)
    remove_unnamed(path)


def remove_unnamed(path: Path) -> None:
    """Remove the segments and deletions that the manifest does not name."""
    for folder in unnamed_folders(path):
        shutil.rmtree(folder, ignore_errors=True)


def unnamed_folders(path: Path) -> list[Path]:
    """Return the folders of segments and deletions that the manifest does not name."""
    segments = {segment["name"]: segment["deleted"] for segment in read_manifest(path)["segments"]}
    unreferenced = []
    for folder in sorted(path.glob(f"{SEGMENT}-*")):
        if SEGMENT_NAME.fullmatch(folder.name) is None or folder.is_symlink() or not folder.is_dir():
            continue
        if folder.name not in segments:
            unreferenced.append(folder)
            continue
        deleted = segments[folder.name]
        with contextlib.suppress(OSError):
            unreferenced += [
                inner
                for inner in sorted(folder.glob(f"{DELETED}-*"))
                if DELETED_NAME.fullmatch(inner.name) and not (deleted and deleted["name"] == inner.name)
            ]
    return unreferenced


def vectors_in(path: Path) -> list[str]:
    """Return a description of each encoding in an index, complete or not: its encoder and form."""
    names, folders = [], []
    for segment in path.glob(f"{SEGMENT}-*"):
        with contextlib.suppress(OSError):  # another build may be removing it
            folders += list(segment.iterdir())
    for folder in sorted(folders):
        if (FOLDER.fullmatch(folder.name.lstrip(".")) and not DELETED_NAME.fullmatch(folder.name)) and folder.is_dir():
            facts = read_settings(folder)
            model = facts.get("encoder", facts.get("colbert"))
            form = "weights of terms" if "scale" in facts else facts.get("dtype", f"{facts.get('nbits')} bits")
            names.append(f"{model} ({form})" if model else f"{folder.name} (unfinished)")
    return list(dict.fromkeys(names))


def check_replaceable(path: Path, overwrite: bool, drop_vectors: bool) -> None:
    """Raise InputError if an index at `path` may not be replaced, or if anything else is there."""
    if (address := address_of(path)) is not None:
        raise InputError(f"an index is built on a local disk; build it there, and then: fontes copy INDEX {address}")
    if (as_path(path) / MANIFEST).exists():
        if not overwrite:
            raise InputError(f"{path} is an index already; overwrite=True (--overwrite) replaces it")
        if not drop_vectors and (vectors := vectors_in(path)):
            raise InputError(
                f"{path} holds vectors, which a new index lacks: {', '.join(vectors)}; build at another place to keep them, "
                "or drop them with drop_vectors=True (--drop-vectors)"
            )
    elif path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{path} exists and is not an index; choose another place")


def free_name(path: Path, name: str) -> str:
    """Return `name`, with a number above those of all existing folders of this name.

    A process that has a folder open thus never finds another folder under its name.
    """
    suffixes = [entry.name.removeprefix(name) for entry in path.glob(f"{name}*")]
    numbers = [int(number[1:] or 1) for number in suffixes if re.fullmatch(r"(-\d+)?", number)]
    return f"{name}-{max(numbers) + 1}" if numbers else name


def folder_names(segments: Iterable[Path]) -> list[str]:
    """Names of the components that have their own folders in any of the segments."""
    names: set[str] = set()
    for segment in segments:
        with contextlib.suppress(OSError):
            names |= {match[1] for entry in os.scandir(segment) if (match := FOLDER.fullmatch(entry.name))}
    return sorted(names - {DELETIONS})


def file_names(files: Iterable[str]) -> list[str]:
    """Names of the components, besides postings, that have files directly in a segment's folder."""
    names = {match[1] for file in files if (match := FILE.fullmatch(file))}
    return sorted(name for name in names if name not in POSTINGS_FILES)
