"""Tables with a header, from files and DataFrames: topics, judgments and results by column name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .checks import grade_of, is_missing, real, string_of
from .errors import InputError
from .tabular import GRADE, JUDGED, RANK, SCORE, TOPIC_ID, TOPIC_TEXT, Frame, find, join_with_or, normalize

GENERIC_IDS = ("_id", "id", "number", "num")  # names of ids that may be those of documents


class Cell(str):
    """Text of a cell that may represent a number, a date or a truth value."""

    __slots__ = ()


class Table:
    """Rows under a header, with columns found by name in any order and case.

    Args:
        name: Name in messages: the name of a file, or "the DataFrame".
        header: The column names.
        rows: (row number for messages, cells), read once.
        unit: Unit of the numbers: "line" or "row".
        topic_id: Accepted names of the topic id column.
        topic_text: Accepted names of the topic text column.
    """

    def __init__(
        self,
        name: str,
        header: Sequence[str],
        rows: Iterable[tuple[int, Sequence[object]]],
        unit: str = "line",
        topic_id: Sequence[str] = TOPIC_ID,
        topic_text: Sequence[str] = TOPIC_TEXT,
    ) -> None:
        self.name = name
        self.header = list(header)
        self.rows = rows
        self.unit = unit
        self.topic_id, self.topic_text = topic_id, topic_text
        self.number = 0  # last row read

    @classmethod
    def of_frame(cls, frame: object, ids: Sequence[str] = (), texts: Sequence[str] = ()) -> Table:
        """Return the table of a frame, as `tabular.is_frame` knows them; for `ids` and `texts` see `Frame.of`."""
        table = Frame.of(frame, ids, texts, 1)
        return cls("the DataFrame", table.names, enumerate(table.rows(), 1), "row")

    @classmethod
    def of_records(cls, records: Sequence[dict[str, object]], name: str) -> Table:
        """Return the table of at least one dict, whose columns are the keys of the first."""
        header = list(records[0])
        return cls(name, header, ((n, [record.get(key) for key in header]) for n, record in enumerate(records, 1)), "item")

    @property
    def where(self) -> str:
        """Last row read, for messages."""
        return f"{self.name}, {self.unit} {self.number}"

    def topics(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (id, text, narrative, description) of each topic.

        A table that also names documents repeats a topic for each document; the topic is yielded once.

        Raises:
            InputError: The id or text i is missing, a cell is empty or neither string nor whole number, or a topic of a
                table with documents has two texts.
        """
        topic = self._column("id of the topic", self.topic_id)
        text = self._column("text of the topic", self.topic_text, topic)
        optional = [self._find_column((name,), topic, text) for name in ("narrative", "description")]
        repeats = self._find_column(JUDGED, topic, text) is not None
        texts: dict[str, str] = {}
        for row in self._read():
            topic_id = self._id(row[topic], "topic")
            query = string_of(row[text], "text of the topic", self.where).strip()
            if repeats and topic_id in texts:
                if texts[topic_id] != query:
                    raise InputError(f"{self.where}: topic '{topic_id}' has another text in a row before")
                continue
            texts[topic_id] = query
            narrative, description = (
                "" if i is None or is_missing(row[i]) else string_of(row[i], self.header[i], self.where).strip()
                for i in optional
            )
            yield topic_id, query, narrative, description

    def judgments(self) -> Iterator[tuple[str, str, str, int]]:
        """Yield (topic id, group, document id, grade) of each row with a document; the default grade is 1.

        A column "group" names evidence sets.

        Raises:
            InputError: The topic or document column is missing, an id is neither string nor whole number, or a grade is no
                whole number.
        """
        topic, doc = self._pair()
        grade = self._find_column(GRADE, topic, doc)
        group = self._find_column(("group",), topic, doc)
        for row in self._read():
            if is_missing(row[doc]) or row[doc] == "":  # a topic whose document is not known
                continue
            name = "0" if group is None or is_missing(row[group]) else string_of(row[group], "group", self.where).strip()
            triple = self._id(row[topic], "topic"), name, self._id(row[doc], "document")
            yield *triple, 1 if grade is None else self._grade(row[grade], self.header[grade])

    def results(self) -> Iterator[tuple[str, str, float]]:
        """Yield (topic id, document id, score) of each row; without a column of scores, 1/rank, with ranks counted from 1.

        Raises:
            InputError: A column is missing, an id is neither string nor whole number, or a score or rank is not a number.
        """
        topic, doc = self._pair()
        score = self._find_column((*SCORE, *RANK), topic, doc)
        if score is None:
            score = self._column("score", SCORE, topic, doc)
        has_ranks = find((self.header[score],), SCORE) is None
        number = self._rank if has_ranks else self._number
        rows: Iterator[tuple[str, str, float]] = (
            (self._id(row[topic], "topic"), self._id(row[doc], "document"), number(row[score], self.header[score]))
            for row in self._read()
        )
        if has_ranks:
            rows = _with_reciprocal_ranks(list(rows))
        yield from rows

    @property
    def is_run(self) -> bool:
        """Whether the columns name a topic, a document and a score or rank."""
        topic = self._find_column(self.topic_id)
        doc = None if topic is None else self._find_doc(topic)
        return topic is not None and doc is not None and self._find_column((*SCORE, *RANK), topic, doc) is not None

    @property
    def is_judged(self) -> bool:
        """Whether the columns name a topic, a document and a grade."""
        topic = self._find_column(self.topic_id)
        doc = None if topic is None else self._find_doc(topic)
        return topic is not None and doc is not None and self._find_column(GRADE, topic, doc) is not None

    def _read(self) -> Iterator[Sequence[object]]:
        for number, row in self.rows:
            self.number = number
            yield row

    def _id(self, value: object, what: str) -> str:
        name = (value if type(value) is str else string_of(value, f"{what} id", self.where)).strip()
        if not name:
            raise InputError(f"{self.where}: the {what} id is empty")
        return name

    def _grade(self, value: object, column: str) -> int:
        try:
            return grade_of(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{self.where}: {value!r} in the column '{column}' is no grade, which is a whole number") from None

    def _number(self, value: object, column: str) -> float:
        try:
            return real(value)
        except (TypeError, ValueError):
            raise InputError(f"{self.where}: {value!r} in the column '{column}' is not a number") from None

    def _rank(self, value: object, column: str) -> float:
        if not (rank := self._number(value, column)) >= 0:  # NaN is none, either
            raise InputError(f"{self.where}: {value!r} in the column '{column}' is no rank from 1 (or from 0)")
        return rank

    def _pair(self) -> tuple[int, int]:
        topic = self._column("id of the topic", self.topic_id)
        doc = self._find_doc(topic)
        return topic, self._column("id of the document", JUDGED, topic) if doc is None else doc

    def _find_doc(self, topic: int) -> int | None:
        """Position of the column of document ids: one of the usual names, or beside a value the only one that ends in "_id"."""
        doc = self._find_column(JUDGED, topic)
        has_value = self._find_column((*GRADE, *SCORE, *RANK), topic) is not None
        if doc is not None or not has_value or normalize(self.header[topic]) in GENERIC_IDS:
            return doc
        others = [i for i, name in enumerate(self.header) if i != topic and normalize(name).endswith("_id")]
        return others[0] if len(others) == 1 else None

    def _column(self, what: str, names: Sequence[str], *without: int) -> int:
        column = self._find_column(names, *without)
        if column is None:
            columns = ", ".join(map(str, self.header))
            raise InputError(
                f"{self.name}: no column for the {what}; the columns are {columns}; call one of them {join_with_or(names)}"
            )
        return column

    def _find_column(self, names: Sequence[str], *without: int) -> int | None:
        candidates = {name: i for i, name in enumerate(self.header) if i not in without}
        name = find(candidates, names)
        return None if name is None else candidates[name]


def _with_reciprocal_ranks(rows: list[tuple[str, str, float]]) -> Iterator[tuple[str, str, float]]:
    """Yield rows with 1/rank in place of ranks, which count from 1 or, if there is a 0, from 0."""
    first = min((rank for *_, rank in rows), default=1)
    return ((topic, doc, 1 / (rank + (first == 0))) for topic, doc, rank in rows)
