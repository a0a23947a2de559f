"""Runs: read from TREC and MS MARCO files of any size, and written so that they read back the same."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core import InputError, ParameterError, Run, Strings, Topic, Topics
from ..storage.files import reading, write
from .qrels import one_word

FORMATS = ("trec", "msmarco")
COLUMNS = {6: (2, 4), 3: (1, 2)}  # where document and score (or rank) are
BLOCK = 1 << 17  # bytes: small enough for the cache of a processor
SPACE = np.zeros(256, dtype=bool)
SPACE[[9, 10, 11, 12, 13, 32]] = True  # what bytes.split() splits at


def read_run(path: str | Path, topics: Topics | None = None) -> Run:
    """The run of a file; .gz is unpacked, "-" is standard input.

    Reads TREC (topic, Q0, document, rank, score, tag), of which the rank and the order of the lines count for nothing, and
    MS MARCO (topic, document, rank), whose scores become 1/rank, so that the order is kept. The run has the given `topics`,
    with an empty ranking for each that the file does not have; topics that only the file has follow without text.

    Takes about 16 bytes a row, and the ids. Raises InputError that names file and line for a wrong number of columns, a
    score that is no number or NaN, and a document listed twice for one topic.
    """
    with reading(path) as source:
        rows = _Rows(source.name, topics or Topics())
        for block in source.blocks(BLOCK):
            rows.add(block)
    return rows.run()


def write_run(run: object, path: str | Path, tag: str = "fontes", format: str = "trec") -> None:
    """Writes a run (all that `Run.of` accepts): TREC's six columns, or MS MARCO's three ("msmarco").

    Scores have as many digits as read back to the same float32, ranks count from 1, and the rows are in the one order, so
    the same run always gives the same bytes. A topic without results leaves no trace. Raises InputError for an id with
    white space, which such a file cannot hold, and where writing fails; ParameterError for a tag that is not one word or
    an unknown format.
    """
    if format not in FORMATS:
        raise ParameterError(f"there is no run format '{format}'; there are {', '.join(FORMATS)}")
    if tag.split() != [tag]:
        raise ParameterError(f"the tag '{tag}' must be one word")
    write(path, _lines(Run.of(run), tag, format))


def _lines(run: Run, tag: str, format: str) -> Iterator[bytes]:
    for topic_id, ranking in run.items():
        one_word(topic_id, "topic")
        ids = ranking.ids
        if len(" ".join(ids).split()) != len(ids) or "" in ids:
            for doc_id in ids:
                one_word(doc_id, "document")
        if format == "msmarco":
            lines = [f"{topic_id}\t{doc_id}\t{rank}\n" for rank, doc_id in enumerate(ids, 1)]
        else:
            scores = ranking.scores.astype(str).tolist()
            lines = [
                f"{topic_id} Q0 {doc_id} {rank} {score} {tag}\n"
                for rank, (doc_id, score) in enumerate(zip(ids, scores, strict=True), 1)
            ]
        yield "".join(lines).encode()


class _Rows:
    """The rows read so far: for each the number of its topic and its document, by first appearance, and the score."""

    def __init__(self, name: str, topics: Topics) -> None:
        self.name = name
        self.topics = topics
        self.topic_numbers = _numbering(t.encode() for t in topics)
        self.doc_codes = _numbering(())
        self.numbers: list[NDArray[np.int64]] = []
        self.codes: list[NDArray[np.int32]] = []
        self.scores: list[NDArray[np.float32]] = []
        self.width = 0
        self.count = 0
        self.blanks: list[int] = []  # for each blank line the number of rows before it

    def add(self, block: bytes) -> None:
        """Adds the rows of some whole lines."""
        tokens = block.split()
        if not tokens:
            self.blanks += [self.count] * block.count(b"\n")
            return
        self.width = self.width or len(block.lstrip().split(b"\n", 1)[0].split())
        if self.width not in COLUMNS or not _is_regular(block, self.width):
            self._check(block)
        doc, score = COLUMNS[self.width]
        rows = len(tokens) // self.width
        self.numbers.append(np.fromiter(map(self.topic_numbers.__getitem__, tokens[:: self.width]), np.int64, rows))
        self.codes.append(np.fromiter(map(self.doc_codes.__getitem__, tokens[doc :: self.width]), np.int32, rows))
        self.scores.append(self._parsed(tokens[score :: self.width]))
        self.count += rows

    def run(self) -> Run:
        """The run of all rows."""
        numbers = np.concatenate([*self.numbers, np.zeros(0, dtype=np.int64)])
        codes = np.concatenate([*self.codes, np.zeros(0, dtype=np.int32)])
        scores = np.concatenate([*self.scores, np.zeros(0, dtype=np.float32)])
        topic_ids = [t.decode() for t in self._utf8(self.topic_numbers, numbers)]
        topics = Topics(self.topics[t] if t in self.topics else Topic(t, "") for t in topic_ids)
        encoded = self._utf8(self.doc_codes, codes)
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
        ids = Strings(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)
        del encoded
        self.doc_codes.clear()
        try:
            return Run.from_columns(topics, ids, numbers, codes, scores)
        except InputError:
            row = _second_listing(numbers, codes, len(ids))
            problem = f"topic '{topic_ids[int(numbers[row])]}', document '{ids[int(codes[row])]}': listed a second time"
            raise InputError.at(self.name, self._line(row), problem) from None

    def _parsed(self, tokens: list[bytes]) -> NDArray[np.float32]:
        """The scores, or 1/rank. Raises InputError for what is no number, NaN, and a rank below 1."""
        parse: Callable[[bytes], float]
        parse, what, kind = (float, "score", "number") if self.width == 6 else (_reciprocal, "rank", "whole number from 1")
        try:
            values = np.fromiter(map(parse, tokens), np.float64, len(tokens))
            wrong = np.flatnonzero(np.isnan(values))[:1].tolist()
        except ValueError:
            wrong = [next(i for i, token in enumerate(tokens) if not _parses(parse, token))]
        for i in wrong:
            shown = tokens[i].decode(errors="replace")
            raise InputError.at(self.name, self._line(self.count + i), f"the {what} '{shown}' is not a {kind}")
        with np.errstate(over="ignore"):
            return values.astype(np.float32)

    def _check(self, block: bytes) -> None:
        """Looks at the lines one by one, for blank ones and for the one with a wrong number of columns."""
        rows = self.count
        for line in block.removesuffix(b"\n").split(b"\n"):
            columns = len(line.split())
            if not columns:
                self.blanks.append(rows)
            elif columns != self.width or columns not in COLUMNS:
                wanted = "6 (TREC) or 3 (MS MARCO)" if self.width not in COLUMNS else f"{self.width} as in the lines before"
                raise InputError.at(self.name, self._line(rows), f"{columns} columns, not {wanted}")
            else:
                rows += 1

    def _utf8(self, numbering: dict[bytes, int], column: NDArray[np.integer]) -> list[bytes]:
        """The ids in the order of their numbers. Raises InputError that names the line of one that is not UTF-8."""
        ids = list(numbering)
        try:
            b"\n".join(ids).decode()
        except UnicodeDecodeError:
            row = next(int(np.argmax(column == i)) for i, name in enumerate(ids) if not _parses(bytes.decode, name))
            raise InputError.at(self.name, self._line(row), "not UTF-8; convert the file first") from None
        return ids

    def _line(self, row: int) -> int:
        return row + 1 + bisect.bisect_right(self.blanks, row)


def _numbering(first: Iterable[bytes]) -> dict[bytes, int]:
    """A dict that gives each new key the next number."""
    numbering: defaultdict[bytes, int] = defaultdict()
    numbering.default_factory = numbering.__len__
    for key in first:
        numbering[key]
    return numbering


def _is_regular(block: bytes, width: int) -> bool:
    """Whether each line of the block has `width` columns."""
    characters = np.frombuffer(block, dtype=np.uint8)
    space = SPACE[characters]
    starts = np.flatnonzero(~space & np.concatenate([[True], space[:-1]]))
    ends = np.flatnonzero(characters == ord("\n"))
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    if len(starts) != len(ends) * width:
        return False
    return bool(np.all(starts[width - 1 :: width] < ends) and np.all(starts[width::width] > ends[:-1]))


def _second_listing(numbers: NDArray[np.int64], codes: NDArray[np.int32], documents: int) -> int:
    """The first row whose topic and document another row before it has."""
    pairs = numbers * documents + codes
    order = np.argsort(pairs, kind="stable")
    again = np.flatnonzero(np.diff(pairs[order]) == 0) + 1
    return int(order[again].min())


def _reciprocal(token: bytes) -> float:
    rank = int(token)
    return 1 / rank if rank > 0 else math.nan


def _parses(parse: Callable[[bytes], object], token: bytes) -> bool:
    try:
        parse(token)
    except ValueError:
        return False
    return True
