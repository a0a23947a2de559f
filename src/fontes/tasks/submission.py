"""Forms of submissions: tables of predictions, runs and JSON lines, written and checked line by line."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from pathlib import Path

from ..core import FontesError, InputError, Run, Topics
from ..core.checks import real
from ..formats.checkthat import parse_row
from ..formats.records import json_rows
from ..storage.files import reading, write

Row = tuple[int, str, list[str]]  # line, topic, documents
MAX_FAULTS = 10  # sentences in one error


def check_rows(
    path: Path, rows: Iterable[Row], topics: Topics, documents: Container[str] | None, depth: int, *, all_topics: bool
) -> list[str]:
    """Check rows of a submission.

    Args:
        path: The file.
        rows: Line, topic and documents of each row; a topic may have several rows.
        topics: The topics to submit.
        documents: Ids of all documents; None if unknown.
        depth: Maximum number of documents per topic.
        all_topics: Whether each topic must have a row; otherwise, missing topics only give a remark.

    Returns:
        Remarks on unusual but valid contents.

    Raises:
        InputError: There are faults; the message has a sentence for each of the first ten, with line and remedy.
    """
    problems: list[str] = []
    documents_of: dict[str, set[str]] = {}
    try:
        for line, topic, listed in rows:
            _check_row(f"{path}, line {line}", topic, listed, documents_of, topics, documents, depth, problems)
            if len(problems) >= MAX_FAULTS:
                problems.append(f"{path}: there may be more from line {line} on; mend these first")
                break
    except FontesError as error:  # the rest of the file cannot be read
        problems.append(str(error))
    missing = [topic for topic in topics if topic not in documents_of]
    remarks = []
    if missing and len(problems) < MAX_FAULTS:
        others = f" and of {len(missing) - 1:,} others" if len(missing) > 1 else ""
        remark = f"{path}: no line of topic '{missing[0]}'{others}, of {len(topics):,} topics"
        if all_topics:
            problems.append(f"{remark}; add a line for each")
        else:
            remarks.append(str(InputError(remark)))  # an id may have any length
    if problems:
        raise InputError.of_lines(problems)
    return remarks


def _check_row(
    where: str,
    topic: str,
    listed: list[str],
    documents_of: dict[str, set[str]],
    topics: Topics,
    documents: Container[str] | None,
    depth: int,
    problems: list[str],
) -> None:
    """Append the faults of a row to `problems`, and add its documents to `documents_of`."""
    if topic not in topics:
        if topic not in documents_of:
            documents_of[topic] = set()
            first = next(iter(topics), "")
            problems.append(f"{where}: topic '{topic}' is none of the {len(topics):,} topics, such as '{first}'; take it out")
        return
    seen = documents_of.setdefault(topic, set())
    previous_count = len(seen)
    for doc in listed:
        if len(problems) >= MAX_FAULTS:
            return
        if doc in seen:
            problems.append(f"{where}: topic '{topic}' lists document '{doc}' twice; keep the first")
        elif documents is not None and doc not in documents:
            problems.append(f"{where}: topic '{topic}': there is no document '{doc}' in the collection; take it out")
        seen.add(doc)
    if previous_count <= depth < len(seen):
        problems.append(f"{where}: topic '{topic}' has more than {depth:,} documents; keep the first {depth:,}")


def file_name(name: str, side: str, sides: Collection[str]) -> str:
    """Return the name of a side's file: `name`, such as "run.txt", or "run_SIDE.txt" if there are several sides."""
    stem, dot, ending = name.partition(".")
    return name if len(sides) == 1 else f"{stem}_{side}{dot}{ending}"


def write_table(run: Run, path: Path, id_column: str, depth: int, ids: Mapping[str, str] | None = None) -> None:
    """Write a table with two columns: the topic's id, and `preds`, the list of its documents' ids, best first.

    Args:
        run: The run.
        path: The file.
        id_column: Name of the column of the topic's id.
        depth: Number of documents per topic.
        ids: The id to write for each topic; topics without one are left out. None: all topics with their own ids.
    """
    names = {topic: topic for topic in run} if ids is None else ids
    lines = (f"{names[topic]}\t{run[topic].ids[:depth]!r}\n" for topic in run if topic in names)
    write(path, (line.encode() for line in [f"{id_column}\tpreds\n", *lines]))


def table_rows(path: Path, id_column: str) -> Iterator[Row]:
    """Yield the rows of a table in the form that `write_table` writes.

    Raises:
        InputError: The header or a row is malformed, or a topic has two rows.
    """
    seen: set[str] = set()
    with reading(path) as source:
        for number, text in source.texts():
            if not seen and number == 1:
                if text.strip().split("\t") != [id_column, "preds"]:
                    raise InputError.at(path, 1, f"the header is {text.strip()!r}; it must be '{id_column}<tab>preds'")
                continue
            if "\t" not in text:
                raise InputError.at(path, number, "no tab between the id and the list; the columns are separated by tabs")
            topic, listed = parse_row(text, str(path), number)
            if topic in seen:
                raise InputError.at(path, number, f"topic '{topic}' has a line already; keep one")
            seen.add(topic)
            yield number, topic, listed


def run_rows(path: Path) -> Iterator[Row]:
    """Yield the lines of a run in TREC's form.

    Raises:
        InputError: A line does not have six columns, a rank or score is not a number, ranks do not increase within a topic, or
            scores increase.
    """
    last: dict[str, tuple[int, float]] = {}  # rank and score by topic
    with reading(path) as source:
        for number, text in source.texts():
            columns = text.split()
            if not columns:
                continue
            if len(columns) != 6:
                form = "topic Q0 document rank score tag"
                raise InputError.at(path, number, f"{len(columns)} columns where a run has six: {form}")
            topic, _, doc, rank, score, _ = columns
            try:
                current = int(rank), real(score)
                real(rank)  # which refuses what only `int` reads, such as 1_0
            except ValueError:
                raise InputError.at(path, number, f"rank '{rank}' and score '{score}' must be numbers") from None
            if math.isnan(current[1]):
                raise InputError.at(path, number, "the score is NaN, which has no place in a ranking; write a number")
            if topic in last:
                last_rank, last_score = last[topic]
                if current[0] <= last_rank or current[1] > last_score:
                    problem = f"topic '{topic}': rank {rank} and score {score} after rank {last_rank} and score {last_score:g}"
                    raise InputError.at(path, number, f"{problem}; sort by score, the best first, and number the ranks from 1")
            last[topic] = current
            yield number, topic, [doc]


def write_lines(rows: Iterable[Mapping[str, object]], path: Path) -> None:
    """Write JSON lines."""
    write(path, ((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows))


def line_rows(path: Path, id_key: str, list_key: str) -> Iterator[Row]:
    """Yield the rows of JSON lines with an id and a list of documents, each an id or a pair of id and score.

    Raises:
        InputError: A line is not such an object.
    """
    with reading(path) as source:
        for number, row in json_rows(source):
            listed = row.get(list_key)
            if id_key not in row or not isinstance(listed, list):
                raise InputError.at(
                    path, number, f"no '{id_key}' and list '{list_key}'; a line is {{\"{id_key}\": …, \"{list_key}\": […]}}"
                )
            yield number, str(row[id_key]), [str(item[0] if isinstance(item, list) and item else item) for item in listed]
