"""Files that the organisers of a task give: folders, single files and archives; archives are unpacked."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from ..core import InputError
from ..formats.folder import is_beir
from ..storage.compression import check_unpacked_size

TAR_ENDINGS = (".tar", ".tar.gz", ".tgz")
MAX_NAMES = 8  # names of files in a message


class ReleasedFiles:
    """The files of given folders, archives and single files, by their path inside the folder or archive.

    Args:
        sources: Files, folders and archives (.zip, .tar, .tar.gz).
        unpacked: The folder for the contents of archives, one folder each.

    Raises:
        InputError: A source is missing, or an archive is damaged, has a path that leads out of it, or unpacks to more than
            16 GiB, or to more than 64 MiB and 100 times its size.
    """

    def __init__(self, sources: Iterable[str | Path], unpacked: Path) -> None:
        self.names = [str(source) for source in sources]
        self.files: dict[str, Path] = {}
        """Files by path inside their folder, sorted by this path."""
        self.folders: list[Path] = []
        """Given folders, and the folders of unpacked archives."""
        if not self.names:
            raise InputError("there is nothing to lay out; --data names what the organisers give, a folder or an archive")
        for name in self.names:
            self._add(Path(name), unpacked)
        self.files = dict(sorted(self.files.items()))

    def matching(self, pattern: str, without: str = "") -> dict[str, Path]:
        """Return the files whose inside path matches `pattern` and not `without`, anywhere and ignoring case."""
        return {
            inside: path
            for inside, path in self.files.items()
            if re.search(pattern, inside, re.IGNORECASE) and not (without and re.search(without, inside, re.IGNORECASE))
        }

    def beir(self) -> Path | None:
        """Return the only folder in BEIR's form, or None.

        Raises:
            InputError: There are several such folders.
        """
        candidates = {path.parent for path in self.files.values()} | set(self.folders)
        folders = sorted(candidate for candidate in candidates if (candidate / "qrels").is_dir() and is_beir(candidate))
        if len(folders) > 1:
            raise InputError(f"{folders[0]} and {folders[1]} are both folders in BEIR's form; give one of them as --data")
        return folders[0] if folders else None

    def missing_error(self, missing: str, task: str) -> InputError:
        """Return the error for a missing file."""
        names = [*self.files][:MAX_NAMES]
        more = f", … ({len(self.files):,} files)" if len(self.files) > MAX_NAMES else ""
        contents = f"there are {', '.join(names)}{more}" if names else "there are no files"
        return InputError(f"{', '.join(self.names)}: no {missing}, which the organisers of {task} give; {contents}")

    def _add(self, source: Path, unpacked: Path) -> None:
        name = source.name.lower()
        if not source.exists():
            raise InputError(f"{source}: there is no such file or folder; --data names what the organisers give")
        if source.is_dir():
            self._add_folder(source)
        elif name.endswith((".zip", *TAR_ENDINGS)):
            stem = re.sub(r"(\.zip|\.tar|\.tar\.gz|\.tgz)$", "", name)
            folder = unpacked / stem
            if not stem.strip(". ") or folder in self.folders:
                raise InputError(f"{source}: its contents would be written to '{folder}', which is taken; rename the archive")
            _unpack(source, folder)
            self._add_folder(folder)
        else:
            self.files[source.name] = source

    def _add_folder(self, folder: Path) -> None:
        self.folders.append(folder)
        for path in folder.rglob("*"):
            inside = path.relative_to(folder).as_posix()
            if path.is_file() and not any(part.startswith((".", "__MACOSX")) for part in inside.split("/")):
                is_taken = inside in self.files and self.files[inside] != path  # two archives may name a file alike
                self.files[f"{folder.name}/{inside}" if is_taken else inside] = path


def _unpack(archive: Path, folder: Path) -> None:
    try:
        if zipfile.is_zipfile(archive) or archive.name.lower().endswith(".zip"):
            with zipfile.ZipFile(archive) as source:
                _check_inside(archive, source.namelist())
                # A member is not read beyond the size that it declares.
                check_unpacked_size(str(archive), archive.stat().st_size, sum(member.file_size for member in source.infolist()))
                source.extractall(folder)
        else:
            with archive.open("rb") as stored:
                is_gzip = stored.peek(2)[:2] == b"\x1f\x8b"
                stream: Any = gzip.GzipFile(fileobj=stored) if is_gzip else stored
                with tarfile.open(fileobj=_LimitedReader(archive, stream), mode="r|") as source_tar:
                    source_tar.extractall(folder, filter=_without_holes)
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InputError(f"{archive}: no archive, or a damaged one ({error}); fetch it again") from None
    except (RuntimeError, NotImplementedError) as error:  # a password, or a compression that Python does not support
        raise InputError(f"{archive}: cannot be unpacked ({error}); unpack it and give the folder") from None
    except OSError as error:
        raise InputError(f"{archive}: cannot be unpacked into {folder} ({error.strerror or error})") from None


class _LimitedReader(io.RawIOBase):
    """The unpacked bytes of an archive; raises InputError for too many of them, be they of members or of long names."""

    def __init__(self, archive: Path, stream: IO[bytes]) -> None:
        self._archive, self._stream, self._size = archive, stream, 0

    def read(self, size: int = -1) -> bytes:
        piece = self._stream.read(size)
        self._size += len(piece)
        check_unpacked_size(str(self._archive), self._archive.stat().st_size, self._size)
        return piece


def _without_holes(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    """Return a member that is safe to unpack; raise TarError for others, and for sparse files, which read as any size."""
    if member.issparse():
        raise tarfile.TarError(f"{member.name[:80]} is a sparse file")
    return tarfile.data_filter(member, path)


def _check_inside(archive: Path, names: Iterable[str]) -> None:
    for name in names:
        if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name) or ":" in name.split("/")[0]:
            raise InputError(f"{archive}: '{name}' would be written outside the folder; this archive is not unpacked")
