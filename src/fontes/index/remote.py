"""Copies of an index: to or from an address such as "s3://bucket/papers.index", or between directories."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..core.errors import FontesError, IndexFormatError, InputError, ParameterError
from ..core.work import Progress, ProgressCallback, reporter, work
from ..storage.artifact import META, FileTable, changed, check_folder, wrong_size
from ..storage.caches import DiskCache
from ..storage.files import refuse_links
from ..storage.hashes import hash_text
from ..storage.remote import address_of, fetch, files_below, put, remove
from ..storage.system import locked
from .files import (
    MANIFEST,
    SEGMENT,
    SEGMENT_NAME,
    check_contents,
    check_replaceable,
    folders,
    read_manifest,
    real_path,
    remove_unnamed,
)

CACHE = DiskCache("indexes")
UNVERIFIED = ".fetched"  # folder of files whose checksums are not verified yet
ATTEMPTS = 5  # to copy an index that changes meanwhile


def copy_index(
    source: str | Path, target: str | Path, *, overwrite: bool = False, progress: ProgressCallback | None = None
) -> None:
    """Copy an index to an address, from one, or between directories, verifying the checksums of all files.

    Files that exist at the target are not copied again, and the manifest is copied last: an interrupted copy leaves the old
    index intact, and resumes when started again. The source may be in use, and may change meanwhile.

    Args:
        source: An index: a directory, or an address such as "s3://bucket/papers.index".
        target: An address or a directory.
        overwrite: Replace an existing index.
        progress: Called after each file.

    Raises:
        InputError: The target exists already, or an address cannot be reached.
        ParameterError: Both are addresses, or one directory is the other or inside of it.
        IndexFormatError: There is no index, or a damaged one.
    """
    source_address, target_address = address_of(source), address_of(target)
    if source_address is not None and target_address is not None:
        raise ParameterError("copy needs a directory as source or target: copy to a directory first, and then to the address")
    with work(progress=progress):
        if source_address is None and target_address is None:
            _copy_directory(Path(source), Path(target), overwrite)
        elif target_address is not None:
            _upload(Path(source), target_address.rstrip("/"), overwrite)
        elif source_address is not None:
            check_replaceable(Path(target), overwrite, drop_vectors=False)
            folder = real_path(Path(target))
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder):
                _download(source_address.rstrip("/"), folder)


def _copy_directory(source: Path, target: Path, overwrite: bool) -> None:
    read_manifest(source)  # raises if there is no index
    source_path, target_path = source.resolve(), target.resolve()
    if source_path == target_path or source_path in target_path.parents or target_path in source_path.parents:
        raise ParameterError(f"{target} and {source} are one directory, or one is inside of the other; choose another place")
    if not _is_interrupted(target):
        check_replaceable(target, overwrite, drop_vectors=True)  # vectors are copied from the source
    _retry_if_changed(source, lambda: check_contents(source, read_manifest(source)))
    target.mkdir(parents=True, exist_ok=True)
    with locked(target):
        _retry_if_changed(source, lambda: _download(str(source_path), target))


def _retry_if_changed(source: Path, work: Callable[[], None]) -> None:
    """Run `work`, and repeat it if it fails while the index changes."""
    for attempt in range(1, ATTEMPTS + 1):
        manifest = (source / MANIFEST).read_bytes()
        try:
            work()
        except (InputError, IndexFormatError):
            if attempt == ATTEMPTS or (source / MANIFEST).read_bytes() == manifest:
                raise
        else:
            return


def _is_interrupted(folder: Path) -> bool:
    """Whether a directory holds only an interrupted copy."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() and not (folder / MANIFEST).exists() else []
    segments = [name for name in names if SEGMENT_NAME.fullmatch(name)]
    return bool(segments) and all(name in segments or name.startswith(".") for name in names)


def local_copy(address: str) -> Path:
    """Return a folder in the user's cache with a current copy of the index at an address.

    Raises:
        InputError: The address cannot be reached.
        IndexFormatError: There is no index, or a damaged one; the message names the object.
    """
    folder = copies() / hash_text(address.rstrip("/"))[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        _download(address.rstrip("/"), folder)
    CACHE.use(folder)
    CACHE.trim()
    return folder


def copies() -> Path:
    """Return the cache folder for copies of indexes at addresses."""
    return CACHE.folder


def _upload(path: Path, address: str, overwrite: bool) -> None:
    report = reporter()
    manifest = read_manifest(path)
    check_contents(path, manifest)
    existing = _list_files(address)
    if existing and not overwrite:
        if MANIFEST in existing:
            raise InputError(f"{address} is an index already; overwrite=True (--overwrite) replaces it")
        raise InputError(f"{address} holds other files; choose another place")
    uploads = {}
    for segment in manifest["segments"]:
        files = [file for file in sorted((path / segment["name"]).rglob("*")) if file.is_file()]
        uploads.update({file.relative_to(path).as_posix(): file for file in files})
    uploads = {name: file for name, file in uploads.items() if not any(part.startswith(".") for part in name.split("/"))}
    for number, (name, file) in enumerate(uploads.items(), 1):
        if existing.get(name) != file.stat().st_size:
            put(file, f"{address}/{name}")
        report(Progress("copying", number, len(uploads), 0.0, unit="files"))
    put(path / MANIFEST, f"{address}/{MANIFEST}")
    for name in existing:
        if name not in uploads and name.startswith(f"{SEGMENT}-"):
            remove(f"{address}/{name}")


def _download(address: str, folder: Path) -> None:
    """Copy the missing files of an index to a folder, the manifest last."""
    report = reporter()
    refuse_links(folder)
    draft = folder / UNVERIFIED
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    try:
        manifest = _fetch_manifest(address, draft)
        files = _list_files(address)
        from_directory = address_of(address) is None  # copies of addresses are opened often, so their content is not read
        missing = list(_missing_files(folder, manifest, changed if from_directory else wrong_size))
        for number, (name, table) in enumerate(missing, 1):
            _fetch_file(f"{address}/{name}", draft / "file", table)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / "file").replace(folder / name)
            report(Progress("copying", number, len(missing), 0.0, unit="files"))
        for segment in manifest["segments"]:
            for name in _encoded_folders(files, segment["name"]):
                if not (_is_sound(folder / name) if from_directory else (folder / name).exists()):
                    shutil.rmtree(folder / name, ignore_errors=True)
                    _fetch_folder(address, name, files, draft / "folder")
                    (draft / "folder").rename(folder / name)
        (draft / MANIFEST).replace(folder / MANIFEST)
    except OSError as error:
        raise FontesError(f"{folder} cannot be written: {error.strerror or error}; nothing was changed") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    remove_unnamed(folder)


def _fetch_manifest(address: str, draft: Path) -> dict[str, Any]:
    remote_path = f"{address}/{MANIFEST}"
    try:
        _copy_file(remote_path, draft / MANIFEST)
    except InputError as error:
        if "there is no such" in str(error):
            raise IndexFormatError(f"{address} is not an index: it has no {MANIFEST}; fontes copy copies one there") from None
        raise
    try:
        return read_manifest(draft)
    except IndexFormatError as error:
        raise IndexFormatError(str(error).replace(str(draft / MANIFEST), remote_path).replace(str(draft), address)) from None


def _missing_files(
    root: Path, manifest: dict[str, Any], problem_of: Callable[[Path, FileTable], str | None]
) -> Iterator[tuple[str, FileTable]]:
    for folder, files in folders(root, manifest):
        for name, facts in files.items():
            table = {name: facts}
            if problem_of(folder, table) is not None:
                yield (folder / name).relative_to(root).as_posix(), {"file": facts}


def _fetch_file(address: str, path: Path, table: FileTable) -> None:
    _copy_file(address, path)
    if wrong_size(path.parent, table) is not None or changed(path.parent, table) is not None:
        raise IndexFormatError(f"{address} is damaged: it differs from {MANIFEST}; copy the index there again (fontes copy)")


def _encoded_folders(files: dict[str, int], segment: str) -> list[str]:
    """Return the folders in a segment's folder that are artifacts, such as vectors."""
    names = [name.removesuffix(f"/{META}") for name in files if name.startswith(f"{segment}/") and name.endswith(f"/{META}")]
    return [name for name in names if name.count("/") == 1]


def _fetch_folder(address: str, folder: str, files: dict[str, int], target: Path) -> None:
    target.mkdir()
    for name in files:
        if name.startswith(f"{folder}/") and "/" not in (inner := name.removeprefix(f"{folder}/")):
            _copy_file(f"{address}/{name}", target / inner)
    try:
        check_folder(target)
    except IndexFormatError as error:
        problem = str(error).replace(str(target), f"{address}/{folder}").partition(";")[0]
        raise IndexFormatError(f"{problem}; copy the index there again (fontes copy)") from None


def _is_sound(folder: Path) -> bool:
    try:
        check_folder(folder)
    except (IndexFormatError, OSError):
        return False
    return True


def _copy_file(address: str, path: Path) -> None:
    """Copy the file at an address or a local path to `path`."""
    if address_of(address) is not None:
        fetch(address, path)
        return
    try:
        shutil.copyfile(address, path)
    except FileNotFoundError:
        raise InputError(f"{address}: there is no such file or folder") from None


def _list_files(address: str) -> dict[str, int]:
    """Return the size of each file below an address or directory, by relative path; empty if there is nothing."""
    if address_of(address) is None:
        files = [file for file in sorted(Path(address).rglob("*")) if file.is_file() and not file.is_symlink()]
        return {file.relative_to(address).as_posix(): file.stat().st_size for file in files}
    try:
        return {name: size for name, _, size in files_below(address)}
    except InputError as error:
        if "there is no such" in str(error):
            return {}
        raise
