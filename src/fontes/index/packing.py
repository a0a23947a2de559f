"""Packing: the postings of an inverted index as packed lists with bounds, in memory or as the file of a segment."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Protocol, TypeAlias, TypeVar

import numpy as np

from ..core.arrays import AnyArray, Bools, Bytes, Float64s, Floats, Int32s, Int64s, Ints, Numbers, UInt16s
from ..core.errors import IndexFormatError
from ..core.strings import offsets_of
from ..storage.arrays import ByteWriter, fixed
from ..storage.threads import in_order, in_threads
from .packed import DOCUMENTS_PER_ROW, Bounds, PackedLists, Shapes, bound_shapes, list_shapes, row_of, zeros
from .packed_kernels import BLOCK, DEPTHS, POSITION_BITS, choose_champions, count_pairs, encode, pack, summarize

SHORT_BITS, LONG_BITS = 12, 16  # bits of a code
WORD = 32  # bits of a document and the lowest bits of its code
MIN_SHORT = 0.99  # codes have SHORT_BITS bits if these cover at least this share of the postings that LONG_BITS cover
PAIRS = 1 << 20  # cells to count pairs: all lengths, with as many tf as fit
MAX_CODED_LENGTH = 1 << 24  # document length above which lengths have no part in codes
MIN_CODED = 0.9  # least share of postings with a code above 0; below it, as for learned weights, lengths have no part in codes
CHUNK_POSTINGS = 1 << 20  # postings packed at a time
ALIGNMENT = 64  # bytes at whose multiples the arrays of a file start
HEADER = 8  # numbers before the arrays: widths, codes, length of the rest, whether codes have lengths, documents per row
OLDER_DOCUMENTS_PER_ROW = 8 * BLOCK  # in files of version 3, which do not say it
PIECE = 1 << 20  # bytes copied at a time
K1, B = 0.9, 0.4  # of the curve by which the bounds of texts are made: BM25's default
NO_POSTING_CODES = np.zeros(0, np.uint16)
POSTINGS = ("docs", "codes", "places", "place_codes")  # of `PackedLists.postings`
BOUNDS = ("best", "kth", "rows", "champions", "cuts", "champion_codes")  # arrays of bounds in a file
Arrays = dict[str, AnyArray]
Item = TypeVar("Item")
Postings: TypeAlias = tuple[Int32s, Int32s]  # documents, term frequencies
Weigher = Callable[[AnyArray, AnyArray], Float64s]


class Counted(Protocol):
    """An inverted index whose postings can be read."""

    @property
    def df(self) -> Ints:
        """Number of documents of each term."""
        ...

    @property
    def lengths(self) -> Ints:
        """Length of each document."""
        ...

    def postings(self, terms: Ints) -> Postings:
        """Concatenated postings of terms: ordinals of documents, frequencies."""
        ...


class TfLengthCodes:
    """Codes of the most frequent pairs of tf and length.

    Args:
        lengths: Length of each document, with a maximum of at most MAX_CODED_LENGTH.
        by_length: Whether lengths have a part in codes; if not, all count as 0.

    Attributes:
        lengths: Length of each document, as it counts.
    """

    def __init__(self, lengths: Ints, by_length: bool) -> None:
        self.lengths = lengths if by_length else np.zeros(len(lengths), dtype=np.uint8)
        self._lock, self.by_length = threading.Lock(), by_length
        self._distinct = np.unique(self.lengths)
        number_of = np.zeros(int(self.lengths.max(initial=0)) + 1, dtype=np.int32)
        number_of[self._distinct] = np.arange(len(self._distinct))
        self._numbers = fixed(number_of[self.lengths])
        width = max(1, PAIRS // max(1, len(self._distinct)))
        width = min(width, int(lengths.max(initial=0)) + 1) if by_length else width  # no tf is above the length
        self._counts = np.zeros(len(self._distinct) * width, dtype=np.int64)

    @classmethod
    def counted(cls, lengths: Ints, parts: Sequence[Item], postings: Callable[[Item], Postings]) -> TfLengthCodes:
        """Return the codes of an inverted index; `postings` returns those of one of its parts."""
        for by_length in (True, False) if lengths.max(initial=0) <= MAX_CODED_LENGTH else (False,):
            codes = cls(lengths, by_length)
            in_threads(partial(_count, codes, postings), parts)
            if codes.covered >= MIN_CODED or not parts:
                break
        return codes

    def count(self, docs: Int32s, tfs: Int32s) -> None:
        """Count the pairs of some postings."""
        counts = np.zeros_like(self._counts)
        count_pairs(fixed(docs), fixed(tfs), self._numbers, len(self._distinct), counts)
        with self._lock:
            self._counts += counts

    @cached_property
    def _ranked(self) -> Int64s:
        """Cells of the counted pairs, the most frequent first."""
        counts = self._counts.copy()
        counts[: len(self._distinct)] = 0  # where tf is 0
        cells = np.flatnonzero(counts)
        return cells[np.argsort(-counts[cells], kind="stable")]

    def _share(self, bits: int) -> float:
        """Return the share of the counted postings with a code above 0, if codes have this number of bits."""
        return float(self._counts[self._ranked[: (1 << bits) - 1]].sum() / max(1, self._counts.sum()))

    @cached_property
    def bits(self) -> int:
        """Bits of a code."""
        return SHORT_BITS if self._share(SHORT_BITS) >= MIN_SHORT * self._share(LONG_BITS) else LONG_BITS

    @property
    def covered(self) -> float:
        """Share of the counted postings with a code above 0."""
        return self._share(self.bits)

    @property
    def rare(self) -> int:
        """Number of the counted postings with the code 0."""
        return int(self._counts.sum() - self._counts[self._coded].sum())

    @property
    def widths(self) -> Int64s:
        """As in `PackedLists`."""
        of_docs = min(self.bits, WORD - (len(self.lengths) - 1).bit_length())
        return np.array([of_docs, int(self.bits > of_docs), max(1, -(-(self.bits - POSITION_BITS) // 8))])

    @cached_property
    def _coded(self) -> Int64s:
        """Cells of the codes from 1 on."""
        return self._ranked[: (1 << self.bits) - 1]

    @cached_property
    def _code_of(self) -> UInt16s:
        """Code of each cell, 0 for rare pairs."""
        code_of = np.zeros(len(self._counts), dtype=np.uint16)
        code_of[self._coded] = np.arange(1, len(self._coded) + 1)
        return fixed(code_of)

    @cached_property
    def pairs(self) -> Int32s:
        """As in `PackedLists`."""
        tfs, numbers = np.divmod(self._coded, len(self._distinct))
        pairs = np.zeros((2, len(self._coded) + 1), dtype=np.int32)
        pairs[:, 1:] = tfs, self._distinct[numbers]
        return pairs

    def of(self, docs: Int32s, tfs: Int32s) -> UInt16s:
        """Return the codes of some postings."""
        codes = np.empty(len(docs), dtype=np.uint16)
        encode(fixed(docs), fixed(tfs), self._numbers, len(self._distinct), self._code_of, codes)
        return codes

    def pack(self, df: Ints, postings: Postings, bounded: bool) -> Arrays:
        """Return the arrays of `list_shapes` of consecutive terms with these postings, and those of bounds in a file.

        There are no pairs; the terms of the rest are counted from the first of these terms.
        """
        documents, docs, tfs = len(self.lengths), fixed(postings[0]), fixed(postings[1])
        arrays = zeros(list_shapes(df, documents, self.widths, 0, 0))
        lists = _lists(df, documents, self.widths, self.by_length, arrays)
        codes = self.of(docs, tfs)
        bounds, rows, offsets, widths = fixed(lists.bounds), fixed(lists.row_of), fixed(lists.offsets), fixed(lists.widths)
        pack(bounds, docs, fixed(codes), rows, offsets, widths, lists.postings, lists.starts)
        rare = np.flatnonzero(codes == 0)
        terms, lengths = np.searchsorted(lists.bounds, rare, side="right") - 1, self.lengths[docs[rare]]
        arrays["rest"] = np.stack([terms, docs[rare], tfs[rare], lengths]).astype(np.int32)
        if bounded:
            weights = self._weights[codes]
            weights[rare] = self._weigh(tfs[rare], lengths)
            shapes = bound_shapes(len(df), len(lists.starts), documents)
            arrays |= zeros({**shapes, "champion_codes": (np.uint16, shapes["champions"][1])})
            bound_terms(lists, arrays, docs, weights, 0, len(df), codes)
            arrays |= {name: arrays[name][_frequent(df)] for name in ("best", "kth")}
        return arrays

    @cached_property
    def _weigh(self) -> Weigher:
        return _weigher(self.lengths, self.by_length)

    @cached_property
    def _weights(self) -> Float64s:
        """Weight of each code."""
        return np.concatenate([[0.0], self._weigh(*self.pairs[:, 1:])])


def _count(codes: TfLengthCodes, postings: Callable[[Item], Postings], part: Item) -> None:
    codes.count(*postings(part))


def pack_in_memory(index: Counted) -> PackedLists:
    """Return the packed lists of an inverted index that is not stored in this form."""

    def postings(edges: tuple[int, int]) -> Postings:
        return index.postings(np.arange(*edges))

    def packed(edges: tuple[int, int]) -> Arrays:
        part = codes.pack(index.df[slice(*edges)], postings(edges), bounded=False)
        part["rest"][0] += edges[0]
        return part

    parts = list(chunks(offsets_of(index.df)))
    codes = TfLengthCodes.counted(index.lengths, parts, postings)
    arrays = zeros(list_shapes(index.df, len(index.lengths), codes.widths, 0, 0))
    filled, rest = dict.fromkeys(arrays, 0), [arrays["rest"]]
    for part in in_order(packed, parts):
        rest.append(part["rest"])
        for name in (*POSTINGS, "starts"):
            end = filled[name] + len(part[name])
            arrays[name][filled[name] : end] = part[name]
            filled[name] = end
    arrays |= {"pairs": codes.pairs, "rest": np.concatenate(rest, axis=1)}
    return _lists(index.df, len(index.lengths), codes.widths, codes.by_length, arrays)


class PackedWriter:
    """Writes postings.npy in a folder, as `PackedFile` reads it, some terms after others."""

    def __init__(self, folder: Path, codes: TfLengthCodes) -> None:
        self._folder, self._codes, self._terms = folder, codes, 0
        self._files: dict[str, IO[bytes]] = {}
        for name in (*POSTINGS, "starts", *BOUNDS):
            self._files[name] = TemporaryFile(dir=folder)  # noqa: SIM115
        self._rest = [np.zeros((4, 0), dtype=np.int32)]

    def packed(self, df: Ints, postings: Postings) -> Arrays:
        """Return what `write` takes for consecutive terms with these postings; may be called in any thread."""
        return self._codes.pack(df, postings, bounded=True)

    def write(self, terms: int, arrays: Arrays) -> None:
        """Append the arrays of so many terms."""
        arrays["rest"][0] += self._terms
        self._rest.append(arrays["rest"])
        self._terms += terms
        for name, file in self._files.items():
            file.write(_little(arrays[name]).data)

    def close(self) -> None:
        """Complete the file."""
        codes, rest, file = self._codes, np.concatenate(self._rest, axis=1), ByteWriter(self._folder, "postings")
        sizes = len(codes.pairs[0]), rest.shape[1]
        header = np.array([*codes.widths.tolist(), *sizes, int(codes.by_length), DOCUMENTS_PER_ROW, 0])
        whole = {"pairs": codes.pairs, "rest": rest}
        try:
            file.write(_little(header).tobytes())
            for name in (*POSTINGS, "starts", *whole, *BOUNDS):
                file.write(bytes(-file.length % ALIGNMENT))
                if name in whole:
                    file.write(_little(whole[name]).tobytes())
                    continue
                self._files[name].seek(0)
                while piece := self._files[name].read(PIECE):
                    file.write(piece)
            file.close()
        finally:
            file.abandon()
            self.abandon()

    def abandon(self) -> None:
        """Remove temporary files."""
        for file in self._files.values():
            file.close()


def _little(array: Numbers) -> Numbers:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


class PackedFile:
    """The packed lists of a segment and their bounds, as stored in postings.npy.

    The file has a header of HEADER numbers, then each array of `list_shapes` and `bound_shapes`, from a multiple of ALIGNMENT
    bytes on. The bounds are those of BM25's default, without idf, or of tf if codes have no lengths; they say nothing about
    terms with fewer documents than the least of DEPTHS.

    Args:
        blob: uint8; the file.
        df: Number of documents of each term.
        lengths: Length of each document.
        damaged: Makes the error for a damaged file.

    Raises:
        IndexFormatError: The file does not fit the counts.
    """

    def __init__(self, blob: Bytes, df: Ints, lengths: Ints, damaged: Callable[[str], IndexFormatError]) -> None:
        self._df, self._lengths, self._damaged = df, lengths, damaged
        documents = self._documents = len(lengths)
        header = blob[: 8 * HEADER].view("<i8") if len(blob) >= 8 * HEADER else np.zeros(0, np.int64)
        if not _is_header(header):
            raise damaged("its header is invalid")
        self._widths, self._by_length = header[:3].astype(np.int64), bool(header[5])
        self._per_row = int(header[6]) or OLDER_DOCUMENTS_PER_ROW
        pairs, rest = header[3:5].tolist()
        shapes = _file_shapes(df, documents, self._widths, pairs, rest, self._per_row)
        edges, size = _layout(shapes)
        if size != len(blob):
            raise damaged(f"it has {len(blob):,} bytes, not {size:,}")
        self._arrays = _views(blob, shapes, edges)

    @property
    def is_older(self) -> bool:
        """Whether the file is of version 3."""
        return self._per_row != DOCUMENTS_PER_ROW

    @cached_property
    def unchecked(self) -> PackedLists:
        """The lists, which only `PackedLists.read` may read."""
        lists = _lists(self._df, self._documents, self._widths, self._by_length, self._arrays, self._per_row)
        terms, docs = lists.rest[:2].astype(np.int64)
        ascending = (terms[1:] > terms[:-1]) | ((terms[1:] == terms[:-1]) & (docs[1:] > docs[:-1]))
        if len(terms) and not (ascending.all() and terms[0] >= 0 and terms[-1] < len(self._df)):
            raise self._damaged("its rare postings do not ascend")
        return lists

    def read(self, terms: Int64s, documents: int, edges: Int64s) -> tuple[Int32s, Int32s] | None:
        """Return the postings of some terms; see `PackedLists.read`."""
        return self.unchecked.read(terms, documents, edges)

    @cached_property
    def lists(self) -> PackedLists:
        """The lists; IndexFormatError if they are damaged."""
        lists = self.unchecked

        def check(edges: tuple[int, int]) -> bool:
            terms = np.arange(*edges)
            return lists.read(terms, self._documents, lists.bounds[edges[0] : edges[1] + 1], outputs=False) is not None

        if not all(in_threads(check, list(chunks(lists.bounds)))):
            raise self._damaged("its postings do not fit its terms")
        return lists

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds; IndexFormatError if they are of documents that the segment lacks."""
        arrays, lists, frequent = self._arrays, self.lists, _frequent(self._df)
        champions = arrays["champions"]
        if champions.size and not (champions.min() >= -1 and champions.max() < self._documents):
            raise self._damaged("its champions are no documents")
        of_terms = zeros(bound_shapes(len(self._df), 0, 0))
        best, kth = of_terms["best"], of_terms["kth"]
        best[frequent], kth[frequent] = arrays["best"], arrays["kth"]
        weigh = _weigher(self._lengths, lists.by_length)
        saturation = np.concatenate([[0.0], weigh(*lists.pairs[:, 1:])])
        rest = weigh(*lists.rest[2:])
        others = {name: arrays[name] for name in ("rows", "champions", "cuts")}
        weights = self._champion_weights(lists, saturation, rest)
        return Bounds(saturation, rest, best, kth, np.ones(len(best), np.bool_), champion_weights=weights, **others)

    def _champion_weights(self, lists: PackedLists, saturation: Float64s, rest: Float64s) -> Float64s:
        """Return the weights of the champions by a curve; IndexFormatError if one has no code, and is not in the rest."""
        champions, codes = self._arrays["champions"], self._arrays["champion_codes"]
        if codes.size and codes.max() >= len(saturation):
            raise self._damaged("its champions have unknown codes")
        weights: Float64s = saturation[codes]
        rows, columns = np.nonzero((codes == 0) & (champions >= 0))
        if len(rows):
            terms = np.flatnonzero(lists.row_of >= 0)
            keys = lists.rest[0].astype(np.int64) << 32 | lists.rest[1]
            of_champions = terms[rows] << 32 | champions[rows, columns]
            at = np.minimum(np.searchsorted(keys, of_champions), len(keys) - 1)
            if not len(keys) or np.any(keys[at] != of_champions):
                raise self._damaged("its champions do not fit its rare postings")
            weights[rows, columns] = rest[at]
        return weights


def _is_header(header: Int64s) -> bool:
    if len(header) != HEADER:
        return False
    of_docs, has_rest, width, pairs, rest, by_length, per_row, _ = header.tolist()
    fits = 0 < of_docs <= LONG_BITS and has_rest in (0, 1) and width in (1, 2) and by_length in (0, 1)
    return fits and per_row >= 0 and 1 <= pairs <= 1 << LONG_BITS and rest >= 0


def _file_shapes(df: Ints, documents: int, widths: Int64s, pairs: int, rest: int, per_row: int) -> Shapes:
    """Return types and shapes of the arrays of a file."""
    shapes = list_shapes(df, documents, widths, pairs, rest, per_row)
    of_bounds = bound_shapes(int(np.count_nonzero(_frequent(df))), shapes["starts"][1][0], documents)
    del of_bounds["positive"], of_bounds["champion_weights"]  # all are positive; weights of champions are those of their codes
    return shapes | of_bounds | {"champion_codes": (np.uint16, of_bounds["champions"][1])}


def _frequent(df: Ints) -> Bools:
    """Return which terms have bounds in a file."""
    frequent: Bools = df >= DEPTHS[0]
    return frequent


def _layout(shapes: Shapes) -> tuple[dict[str, tuple[int, int]], int]:
    """Return where each array of a file starts and ends, and the size of the file."""
    edges, end = {}, 8 * HEADER
    for name, (dtype, shape) in shapes.items():
        start = -(-end // ALIGNMENT) * ALIGNMENT
        end = start + np.dtype(dtype).itemsize * math.prod(shape)
        edges[name] = start, end
    return edges, end


def _views(blob: Bytes, shapes: Shapes, edges: dict[str, tuple[int, int]]) -> dict[str, AnyArray]:
    """Return the arrays of a file."""
    return {
        name: blob[slice(*edges[name])].view(np.dtype(dtype).newbyteorder("<")).reshape(shape)
        for name, (dtype, shape) in shapes.items()
    }


def _lists(
    df: Ints,
    documents: int,
    widths: Int64s,
    by_length: bool,
    arrays: Arrays,
    per_row: int = DOCUMENTS_PER_ROW,
) -> PackedLists:
    names = ("docs", "codes", "places", "place_codes", "starts", "pairs", "rest")
    of_lists = {name: arrays[name] for name in names}
    return PackedLists(offsets_of(df), row_of(df, documents, per_row), widths=widths, by_length=by_length, **of_lists)


def bound_terms(
    lists: PackedLists,
    arrays: Arrays,
    docs: Int32s,
    weights: Floats,
    first: int,
    last: int,
    codes: UInt16s = NO_POSTING_CODES,
) -> None:
    """Fill in the arrays of `bound_shapes` for the terms from `first` to `last` (excluded), of these documents and weights.

    With `codes`, champions get those in place of weights.
    """
    bounds, rows_of = lists.bounds[first : last + 1] - lists.bounds[first], lists.row_of[first:last]
    term_arrays = (arrays[name][first:last] for name in ("best", "kth", "positive"))
    float_weights, rows_of, docs = weights.astype(np.float32, copy=False), fixed(rows_of), fixed(docs)
    summarize(0, last - first, bounds, docs, float_weights, rows_of, *term_arrays, arrays["rows"])
    values = ("champion_codes", codes) if len(codes) else ("champion_weights", weights)
    choose_champions(bounds, docs, weights, rows_of, values[1], arrays["champions"], arrays[values[0]], arrays["cuts"])


def _weigher(lengths: Ints, by_length: bool) -> Weigher:
    """Return the curve by which the bounds of a file are made, a function of tf and length."""
    tokens = int(lengths.sum(dtype=np.int64))
    mean = tokens / len(lengths) if tokens else 1.0
    return partial(_bm25, mean) if by_length else lambda tf, _: tf.astype(np.float64)


def _bm25(mean: float, tf: Int32s, lengths: Ints) -> Float64s:
    """Return BM25's default weights without idf, rounded as `lexical.weighting.Saturation` does."""
    counts = tf.astype(np.float64)
    weights: Float64s = counts / (counts + K1 * (1 - B + B * lengths.astype(np.float64) / mean))
    return weights


def chunks(bounds: Int64s) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms with about CHUNK_POSTINGS postings each."""
    first, terms = 0, len(bounds) - 1
    while first < terms:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + CHUNK_POSTINGS, side="right")) - 1)
        yield first, last
        first = last
