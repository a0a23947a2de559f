"""Driver of a distributed build: parts, their merge tree, and the atomic commit."""

from __future__ import annotations

import shutil
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path

from ..core.errors import FontesError, InputError, ParameterError
from ..core.work import Progress, reporter, resources, thread_count, work
from ..formats import read_corpus
from ..formats.ciff import ciff_file
from ..formats.corpus import Corpus
from ..index.columns import Schema, joined_schema, stored_kind
from ..index.columns.schema import MAX_COLUMNS
from ..index.files import VERSION, check_replaceable, commit, real_path, writer_facts
from ..index.filled import FieldCounter
from ..index.settings import IndexSettings
from ..storage.artifact import META, drafting
from ..storage.files import STANDARD
from ..storage.hashes import hash_json
from ..storage.system import uninterrupted
from .actors import map_unordered
from .joining import Cluster, joined_here
from .segments import Child, DocumentPart, FinishedSegment, ShardMerge, make_check, make_merge, make_part, segment_at

TASK = "building an index"
IN_PARTS = "building-in_parts"  # suffix like those of `staging`: another build or `clean` removes the folder
PART = 1 << 28  # maximum bytes of input per task
MIN_PART = 1 << 20  # minimum bytes of input per task, if there is more than one
MAX_MERGED = 16  # maximum segments of one merge
BASE = 1 << 29  # bytes of memory of a task besides its postings
POSTINGS = 1 << 26  # minimum bytes of memory for postings


@dataclass(frozen=True)
class Build:
    """A distributed build: its folder of finished segments, settings, and bytes per task."""

    cluster: Cluster
    folder: Path
    settings: IndexSettings
    memory: int


def build_on_cluster(
    docs: str | Path | Iterable[object],
    path: Path,
    form: IndexSettings,
    columns: Mapping[str, str] | None,
    *,
    shards: int | None,
    overwrite: bool,
    drop_vectors: bool,
) -> None:
    """Build an index in a directory with Ray tasks; see `Index.build`."""
    corpus = _corpus(docs)
    with _build_folder(path, overwrite, drop_vectors) as folder:
        with joined_here(TASK) as cluster:
            memory = _task_memory(cluster)
            build = Build(cluster, folder, form, memory)
            with work(threads=resources().threads or 1, memory=max(POSTINGS, memory - BASE)):
                parts = _parts(build, corpus, Schema.of(columns))
                segments = _build_segments(build, parts)
                if not sum(segment.documents for segment in segments):
                    raise corpus.empty()
                fields = FieldCounter.of(form, columns)
                for segment in segments:
                    fields.add(segment.documents, *segment.fields)
                fields.check(form, columns, corpus.fields)
                schema = parts[0].schema if columns is not None else joined_schema(segment.names for segment in segments)
                roots = _merge_segments(build, segments, [part.corpus.path for part in parts], schema, shards or 1)
        facts = {**writer_facts(), **form.facts}
        manifest = {**facts, "columns": schema.to_json(), **({} if shards is None else {"shards": shards})}
        folders = [(segment_at(folder, root.name), root.counts) if root else (folder, {"documents": 0}) for root in roots]
        commit(folder, path, folders, manifest, overwrite, drop_vectors)


def _corpus(docs: str | Path | Iterable[object]) -> Corpus:
    """Return the documents; raise ParameterError if other machines cannot read them."""
    corpus = None if isinstance(docs, str | Path) and str(docs) == STANDARD else read_corpus(docs)
    if not isinstance(corpus, Corpus) or any(piece.is_stream for piece, _ in corpus.pieces):
        reach = "files, folders or addresses that all its machines reach"
        raise ParameterError(f"a build on a cluster reads {reach}; write the documents to a file first")
    if (ciff := ciff_file(corpus)) is not None:
        raise ParameterError(f"{ciff} is an inverted index, which one machine reads; build without ray (--ray)")
    return corpus.absolute()


@contextmanager
def _build_folder(path: Path, overwrite: bool, drop_vectors: bool) -> Iterator[Path]:
    """Lock the build folder next to `path` during the block; it survives a kill or the loss of the cluster."""
    check_replaceable(path, overwrite, drop_vectors)
    index_folder = real_path(path)
    build_folder = index_folder.with_name(f"{index_folder.name}.{IN_PARTS}")
    build_folder.parent.mkdir(parents=True, exist_ok=True)
    busy = FontesError(f"{path} is being built by another process; wait until that is done")
    with drafting(build_folder, busy) as folder:
        _clear(folder, finished=False)
        try:
            yield folder
        except OSError as error:
            _clear(folder)
            if getattr(error, "of_documents", False):
                raise
            raise FontesError(f"{path} cannot be written: {error.strerror or error}; nothing was changed") from error
        except (InputError, ParameterError):
            _clear(folder)
            raise
        _clear(folder)


def _clear(folder: Path, finished: bool = True) -> None:
    """Empty a build folder; without `finished`, keep finished segments."""
    with uninterrupted():
        for entry in folder.iterdir():
            if finished or entry.name.startswith(".") or not (entry / META).is_file():
                shutil.rmtree(entry, ignore_errors=True)


def _task_memory(cluster: Cluster) -> int:
    """Memory of a task in bytes, at most its share of a node's memory."""
    shares = [node["memory"] / max(1, node["CPU"]) for node in cluster.nodes.values() if node.get("CPU") and node.get("memory")]
    return int(min([resources().memory + BASE, *shares]))


def _parts(build: Build, corpus: Corpus, schema: Schema) -> list[DocumentPart]:
    """Split the documents into parts of equal size: a multiple of the number of tasks that run at a time, if large enough."""
    cpus = max(1, build.cluster.cpus // thread_count())
    count = cpus * -(-corpus.size // (PART * cpus))
    corpora = corpus.cut(max(MIN_PART, -(-corpus.size // max(1, count))))
    common = [
        VERSION,
        version("fontes"),
        build.settings.facts,
        schema.to_json(),
        sorted(map(repr, vars(corpus.fields).items())),
    ]
    parts = []
    for number, share in enumerate(corpora):
        name = "part-" + hash_json([*common, number, [[piece.stamp, form.name] for piece, form in share.pieces]])[:24]
        parts.append(DocumentPart(share, build.folder, name, build.settings, schema))
    return parts


def _build_segments(build: Build, parts: Sequence[DocumentPart]) -> list[FinishedSegment]:
    """Build the segment of each part; raise InputError for an id that occurs twice in a part."""
    start, total = time.perf_counter(), max(1, sum(part.corpus.size for part in parts))
    segments: dict[int, FinishedSegment] = {}
    report = reporter()
    for number, segment in map_unordered(build.cluster, make_part, parts, TASK, cpus=thread_count(), memory=build.memory):
        segments[number] = segment
        if segment.repeated is not None:
            doc_id, first, second = segment.repeated
            name = parts[number].corpus.path
            raise _duplicate_error(doc_id, (first, name), (second, name))
        read = sum(parts[finished].corpus.size for finished in segments) / total
        reused = sum(finished.documents for finished in segments.values() if finished.reused)
        documents = sum(finished.documents for finished in segments.values())
        report(Progress("indexing", documents, None, time.perf_counter() - start, part=read, before=reused))
    return [segments[number] for number in range(len(parts))]


def _merge_segments(
    build: Build, segments: Sequence[FinishedSegment], names: Sequence[object], schema: Schema, shards: int
) -> list[FinishedSegment | None]:
    """Merge segments into one per shard, as a tree; None for a shard without documents."""
    bounds = [0, *accumulate(segment.documents for segment in segments)]
    edges = [bounds[-1] * shard // shards for shard in range(shards + 1)]
    rows = [_children(segments, bounds, schema, first, last) for first, last in pairwise(edges)]
    finished = {segment.name: segment for segment in segments}
    while any(len(row) > 1 or not all(child.is_whole for child in row) for row in rows):
        rows = _merge_level(build, rows, edges, schema, finished, partial(_locate, bounds, names))
    roots = [finished[row[0].name] if row else None for row in rows]
    if shards > 1:
        check = partial(make_check, build.folder)
        for _, repeated in map_unordered(
            build.cluster, check, [[root.name for root in roots if root]], TASK, memory=build.memory
        ):
            if repeated is not None:
                doc_id, *positions = repeated
                raise _duplicate_error(doc_id, *(_locate(bounds, names, position) for position in positions))
    return roots


def _merge_level(
    build: Build,
    rows: Sequence[Sequence[Child]],
    edges: Sequence[int],
    schema: Schema,
    finished: dict[str, FinishedSegment],
    locate: Callable[[int], tuple[int, object]],
) -> list[list[Child]]:
    """Merge one level of the tree: up to FAN segments of a shard become one."""
    groups = [[row[start : start + MAX_MERGED] for start in range(0, len(row), MAX_MERGED)] for row in rows]
    merging = {
        (shard, number): group
        for shard, shard_groups in enumerate(groups)
        for number, group in enumerate(shard_groups)
        if len(group) > 1 or not group[0].is_whole
    }
    node_cpus = max((int(node.get("CPU", 0)) for node in build.cluster.nodes.values()), default=1)
    threads = max(1, min(node_cpus, build.cluster.cpus // len(merging)))
    jobs = [ShardMerge(tuple(group), build.folder, _name(group, schema), schema) for group in merging.values()]
    start, documents, total = time.perf_counter(), 0, sum(child.taken for group in merging.values() for child in group)
    next_rows = [[group[0] for group in shard_groups] for shard_groups in groups]
    report = reporter()
    with work(threads=threads):
        for job, merged in map_unordered(build.cluster, make_merge, jobs, TASK, cpus=threads, memory=build.memory):
            shard, number = list(merging)[job]
            if merged.repeated is not None:
                first = edges[shard] + sum(child.taken for group in groups[shard][:number] for child in group)
                doc_id, *positions = merged.repeated
                raise _duplicate_error(doc_id, *(locate(first + position) for position in positions))
            finished[merged.name] = merged
            next_rows[shard][number] = Child(merged.name, 0, merged.documents, merged.documents)
            documents += merged.documents
            report(Progress("merging", documents, total, time.perf_counter() - start))
    return next_rows


def _children(segments: Sequence[FinishedSegment], bounds: Sequence[int], schema: Schema, first: int, last: int) -> list[Child]:
    """Segments with documents from `first` to `last`, and the range that is taken from each."""
    children = []
    for segment, (start, end) in zip(segments, pairwise(bounds), strict=True):
        if max(start, first) < min(end, last):
            low, high = max(start, first) - start, min(end, last) - start
            children.append(Child(segment.name, low, high, segment.documents, _has_other_types(segment.names, schema)))
    return children


def _has_other_types(names: Sequence[tuple[str, str]], schema: Schema) -> bool:
    """Whether column types found in a part differ from the types of the whole index."""
    if schema.declared:
        return False
    differ = any(kind and schema.types.get(name) != stored_kind(kind) for name, kind in names)
    return differ or (len(names) >= MAX_COLUMNS and not set(schema.types) <= {name for name, _ in names})


def _name(children: Sequence[Child], schema: Schema) -> str:
    """Name of a merged segment, which its inputs determine."""
    described = [[child.name, child.first, child.last, child.reread_columns] for child in children]
    return "merge-" + hash_json([VERSION, described, schema.to_json()])[:24]


def _locate(bounds: Sequence[int], names: Sequence[object], document: int) -> tuple[int, object]:
    """Return a document's number in its part (from 0) and the part's name."""
    part = bisect_right(bounds, document) - 1
    return document - bounds[part], names[part]


def _duplicate_error(doc_id: str, first: tuple[int, object], second: tuple[int, object]) -> InputError:
    """Error about an id that occurs twice, each time at a document's number, from 0, in a part with a name."""
    occurrences = [f"document {number + 1:,} of {name}" for number, name in (first, second)]
    return InputError(f"document id '{doc_id}' occurs twice, as {occurrences[0]} and as {occurrences[1]}; ids must be unique")
