"""Judgments and runs in whitespace-separated columns (TREC, BEIR, MS MARCO), for files of any size."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..core import InputError, Qrels, Ranking, Run, Strings, Topic, Topics
from ..core.arrays import Float32s, Int32s, Int64s, Ints
from ..core.checks import grade_of
from ..core.strings import SURROGATE, concatenated, utf8
from ..storage.files import InputFile
from .decoding import remedy, warn
from .format import File, Format

TREC_RUN, MS_MARCO_RUN = 6, 3
RUN_COLUMNS = {TREC_RUN: (2, 4), MS_MARCO_RUN: (1, 2)}  # indices of document and score (or rank)
BEIR_QRELS, TREC_QRELS, PRELS = 3, 4, 5
QRELS_COLUMNS = {
    BEIR_QRELS: "topic, document, grade",
    TREC_QRELS: "topic, group, document, grade",
    PRELS: "topic, document, grade, method, probability",
}
QRELS_COLUMN = {BEIR_QRELS: (1, 2), TREC_QRELS: (2, 3), PRELS: (1, 2)}  # indices of document and grade
QRELS_HEADER = ("query-id", "query_id", "qid", "topic")
PARQUET = "; format='parquet' (--to parquet) can"  # advice for runs
BLOCK_SIZE = 1 << 17  # bytes; fits into the processor's cache
SPACE = np.zeros(256, dtype=bool)
SPACE[[9, 10, 11, 12, 13, 32]] = True  # white space of bytes.split()


def qrels_width(file: File) -> int:
    """Number of columns in the first row of a judgments file."""
    line = first_row(file)
    by_tabs = line.count("\t") + 1
    return by_tabs if by_tabs in QRELS_COLUMNS else len(line.split())


def read_qrels_columns(source: InputFile, width: int, groups: bool = False) -> Qrels:
    """Read judgments in 3 to 5 columns, separated by tabs if that gives `width` columns, else by white space.

    Args:
        source: The file.
        width: Number of columns; 5 are those of sampled judgments (prels), whose probabilities are not used.
        groups: Whether the second of 4 columns names evidence sets. Otherwise a document with several values there, such as
            subtopics, has the highest of its grades.

    Raises:
        InputError: Another number of columns, a grade that is no integer, or a document with two grades.
    """
    rows = _QrelsRows(source, width)
    try:
        return Qrels(rows if groups or width != TREC_QRELS else _without_subtopics(rows))
    except InputError as error:
        # Qrels reads row by row, so the error is in the line read last.
        raise error if str(error).startswith(source.name) else InputError.at(source.name, rows.line, str(error)) from None


def run_width(file: File) -> int:
    """Number of columns in the first row of a run."""
    return len(first_row(file).split())


def first_row(file: File) -> str:
    """Return the first line that is neither blank nor a comment; files of other kinds keep their comments."""
    return next((line for line in file.start.split("\n") if not line.isspace() and line and line.lstrip()[:1] != "#"), "")


def read_run_columns(source: InputFile, width: int, topics: Topics) -> Run:
    """Read a run of 6 or 3 columns: `topics` first, then the topics found only in the file.

    Raises InputError for another number of columns, a score that is NaN or not a number, or a repeated document.
    """
    rows = _RunRows(source.name, width, topics)
    for block in source.blocks(BLOCK_SIZE):
        rows.add(block)
    return rows.run()


def run_rankings(run: Run) -> Iterator[tuple[str, Ranking]]:
    """Yield the rankings of a run; InputError for an id with white space."""
    for topic_id, ranking in run.items():
        one_word(topic_id, "topic", PARQUET)
        ids = ranking.ids
        if len(" ".join(ids).split()) != len(ids) or "" in ids:
            for doc_id in ids:
                one_word(doc_id, "document", PARQUET)
        yield topic_id, ranking


def one_word(value: str, kind: str, advice: str = "") -> str:
    """Return `value`; InputError if it is empty, contains white space, or is not Unicode."""
    if value.split() != [value]:
        raise InputError(f"the {kind} id '{value}' has white space in it or is empty; a TREC file cannot hold it{advice}")
    if SURROGATE.search(value):
        raise InputError(f"the {kind} id '{value}' has half of a surrogate pair in it; a TREC file cannot hold it")
    return value


class _QrelsRows:
    def __init__(self, source: InputFile, width: int) -> None:
        self.source = source
        self.width = width
        self.line = 0

    def __iter__(self) -> Iterator[tuple[str, str, str, int]]:
        first = True
        for number, text in self.source.texts():
            self.line = number
            cells = self._cells(text)
            if len(cells) != self.width:
                is_unknown = first and len(cells) not in (BEIR_QRELS, TREC_QRELS)
                usual = f"{QRELS_COLUMNS[BEIR_QRELS]} or {QRELS_COLUMNS[TREC_QRELS]}"
                raise self._error(f"{len(cells)} columns, not {usual if is_unknown else QRELS_COLUMNS[self.width]}")
            if first and self.width == BEIR_QRELS and cells[0].lower() in QRELS_HEADER and not _parses(grade_of, cells[2]):
                first = False
                continue
            if first and self.width == PRELS:
                warn(f"{self.source.name}: a sample of judgments (prels); the probabilities of sampling are not used")
            first = False
            doc, grade = QRELS_COLUMN[self.width]
            if not _parses(grade_of, cells[grade]):
                raise self._error(f"the grade '{cells[grade]}' is not an integer")
            group = cells[1].strip() if self.width == TREC_QRELS else "0"
            yield cells[0].strip(), group, cells[doc].strip(), grade_of(cells[grade])

    def _cells(self, line: str) -> list[str]:
        cells = line.split("\t")
        return cells if len(cells) == self.width else line.split()

    def _error(self, problem: str) -> InputError:
        return InputError.at(self.source.name, self.line, problem)


def _without_subtopics(rows: _QrelsRows) -> Iterator[tuple[str, str, str, int]]:
    """Yield one row for each document of a topic, without a group, with the highest grade of its rows."""
    judged: dict[str, dict[str, tuple[str, int]]] = {}
    example: str | None = None
    for topic, group, doc, grade in rows:
        first_group, first_grade = judged.setdefault(topic, {}).setdefault(doc, (group, grade))
        if first_grade == grade:
            continue
        if first_group == group:
            raise InputError(f"topic '{topic}', document '{doc}' is judged twice, with the grades {first_grade} and {grade}")
        judged[topic][doc] = first_group, max(first_grade, grade)
        example = example or f"'{doc}' for '{topic}' has {first_grade} with {first_group} and {grade} with {group}"
    if example is not None:
        warn(
            f"{rows.source.name}: documents have several grades for one topic, such as {example} in the second column; the "
            "highest counts (Complete@k, or groups=True, reads evidence sets)"
        )
    for topic, docs in judged.items():
        yield from ((topic, "0", doc, grade) for doc, (_, grade) in docs.items())


class _RunRows:
    """Rows read so far: topic and document numbers by first appearance, and scores."""

    def __init__(self, name: str, width: int, topics: Topics) -> None:
        self.name = name
        self.width = width
        self.topics = topics
        self.topic_numbers = _numbering(map(utf8, topics))
        self.doc_codes = _numbering(())
        self.numbers: list[Int64s] = []
        self.codes: list[Int32s] = []
        self.scores: list[Float32s] = []
        self.count = 0
        self.blanks: list[int] = []  # rows before each blank line

    def add(self, block: bytes) -> None:
        """Add the rows of a block of whole lines."""
        tokens = block.split()
        if not tokens:
            self.blanks += [self.count] * block.count(b"\n")
            return
        if not _is_regular(block, self.width):
            self._check_lines(block)
        doc, score = RUN_COLUMNS[self.width]
        rows = len(tokens) // self.width
        self.numbers.append(np.fromiter(map(self.topic_numbers.__getitem__, tokens[:: self.width]), np.int64, rows))
        self.codes.append(np.fromiter(map(self.doc_codes.__getitem__, tokens[doc :: self.width]), np.int32, rows))
        self.scores.append(self._parse_scores(tokens[score :: self.width]))
        self.count += rows

    def run(self) -> Run:
        """Return the run; InputError names the line of a repeated document or of an id that is not UTF-8."""
        numbers = np.concatenate([*self.numbers, np.zeros(0, dtype=np.int64)])
        codes = np.concatenate([*self.codes, np.zeros(0, dtype=np.int32)])
        scores = np.concatenate([*self.scores, np.zeros(0, dtype=np.float32)])
        if self.width == MS_MARCO_RUN:
            scores = 1 / (scores + (scores == 0).any())  # PyTerrier counts ranks from 0
        topic_ids = [t.decode() for t in self._checked_ids(self.topic_numbers, numbers)]
        topics = Topics(self.topics[t] if t in self.topics else Topic(t, "") for t in topic_ids)
        encoded = self._checked_ids(self.doc_codes, codes)
        ids = Strings(*concatenated(encoded))
        del encoded
        self.doc_codes.clear()
        try:
            return Run.from_columns(topics, ids, numbers, codes, scores)
        except InputError:
            pairs = numbers * len(ids) + codes
            order = np.argsort(pairs, kind="stable")
            row = int(order[np.flatnonzero(np.diff(pairs[order]) == 0) + 1].min())  # the first repetition
            problem = f"topic '{topic_ids[int(numbers[row])]}', document '{ids[int(codes[row])]}': listed a second time"
            raise InputError.at(self.name, self._line(row), problem) from None

    def _parse_scores(self, tokens: list[bytes]) -> Float32s:
        """Return scores or ranks; InputError for NaN, a rank below 0, or anything but a number."""
        parse: Callable[[bytes], float]
        parse, column, expected = float, "score", "number"
        if self.width == MS_MARCO_RUN:
            parse, column, expected = _rank, "rank", "whole number from 0"
        try:
            values = np.fromiter(map(parse, tokens), np.float64, len(tokens))
            wrong = np.flatnonzero(np.isnan(values))[:1].tolist()
            if b"_" in b"".join(tokens):
                raise ValueError("Python's number parsers accept underscores")
        except ValueError:
            wrong = [i for i, token in enumerate(tokens) if b"_" in token or not _parses(parse, token)][:1]
        for i in wrong:
            text = tokens[i].decode(errors="replace")
            remedy = "; scores need a header: qid docid score" if column == "rank" and _parses(float, text) else ""
            problem = f"the {column} '{text}' is not a {expected}{remedy}"
            raise InputError.at(self.name, self._line(self.count + i), problem)
        with np.errstate(over="ignore"):
            return values.astype(np.float32)

    def _check_lines(self, block: bytes) -> None:
        rows = self.count
        for line in block.removesuffix(b"\n").split(b"\n"):
            columns = len(line.split())
            if not columns:
                self.blanks.append(rows)
            elif columns != self.width:
                possible = "6 (TREC) or 3 (MS MARCO)" if columns not in RUN_COLUMNS else str(self.width)
                expected = f"{self.width} as in the lines before" if rows else possible
                remedy = (
                    "" if rows or columns in RUN_COLUMNS else f"; other columns need a header, such as: {_header_for(line)}"
                )
                raise InputError.at(self.name, self._line(rows), f"{columns} columns, not {expected}{remedy}")
            else:
                rows += 1

    def _checked_ids(self, numbering: dict[bytes, int], column: Ints) -> list[bytes]:
        """Return ids in the order of their numbers; InputError names the line that is not UTF-8."""
        ids = list(numbering)
        try:
            b"\n".join(ids).decode()
        except UnicodeDecodeError:
            wrong = next(i for i, name in enumerate(ids) if not _parses(bytes.decode, name))
            row = int(np.argmax(column == wrong))
            raise InputError.at(self.name, self._line(row), f"not UTF-8; {remedy(ids[wrong])}") from None
        return ids

    def _line(self, row: int) -> int:
        """Return the line number of a row."""
        return row + 1 + bisect.bisect_right(self.blanks, row)


def _header_for(line: bytes) -> str:
    """Return names for the columns of a run that are neither TREC's nor MS MARCO's."""
    delimiter = "," if b"," in line else " "
    count = len(line.split(delimiter.encode().strip() or None))
    names = {4: "qid docid rank score", TREC_RUN: "qid Q0 docid rank score tag"}.get(count, "qid docid score")
    return names.replace(" ", delimiter)


def _numbering(keys: Iterable[bytes]) -> dict[bytes, int]:
    """Return a dict that numbers these keys from 0, and each further key on its first look-up."""
    numbering: defaultdict[bytes, int] = defaultdict()
    numbering.default_factory = numbering.__len__
    for key in keys:
        numbering[key]
    return numbering


def _is_regular(block: bytes, width: int) -> bool:
    """Whether each line of a block has `width` columns."""
    characters = np.frombuffer(block, dtype=np.uint8)
    space = SPACE[characters]
    starts = np.flatnonzero(~space & np.concatenate([[True], space[:-1]]))
    ends = np.flatnonzero(characters == ord("\n"))
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    if len(starts) != len(ends) * width:
        return False
    return bool(np.all(starts[width - 1 :: width] < ends) and np.all(starts[width::width] > ends[:-1]))


def _rank(token: bytes) -> float:
    rank = int(token)
    return rank if rank >= 0 else math.nan


def _parses(parse: Callable[[Any], object], token: str | bytes) -> bool:
    try:
        parse(token)
    except ValueError:
        return False
    return True


class Beir(Format, name="beir"):
    """Judgments with the columns query-id, corpus-id, score, with or without this header."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.5 if qrels_width(file) == BEIR_QRELS else 0.0

    def read_qrels(self, file: File) -> Qrels:
        return read_qrels_columns(file, BEIR_QRELS)

    def write_qrels(self, qrels: Qrels) -> Iterator[bytes]:
        yield b"query-id\tcorpus-id\tscore\n"
        for topic_id, grades in qrels.items():
            for doc_id, grade in grades.items():
                for kind, value in (("topic", topic_id), ("document", doc_id)):
                    if len(value.splitlines()) != 1 or "\t" in value or value != value.strip():
                        raise InputError(f"{kind} id '{value}': columns cannot hold tabs, line ends or surrounding spaces")
                yield f"{topic_id}\t{doc_id}\t{grade}\n".encode()


class MsMarco(Format, name="msmarco"):
    """Runs with the columns topic, document, rank, from 1 or 0. Scores read are 1/rank, counted from 1, to keep the order."""

    def sniff(self, kind: str, file: File) -> float:
        return 0.5 if run_width(file) == MS_MARCO_RUN else 0.0

    def read_run(self, file: File, topics: Topics) -> Run:
        return read_run_columns(file, MS_MARCO_RUN, topics)

    def write_run(self, run: Run, tag: str) -> Iterator[bytes]:
        for topic_id, ranking in run_rankings(run):
            yield "".join(f"{topic_id}\t{doc_id}\t{rank}\n" for rank, doc_id in enumerate(ranking.ids, 1)).encode()
