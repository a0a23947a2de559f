"""Topics, qrels and runs read from files of any format, and corpora and these written; gzip and standard streams too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core import InputError, ParameterError, Qrels, Run, Topics, edge
from ..core.strings import SURROGATE
from ..storage.files import STANDARD, as_path, reading, write as write_bytes
from .corpus import read_corpus
from .decoding import Reading, reading_of
from .folder import FORM, QUERIES, beir_file, qrels_files, split_of
from .format import KINDS, File, Format, format_named, sniffed


def read_topics(
    path: str | Path,
    format: str | None = None,
    split: str | None = None,
    fields: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str | None = None,
    errors: str | None = None,
) -> Topics:
    """The topics of a file, or of a folder in BEIR's form.

    Args:
        path: The file; .gz is unpacked, "-" is standard input. Of a folder it is queries.jsonl.
        format: The name of a format, such as "jsonl" (BEIR's queries.jsonl, and all fields that `write_topics` writes), "tsv",
            "csv", "trec" (SGML), "xml", "json", "cast" or "canard"; by default it is told from the content.
        split: Of a folder: leave the topics that have judgments in qrels/SPLIT.tsv.
        fields: Which keys or columns hold the "id" and the "text" where they have other names: `{"id": "Nr", "text": "Tweet"}`;
            columns of a table without a header go by their numbers.
        encoding: The encoding of the file, as in `read_corpus`.
        errors: How to treat bytes that are not of the encoding, as in `read_corpus`.

    Raises:
        InputError: With file and line for what cannot be read, for an id that occurs twice, and for a file without topics.
        ParameterError: For a format or a split that does not exist.
    """
    if _is_folder(path, split):
        topics = read_topics(beir_file(Path(path), QUERIES), format, None, fields, encoding, errors)
        return topics if split is None else topics.judged(read_qrels(path, None, split, encoding, errors))
    with _opened("topics", path, format, reading_of(encoding, errors, fields)) as (chosen, file):
        try:
            topics = Topics(chosen.read_topics(file))
        except InputError as error:
            raise error if str(error).startswith(file.name) else InputError(f"{file.name}: {error}") from None
    _check_filled("topics", topics, path)
    for topic_id in topics:
        if SURROGATE.search(topic_id):
            raise InputError(f"{path}: the topic id '{topic_id}' has half of a surrogate pair in it, which no file can hold")
    return topics


def read_qrels(
    path: str | Path,
    format: str | None = None,
    split: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
) -> Qrels:
    """The judgments of a file, or of a folder in BEIR's form.

    Args:
        path: The file; .gz is unpacked, "-" is standard input. Of a folder it is qrels/SPLIT.tsv.
        format: "trec" (topic, group, document, grade; the group is kept), "beir" (topic, document, grade, with or without a
            header), or another format's name; by default the first line tells.
        split: Of a folder: which; by default the only one.
        encoding: The encoding of the file, as in `read_corpus`.
        errors: How to treat bytes that are not of the encoding, as in `read_corpus`.

    Raises:
        InputError: With file and line for a wrong number of columns, a grade that is no integer and a document that has two
            grades for one topic; and for a file without judgments.
        ParameterError: For a format or a split that does not exist, and for a folder of several splits of which none is named.
    """
    if _is_folder(path, split):
        files = qrels_files(Path(path))
        return read_qrels(files[split_of(path, files, split)], format, None, encoding, errors)
    with _opened("qrels", path, format, reading_of(encoding, errors)) as (chosen, file):
        qrels = chosen.read_qrels(file)
    _check_filled("qrels", qrels, path)
    return qrels


def read_run(
    path: str | Path,
    topics: Topics | None = None,
    format: str | None = None,
    encoding: str | None = None,
    errors: str | None = None,
) -> Run:
    """The run of a file. Takes about 16 bytes a row, and the ids.

    Args:
        path: The file; .gz is unpacked, "-" is standard input.
        topics: The topics of the run, with an empty ranking for each that the file does not have; topics that only the file
            has follow without text.
        format: "trec" (topic, Q0, document, rank, score, tag; rank and order of the lines count for nothing), "msmarco" (topic,
            document, rank; the scores become 1/rank, so that the order is kept), or another format's name; by default the
            first line tells.
        encoding: The encoding of the file, as in `read_corpus`.
        errors: How to treat bytes that are not of the encoding, as in `read_corpus`.

    Raises:
        InputError: With file and line for a wrong number of columns, a score that is no number or NaN, and a document listed
            twice for one topic.
        ParameterError: For a format that does not exist.
    """
    with _opened("run", path, format, reading_of(encoding, errors)) as (chosen, file):
        return chosen.read_run(file, topics or Topics())


def write_corpus(docs: Iterable[Any], path: str | Path, format: str = KINDS["corpus"].first) -> None:
    """Writes documents.

    Args:
        docs: What `read_corpus` accepts.
        path: The file, packed where its name ends in .gz; "-" is standard output.
        format: "jsonl", as BEIR: `_id`, `title`, `text`, and each metadata key; or another format's name.

    Raises:
        InputError: For documents that the format cannot hold, such as metadata that are not of JSON, and where writing fails.
        ParameterError: For a format that cannot be written.
    """
    write_bytes(path, format_named(format, "write", "corpus").write_corpus(read_corpus(docs)))


def write_topics(topics: object, path: str | Path, format: str = KINDS["topics"].first) -> None:
    """Writes topics.

    Args:
        topics: What `Topics.of` accepts.
        path: The file, packed where its name ends in .gz; "-" is standard output.
        format: "jsonl", as BEIR: `_id` and `text`, and `description`, `narrative`, `turns` and `weights` where they are not
            empty (`origin` is not written); "cast", as TREC CAsT: whole conversations, see
            `fontes.formats.cast.cast_conversations`; or another format's name.

    Raises:
        InputError: Where writing fails, and for topics that the format cannot hold, such as those that are no conversations.
        ParameterError: For a format that cannot be written.
    """
    write_bytes(path, format_named(format, "write", "topics").write_topics(Topics.of(topics)))


def write_qrels(qrels: object, path: str | Path, format: str = KINDS["qrels"].first) -> None:
    """Writes judgments.

    Args:
        qrels: What `Qrels.of` accepts.
        path: The file, packed where its name ends in .gz; "-" is standard output.
        format: "trec", with groups, or another format's name.

    Raises:
        InputError: For an id with white space, which the form cannot hold, and where writing fails.
        ParameterError: For a format that cannot be written.
    """
    write_bytes(path, format_named(format, "write", "qrels").write_qrels(Qrels.of(qrels)))


def write_run(run: object, path: str | Path, tag: str = "fontes", format: str = KINDS["run"].first) -> None:
    """Writes a run.

    Scores have as many digits as read back to the same float32, ranks count from 1, and the rows are in the one order, so
    the same run always gives the same bytes. A topic without results leaves no trace.

    Args:
        run: What `Run.of` accepts.
        path: The file, packed where its name ends in .gz; "-" is standard output.
        tag: One word, the last column of TREC's form.
        format: "trec" (six columns), "msmarco" (three), "checkthat" (a list a topic), or another format's name.

    Raises:
        InputError: For an id with white space, which such a file cannot hold, and where writing fails.
        ParameterError: For a tag that is not one word, and for a format that cannot be written.
    """
    chosen = format_named(format, "write", "run")
    if tag.split() != [tag] or SURROGATE.search(tag):
        raise ParameterError(f"the tag '{tag}' must be one word")
    write_bytes(path, chosen.write_run(Run.of(run), tag))


def write(kind: str, value: Any, path: str | Path, format: str | None = None, tag: str = "fontes") -> None:
    """Writes a corpus, topics, qrels or a run, in the first format of the kind unless another is named.

    Raises:
        InputError: As the function of the kind, such as `write_corpus`.
        ParameterError: As the function of the kind, and for a kind that does not exist.
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
    """Raises ParameterError for the split of a file."""
    folder = str(path) != STANDARD and as_path(path).is_dir()
    if split is not None and not folder:
        raise ParameterError(f"{path}: there is no split '{split}' in a file; {FORM}")
    return folder


@contextmanager
def _opened(kind: str, path: str | Path, name: str | None, how: Reading) -> Iterator[tuple[Format, File]]:
    """The format of a file, by name or as told from the file, and the file open for reading."""
    named = None if name is None else format_named(name, "read", kind)
    with reading(path) as source:
        file = File(source, str(path), reading=how)
        yield named or sniffed(kind, file), file


def _check_filled(kind: str, values: Topics | Qrels, path: str | Path) -> None:
    if not values:
        raise InputError(f"{path}: holds no {KINDS[kind].holds}")


edge.readers.update(corpus=read_corpus, topics=read_topics, qrels=read_qrels, run=read_run)
