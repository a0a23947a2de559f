"""Changes to an index: adding, deleting and merging, each an atomic commit by one writer at a time."""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np

from ..core.arrays import Int64s
from ..core.checks import check_id
from ..core.errors import FontesError, IndexFormatError, InputError, ParameterError
from ..core.strings import Strings, encodable
from ..core.values import Doc
from ..core.work import cluster, resources, work
from ..formats import read_corpus
from ..formats.ciff import ciff_file
from ..formats.corpus import Corpus, IterableCorpus
from ..formats.decoding import warn
from ..storage.artifact import drafting, staging
from ..storage.compiled import prepare_for_change
from ..storage.files import STANDARD
from ..storage.system import locked, uninterrupted
from .build import build_segment, copy_documents, deleted_between, is_indexed_alike, rebuild_all
from .ciff import ciff_segment
from .columns import ColumnWriter, Schema, filter_of
from .draft import MEMORY, SMALL, Draft
from .embeddings.encoded import merge_conflict
from .files import (
    DRAFT_OF_WRITER,
    VERSION,
    WRITER,
    building,
    check_sizes,
    commit,
    is_same_state,
    read_manifest,
    real_path,
    remove_unnamed,
    replace_manifest,
    with_segments,
    write_manifest,
    writer_facts,
)
from .filled import FieldCounter
from .patches import patched
from .remote import copies
from .segment import Segment
from .settings import IndexSettings
from .shards import split_segment
from .state import State

HOLDER = "holder.json"
DUPLICATES = ("error", "skip", "replace")
BUILD_DUPLICATES = DUPLICATES[:2]
ATTEMPTS = 5  # to change an index that is built again during each of them

logger = logging.getLogger("fontes.index")
MERGED = "merged"  # the staged folder's name


class BusyError(FontesError):
    """Another process or thread changes the index."""


class ReplacedError(FontesError):
    """Another index was built at the path during a change, which did nothing."""


@dataclass(frozen=True)
class Change:
    """Result of a commit.

    Args:
        added: Number of documents added.
        replaced: Number of these that replaced another.
        skipped: Documents not added because their id existed; or ids to delete that did not exist.
        deleted: Number of documents deleted without a replacement.
        documents: Number of documents now.
        segments: Number of segments now.
    """

    added: int = 0
    replaced: int = 0
    skipped: int = 0
    deleted: int = 0
    documents: int = 0
    segments: int = 0


def build(
    docs: Iterable[object] | str | Path,
    path: Path,
    settings: IndexSettings,
    columns: Mapping[str, str] | None,
    duplicates: str,
    shards: int | None,
    overwrite: bool,
    drop_vectors: bool,
) -> None:
    """Build an index in a directory; see `Index.build`."""
    if duplicates not in BUILD_DUPLICATES:
        raise ParameterError(f"duplicates must be error or skip, not {duplicates!r}; an addition may replace")
    if (actors := cluster()) is not None:
        if duplicates != "error":
            raise ParameterError(f"duplicates={duplicates!r} is not for a build on a cluster (ray), whose ids must be unique")
        replacing: dict[str, object] = {"overwrite": overwrite, "drop_vectors": drop_vectors}
        actors.build_on_cluster(docs, path, settings, columns, shards=shards, **replacing)
        return
    documents = _read_documents(docs)
    ciff = ciff_file(documents)
    if ciff is not None and (settings.weights is not None or columns is not None):
        raise ParameterError(f"{ciff} holds no metadata, so that it has no term weights and no columns")
    if ciff is not None and (settings.separate or settings.positions):
        raise ParameterError(f"{ciff} holds neither fields nor positions; they need an index of the documents")
    with building(path, overwrite, drop_vectors) as stage:
        folder = stage / "segment"
        folder.mkdir()
        writer = ColumnWriter(folder, Schema.of(columns))
        ciff_facts: dict[str, object] = {}
        if ciff is None:
            fields = FieldCounter.of(settings, columns)
            only = FirstOfEachId() if duplicates == "skip" else None
            counts = build_segment(documents, folder, settings, further=[writer, fields], only=only)
            if only and only.skipped:
                warn(f"left out, as they have the id of an earlier document: {only.skipped:,}, such as '{only.example}'")
            fields.check(settings, columns, documents.fields)
        else:
            counts, header = ciff_segment(ciff, folder)
            ciff_facts = {"fields": [], "ciff": header}
        facts = {**writer_facts(), **settings.facts, **ciff_facts}
        manifest = {**facts, "columns": writer.schema.to_json()}
        segments = [(folder, counts)]
        if shards is not None:
            manifest["shards"] = shards
            segments = split_segment(Segment(folder, texts=ciff is None), shards, stage)
        commit(stage, path, segments, manifest, overwrite, drop_vectors)


class FirstOfEachId:
    """Says of each document whether none before it, in an index or this sequence, has its id.

    Attributes:
        skipped: Number of the others.
        example: The id of the first of them.
    """

    def __init__(self, present: Container[str] = ()) -> None:
        self._present = present
        self._seen: set[str] = set()
        self.skipped, self.example = 0, ""

    def __call__(self, doc: Doc) -> bool:
        if doc.id in self._seen or doc.id in self._present:
            self.example = self.example or doc.id
            self.skipped += 1
            return False
        self._seen.add(doc.id)
        return True


def _read_documents(docs: Iterable[object] | str | Path) -> Corpus | IterableCorpus:
    from ..datasets import corpus_of

    return read_corpus(corpus_of(docs) if isinstance(docs, str) else docs)


def add(opened: State, docs: str | Path | Iterable[object], duplicates: str) -> tuple[Change, State]:
    """Add documents; see `Index.add`. Returns the change and the new state."""
    if duplicates not in DUPLICATES:
        raise ParameterError(f"duplicates must be error, skip or replace, not {duplicates!r}")
    is_read_once = isinstance(docs, Iterator) or (isinstance(docs, (str, Path)) and str(docs) == STANDARD)
    documents = _read_documents(docs)
    return _changed(opened, lambda: _add(opened, documents, duplicates), 1 if is_read_once else ATTEMPTS)


def _add(opened: State, documents: Corpus | IterableCorpus, duplicates: str) -> tuple[Change, State]:
    with writing(opened) as (state, folder):
        _require_texts(state)
        new = FirstOfEachId(state)
        segment = folder / "segment"
        segment.mkdir()
        columns, fields = ColumnWriter(segment, state.schema), FieldCounter.of(state.settings, None)
        counts = build_segment(
            documents,
            segment,
            state.settings,
            further=[columns, fields],
            only=new if duplicates == "skip" else None,
            repeated=duplicates == "replace",
        )
        fields.check_addition(state.settings, documents.fields)
        draft = Draft(state, folder)
        replaced = 0
        if counts["documents"]:
            draft.append(segment, counts)
            replaced = _delete_replaced(draft, state, duplicates)
        draft.merge_piled()
        newest = commit_draft(state, draft, folder, columns.schema)
    added = len(newest) - len(state) + replaced
    return Change(added, replaced, new.skipped, 0, len(newest), len(newest.leaves)), newest


def delete(opened: State, ids: Sequence[str], where: str | None, missing: str) -> tuple[Change, State]:
    """Delete documents; see `Index.delete`. Returns the change and the new state."""
    _check_ids(ids, missing)
    if where is not None and ids:
        raise ParameterError("delete takes ids, or a filter (where), not both")
    return _changed(opened, lambda: _delete_ids(opened, ids, where, missing))


def update(opened: State, changes: Mapping[str, Mapping[str, object]], missing: str) -> tuple[Change, State]:
    """Change parts of documents; see `Index.update`. Returns the change and the new state."""
    _check_ids(changes, missing)
    skipped = 0

    def plan(state: State) -> tuple[list[Doc], list[str]]:
        nonlocal skipped
        present = [doc_id for doc_id in changes if doc_id in state]
        skipped = len(changes) - len(present)
        if skipped and missing == "error":
            absent = next(doc_id for doc_id in changes if doc_id not in state)
            raise InputError(f"document '{absent}' is not in the index {state.path}; nothing was changed")
        return [patched(doc, changes[doc_id]) for doc_id, doc in zip(present, state.docs(present), strict=True)], []

    change, newest = rewrite(opened, plan)
    return replace(change, skipped=skipped), newest


def _check_ids(ids: Iterable[str], missing: str) -> None:
    if missing not in ("error", "skip"):
        raise ParameterError(f"missing must be error or skip, not {missing!r}")
    for doc_id in ids:
        check_id(doc_id)


def rewrite(
    opened: State, plan: Callable[[State], tuple[Iterable[Doc], Iterable[str]]], most: int | None = None
) -> tuple[Change, State]:
    """Replace, add and delete documents in one commit. Returns the change and the new state.

    A document whose title, text and indexed metadata are the stored ones is not analysed: its postings, vectors and all else
    but the metadata are copied.

    Args:
        opened: The state that was open.
        plan: Returns, for the newest state, documents with distinct ids, and ids of other documents, which are deleted if they
            are there. It is called while nothing else can change the index.
        most: Maximum documents of the segments that the commit merges; None for no limit. See `background.merged_aside`.

    Raises:
        InputError: A document cannot be used; nothing was changed.
        FontesError: As `Index.add`, or raised by `plan`; nothing was changed.
    """
    return _changed(opened, lambda: _rewrite(opened, plan, most))


def _rewrite(
    opened: State, plan: Callable[[State], tuple[Iterable[Doc], Iterable[str]]], most: int | None
) -> tuple[Change, State]:
    with writing(opened) as (state, folder):
        docs, deleted = plan(state)
        written = {encodable(doc.id): doc for doc in docs}
        if written:
            _require_texts(state)
        ordinals = state.ordinals(Strings.of([*written, *deleted]))
        present = [doc_id for doc_id, ordinal in zip(written, ordinals.tolist(), strict=False) if ordinal >= 0]
        same = [old.id for old in state.docs(present) if is_indexed_alike(old, written[old.id], state.settings)]
        same_ordinals = np.sort(state.ordinals(Strings.of(same)))
        draft, schema = Draft(state, folder), state.schema
        _delete(draft, state, same_ordinals)
        for before, after in zip(state.leaves, list(draft.leaves), strict=True):
            copied = same_ordinals[(same_ordinals >= before.first) & (same_ordinals < before.first + before.documents)]
            if len(copied):
                segment = draft.new_folder()
                columns = ColumnWriter(segment, schema)
                new_docs = [written.pop(state.ids[ordinal]) for ordinal in copied.tolist()]
                source = deleted_between(before, after)
                draft.append(segment, copy_documents(source, new_docs, segment, columns), [source])
                schema = columns.schema
        _delete(draft, state, np.setdiff1d(ordinals[ordinals >= 0], same_ordinals))
        if written:
            segment = draft.new_folder()
            columns = ColumnWriter(segment, schema)
            draft.append(segment, build_segment(list(written.values()), segment, state.settings, further=[columns]))
            schema = columns.schema
        draft.merge_piled(most)
        newest = commit_draft(state, draft, folder, schema)
    added, replaced = len(same) + len(written), len(present)
    return Change(added, replaced, 0, len(state) + added - replaced - len(newest), len(newest), len(newest.leaves)), newest


def _require_texts(state: State) -> None:
    if state.ciff is not None:
        raise InputError(
            f"{state.path} was made from a CIFF file and holds no text, so that no documents can be added; index all "
            "documents, or a CIFF file of all"
        )


def _delete_ids(opened: State, ids: Sequence[str], where: str | None, missing: str) -> tuple[Change, State]:
    with writing(opened) as (state, folder):
        if (passing := filter_of(state, where)) is not None:
            ids = state.ids.take(passing.docs)
        table = Strings.of(ids)
        ordinals = state.ordinals(table)
        absent = np.flatnonzero(ordinals < 0)
        if len(absent) and missing == "error":
            note = f" (nor are {len(absent) - 1:,} others)" if len(absent) > 1 else ""
            raise InputError(
                f"document '{table[int(absent[0])]}' is not in the index {state.path}{note}; nothing was deleted; "
                "missing='skip' (--missing skip) deletes those that are there"
            )
        draft = Draft(state, folder)
        _delete(draft, state, np.unique(ordinals[ordinals >= 0]))
        draft.merge_piled()
        newest = commit_draft(state, draft, folder)
    deleted = len(state) - len(newest)
    return Change(0, 0, len(absent), deleted, len(newest), len(newest.leaves)), newest


def merge(opened: State, drop_vectors: bool, positions: bool) -> tuple[Change, State]:
    """Merge all segments; see `Index.merge`. Returns the change and the new state."""
    return _changed(opened, lambda: _merge(opened, drop_vectors, positions))


def _merge(opened: State, drop_vectors: bool, positions: bool) -> tuple[Change, State]:
    with writing(opened) as (state, folder):
        if positions and not state.has_texts:
            raise InputError(
                f"{state.path} was made from a CIFF file and holds no text to find positions in; index the documents with "
                "positions=True (--positions)"
            )
        settings = state.settings.with_positions() if positions and not state.settings.positions else None
        draft = Draft(state, folder)
        for first, last in draft.sort_by_shard():
            if not drop_vectors and (problem := merge_conflict(draft.leaves[first:last])) is not None:
                raise FontesError(f"{state.path} cannot be merged: {problem}")
        if settings is None:
            draft.merge_all()
        else:
            rebuild_all(draft, settings)
        newest = commit_draft(state, draft, folder, None, settings)
    return Change(documents=len(newest), segments=len(newest.leaves)), newest


def _delete_replaced(draft: Draft, state: State, duplicates: str) -> int:
    """Delete older documents that have ids of the last segment. Returns the number of deleted documents of the index."""
    segment = draft.leaves[-1].segment
    ordinals = state.ordinals(segment.ids)
    repeated_rows = np.flatnonzero(ordinals >= 0)
    if len(repeated_rows) and duplicates == "error":
        note = f", as are {len(repeated_rows) - 1:,} others" if len(repeated_rows) > 1 else ""
        raise InputError(
            f"document '{segment.ids[int(repeated_rows[0])]}' is in the index {state.path} already{note}; nothing was added; "
            "duplicates='replace' (--duplicates replace) replaces the old one, 'skip' keeps it"
        )
    replaced = np.unique(ordinals[repeated_rows])
    _delete(draft, state, replaced)
    if duplicates == "replace":
        order = segment.ids.order
        in_order = segment.ids.take(order)
        dead = np.zeros(segment.documents, dtype=np.bool_)
        for i in range(len(in_order) - 1):
            dead[order[i]] = in_order[i] == in_order[i + 1]
        if dead.any():
            draft.delete(len(draft.leaves) - 1, dead)
    return len(replaced)


def _delete(draft: Draft, state: State, ordinals: Int64s) -> None:
    for number, leaf in enumerate(state.leaves):
        leaf_ordinals = ordinals[(ordinals >= leaf.first) & (ordinals < leaf.first + leaf.documents)]
        if len(leaf_ordinals):
            dead = np.zeros(leaf.segment.documents, dtype=np.bool_)
            dead[leaf.live[leaf_ordinals - leaf.first]] = True
            draft.delete(number, dead)


def _changed(opened: State, change: Callable[[], tuple[Change, State]], attempts: int = ATTEMPTS) -> tuple[Change, State]:
    """Make a change, again on the newest state if another index was built at the path meanwhile."""
    for _ in range(attempts - 1):
        try:
            return change()
        except ReplacedError:
            logger.warning("%s was replaced by another index meanwhile, which is changed in its place", opened.path)
    return change()


@contextmanager
def writing(opened: State) -> Iterator[tuple[State, Path]]:
    """Lock the index and yield its newest state and an empty folder for the changes.

    Raises BusyError if another process or thread changes the index, and ReplacedError if a file of this state is gone because
    another index, whose build needs no lock, has replaced it.
    """
    if opened.path.absolute().parent == copies():
        raise FontesError(f"{opened.path} is a copy of an index at an address; change the original and copy it there again")
    prepare_for_change()
    path, busy = opened.path, FontesError("the index is being changed")
    read_manifest(path)
    try:
        with drafting(real_path(path) / WRITER, busy) as draft:
            try:
                _empty_folder(draft)
                since = datetime.now().astimezone().isoformat(" ", "seconds")
                holder = {"process": os.getpid(), "host": socket.gethostname(), "since": since}
                (draft / HOLDER).write_text(json.dumps(holder), encoding="utf-8")
                newest = opened.refreshed()
                newest.require_all()
                try:
                    yield newest, draft
                except (IndexFormatError, FileNotFoundError) as error:
                    if is_same_state(read_manifest(path), newest.manifest):
                        raise
                    raise _replaced(path) from error
            finally:
                with uninterrupted():
                    _empty_folder(draft)
    except FontesError as error:
        if error is not busy:
            raise
        description = _describe_holder(path / DRAFT_OF_WRITER / HOLDER)
        raise BusyError(f"{path} is being changed by {description}; wait until that is done") from None
    except OSError as error:
        if getattr(error, "of_documents", False):
            raise
        raise FontesError(f"{path} cannot be written: {error.strerror or error}; nothing was changed") from error


def _replaced(path: Path) -> ReplacedError:
    return ReplacedError(f"{path} was replaced by another index meanwhile; nothing was changed")


def _describe_holder(holder: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(holder.read_text(encoding="utf-8"))
        return f"process {facts['process']} on {facts['host']} since {facts['since']}"
    return "another process"


def _empty_folder(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.unlink()


def commit_draft(
    state: State, draft: Draft, folder: Path, schema: Schema | None = None, settings: IndexSettings | None = None
) -> State:
    """Make a draft the newest state of an index whose lock `writing` holds; return that state."""
    if draft.entries == state.manifest["segments"] and settings is None:
        return state
    path = real_path(state.path)
    facts = {key: value for key, value in state.manifest.items() if key not in ("fingerprint", "segments")}
    facts["version"] = VERSION
    if settings is not None:  # in the order of a new build
        facts = {**writer_facts(), **settings.facts} | {key: facts[key] for key in ("columns", "shards") if key in facts}
    if schema is not None:
        facts["columns"] = schema.to_json()
    with uninterrupted(state.path), locked(path.parent):
        if not is_same_state(read_manifest(path), state.manifest):
            raise _replaced(state.path)
        remove_unnamed(path)  # folders that a killed process left
        try:
            manifest = with_segments(facts, draft.move_into(path))
            check_sizes(path, manifest)
            write_manifest(folder, manifest)
            replace_manifest(path, folder)
        except BaseException:
            remove_unnamed(path)
            raise
    return state.refreshed()


@contextmanager
def merged_aside(opened: State) -> Iterator[Callable[[], State | None] | None]:
    """Merge the next segments that a commit leaves because they are large, while the index may be changed.

    Args:
        opened: A state of the index.

    Yields:
        A function that puts the merged segment in place of the others, in a commit, and returns the new state; it returns None
        and changes nothing if one of them was merged or rewritten meanwhile. It raises BusyError while another process changes
        the index, and can be called again. None if there is nothing to merge.

    Raises:
        IndexFormatError: A segment is damaged.
        FontesError: The disk is full or cannot be written; nothing was changed.
    """
    state, path = opened.refreshed(), real_path(opened.path)
    if Draft(state, path).large_pile() is None:
        yield None
        return
    try:
        with staging(path / MERGED) as folder:
            draft = Draft(state, folder)
            first, last = draft.large_pile() or (0, 0)
            sources, names = tuple(draft.leaves[first:last]), [entry["name"] for entry in draft.entries[first:last]]
            try:
                with work(threads=1, memory=min(MEMORY, resources().memory)):
                    draft.merge(first, last)
            except (IndexFormatError, FileNotFoundError):
                if set(names) <= {entry["name"] for entry in read_manifest(path)["segments"]}:
                    raise
                yield None  # another process has merged them, and removed their files
                return
            merged, entry = draft.leaves[first].segment.folder, draft.entries[first]

            def install() -> State | None:
                try:
                    with writing(opened) as (newest, new_folder):
                        new = Draft(newest, new_folder)
                        new.sort_by_shard()
                        new_names = [entry["name"] for entry in new.entries]
                        start = new_names.index(names[0]) if names[0] in new_names else 0
                        if new_names[start : start + len(names)] != names:
                            return None
                        new.replace(start, sources, merged, entry)
                        new.merge_piled(SMALL)
                        return commit_draft(newest, new, new_folder)
                except ReplacedError:
                    return None

            yield install
    except OSError as error:
        raise FontesError(f"{opened.path} cannot be written: {error.strerror or error}; nothing was changed") from error
