"""Documents and topics made from records: JSON objects or table rows."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from pathlib import Path
from typing import Any

from ..core import Doc, InputError, ParameterError, Topic, Turn
from ..core.checks import is_missing, real, string_of
from ..core.query import Group
from ..core.table import Cell, Table
from ..core.tabular import DOC_ID, DOC_TEXT, DOC_TITLE, TOPIC_ID, TOPIC_TEXT, find, join_with_or, normalize
from ..storage.files import InputFile, decode
from .bad_records import BadRecords, EmptyIdError, KnownQuirkError
from .decoding import remedy as encoding_remedy, warn
from .json_text import json_text


class MissingPartError(InputError):
    """A record without an id or a text.

    Args:
        fields: Names of the parts.
        row: The record.
        name: File name.
        where: Line of a file, or item of an iterable.
        sample: More records, by which an id is found to advise.
    """

    def __init__(
        self,
        fields: Fields,
        row: Mapping[Any, object],
        name: str,
        where: str,
        sample: Sequence[Mapping[object, object]] = (),
    ) -> None:
        keys = fields.keys(tuple(row))
        part = "id" if not keys["id"] else "text"
        present = ", ".join(f"'{key}'" for key in row if key not in keys["id"]) or "nothing" + (" else" if keys["id"] else "")
        problem = f"{name}, {where}: no {part} (a field {join_with_or(getattr(fields, part))}); found {present}"
        # The sample of a table has its columns without a name, too.
        rows = sample if sample and row.keys() <= sample[0].keys() else [row]
        super().__init__(problem + remedy_of(name, keys, rows))
        self._parts = fields, row, name, where

    def advised(self, sample: Sequence[Mapping[Any, object]]) -> MissingPartError:
        """Return the error with advice by more records of the file."""
        return MissingPartError(*self._parts, sample)

    def __reduce__(self) -> tuple[object, ...]:
        return MissingPartError, self._parts


@dataclass(frozen=True)
class Fields:
    """Names, in any case, of a record's id, title and text.

    Args:
        id: Names of the id, of which the first one present in a record is used.
        title: Names of the title, likewise.
        text: Names of the text, likewise.
        chosen: Parts whose names the user chose; all names present are used, and their values joined.

    Attributes:
        seen: Keys of chosen parts that records had so far.
    """

    id: tuple[str, ...] = DOC_ID
    title: tuple[str, ...] = DOC_TITLE
    text: tuple[str, ...] = DOC_TEXT
    chosen: frozenset[str] = frozenset()
    seen: set[str] = field(default_factory=set, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, chosen: Mapping[str, str | Sequence[str]] | None) -> Fields:
        """The usual names, except for the parts in `chosen`; ParameterError for an unknown part."""
        chosen = chosen or {}
        unknown = chosen.keys() - {"id", "title", "text"}
        if unknown:
            raise ParameterError(f"fields: a document has no part '{min(unknown)}'; it has id, title and text")
        names = {part: (name,) if isinstance(name, str) else tuple(name) for part, name in chosen.items()}
        if len(names.get("id", ("",))) != 1:
            raise ParameterError("fields: an id comes from one field")
        return cls(**names, chosen=frozenset(names))

    @classmethod
    def of_topics(cls, chosen: Mapping[str, str | Sequence[str]]) -> Fields:
        """The usual names for topics, except for the parts in `chosen`; ParameterError for a part that topics lack."""
        fields = cls.of(chosen)
        if "title" in fields.chosen:
            raise ParameterError("fields: a topic has no part 'title'; it has id and text")
        return replace(
            fields,
            id=fields.id if "id" in fields.chosen else TOPIC_ID,
            text=fields.text if "text" in fields.chosen else TOPIC_TEXT,
        )

    def by_sample(self, rows: Sequence[Mapping[Any, object]], name: str) -> Fields:
        """Return the names with the id of passages first, or one whose values differ, if there are several; warn if so.

        Args:
            rows: First records of a file.
            name: File name.
        """
        if not rows or "id" in self.chosen:
            return self
        of_passage = find(rows[0], PASSAGE_IDS)
        of_document = find(rows[0], self.id)
        if of_passage is not None and of_document is not None and normalize(of_document) not in UNIQUE_IDS:
            values = [row.get(of_passage) for row in rows]
            if all(isinstance(value, str) and not value.isdecimal() for value in values) and are_distinct(values):
                warn(f"{name}: the ids are in '{of_passage}', not in '{of_document}'; --id NAME (fields=) chooses another")
                return replace(self, id=(of_passage, *self.id))
        usual = [key for key in self.id if all(find(row, (key,)) is not None for row in rows)]
        distinct = [key for key in usual if are_distinct([row[find(row, (key,))] for row in rows])]
        if len(rows) < 2 or not distinct or distinct[0] == usual[0]:
            return self
        first = distinct[0]
        warn(f"{name}: the ids are in '{first}', as '{usual[0]}' repeats; --id NAME (fields=) chooses another")
        return replace(self, id=(first, *(key for key in self.id if key != first)))

    @lru_cache(1000)  # noqa: B019  (records of one file have few sets of keys, and there are millions of records)
    def keys(self, present: tuple[object, ...]) -> dict[str, tuple[Any, ...]]:
        """Return the keys of a record's "id", "text" and "title"; an empty tuple for none.

        Keys chosen by the user for one part are not used for another part.
        """
        names = {"id": self.id, "text": self.text, "title": self.title}
        keys: dict[str, tuple[object, ...]] = dict.fromkeys(names, ())
        for part in self.chosen:
            matches = (find(present, (name,)) for name in names[part])
            keys[part] = tuple(dict.fromkeys(key for key in matches if key is not None))
        chosen_keys = {key for part_keys in keys.values() for key in part_keys}
        free = tuple(key for key in present if key not in chosen_keys)
        for part in names.keys() - self.chosen:
            key = find(free, names[part])
            keys[part] = () if key is None else (key,)
        return keys


DOC_FIELDS = Fields()
TOPIC_FIELDS = Fields.of_topics({})
TITLES = ("title", "headline", "heading")
TEXTS = ("text", "abstract", "content", "body", "summary", "description", "passage", "segment", "paragraph", "sentence")
PASSAGE_IDS = ("pid", "passage_id", "paragraph_id", "segment_id", "chunk_id")  # before those of documents
UNIQUE_IDS = ("_id", "id", "pid")  # names of ids that are not those of a passage's document
NO_ID = re.compile(
    "date|time|host|domain|lang|year|month|_utc|created|updated|published"
)  # in names of columns that hold no ids
DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.]\d{4}|\d\d?:\d\d")
HOST = re.compile(r"(?:[a-z]+://)?(?:(?:[a-z0-9-]+\.)+[a-z]{2,}|\d+(?:\.\d+){3})(?::\d+)?/?", re.IGNORECASE)
FRACTION = re.compile(r"[+-]?\d*\.\d+(?:e[+-]?\d+)?", re.IGNORECASE)
DECODER = json.JSONDecoder()
FEVER_KEYS = {"id", "text", "lines"}  # of a page of FEVER's Wikipedia; the first line of each file is an empty page
LINE_ENDS = ("\n", "\r\n", "")  # line ends
LONG_NUMBER = "a number of thousands of digits"


def json_rows(source: InputFile, bad: BadRecords | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line that is not blank; InputError for anything else, unless `bad` allows it."""
    for number, line in enumerate(source.lines(), 1):
        try:
            row = json_row(line, source.name, number, source.remedy)
        except InputError as error:
            (bad or BadRecords()).skip(error)
            continue
        if row is not None:
            yield number, row


def json_row(line: bytes, name: str, number: int, remedy: Callable[[bytes], str] = encoding_remedy) -> dict[str, Any] | None:
    """Parse a line as a JSON object; None for a blank line.

    Raises InputError for anything else, with file name and line number, and `remedy` for text that is not UTF-8.
    """
    try:
        text = line.decode()
        # `raw_decode` does not search for blanks around the value; most lines have none.
        row, end = DECODER.raw_decode(text) if text[:1] == "{" else (None, 0)
        if not end or text[end:] not in LINE_ENDS:
            row = DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        if not line.strip():
            return None
        text = decode(line, name, number, remedy)
        problem = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", LONG_NUMBER)
        raise InputError.at(name, number, f"broken JSON ({problem}): {text.strip()[:40]!r}") from None
    if type(row) is not dict:
        raise InputError.at(name, number, f"a JSON {type(row).__name__} where an object {{…}} belongs")
    return row


def doc_from(row: dict[str, Any], fields: Fields, name: str, number: int, unit: str = "line") -> Doc:
    """Make a document from a record.

    Args:
        row: The record; the keys used are removed, the others become metadata. An object under "metadata", as in BEIR, is
            expanded.
        fields: Names of its parts.
        name: File name for errors.
        number: Record number for errors.
        unit: Unit of `number`.

    Raises:
        InputError: The id or text is missing, the id is empty, or a part is neither string, number nor null.
    """
    if not fields.chosen:  # fast path: millions of records have just these keys
        doc_id, text, title = row.get("_id"), row.get("text"), row.get("title", "")
        if type(doc_id) is type(text) is type(title) is str and doc_id and not doc_id.isspace() and "metadata" not in row:
            del row["_id"], row["text"]
            row.pop("title", None)
            return Doc(doc_id, text, title, row)
    keys = fields.keys(tuple(row))
    fields.seen.update(key for part in fields.chosen for key in keys[part])
    if not keys["id"] or not keys["text"]:
        raise MissingPartError(fields, row, name, f"{unit} {number}")
    parts: list[str] = []
    for part, part_keys in keys.items():
        values = [row[key] for key in part_keys]
        value = values[0] if len(values) == 1 else "\n".join(str(v) for v in values if v not in (None, ""))
        parts.append(value if type(value) is str else _string_of_part(value, part, f"{name}, {unit} {number}"))
    if not parts[0] or parts[0].isspace():
        if row.keys() == FEVER_KEYS and not any(row.values()):
            raise KnownQuirkError(f"{name}, {unit} {number}: FEVER's empty page, without id, text and lines")
        raise EmptyIdError(f"{name}, {unit} {number}: the id is empty")
    for key in {key for part_keys in keys.values() for key in part_keys}:
        del row[key]
    doc_id, text, title = parts
    if "metadata" in row and isinstance(row["metadata"], Mapping):
        row |= row.pop("metadata")
    return Doc(doc_id, text, title, row)


def unseen(fields: Fields) -> list[str]:
    """Return the names of the text, of several that the user chose, that no record had."""
    names = fields.text if "text" in fields.chosen and len(fields.text) > 1 and fields.seen else ()
    return [name for name in names if find(fields.seen, (name,)) is None]


def as_cells(doc: Doc) -> Doc:
    """Return a document whose metadata are marked as table cells: texts that may represent numbers or dates."""
    return Doc(doc.id, doc.text, doc.title, {name: Cell(cell) for name, cell in doc.metadata.items()}) if doc.metadata else doc


def check_chosen(name: str, number: int, header: Sequence[str | None], fields: Fields) -> None:
    """Raise InputError if the header, in line `number`, lacks columns that the user chose."""
    for part in sorted(fields.chosen):
        for column in getattr(fields, part):
            if find(header, (column,)) is None:
                columns = ", ".join(name if name else f"'{name}'" for name in header if name is not None)
                raise InputError.at(name, number, f"there is no column '{column}'; the columns are {columns}")


@contextmanager
def named(name: str, where: Callable[[], str] | None = None) -> Iterator[None]:
    """Prefix errors of the block with a file's name, or the place that `where` returns, unless they begin with the name."""
    try:
        yield
    except InputError as error:
        raise error if str(error).startswith(name) else InputError(f"{name if where is None else where()}: {error}") from None


def located_in(table: Table) -> AbstractContextManager[None]:
    """Prefix errors of the block with the table's current row, unless they begin with the table's name."""
    return named(table.name, lambda: table.where)


def topic_from(row: Mapping[str, Any], where: str, fields: Fields = TOPIC_FIELDS) -> Topic:
    """Make a topic from a record.

    Raises InputError if the id or text is missing, or turns or weights are malformed; the message begins with `where`, such as
    "FILE, line 7".
    """
    present = ", ".join(f"'{key}'" for key in row) or "nothing"
    filled = [key for key, value in row.items() if value is not None]
    topic_id, text = (row.get(find(filled, names)) for names in (fields.id, fields.text))
    if topic_id is None or not str(topic_id).strip():
        text_keys = [key for key in [find(filled, fields.text)] if key is not None]
        remedy = remedy_of("", {"id": (), "title": (), "text": text_keys}, [row], "topics")
        raise InputError(f"{where}: no id (a field {join_with_or(fields.id)}); found {present}{remedy}")
    if not isinstance(text, str):
        remedy = remedy_of("", {"id": [find(filled, fields.id)], "title": (), "text": ()}, [row], "topics")
        raise InputError(f"{where}: no text (a field {join_with_or(fields.text)}); found {present}{remedy}")
    try:
        turns = tuple(_turn(turn) for turn in row.get("turns") or ())
        weights = {term: _weight(w) for term, w in row["weights"].items()} if row.get("weights") is not None else None
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{where}: 'turns' or 'weights' cannot be read ({error})") from None
    try:
        # In a table, "query" may be a text column; only a dict is a structured query.
        query = Group.from_dict(row["query"]) if isinstance(row.get("query"), dict) else None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    description, narrative = (row[name] if isinstance(row.get(name), str) else "" for name in ("description", "narrative"))
    metadata = row["metadata"] if isinstance(row.get("metadata"), dict) else {}
    return Topic(string_of(topic_id, "id", where), text, narrative, description, turns, weights, None, metadata, query)


def is_topic(row: Mapping[str, object]) -> bool:
    """Whether a record has an id or `_id`, and a text, by the usual names of topics."""
    keys = TOPIC_FIELDS.keys(tuple(row))
    return "_id" in row or bool(keys["id"] and keys["text"])


def json_value(source: InputFile) -> Any:
    """Parse a whole file as JSON; InputError gives the line of a syntax error."""
    return json_parsed(source.text(), source.name)


def json_parsed(text: str, name: str) -> Any:
    """Parse a text as JSON; InputError gives the file name and the line of a syntax error."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError.at(name, error.lineno, f"broken JSON ({error.msg})") from None
    except ValueError:  # Python's limit on digits
        offset = digits.start() if (digits := re.search("[0-9]{4301}", text)) else 0
        raise InputError.at(name, text.count("\n", 0, offset) + 1, f"broken JSON ({LONG_NUMBER})") from None
    except RecursionError:
        raise InputError(f"{name}: broken JSON (nested too deeply)") from None


def json_line(row: object, indent: int | None = None) -> bytes:
    """Encode a line of jsonl (several lines with `indent`); only lone surrogates are escaped, NaN and infinities are null."""
    try:
        return json_text(row, ensure_ascii=False, indent=indent).encode() + b"\n"
    except UnicodeEncodeError:
        return json_text(row, indent=indent).encode() + b"\n"


def _string_of_part(value: object, part: str, where: str) -> str:
    if isinstance(value, str):
        return str(value)
    if part != "id" and is_missing(value):
        return ""
    if isinstance(value, Real) and not isinstance(value, bool):
        return string_of(value, part, where) if part == "id" else str(value)
    kind = {type(None): "null", bool: "true or false", list: "a list", dict: "an object"}
    raise InputError(f"{where}: the {part} is {kind.get(type(value), type(value).__name__)}, not a string")


def _weight(value: object) -> float:
    if not math.isfinite(weight := real(value)):
        raise ValueError(f"the weight {value!r} is not a number")
    return weight


def _turn(fields: Mapping[str, str]) -> Turn:
    unknown = next((name for name in fields if name not in Turn.__slots__), None)
    if unknown is not None:
        raise TypeError(f"a turn has {join_with_or(Turn.__slots__)}, not {unknown!r}")
    turn = Turn(**fields)
    for name in Turn.__slots__:
        value = getattr(turn, name)
        if not isinstance(value, str):
            raise TypeError(f"the {name} of a turn is a {type(value).__name__}, not a text")
    return turn


def remedy_of(
    name: str, keys: Mapping[str, Sequence[object]], rows: Sequence[Mapping[Any, object]], kind: str = "corpus"
) -> str:
    """Return advice for an error: options that assign the fields, guessed from names and values; may be empty.

    Args:
        name: File name, "documents", or "the body" of a request, for which there are no options.
        keys: Known fields by "id", "text" and "title".
        rows: The first records.
        kind: "corpus" or "topics".
    """
    chosen = {part: list(part_keys) for part, part_keys in keys.items()}
    ids = chosen["id"]
    chosen_keys = [key for part_keys in chosen.values() for key in part_keys]
    if ids and not are_distinct([row.get(ids[0]) for row in rows]):
        chosen["id"] = []
    candidates = [key for key in rows[0] if key not in chosen_keys and isinstance(rows[0][key], (str, int))]
    for part, guess in (("title", _guess_title), ("id", _guess_id), ("text", _guess_text)):
        if not chosen[part] and (guessed := guess(candidates, rows)) is not None:
            chosen[part] = [guessed]
            candidates.remove(guessed)
    chosen["id"] = chosen["id"] or ids
    if not chosen["id"] or not chosen["text"] or name == "the body":
        return ""
    parts = {part: chosen[part] for part in ("id", "title", "text") if chosen[part] and (part, kind) != ("title", "topics")}
    fields = {part: part_keys[0] if len(part_keys) == 1 else part_keys for part, part_keys in parts.items()}
    if name == "documents":
        return f"; say which is which: read_corpus(…, fields={fields})"
    options = " ".join(f"--{part} {shlex.quote(str(key))}" for part, part_keys in parts.items() for key in part_keys)
    if kind == "topics":
        return f"; say which is which: {options} (in Python: read_topics(…, fields={fields}))"
    path = "-" if name == "standard input" else name
    index = "documents" if path == "-" else Path(path).name.partition(".")[0]
    line = f"fontes index {shlex.quote(path)} {options} -o {shlex.quote(f'{index}.index')}"
    return f"; say which is which, such as: {line} (in Python: read_corpus(…, fields={fields}))"


def are_distinct(values: Sequence[object]) -> bool:
    """Whether values may be ids: none is missing, and none is repeated."""
    texts = [str(value).strip() for value in values if value is not None]
    return len(values) == len(set(texts) - {""})


def _guess_title(candidates: Sequence[object], rows: Sequence[Mapping[Any, object]]) -> Any:
    return next((key for key in candidates if normalize(key).endswith(TITLES)), None)


def _guess_id(candidates: Sequence[object], rows: Sequence[Mapping[Any, object]]) -> Any:
    """Return a field that may be an id: one named like a passage's, or else like any id, or without a name, or the first."""
    names = [key for key in candidates if not NO_ID.search(normalize(key))]
    values = {key: [row.get(key) for row in rows] for key in names}
    possible = [key for key in names if are_distinct(values[key]) and all(map(_may_be_id, values[key]))]
    ranks = {key: _rank_of_id(normalize(key)) for key in possible}
    return min(possible, key=ranks.__getitem__, default=None)


def _rank_of_id(name: str) -> int:
    likely = (name.endswith(PASSAGE_IDS), name.endswith(("id", "no", "key", "number")), name.isdecimal() or not name)
    return likely.index(True) if True in likely else len(likely)


def _may_be_id(value: object) -> bool:
    text = str(value)
    if not isinstance(value, (str, int)) or isinstance(value, bool) or " " in text:
        return False
    return not (DATE.match(text) or HOST.fullmatch(text) or FRACTION.fullmatch(text))


def _guess_text(candidates: Sequence[object], rows: Sequence[Mapping[Any, object]]) -> Any:
    """Return a field named as a text, or whose name ends so, or holds such a word; else the one with the longest text."""
    for matches in (str.__eq__, str.endswith, str.__contains__):
        for key in candidates:
            if any(matches(normalize(key), word) for word in TEXTS) and not normalize(key).endswith("id"):
                return key
    return max(candidates, key=lambda key: len(str(rows[0][key])), default=None)
