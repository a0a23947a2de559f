"""BEIR folders, and the files or byte ranges that make up a corpus."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from ..core import InputError, ParameterError
from ..storage.compression import ENDINGS, without_ending
from ..storage.files import MAX_PIECE, STANDARD, as_path, plain_name, reading
from ..storage.remote import address_of, files_below, look_up_address
from .decoding import UTF8, ReadingOptions, reading_of
from .format import File, Format
from .records import Fields

CORPUS, QUERIES, QRELS = "corpus.jsonl", "queries.jsonl", "qrels"
BEIR_LAYOUT = f"a folder in BEIR's form has {CORPUS}, {QUERIES} and {QRELS}/SPLIT.tsv"


def is_beir(folder: Path) -> bool:
    """Whether the folder contains any of BEIR's three parts."""
    return any(present(folder, name) for name in (CORPUS, QUERIES)) or bool(qrels_files(folder))


def present(folder: Path, name: str) -> Path | None:
    """Return the file or a compressed version of it, such as .gz, or None."""
    return next((path for ending in ("", *ENDINGS) if (path := folder / f"{name}{ending}").is_file()), None)


def beir_file(folder: Path, name: str) -> Path:
    """Return the file or a compressed version of it; InputError if there is none."""
    path = present(folder, name)
    if path is None:
        raise InputError(f"{folder}: no {name} or {name}.gz; {BEIR_LAYOUT}")
    return path


def qrels_files(folder: Path) -> dict[str, Path]:
    """Return the judgment files by split, in alphabetical order."""
    files = sorted((folder / QRELS).glob("*.tsv*"))
    return {plain_name(file).removesuffix(".tsv"): file for file in files if plain_name(file).endswith(".tsv")}


def split_of(name: object, splits: Collection[str], split: str | None) -> str:
    """Return the split of a collection called `name`: the chosen one, or else the only one.

    Raises:
        InputError: The collection has no judgments.
        ParameterError: The split does not exist, or there are several and none was chosen.
    """
    if not splits:
        raise InputError(f"{name}: the collection has no judgments; {BEIR_LAYOUT}")
    if split is None and len(splits) == 1:
        return next(iter(splits))
    if split is None:
        raise ParameterError(f"{name}: choose a split (--split NAME, or split=); there are {', '.join(splits)}")
    if split not in splits:
        raise ParameterError(f"{name}: there is no split '{split}'; there are {', '.join(splits)}")
    return split


@dataclass(frozen=True)
class CorpusPiece:
    """A file of documents, or a byte range of one.

    Args:
        path: Path or address.
        inside: Path inside its folder, or file name.
        of_folder: Whether it belongs to a folder.
        size: Bytes as stored; 0 if unknown.
        start: First byte.
        end: End byte, exclusive; None for the end of the file.
        opening: First line of the file, if the piece begins after it.
        reading: Settings for reading it.
    """

    path: str | Path
    inside: str
    of_folder: bool = False
    size: int = 0
    start: int = 0
    end: int | None = None
    opening: bytes = b""
    reading: ReadingOptions = field(default_factory=reading_of)

    @contextmanager
    def opened(self) -> Iterator[File]:
        """Open the piece for reading."""
        with reading(self.path, self.start, self.end) as source:
            yield File(source, self.inside, self.of_folder, self.opening, self.reading)

    @property
    def is_stream(self) -> bool:
        """Whether it is standard input, a pipe or a device, which can be read only once."""
        if str(self.path) == STANDARD:
            return True
        return address_of(self.path) is None and not self.of_folder and not Path(self.path).is_file()

    def absolute(self) -> CorpusPiece:
        """Return the piece with an absolute path."""
        is_local = address_of(self.path) is None and str(self.path) != STANDARD
        return replace(self, path=Path(self.path).absolute()) if is_local else self

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.path} from byte {self.start:,}" if self.start else str(self.path)

    @property
    def stamp(self) -> list[object]:
        """Values that identify the piece and the current version of its file."""
        address = address_of(self.path)
        if address is not None:
            file: list[object] = [address, look_up_address(address).stamp]
        else:
            status = Path(self.path).stat()
            file = [str(Path(self.path).absolute()), status.st_size, status.st_mtime_ns]
        return [*file, self.inside, self.start, self.end]


def pieces_of(path: str | Path, chosen: Format | None, default: Format) -> list[CorpusPiece]:
    """Return the document files of a file or folder, local or at an address, or of "-", in order.

    `chosen` is the format, if named; `default` is the format looked for in a folder if none is named. Raises InputError if the
    path does not exist, or the folder has no files.
    """
    address = address_of(path)
    if str(path) == STANDARD:
        return [CorpusPiece(path, STANDARD)]
    if address is not None:
        stored = look_up_address(address)
        if not stored.is_folder:
            return [CorpusPiece(address, address.partition("?")[0].rpartition("/")[2], size=stored.size or 0)]
        addresses = files_below(address)
        pieces = [CorpusPiece(file, inside, True, size) for inside, file, size in addresses if _is_visible(inside)]
        corpora = [piece for piece in pieces if without_ending(piece.inside) == CORPUS]
        if corpora and (chosen is None or chosen.name == default.name):
            return corpora[:1]
        return _matching(address, pieces, chosen, default)
    if not as_path(path).is_dir():
        if not Path(path).exists():
            raise InputError(f"{path}: there is no such file or folder")
        return [_piece_of(Path(path), Path(path).parent, path)]
    folder = Path(path)
    if (chosen is None or chosen.name == default.name) and is_beir(folder):
        return [_piece_of(beir_file(folder, CORPUS), folder)]
    files = sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.relative_to(folder).as_posix())
    pieces = [_piece_of(file, folder) for file in files if _is_visible(file.relative_to(folder).as_posix())]
    return _matching(folder, pieces, chosen, default)


def cut(piece: CorpusPiece, format: Format, fields: Fields, size: int) -> list[CorpusPiece]:
    """Split a file at line ends into pieces of about `size` bytes; the whole file if it cannot be cut."""
    if piece.is_stream or piece.size <= size:
        return [piece]
    with piece.opened() as file:
        if file.is_compressed or file.encoding != UTF8 or not format.is_of_lines(file, fields):
            return [piece]
        opening = file.leading
    piece = replace(piece, reading=replace(piece.reading, encoding=UTF8))
    count = -(-piece.size // size)
    edges = [0]
    for number in range(1, count):
        edge = _line_end(piece, piece.size * number // count)
        if edges[-1] < edge < piece.size:
            edges.append(edge)
    edges.append(piece.size)
    ranges = pairwise(edges)
    return [replace(piece, size=end - start, start=start, end=end, opening=opening if start else b"") for start, end in ranges]


def grouped(pieces: Sequence[CorpusPiece], size: int) -> list[list[CorpusPiece]]:
    """Group adjacent pieces to about `size` bytes."""
    groups: list[list[CorpusPiece]] = []
    filled = size
    for piece in pieces:
        if filled + piece.size > size:
            groups.append([])
            filled = 0
        groups[-1].append(piece)
        filled += piece.size
    return groups


def _line_end(piece: CorpusPiece, offset: int) -> int:
    """Return the end of the line containing the byte before `offset`; the end of the file if the line is too long."""
    with reading(piece.path, offset - 1) as source:
        line = source.file.readline(MAX_PIECE + 1)
    return offset - 1 + len(line) if line.endswith(b"\n") else piece.size


def _piece_of(file: Path, folder: Path, path: str | Path | None = None) -> CorpusPiece:
    return CorpusPiece(path or file, file.relative_to(folder).as_posix(), path is None, file.stat().st_size)


def _is_visible(inside: str) -> bool:
    return not any(part.startswith(".") for part in inside.split("/"))


def _matching(folder: str | Path, pieces: list[CorpusPiece], chosen: Format | None, default: Format) -> list[CorpusPiece]:
    """Return the files with the format's endings, or all files if none has them."""
    matching = [piece for piece in pieces if plain_name(piece.inside).endswith((chosen or default).endings)]
    if not matching and chosen and chosen.name == default.name:
        raise InputError(f"{folder}: the folder holds no {default.name} files")
    if not pieces:
        raise InputError(f"{folder}: the folder holds no files")
    return matching or pieces
