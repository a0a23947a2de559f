"""The index: a directory of documents and statistics, and a factory of retrievers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IndexFormatError, InputError, ParameterError
from ..core.strings import Strings
from ..core.values import Doc
from ..formats import docs as as_docs, read_corpus
from ..text import Analyzer
from .build import SCALE, Progress, Vectors, build_segment, content, memory_size
from .embeddings import Embeddings, find
from .files import FORMAT, VERSION, check_digests, check_sizes, commit, manifest_file, read_manifest, staging
from .segment import Segment
from .shelf import Shelf

if TYPE_CHECKING:
    from ..lexical import BM25, RM3, TFIDF, LearnedSparse, QueryLikelihood
    from ..neural.dense.dense import Dense
    from ..neural.encoders.base import Encoder
    from ..neural.late.colbert import ColBERT
    from ..neural.late.late import Late


PLACES = 1_000_000  # terms whose places an index remembers


class Index:
    """A collection, ready to be searched. `Index.build` makes one on disk, `Index.open` opens it.

    It holds the documents and statistics (ids, term frequencies, document lengths), never scores, and the analyzer that made
    them; so models and parameters are chosen when asking. An index on disk does not change under those who have it open.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], analyzer: Analyzer) -> None:
        """Use `Index.open`."""
        self.path = path
        self.analyzer = analyzer
        self.fields: tuple[str, ...] = tuple(manifest["fields"])
        self.scale: float | None = manifest["scale"]
        self.fingerprint: str = manifest["fingerprint"]
        self._manifest = manifest
        self._folder = path / manifest["segments"][0]["name"]
        self._segment = Segment(self._folder)
        self._shelf = Shelf(path, self._folder, self._segment)
        self._places: dict[str, int] = {}
        self.memory: dict[Any, Any] = {}  # what retrievers have worked out
        self.queries: dict[str, dict[str, Any]] = {}  # for each encoder the vectors of the last queries

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
        progress: Callable[[Progress], None] | None = None,
    ) -> Index:
        """Makes an index of `docs` in the directory `path` and opens it.

        docs       a file or folder that `read_corpus` reads, or an iterable of Doc, of dicts with "_id" (or "id") and "text",
                   or of (id, text) pairs
        analyzer   a name, an Analyzer, or a callable from text to tokens; see `Analyzer.of`
        fields     what is indexed, joined by a space: "title", "text", or keys of the metadata; everything is stored
        vectors    index no text but the term weights under this key of the metadata, for `index.impacts()`; they are kept to
                   two decimals, and everything else of the documents is stored
        memory     how much memory postings may take before they are written to disk and merged at the end
        threads    with 2 or more (default: the machine's), reading, analysis and compression run side by side
        overwrite  replace an index that is there; it stays as it is until the new one is complete
        progress   is called with a `Progress` after each batch of documents

        The same documents give the same bytes. Nothing is left behind by a build that fails. Raises InputError for documents
        that cannot be used and for ids that occur twice, FontesError where the disk is full.
        """
        path = Path(path)
        chosen = Analyzer.of(analyzer)
        if isinstance(fields, str) or not fields:
            raise ParameterError("fields must be a list of field names, such as ('title', 'text')")
        documents = read_corpus(docs) if isinstance(docs, (str, Path)) else as_docs(docs)
        with staging(path, overwrite) as stage:
            folder = stage / "segment"
            folder.mkdir()
            counts = build_segment(
                documents,
                folder,
                chosen,
                fields,
                vectors=None if vectors is None else Vectors(vectors),
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
            commit(stage, path, folder, manifest, overwrite)
        return cls.open(path, analyzer=chosen)

    @classmethod
    def open(cls, path: str | Path, *, analyzer: str | Analyzer | Callable[[str], Sequence[str]] | None = None) -> Index:
        """Opens the index in the directory `path`.

        `analyzer` is only needed where the index was made with a callable that cannot be imported by its name. Raises
        IndexFormatError where there is no index, or a damaged one, or one of another format version.
        """
        path = Path(path)
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
        """The analyzer of the manifest, or the given one, if it is the same."""
        if analyzer is None:
            return Analyzer.of(manifest["analyzer"])
        given = Analyzer.of(analyzer)
        stored = dict(manifest["analyzer"])
        if {**given.to_dict(), "libraries": None} != {**stored, "libraries": None}:
            raise ParameterError(f"{path} was made with another analyzer; leave analyzer out, or give the one it was made with")
        return given

    def bm25(
        self,
        *,
        variant: str = "lucene",
        k1: float | None = None,
        b: float | None = None,
        k3: float | None = None,
        delta: float | None = None,
        epsilon: float = 0.25,
        lengths: str = "exact",
        k: int = 1000,
        threads: int | None = None,
    ) -> BM25:
        """A BM25 retriever over this index; see `fontes.lexical.BM25` for the parameters."""
        from ..lexical import BM25

        return BM25(self, variant, k1, b, k3, delta, epsilon, lengths, k, threads)

    def tfidf(
        self,
        *,
        sublinear_tf: bool = False,
        smooth_idf: bool = False,
        norm: str | None = "l2",
        relative_tf: bool = False,
        k: int = 1000,
        threads: int | None = None,
    ) -> TFIDF:
        """A TF-IDF retriever over this index; see `fontes.lexical.TFIDF` for the parameters."""
        from ..lexical import TFIDF

        return TFIDF(self, sublinear_tf, smooth_idf, norm, relative_tf, k, threads)

    def ql(
        self,
        *,
        smoothing: str = "dirichlet",
        mu: float = 1000.0,
        lambda_: float = 0.1,
        lengths: str = "exact",
        k: int = 1000,
        threads: int | None = None,
    ) -> QueryLikelihood:
        """A query likelihood retriever over this index; see `fontes.lexical.QueryLikelihood` for the parameters."""
        from ..lexical import QueryLikelihood

        return QueryLikelihood(self, smoothing, mu, lambda_, lengths, k, threads)

    def impacts(self, *, k: int = 1000, threads: int | None = None) -> LearnedSparse:
        """A retriever over the vectors that this index was built with; see `fontes.lexical.LearnedSparse`."""
        from ..lexical import LearnedSparse

        return LearnedSparse(self, k, threads)

    def rm3(self, *, fb_docs: int = 10, fb_terms: int = 10, original_weight: float = 0.5, max_df: float = 0.1) -> RM3:
        """Feedback out of this index's documents: `bm25 >> index.rm3() >> bm25`; see `fontes.lexical.RM3`."""
        from ..lexical import RM3

        return RM3(self, fb_docs, fb_terms, original_weight, max_df)

    def encode(
        self,
        encoder: Encoder,
        *,
        dtype: str = "float32",
        overwrite: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Stores the documents' vectors by `encoder` with the index, for `index.dense(encoder)`.

        dtype      "float32", "float16", or "int8": whole numbers with one scale for each vector
        overwrite  encode again where these vectors are there already; else there is nothing to do
        progress   is called with a `Progress` as documents are done

        An encoding that was interrupted or killed goes on where it was. Where there are float32 vectors of this encoder, others
        are made of them. An index may hold the vectors of several encoders; building it anew with overwrite=True removes them.
        Raises FontesError where the disk is full; what is encoded is kept.
        """
        from ..neural.dense.settings import settings_of
        from ..neural.encoders.base import document_vectors
        from ..neural.late.colbert import ColBERT

        if isinstance(encoder, ColBERT):
            raise ParameterError(
                f"{encoder!r} has a vector for each token: fontes.neural.encode_late(index, colbert) stores them"
            )
        self._shelf.add(encoder, settings_of(encoder), document_vectors, dtype, overwrite, progress)

    def embeddings(self, encoder: Encoder, dtype: str | None = None) -> Embeddings:
        """The documents' vectors by `encoder`, the most exact ones where no dtype is given.

        Raises ParameterError where there are none, IndexFormatError where they are damaged.
        """
        return self._shelf.of(encoder, dtype)

    def dense(
        self,
        encoder: Encoder | str,
        *,
        algorithm: str = "flat",
        k: int = 1000,
        effort: int | None = None,
        dtype: str | None = None,
        threads: int | None = None,
    ) -> Dense:
        """A retriever over the vectors that `index.encode(encoder)` stored; see `fontes.neural.Dense` for the parameters."""
        from ..neural.dense.dense import Dense

        return Dense(index=self, encoder=encoder, algorithm=algorithm, k=k, effort=effort, dtype=dtype, threads=threads)

    def late(
        self,
        colbert: ColBERT | str,
        *,
        algorithm: str = "centroids",
        k: int = 1000,
        nprobe: int | None = None,
        threshold: float | None = None,
        candidates: int | None = None,
        nbits: int | None = None,
        threads: int | None = None,
    ) -> Late:
        """A retriever over the token vectors that `encode_late` stored; see `fontes.neural.Late` for the parameters."""
        from ..neural.late.late import Late

        return Late(
            index=self,
            colbert=colbert,
            algorithm=algorithm,
            k=k,
            nprobe=nprobe,
            threshold=threshold,
            candidates=candidates,
            nbits=nbits,
            threads=threads,
        )

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

    def place(self, term: str) -> int:
        """Where the term stands in `terms`, or -1."""
        place = self._places.get(term)
        if place is None:
            if len(self._places) >= PLACES:
                self._places.clear()
            place = self._places[term] = self.terms.find(term)
        return place

    def postings(self, terms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The postings of the terms at these positions of `terms`, end to end: document positions, and term frequencies."""
        return self._segment.postings(np.asarray(terms))

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        """The documents with these ids. Raises InputError for an id that is not in the index."""
        wanted = list(ids)
        positions = [self.position(doc_id) for doc_id in wanted]
        return self._segment.store.read(wanted, positions)

    def doc(self, doc_id: str) -> Doc:
        """The document with this id. Raises InputError where there is none."""
        return self.docs([doc_id])[0]

    def analyzed(self, ids: Iterable[str]) -> list[list[str]]:
        """The terms of the documents with these ids, from their stored text. Raises InputError for an unknown id."""
        return self.analyzer.many([content(doc, self.fields) for doc in self.docs(ids)])

    def position(self, doc_id: str) -> int:
        """Where the document stands in `ids`. Raises InputError for an id that is not in the index."""
        position = self.ids.find(doc_id)
        if position < 0:
            raise InputError(f"document '{doc_id}' is not in the index {self.path}")
        return position

    def check(self) -> None:
        """Reads every file. Raises IndexFormatError where anything is not as it was written or does not fit together."""
        check_digests(self.path, self._manifest)
        self._segment.check()
        for found in find(self._folder).values():
            if isinstance(found, IndexFormatError):
                raise found
            found.check()
        for folder in sorted(self._folder.glob("late-*")):
            from ..neural.late.store import TokenVectors

            TokenVectors(folder).check()

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
            "vectors": [self._vector_info(found) for found in self._shelf.sound()],
        }

    def _vector_info(self, found: Embeddings) -> dict[str, Any]:
        from ..neural.dense.ann import kept

        return {**found.info(), "approximate": kept(found, self.path)}

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (self.path.absolute(), self.analyzer)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self.ids

    def __repr__(self) -> str:
        return f"Index('{self.path}', {len(self)} documents)"


def _opened(path: Path, analyzer: Analyzer) -> Index:
    return Index.open(path, analyzer=analyzer)
