"""The index: a directory of documents and statistics, and a factory of retrievers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError, InputError, ParameterError
from ..core.html import table
from ..core.progress import Report, silent
from ..core.strings import Strings
from ..core.values import Doc
from ..formats import read_corpus
from ..storage.arrays import REMEDY
from ..storage.files import as_path
from ..text import Analyzer, snippet
from .build import SCALE, TermWeights, build_segment, content, memory_size
from .joined_embeddings import JoinedEmbeddings
from .joined_weights import JoinedWeights
from .factory import Factory
from .files import FORMAT, MANIFEST, VERSION, building, check_contents, check_sizes, commit, manifest_file, read_manifest
from .segment import Segment
from .vectors import VectorStore
from .leaf import leaves_of
from .weights import WeightLists

if TYPE_CHECKING:
    from ..neural.encoders.base import Encoder
    from ..neural.sparse.base import SparseEncoder


ANALYZER = "leave analyzer out, or give the one it was made with"


class Index(Factory):
    """A collection, ready to be searched. `Index.build` makes one on disk, `Index.open` opens it.

    It holds the documents and statistics (ids, term frequencies, document lengths), never scores, and the analyzer that made
    them; so models and parameters are chosen when asking. An index on disk does not change under those who have it open.

    Attributes:
        path: The directory.
        analyzer: Makes the terms of documents and queries.
        fields: What is indexed of each document.
        scale: What term weights were multiplied by when they were stored; None for an index of texts.
        fingerprint: The SHA-256 of all that the index is made of.
        segment_folder: The folder of its segment: arrays, and what is attached to the documents, such as vectors.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], analyzer: Analyzer) -> None:
        """Use `Index.open`."""
        self.path = path
        self.analyzer = analyzer
        self.fields: tuple[str, ...] = tuple(manifest["fields"])
        self.scale: float | None = manifest["scale"]
        self.fingerprint: str = manifest["fingerprint"]
        self.segment_folder = path / manifest["segments"][0]["name"]
        self._manifest = manifest
        self._segment = Segment(self.segment_folder)
        self.leaves = leaves_of([(self._segment, None)])
        self._vectors = VectorStore(path, self.leaves)

    @classmethod
    def build(
        cls,
        docs: str | Path | Iterable[Any],
        path: str | Path,
        *,
        analyzer: str | Analyzer | Callable[[str], Sequence[str]] = "english",
        fields: Sequence[str] = ("title", "text"),
        vectors: str | None = None,
        memory: str | int = "2G",
        threads: int | None = None,
        overwrite: bool = False,
        drop_vectors: bool = False,
        progress: Report = silent,
    ) -> Index:
        """Makes an index of documents in a directory and opens it.

        The same documents give the same bytes. Nothing is left behind by a build that fails.

        Args:
            docs: What `read_corpus` accepts: a file or folder, a DataFrame, or an iterable of Doc, of dicts with "_id" (or
                "id") and "text", or of (id, text) pairs; `read_corpus(docs, fields=…)` where the columns have other names.
            path: The directory.
            analyzer: A name, an Analyzer, or a callable from text to tokens; see `Analyzer.of`.
            fields: What is indexed, joined by a space: "title", "text", or keys of the metadata; everything is stored.
            vectors: Index no text but the term weights under this key of the metadata, for `index.learned_sparse()`; they are
                stored to two decimals, and everything else of the documents is stored.
            memory: How much memory postings may take before they are written to disk and merged at the end.
            threads: With 2 or more (default: the machine's), reading, analysis and compression run side by side.
            overwrite: Replace an index that is there; it stays as it is until the new one is complete.
            drop_vectors: Replace even an index that holds vectors, which the new one has not.
            progress: Is called after each batch of documents.

        Raises:
            InputError: A document cannot be used, an id occurs twice, or something is at `path` already that may not be
                replaced.
            FontesError: The disk is full or cannot be written.
        """
        path = Path(path)
        chosen = Analyzer.of(analyzer)
        if isinstance(fields, str) or not fields:
            raise ParameterError("fields must be a list of field names, such as ('title', 'text')")
        documents = read_corpus(docs)
        with building(path, overwrite, drop_vectors) as stage:
            folder = stage / "segment"
            folder.mkdir()
            counts = build_segment(
                documents,
                folder,
                chosen,
                fields,
                weights=None if vectors is None else TermWeights(vectors),
                memory=memory_size(memory),
                threads=threads or os.cpu_count() or 1,
                progress=progress,
            )
            manifest = {
                "format": FORMAT,
                "version": VERSION,
                "fontes": version("fontes"),
                "analyzer": chosen.to_dict(),
                "fields": list(fields) if vectors is None else [vectors],
                "scale": None if vectors is None else SCALE,
                **counts,
            }
            commit(stage, path, folder, manifest, overwrite, drop_vectors)
        return cls.open(path, analyzer=chosen)

    @classmethod
    def open(cls, path: str | Path, *, analyzer: str | Analyzer | Callable[[str], Sequence[str]] | None = None) -> Index:
        """Opens the index in a directory.

        Args:
            path: The directory.
            analyzer: The one that the index was made with, which is compared with the name that it has stored. It is needed
                where that was a function, or a model of spaCy in a folder: an index brings no code of its own. Without it such
                an index opens all the same, and analysing a text raises ParameterError.

        Raises:
            IndexFormatError: There is no index, or a damaged one, or one of another format version.
            ParameterError: The analyzer is not the one that the index was made with.
        """
        path = as_path(path)
        while True:
            seen = manifest_file(path)
            manifest = read_manifest(path)
            try:
                check_sizes(path, manifest)
                return cls(path, manifest, cls._analyzer(path, manifest, analyzer))
            except IndexFormatError:
                # Another process may have replaced the index between two files, perhaps by an equal one; then that is opened.
                if manifest_file(path) == seen:
                    raise

    @staticmethod
    def _analyzer(path: Path, manifest: dict[str, Any], analyzer: Any) -> Analyzer:
        """The analyzer of the manifest, with the function or as the analyzer of the argument, if it is the same."""
        try:
            stored = Analyzer.from_dict(manifest["analyzer"])
        except ParameterError as error:
            raise IndexFormatError(f"{path / MANIFEST}: {error}; {REMEDY}") from error
        if analyzer is None:
            return stored
        if callable(analyzer) and not isinstance(analyzer, Analyzer):
            try:
                return stored.with_tokenizer(analyzer)
            except ParameterError as error:
                raise ParameterError(f"{path} was made with another analyzer: {error}; {ANALYZER}") from error
        named = Analyzer.of(analyzer)
        if {**named.to_dict(), "libraries": None} != {**manifest["analyzer"], "libraries": None}:
            raise ParameterError(f"{path} was made with another analyzer; {ANALYZER}")
        return named

    def embeddings(self, encoder: Encoder, dtype: str | None = None) -> JoinedEmbeddings:
        """The documents' vectors by `encoder`, the most exact ones where `dtype` is None.

        Raises:
            ParameterError: Where there are none.
            IndexFormatError: Where they are damaged.
        """
        return self._vectors.of(encoder, dtype)

    def weights(self, encoder: SparseEncoder) -> WeightLists | JoinedWeights:
        """The weights of terms that a learned sparse encoder gave the documents.

        Raises:
            ParameterError: Where there are none.
            IndexFormatError: Where they are damaged.
        """
        return self._vectors.weights(encoder)

    @property
    def reader(self) -> Index:
        """The state that is read."""
        return self

    @cached_property
    def name(self) -> str:
        """The name of the directory without its ending: "papers" of `papers.index`."""
        return self.path.absolute().stem

    @property
    def ids(self) -> Strings:
        """The document ids, in the order in which the documents came."""
        return self._segment.ids

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """How many terms each document has."""
        return self._segment.lengths

    @property
    def terms(self) -> Strings:
        """The terms, in ascending order."""
        return self._segment.terms

    @property
    def df(self) -> NDArray[np.integer[Any]]:
        """For each term the number of documents that hold it."""
        return self._segment.df

    @property
    def cf(self) -> NDArray[np.integer[Any]]:
        """For each term how often it occurs in the collection."""
        return self._segment.cf

    @cached_property
    def tokens(self) -> int:
        """How many terms all documents have together."""
        return int(self._manifest["tokens"])

    def term_number(self, term: str) -> int:
        """The number of a term: its place in `terms`, from 0; -1 for a term that the index does not have."""
        return self._segment.term_number(term)

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The postings of the terms with these numbers, end to end.

        Returns:
            The ordinals of the documents, ascending within a term, and the term frequencies; as many of each as the terms' `df`
            together.
        """
        return self._segment.postings(np.asarray(terms))

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """The documents with these ids.

        Raises:
            InputError: For an id that is not in the index.
        """
        ids = list(ids)
        return self._segment.store.read(ids, [self.ordinal(doc_id) for doc_id in ids])

    def doc(self, doc_id: str) -> Doc:
        """The document with this id.

        Raises:
            InputError: Where there is none.
        """
        return self.docs([doc_id])[0]

    def analyzed(self, ids: Iterable[str]) -> list[list[str]]:
        """The terms of the documents with these ids, from their stored text.

        Raises:
            InputError: For an unknown id.
        """
        return self.analyzer.many([content(doc, self.fields) for doc in self.docs(ids)])

    def marked(self, query: str, doc: Doc) -> str:
        """The title of a document and the piece of its text that fits a query best, as HTML, the query's terms in bold."""
        piece = snippet(self.analyzer, doc.text, self.analyzer(query))
        shown, at = "", 0
        for start, end in piece.matches:
            shown += f"{escape(piece.text[at:start])}<b>{escape(piece.text[start:end])}</b>"
            at = end
        title = f"<i>{escape(doc.title)}</i> " if doc.title else ""
        return title + shown + escape(piece.text[at:])

    def ordinal(self, doc_id: str) -> int:
        """The number of a document in the index: its place in `ids`, from 0.

        Raises:
            InputError: Where there is no such id.
        """
        ordinal = self.ids.find(doc_id)
        if ordinal < 0:
            raise InputError(f"document '{doc_id}' is not in the index {self.path}")
        return ordinal

    def check(self) -> None:
        """Reads every file.

        Raises:
            IndexFormatError: Where anything is not as it was written or does not fit together.
        """
        check_contents(self.path, self._manifest)
        self._segment.check()
        self._vectors.check()

    def info(self) -> dict[str, Any]:
        """What the index is: counts, analyzer, sizes on disk in bytes, fingerprint."""
        files = {name: f["bytes"] for s in self._manifest["segments"] for name, f in s["files"].items()}
        text = sum(size for name, size in files.items() if name.startswith("text."))
        counts = {key: self._manifest[key] for key in ("documents", "terms", "postings", "tokens")}
        return {
            "path": str(self.path),
            **counts,
            "mean_length": self.tokens / len(self) if len(self) else 0.0,
            "fields": list(self.fields),
            "analyzer": self._manifest["analyzer"],
            "bytes": sum(files.values()),
            "bytes_of_text": text,
            "format": self._manifest["version"],
            "fontes": self._manifest["fontes"],
            "fingerprint": self.fingerprint,
            **self._vectors.info(),
        }

    @cached_property
    def is_sound(self) -> bool:
        """Whether its files are what its fingerprint says; only then what is worked out from them may be kept under it."""
        try:
            check_contents(self.path, self._manifest)
        except IndexFormatError:
            return False
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (self.path.absolute(), self.analyzer)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.ids

    def __repr__(self) -> str:
        return f"Index('{self.path}', {len(self)} documents)"

    def _repr_html_(self) -> str:
        """What the index is, as a table, for notebooks."""
        info = self.info()
        analyzer = info["analyzer"]
        rows = [
            ("path", info["path"]),
            *((name, f"{info[name]:,}") for name in ("documents", "terms", "postings", "tokens")),
            ("mean length", f"{info['mean_length']:.1f} terms"),
            ("fields", ", ".join(info["fields"])),
            ("analyzer", ", ".join(f"{key}={value}" for key, value in analyzer.items() if value not in (None, [], {}))),
            ("size", f"{info['bytes']:,} bytes, of which text {info['bytes_of_text']:,}"),
            *(("vectors", f"{v['encoder']}, {v['dtype']}, {v['dim']} dimensions") for v in info["vectors"]),
            *(("weights", f"{w['encoder']}, {w['postings']:,} of {w['terms']:,} terms") for w in info["weights"]),
            ("fingerprint", info["fingerprint"][:16]),
        ]
        return table(["index", self.name], rows)


def _opened(path: Path, analyzer: Analyzer) -> Index:
    return Index.open(path, analyzer=analyzer)
