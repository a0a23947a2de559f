"""Functions that read and write corpora, topics, qrels and runs in any format, compressed or not, and standard streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from ..core import InputError, ParameterError, Qrels, Run, Topics
from ..core.checks import hinted
from ..core.registry import readers, writers
from ..core.strings import SURROGATE
from ..storage.files import STANDARD, as_path, reading, write as write_bytes
from .comments import without_comments
from .corpus import read_corpus
from .decoding import ReadingOptions, reading_of
from .folder import BEIR_LAYOUT, QUERIES, beir_file, qrels_files, split_of
from .format import KINDS, File, Format, format_named, sniffed
from .ir_metadata import header_of
from .records import named


@hinted
def read_topics(
    path: str | Path,
    format: str | None = None,
    split: str | None = None,
    fields: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str | None = None,
    errors: str | None = None,
) -> Topics:
    """Read topics from a file, or from a folder in BEIR's form.

    Args:
        path: The file (decompressed if need be), "-" for standard input, or a folder with queries.jsonl.
        format: Name of a format, such as "jsonl" (BEIR's queries.jsonl, and all fields that `write_topics` writes), "tsv",
            "csv", "trec" (SGML), "xml", "lines", "json", "cast" or "canard"; by default detected from the content.
        split: Of a folder: keep only topics with judgments in qrels/SPLIT.tsv.
        fields: Keys, columns or elements that hold the "id" and "text", if named otherwise: `{"id": "Nr", "text": "Tweet"}`;
            columns without a header go by number.
        encoding: Encoding of the file, as in `read_corpus`.
        errors: Treatment of undecodable bytes, as in `read_corpus`.

    Raises:
        InputError: The file cannot be read, an id occurs twice, or there are no topics.
        ParameterError: The format or split does not exist, or fields are given for a format without named fields.
    """
    if _is_folder(path, split):
        topics = read_topics(beir_file(Path(path), QUERIES), format, None, fields, encoding, errors)
        return topics if split is None else topics.judged(read_qrels(path, None, split, encoding, errors))
    with _open_file("topics", path, format, reading_of(encoding, errors, fields=fields)) as (form, file):
        if file.reading.fields and not form.named_fields:
            rewrites = "; a stage takes a turn's rewrite: manual() >> bm25()" if form.name == "cast" else ""
            raise ParameterError(f"{path}: topics in the format '{form.name}' have no named fields to choose from{rewrites}")
        with named(file.name):
            topics = Topics(form.read_topics(file))
    _check_not_empty("topics", topics, path)
    for topic_id in topics:
        if SURROGATE.search(topic_id):
            raise InputError(f"{path}: the topic id '{topic_id}' has half of a surrogate pair in it, which no file can hold")
    return topics


@hinted
def read_qrels(
    path: str | Path,
    format: str | None = None,
    split: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    groups: bool | None = None,
) -> Qrels:
    """Read judgments from a file, or from a folder in BEIR's form.

    Args:
        path: The file (decompressed if need be), "-" for standard input, or a folder with qrels/SPLIT.tsv.
        format: "trec" (topic, group, document, grade), "beir" (topic, document, grade, with or without a header), "csv", "json"
            or another format's name; by default detected from the first line. Lines that begin with "#" are comments.
        split: Of a folder: the split; by default the only one.
        encoding: Encoding of the file, as in `read_corpus`.
        errors: Treatment of undecodable bytes, as in `read_corpus`.
        groups: Whether the second column of "trec" names evidence sets. By default it does not, and a document with several
            grades for one topic, such as one for each subtopic, has the highest, with an `InputWarning`. Paths given to
            `evaluate` and `compare` are read with groups if a measure needs them.

    Raises:
        InputError: A line has a wrong number of columns, a grade that is no integer or a second grade for a document; or there
            are no judgments.
        ParameterError: The format or split does not exist, or the folder has several splits and none is named.
    """
    if _is_folder(path, split):
        files = qrels_files(Path(path))
        return read_qrels(files[split_of(path, files, split)], format, None, encoding, errors, groups)
    with _open_file("qrels", path, format, reading_of(encoding, errors, groups=groups)) as (form, file):
        qrels = form.read_qrels(file)
    _check_not_empty("qrels", qrels, path)
    return qrels


@hinted
def read_run(
    path: str | Path,
    topics: object = None,
    format: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
    split: str | None = None,
) -> Run:
    """Read a run; takes about 16 bytes a row, plus the ids.

    Args:
        path: The file (decompressed if need be), or "-" for standard input.
        topics: The run's topics, any value that `Topics.of` accepts; topics missing from the file get an empty ranking, and
            topics found only in the file follow without text.
        format: "trec" (topic, Q0, document, rank, score, tag; rank and line order are ignored), "msmarco" (topic, document,
            rank; scores become 1/rank, to keep the order), "csv" (a header with a topic, a document and a score or rank),
            "json" (scores by topic and document), or another format's name; by default detected from the first line. Lines that
            begin with "#" are comments.
        encoding: Encoding of the file, as in `read_corpus`.
        errors: Treatment of undecodable bytes, as in `read_corpus`.
        split: Of predictions of mteb: "SUBSET/SPLIT", or one of the two; by default the only one.

    Raises:
        InputError: A line has a wrong number of columns, a score that is no number or NaN, or a repeated document.
        ParameterError: The format or split does not exist, or the file has several splits and none is named.
    """
    with _open_file("run", path, format, reading_of(encoding, errors, split=split)) as (form, file):
        return form.read_run(file, Topics() if topics is None else Topics.of(topics))


def write_corpus(docs: Iterable[object], path: str | Path, format: str = KINDS["corpus"].first) -> None:
    """Write documents.

    Args:
        docs: Any source that `read_corpus` accepts.
        path: The file, compressed if its name ends in .gz, .bz2, .xz or .zst; "-" is standard output.
        format: "jsonl", as BEIR: `_id`, `title`, `text`, and each metadata key; or another format's name.

    Raises:
        InputError: The format cannot hold the documents (such as metadata that are not JSON), or writing fails.
        ParameterError: The format cannot be written.
    """
    write_bytes(path, format_named(format, "write", "corpus").write_corpus(read_corpus(docs)))


def write_topics(topics: object, path: str | Path, format: str = KINDS["topics"].first) -> None:
    """Write topics.

    Args:
        topics: Any value that `Topics.of` accepts.
        path: The file, compressed if its name ends in .gz, .bz2, .xz or .zst; "-" is standard output.
        format: "jsonl", as BEIR: `_id` and `text`, and non-empty `description`, `narrative`, `turns` and `weights` (`origin` is
            not written); "cast": whole conversations, see `fontes.formats.cast.cast_conversations`; or another format's name.

    Raises:
        InputError: Writing fails, or the format cannot hold the topics, such as those that are no conversations.
        ParameterError: The format cannot be written.
    """
    write_bytes(path, format_named(format, "write", "topics").write_topics(Topics.of(topics)))


def write_qrels(qrels: object, path: str | Path, format: str = KINDS["qrels"].first) -> None:
    """Write judgments.

    Args:
        qrels: Any value that `Qrels.of` accepts.
        path: The file, compressed if its name ends in .gz, .bz2, .xz or .zst; "-" is standard output.
        format: "trec", with groups, or another format's name.

    Raises:
        InputError: An id contains white space, or writing fails.
        ParameterError: The format cannot be written.
    """
    write_bytes(path, format_named(format, "write", "qrels").write_qrels(Qrels.of(qrels)))


def write_run(
    run: object,
    path: str | Path,
    tag: str = "fontes",
    format: str = KINDS["run"].first,
    metadata: Mapping[str, object] | None = None,
) -> None:
    """Write a run.

    Scores have enough digits to restore the float32 values, ranks count from 1, and rows are in canonical order, so equal runs
    give equal bytes. Topics without results are not written.

    Args:
        run: Any value that `Run.of` accepts.
        path: The file, compressed if its name ends in .gz, .bz2, .xz or .zst; "-" is standard output.
        tag: One word, the last column of TREC's form.
        format: "trec" (six columns), "msmarco" (three), "checkthat" (a list a topic), "parquet", or another format's name.
        metadata: A header of ir_metadata for "trec", such as `fontes.experiments.metadata_of(run)`; `read_metadata` reads it.

    Raises:
        InputError: An id contains white space, or writing fails.
        ParameterError: The tag is not one word, the format cannot be written, or has no place for metadata.
    """
    form = format_named(format, "write", "run")
    if tag.split() != [tag] or SURROGATE.search(tag):
        raise ParameterError(f"the tag '{tag}' must be one word")
    if metadata is not None and form.name != KINDS["run"].first:
        raise ParameterError(f"metadata= is a header of the format '{KINDS['run'].first}', not of '{form.name}'")
    header = [] if metadata is None else [header_of(metadata)]
    write_bytes(path, chain(header, form.write_run(Run.of(run), tag)))


def write(kind: str, value: Any, path: str | Path, format: str | None = None, tag: str = "fontes") -> None:
    """Write a corpus, topics, qrels or a run, by default in the default format of the kind.

    Raises:
        InputError: As for the function of the kind, such as `write_corpus`.
        ParameterError: As for that function, or the kind does not exist.
    """
    if kind not in KINDS:
        raise ParameterError(f"there is no kind of file '{kind}'; there are {', '.join(KINDS)}")
    form = format or KINDS[kind].first
    match kind:
        case "corpus":
            write_corpus(value, path, form)
        case "topics":
            write_topics(value, path, form)
        case "qrels":
            write_qrels(value, path, form)
        case "run":
            write_run(value, path, tag, form)


def _is_folder(path: str | Path, split: str | None) -> bool:
    """Whether the path is a folder; ParameterError for the split of a file."""
    folder = str(path) != STANDARD and as_path(path).is_dir()
    if split is not None and not folder:
        raise ParameterError(f"{path}: there is no split '{split}' in a file; {BEIR_LAYOUT}")
    return folder


@contextmanager
def _open_file(kind: str, path: str | Path, name: str | None, options: ReadingOptions) -> Iterator[tuple[Format, File]]:
    """Open a file, and yield its format, which is detected if `name` is None."""
    form = None if name is None else format_named(name, "read", kind)
    with reading(path) as source:
        file = File(source, str(path), reading=options)
        if kind in ("qrels", "run"):
            file.file = without_comments(file.file, file.name)
        yield form or sniffed(kind, file), file


def _check_not_empty(kind: str, values: Topics | Qrels, path: str | Path) -> None:
    if not values:
        raise InputError(f"{path}: holds no {KINDS[kind].holds}")


readers.update(corpus=read_corpus, run=read_run)  # those of topics and qrels are in `datasets`
writers.update(corpus=write_corpus, topics=write_topics, qrels=write_qrels, run=write_run)
