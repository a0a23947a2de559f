"""Submissions to CheckThat! 2025, task 4b: a table of posts with ranked lists of candidate documents."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..core import InputError, Run, Topic, Topics
from ..core.tabular import normalize
from .columns import one_word
from .format import File, Format

HEADER = ("post_id", "preds")
MIN_REFUSED = 10**18  # least integer refused as an id
DEPTH = 5  # documents submitted per post


class CheckThat(Format, name="checkthat"):
    """A table with the header post_id, preds, with tabs or commas; `preds` is a list ['id1', 'id2', …], best first.

    Scores read are 1/rank, to keep the order. Five documents per post are written.
    """

    def sniff(self, kind: str, file: File) -> float:
        return 0.95 if _is_header(file.start.split("\n", 1)[0]) else 0.0

    def read_run(self, file: File, topics: Topics) -> Run:
        rankings: dict[str, dict[str, float]] = {}
        for number, text in file.texts():
            if not rankings and _is_header(text):
                continue
            post, listed = parse_row(text, file.name, number)
            if post in rankings:
                raise InputError.at(file.name, number, f"topic '{post}' occurs twice")
            ranking = rankings[post] = {}
            for rank, doc in enumerate(listed, 1):
                if ranking.setdefault(doc, 1 / rank) != 1 / rank:
                    raise InputError.at(file.name, number, f"topic '{post}', document '{doc}': listed a second time")
        return Run.of(rankings, Topics([*topics.values(), *(Topic(post, "") for post in rankings if post not in topics)]))

    def write_run(self, run: Run, tag: str) -> Iterator[bytes]:
        yield ("\t".join(HEADER) + "\n").encode()
        for topic_id, ranking in run.items():
            yield f"{one_word(topic_id, 'topic')}\t{[one_word(doc, 'document') for doc in ranking.ids[:DEPTH]]!r}\n".encode()


def _is_header(line: str) -> bool:
    return any(tuple(map(normalize, line.strip().split(separator))) == HEADER for separator in "\t,")


def _is_id(doc: object) -> bool:
    """Whether `doc` is a string, or an integer short enough for Python to convert to a string."""
    return isinstance(doc, str) or (type(doc) is int and abs(doc) < MIN_REFUSED)


def parse_row(text: str, name: str, number: int) -> tuple[str, list[str]]:
    """Return the topic and the documents of a line; InputError names file and line."""
    separator = "\t" if "\t" in text else ","
    post, has_separator, cell = text.strip().partition(separator)
    cell = cell.strip()
    if len(cell) > 1 and cell[0] == cell[-1] == '"':  # a table with commas quotes the list
        cell = cell[1:-1].replace('""', '"')
    try:
        listed = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        listed = None
    if not has_separator or not isinstance(listed, (list, tuple)) or not all(map(_is_id, listed)):
        raise InputError.at(name, number, "no post and list of documents, such as: 16<tab>['3qvh482o', 'r58aohnu']")
    return post.strip(), [str(doc) for doc in listed]
