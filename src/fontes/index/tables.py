"""Tables of strings: joined, united and searched by compiled loops; and the writer of a build's document ids."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.arrays import AnyArray, Bytes, Int, Int32s, Int64s, Ints, UInt32s, UInt64s
from ..core.errors import InputError
from ..core.strings import HEAD, Strings, offsets_of, utf8
from ..storage.arrays import ByteWriter, NumberWriter, fixed, read_array, smallest, write_array
from ..storage.compiled import inner, is_loaded, kernel

MANY = 16  # strings for one that is read, from which on joined tables are not made one
CHUNK_NUMBERS = 1 << 16  # numbers written to a temporary file at a time
UNIQUE = "ids must be unique; duplicates='skip' (--duplicates skip) keeps the first document"
SORTING = 64  # bytes of memory of an id while ids are sorted, besides its own


def union(tables: Sequence[Strings]) -> tuple[Strings, list[Int32s]]:
    """Return the union of ascending tables, each without repetitions.

    Returns:
        The strings, ascending; and for each table the positions of its strings among them.
    """
    pool = [(len(table), i, table, [i]) for i, table in enumerate(tables)]
    maps: list[Int32s] = [np.arange(len(table), dtype=np.int32) for table in tables]
    heapq.heapify(pool)  # the two shortest tables first, so that a long table is read once
    while len(pool) > 1:
        (_, number, first_table, first_members), (_, _, second_table, second_members) = heapq.heappop(pool), heapq.heappop(pool)
        blob, offsets, first_map, second_map = _union(*arrays_of(first_table), *arrays_of(second_table))
        for members, mapping in ((first_members, first_map), (second_members, second_map)):
            for i in members:
                maps[i] = mapping[maps[i]]
        table = Strings(blob, offsets).ascending()
        heapq.heappush(pool, (len(table), number, table, first_members + second_members))
    return (pool[0][2] if pool else Strings.of([]).ascending()), maps


class JoinedStrings(Strings):
    """The strings of several tables at some positions, end to end; single strings are read where they are.

    Args:
        tables: The tables.
        live: Ascending positions in each table; None for all.
    """

    __slots__ = ("_firsts", "_live", "_tables", "_views", "_whole")

    def __init__(self, tables: Sequence[Strings], live: Sequence[Ints | None]) -> None:
        self._tables, self._live = tables, live
        self._whole: Strings | None = None
        self._views: list[tuple[memoryview, memoryview]] = []
        sizes = [len(table) if indices is None else len(indices) for table, indices in zip(tables, live, strict=True)]
        self._firsts: list[int] = offsets_of(sizes).tolist()

    @property
    def whole(self) -> Strings:
        """One table of the strings, made when first needed."""
        if self._whole is None:
            self._whole = _joined(self._tables, self._live)
        return self._whole

    @property
    def blob(self) -> Bytes:  # type: ignore[override]
        return self.whole.blob

    @property
    def offsets(self) -> Ints:  # type: ignore[override]
        return self.whole.offsets

    @property
    def order(self) -> UInt32s:
        return self.whole.order

    @property
    def rank(self) -> UInt32s:
        return self.whole.rank

    def find(self, string: str) -> int:
        for table, live, first in zip(self._tables, self._live, self._firsts[:-1], strict=True):
            if (position := table.find(string)) >= 0:
                if live is None:
                    return first + position
                at = int(np.searchsorted(live, position))
                if at < len(live) and live[at] == position:
                    return first + at
                return self.whole.find(string)  # it may be there twice
        return -1

    def take(self, positions: Ints) -> list[str]:
        if self._whole is not None or len(positions) * MANY > len(self):
            return self.whole.take(positions)
        if not self._views:
            self._views = [(table.blob.data, table.offsets.data) for table in self._tables]  # as in `Strings.take`
        strings = []
        for position in positions.tolist():
            number, at = self._place(position)
            blob, offsets = self._views[number]
            strings.append(blob[offsets[at] : offsets[at + 1]].tobytes().decode())
        return strings

    def _place(self, position: int) -> tuple[int, int]:
        """Return the table of a string, and the string's position there."""
        number = bisect_right(self._firsts, position) - 1
        live, at = self._live[number], position - self._firsts[number]
        return number, at if live is None else live.item(at)

    def _bytes(self, position: int) -> bytes:
        number, at = self._place(position)
        table = self._tables[number]
        return table.blob[table.offsets.item(at) : table.offsets.item(at + 1)].tobytes()

    def __len__(self) -> int:
        return self._firsts[-1]

    def __reduce__(self) -> tuple[object, ...]:
        return Strings, (self.blob, self.offsets, self.order)


def join_tables(tables: Sequence[Strings], live: Sequence[Ints | None]) -> Strings:
    """Concatenate the strings of tables at the positions in `live`, ascending (None: all); merge the tables' orders."""
    return tables[0] if len(tables) == 1 and live[0] is None else JoinedStrings(tables, live)


def _joined(tables: Sequence[Strings], live: Sequence[Ints | None]) -> Strings:
    parts = [table if indices is None else _select(table, indices) for table, indices in zip(tables, live, strict=True)]
    firsts = offsets_of([len(part) for part in parts]).tolist()
    orders = [part.order + np.uint32(first) for part, first in zip(parts, firsts, strict=False)]
    table = concatenate_tables(parts)
    return Strings(table.blob, table.offsets, merged_orders(table.blob, table.offsets, orders))


def concatenate_tables(tables: Sequence[Strings]) -> Strings:
    """Return one table of the strings of several, in this order."""
    blob = np.concatenate([np.zeros(0, dtype=np.uint8), *(table.blob for table in tables)])
    return Strings(blob, offsets_of(np.concatenate([np.zeros(0, np.int64), *(np.diff(table.offsets) for table in tables)])))


def merged_orders(blob: Bytes, offsets: Ints, orders: Sequence[UInt32s], spool: Path | None = None) -> UInt32s:
    """Merge the orders of parts of a table.

    Args:
        blob: Bytes of the strings.
        offsets: Offset of each string.
        orders: For each part the positions of its strings in ascending order of the strings, equal ones by position.
        spool: Path prefix of temporary files; None works in memory.
    """
    pool = [(len(order), i, order) for i, order in enumerate(orders)]
    heapq.heapify(pool)
    merges = 0
    while len(pool) > 1:
        (_, first_number, first_order), (_, second_number, second_order) = heapq.heappop(pool), heapq.heappop(pool)
        size, merges = len(first_order) + len(second_order), merges + 1
        path = None if spool is None else spool.with_name(f"{spool.name}{merges}")
        merged = np.empty(size, np.uint32) if path is None else _map_zeros(path, np.uint32, size)
        _merge_orders(fixed(blob), fixed(offsets), fixed(first_order), fixed(second_order), merged.view(np.ndarray))
        heapq.heappush(pool, (size, min(first_number, second_number), merged))
    return pool[0][2] if pool else np.zeros(0, dtype=np.uint32)


def first_repeated(blob: Bytes, offsets: Int64s, order: UInt32s) -> int:
    """Return the index into `order` of the first string that equals the next one; -1 for none."""
    return int(_first_repeated(fixed(blob), fixed(offsets), fixed(order)))


def find_positions(queries: Strings, table: Strings) -> Int64s:
    """Return the position in `table` of each of `queries`, int64; -1 for an absent one."""
    return _located(*arrays_of(queries), *arrays_of(table), fixed(table.order))  # type: ignore[no-any-return]


class Finder:
    """Finds single strings in an ascending table, by a compiled loop once loops are loaded."""

    def __init__(self, table: Strings) -> None:
        self._table = table
        self._arrays: tuple[Ints, ...] | None = None

    def __call__(self, string: str) -> int:
        """Return the position of `string`, or -1."""
        if self._arrays is None:
            if not (is_loaded() and len(self._table.blob)):
                return self._table.find(string)
            self._arrays = finding_arrays(self._table)
        return _position(*self._arrays, np.frombuffer(utf8(string), dtype=np.uint8))  # type: ignore[no-any-return]


def finding_arrays(table: Strings) -> tuple[UInt64s, Bytes, Ints]:
    """Return the heads, bytes and offsets of an ascending table, for `position`."""
    blob, offsets = fixed(table.blob), table.offsets
    narrow = np.uint32 if len(blob) < 1 << 32 else np.int64  # two versions of the loop at most
    return _heads(blob, offsets), blob, fixed(offsets.astype(narrow, copy=False))


def _heads(blob: Bytes, offsets: Ints) -> UInt64s:
    """The first eight bytes of every HEAD-th string as a number; shorter strings are padded with zeros."""
    starts, ends = offsets[:-1:HEAD].astype(np.int64), offsets[1::HEAD].astype(np.int64)
    positions = starts[:, None] + np.arange(8)
    letters = np.where(positions < ends[:, None], blob.take(positions, mode="clip"), 0).astype(np.uint8)
    return fixed(letters.view(">u8")[:, 0].astype(np.uint64))


def _select(table: Strings, indices: Ints) -> Strings:
    """Select the strings at ascending positions, with their order."""
    number = np.full(len(table), -1, dtype=np.int64)
    number[indices] = np.arange(len(indices))
    order = number[table.order]
    chosen = table.reordered(indices)
    return Strings(chosen.blob, chosen.offsets, order[order >= 0].astype(np.uint32))


def arrays_of(table: Strings) -> tuple[Bytes, Int64s]:
    """Return the bytes and offsets of a table, for compiled loops."""
    return fixed(table.blob), fixed(table.offsets.astype(np.int64, copy=False))


@inner()
def compare_bytes(first: Bytes, first_start: Int, first_end: Int, second: Ints, second_start: Int, second_end: int) -> int:
    """Return -1, 0 or 1 if first[first_start:first_end] is before, equal to or after second[second_start:second_end]."""
    common = min(first_end - first_start, second_end - second_start)
    for i in range(common):
        if first[first_start + i] != second[second_start + i]:
            return -1 if first[first_start + i] < second[second_start + i] else 1
    return int(np.sign((first_end - first_start) - (second_end - second_start)))


@inner()
def copy_bytes(source: Bytes, start: int, end: int, target: Bytes, at: int) -> int:
    """Copy source[start:end] to target[at:]; return the end."""
    for i in range(start, end):
        target[at + i - start] = source[i]
    return at + end - start


@kernel()
def _position(heads: UInt64s, blob: Bytes, offsets: Ints, string: Bytes) -> int:
    return position(heads, blob, offsets, string, 0, len(string))


@inner()
def position(heads: UInt64s, blob: Bytes, offsets: Ints, text: Ints, start: int, end: int) -> int:
    """Return the position of text[start:end] in an ascending table with these `heads`; -1 for none."""
    head = np.uint64(0)
    for i in range(start, start + 8):
        head = head << np.uint64(8) | np.uint64(text[i] if i < end else 0)
    low, high = 0, len(heads)
    while low < high:
        middle = (low + high) // 2
        if heads[middle] < head:
            low = middle + 1
        else:
            high = middle
    first, high = max(0, low - 1) * HEAD, len(heads)
    while low < high:
        middle = (low + high) // 2
        if heads[middle] <= head:
            low = middle + 1
        else:
            high = middle
    low, high = first, min(HEAD * low, len(offsets) - 1)
    while low < high:
        middle = (low + high) // 2
        side = compare_bytes(blob, np.int64(offsets[middle]), np.int64(offsets[middle + 1]), text, start, end)
        if side == 0:
            return middle
        if side < 0:
            low = middle + 1
        else:
            high = middle
    return -1


@kernel(steps=lambda first, first_bounds, second, second_bounds: 8 * (len(first_bounds) + len(second_bounds)))
def _union(first: Bytes, first_bounds: Int64s, second: Bytes, second_bounds: Int64s) -> tuple[Bytes, Int64s, Int32s, Int32s]:
    """Unite two ascending tables; return the bytes and bounds of the union, and the position in it of each table's strings."""
    n, m = len(first_bounds) - 1, len(second_bounds) - 1
    blob = np.empty(len(first) + len(second), dtype=np.uint8)
    bounds = np.zeros(n + m + 1, dtype=np.int64)
    first_map, second_map = np.empty(n, dtype=np.int32), np.empty(m, dtype=np.int32)
    i, j, count = 0, 0, 0
    while i < n or j < m:
        if j == m:
            side = -1
        elif i == n:
            side = 1
        else:
            side = compare_bytes(first, first_bounds[i], first_bounds[i + 1], second, second_bounds[j], second_bounds[j + 1])
        if side <= 0:
            bounds[count + 1] = copy_bytes(first, first_bounds[i], first_bounds[i + 1], blob, bounds[count])
            first_map[i] = count
            i += 1
        else:
            bounds[count + 1] = copy_bytes(second, second_bounds[j], second_bounds[j + 1], blob, bounds[count])
        if side >= 0:
            second_map[j] = count
            j += 1
        count += 1
    return blob[: bounds[count]].copy(), bounds[: count + 1].copy(), first_map, second_map


@kernel(steps=lambda blob, bounds, first, second, merged: 8 * (len(first) + len(second)))
def _merge_orders(blob: Bytes, bounds: Int64s, first: UInt32s, second: UInt32s, merged: UInt32s) -> None:
    """Merge two lists of indices, each in the order of its strings; equal strings by index."""
    i, j = 0, 0
    while i < len(first) and j < len(second):
        a, b = np.int64(first[i]), np.int64(second[j])
        side = compare_bytes(blob, bounds[a], bounds[a + 1], blob, bounds[b], bounds[b + 1])
        if side < 0 or (side == 0 and a < b):
            merged[i + j] = first[i]
            i += 1
        else:
            merged[i + j] = second[j]
            j += 1
    filled = i + j
    merged[filled : filled + len(first) - i] = first[i:]
    merged[filled + len(first) - i :] = second[j:]


@kernel(steps=lambda blob, bounds, order: 8 * len(order))
def _first_repeated(blob: Bytes, bounds: Int64s, order: UInt32s) -> int:
    for i in range(len(order) - 1):
        a, b = np.int64(order[i]), np.int64(order[i + 1])
        if compare_bytes(blob, bounds[a], bounds[a + 1], blob, bounds[b], bounds[b + 1]) == 0:
            return i
    return -1


@kernel(steps=lambda queries, query_bounds, *rest: 200 * len(query_bounds))
def _located(queries: Bytes, query_bounds: Int64s, blob: Bytes, bounds: Int64s, order: UInt32s) -> Int64s:
    indices = np.full(len(query_bounds) - 1, -1, dtype=np.int64)
    for i in range(len(indices)):
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            index = np.int64(order[middle])
            side = compare_bytes(blob, bounds[index], bounds[index + 1], queries, query_bounds[i], query_bounds[i + 1])
            if side == 0:
                indices[i] = index
                break
            if side < 0:
                low = middle + 1
            else:
                high = middle
    return indices


def write_ids(folder: Path, ids: Strings) -> None:
    """Write doc_ids in `folder`."""
    write_array(folder, "doc_ids.bytes", ids.blob)
    write_array(folder, "doc_ids.bounds", smallest(ids.offsets))
    write_array(folder, "doc_ids.order", ids.order)


class IdWriter:
    """Writes doc_ids in `folder`; when pending ids take `memory` bytes, they are sorted and their order is spilled."""

    def __init__(self, folder: Path, memory: int) -> None:
        self._folder, self._memory = folder, memory
        self._bytes, self._bounds = ByteWriter(folder, "doc_ids.bytes"), NumberWriter(folder, "doc_ids.bounds")
        self._bounds.write(np.zeros(1, dtype=np.int64))
        self._pending: list[Strings] = []
        self._size, self._count, self._parts = 0, 0, 0

    def add(self, ids: Strings) -> None:
        """Append ids."""
        self._bounds.write(self._bytes.length + ids.offsets[1:].astype(np.int64))
        self._bytes.write(ids.blob)
        self._pending.append(ids)
        self._size += len(ids.blob) + SORTING * len(ids)
        self._count += len(ids)
        if self._size >= self._memory:
            self._sort_pending().tofile(self._file(self._parts))
            self._parts += 1

    def close(self, repeated: bool) -> None:
        """Complete the files; raise InputError for an id that occurs twice, unless ids may be `repeated`."""
        self._bytes.close()
        self._bounds.close()
        blob, bounds = (read_array(self._folder, f"doc_ids.{name}") for name in ("bytes", "bounds"))
        bounds = bounds.astype(np.int64) if not self._parts else _map_copy(bounds, self._file("bounds"))
        parts: list[UInt32s] = [np.memmap(self._file(number), np.uint32, "r") for number in range(self._parts)]
        if self._pending:
            parts.append(self._sort_pending())
        order = merged_orders(blob, bounds, parts, self._file("merged") if self._parts else None)
        if not repeated and (rank := first_repeated(blob, bounds, order)) >= 0:
            first, second = sorted((int(order[rank]) + 1, int(order[rank + 1]) + 1))
            doc_id = Strings(blob, bounds)[first - 1]
            raise InputError(f"document id '{doc_id}' occurs twice, as documents {first} and {second}; {UNIQUE}")
        write_array(self._folder, "doc_ids.order", order)

    def abandon(self) -> None:
        """Close unfinished files."""
        self._bytes.abandon()
        self._bounds.abandon()

    def _sort_pending(self) -> UInt32s:
        """Return the numbers of the pending ids among all ids, in ascending order of the ids, and forget the ids."""
        table = concatenate_tables(self._pending)
        self._pending, self._size = [], 0
        return table.order + np.uint32(self._count - len(table))

    def _file(self, name: object) -> Path:
        return self._folder.parent / f"ids.{name}"


def _map_copy(numbers: Ints, path: Path) -> Int64s:
    copied_numbers = _map_zeros(path, np.int64, len(numbers))
    for first in range(0, len(numbers), CHUNK_NUMBERS):
        copied_numbers[first : first + CHUNK_NUMBERS] = numbers[first : first + CHUNK_NUMBERS]
    return copied_numbers


def _map_zeros(path: Path, dtype: type[np.generic], size: int) -> AnyArray:
    """Map a new file of zeros, all written first: on a full disk a sparse file would kill the process that maps it."""
    with path.open("wb") as file:
        for first in range(0, size, CHUNK_NUMBERS):
            file.write(np.zeros(min(CHUNK_NUMBERS, size - first), dtype).data)
    return np.memmap(path, dtype, "r+", shape=size)
