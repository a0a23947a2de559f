"""What an index makes of itself: its retrievers, its feedback, its vectors, its snippets and facets.

The methods that make stages alone reach into rooms below, and import when they are called. Each has the parameters of its
stage, by the same names, in the same order, with the same defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..core import Doc, Ranking, Strings, Topic
from ..core.errors import InputError, ParameterError
from ..core.parameters import meant, parameters as parameters_of
from ..core.part import Part
from ..core.progress import Report, silent
from ..core.registry import nearest
from ..storage.files import write
from ..text import Snippet
from ..text.snippets import snippets
from .attached.elsewhere import elsewhere
from .attached.joined_embeddings import JoinedEmbeddings
from .attached.joined_weights import JoinedWeights
from .attached.store import Making, VectorStore
from .attached.weights import WeightLists
from .ciff import ciff_messages
from .columns import facets_of
from .leaf import Leaf

if TYPE_CHECKING:
    from ..lexical import BM25, RM3, TFIDF, LearnedSparse, QueryLikelihood
    from ..neural.dense.dense import Dense
    from ..neural.encoders.base import Encoder
    from ..neural.late.colbert import ColBERT
    from ..neural.late.late import Late
    from ..neural.sparse.base import SparseEncoder
    from ..neural.sparse.retriever import SpladeRetriever
    from .index import Index


P = ParamSpec("P")
S = TypeVar("S", bound=Part)


def checked(method: Callable[P, S]) -> Callable[P, S]:
    """A method that makes a stage, whose parameters are checked when it is made: an unknown one, and one out of its range.

    Raises:
        ParameterError: A parameter is unknown or out of its range; the message has the nearest name.
    """

    @wraps(method)
    def make(*args: P.args, **parameters: P.kwargs) -> S:
        names = method.__kwdefaults__ or {}
        for name in parameters:
            if name not in names:
                raise ParameterError(f"{method.__name__} has no parameter '{name}'; {nearest(name, names)}")
        stage = method(*args, **parameters)
        try:
            stage.check()
        except ParameterError as error:
            known = parameters_of(type(stage))
            better = next(filter(None, (meant(known, name, value) for name, value in parameters.items())), "")
            raise ParameterError(f"{error}{better}") from None
        return stage

    return make


class Factory:
    """The part of `Index` that makes stages over it."""

    _vectors: VectorStore

    @property
    def _index(self) -> Index:
        return cast("Index", self)

    @property
    def columns(self) -> dict[str, str]:
        """The keys of the metadata that filters compare and facets count, each with its type, in ascending order."""
        return self._index.reader.schema.columns

    def facets(self, *columns: str, docs: NDArray[np.integer[Any]] | Strings | None = None) -> dict[str, dict[Any, int]]:
        """How many documents have each value of some columns.

        Args:
            *columns: Names of columns.
            docs: The documents that count, by their ordinals or their ids; None: all.

        Returns:
            For each column its values with their counts, the most frequent first, equal ones in ascending order. A document
            counts once for each keyword of a list, and not at all where it has no value.

        Raises:
            ParameterError: There is no such column.
            InputError: A document is not in the index.
        """
        reader = self._index.reader
        if isinstance(docs, Strings):
            ids, docs = docs, reader.ordinals(docs)
            if len(absent := np.flatnonzero(docs < 0)):
                raise InputError(f"document '{ids[int(absent[0])]}' is not in the index {reader.path}")
        return facets_of(reader, np.arange(len(reader)) if docs is None else docs, columns)

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
    def has_texts(self) -> bool:
        """Whether it holds the documents' texts, which an index that was made of a CIFF file does not."""
        return self._index.reader.ciff is None

    def export(self, path: str | Path, description: str | None = None) -> None:
        """Writes a CIFF file: the terms, their postings, the lengths and the ids of the documents that live; no text.

        Args:
            path: The file, packed where its name ends in .gz; "-" is standard output.
            description: What its header says of it; None names the analyzer, or is what the CIFF file said that it was made of.

        Raises:
            InputError: The file cannot be written.
        """
        write(path, ciff_messages(self._index.reader, description))

    def snippet(self, query: str, doc: Doc) -> Snippet:
        """The piece of a document's text that fits a query best, and where it matches."""
        return self.snippets([(query, doc)])[0]

    def snippets(self, pairs: Sequence[tuple[str, Doc]]) -> list[Snippet]:
        """The same of several queries with a document each, which takes much less time than one after the other."""
        analyzer = self._index.analyzer
        queries = list(dict.fromkeys(query for query, _ in pairs))
        terms = dict(zip(queries, map(frozenset, analyzer.many(queries)), strict=True))
        return snippets(analyzer, [(doc.text, terms[query]) for query, doc in pairs])

    def marked(self, query: str, doc: Doc) -> str:
        """The title of a document and the piece of its text that fits a query best, as HTML, the query's terms in bold."""
        title = f"<i>{escape(doc.title)}</i> " if doc.title else ""
        return title + self.snippet(query, doc).html("<b>", "</b>")

    def search(self, query: str | Topic, k: int = 10) -> Ranking:
        """The best `k` documents for one query by BM25 as it comes: the same as `index.bm25().search(query, k)`."""
        return self.bm25().search(query, k)

    @checked
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
        where: str | None = None,
    ) -> BM25:
        """A BM25 retriever over this index; see `fontes.lexical.BM25` for the parameters."""
        from ..lexical import BM25

        return BM25(
            index=self._index,
            variant=variant,
            k1=k1,
            b=b,
            k3=k3,
            delta=delta,
            epsilon=epsilon,
            lengths=lengths,
            k=k,
            threads=threads,
            where=where,
        )

    @checked
    def tfidf(
        self,
        *,
        sublinear_tf: bool = False,
        smooth_idf: bool = False,
        norm: str | None = "l2",
        relative_tf: bool = False,
        k: int = 1000,
        threads: int | None = None,
        where: str | None = None,
    ) -> TFIDF:
        """A TF-IDF retriever over this index; see `fontes.lexical.TFIDF` for the parameters."""
        from ..lexical import TFIDF

        return TFIDF(
            index=self._index,
            sublinear_tf=sublinear_tf,
            smooth_idf=smooth_idf,
            norm=norm,
            relative_tf=relative_tf,
            k=k,
            threads=threads,
            where=where,
        )

    @checked
    def ql(
        self,
        *,
        smoothing: str = "dirichlet",
        mu: float = 1000.0,
        lambda_: float = 0.1,
        lengths: str = "exact",
        k: int = 1000,
        threads: int | None = None,
        where: str | None = None,
    ) -> QueryLikelihood:
        """A query likelihood retriever over this index; see `fontes.lexical.QueryLikelihood` for the parameters."""
        from ..lexical import QueryLikelihood

        return QueryLikelihood(
            index=self._index, smoothing=smoothing, mu=mu, lambda_=lambda_, lengths=lengths, k=k, threads=threads, where=where
        )

    def learned_sparse(self, *, k: int = 1000, threads: int | None = None, where: str | None = None) -> LearnedSparse:
        """A retriever over the term weights that this index was built with; see `fontes.lexical.LearnedSparse`."""
        from ..lexical import LearnedSparse

        return LearnedSparse(index=self._index, k=k, threads=threads, where=where)

    def rm3(self, *, fb_docs: int = 10, fb_terms: int = 10, original_weight: float = 0.5, max_df: float = 0.1) -> RM3:
        """Feedback out of this index's documents: `bm25 >> index.rm3() >> bm25`; see `fontes.lexical.RM3`."""
        from ..lexical import RM3

        return RM3(index=self._index, fb_docs=fb_docs, fb_terms=fb_terms, original_weight=original_weight, max_df=max_df)

    def dense(
        self,
        encoder: Encoder | str,
        *,
        algorithm: str = "flat",
        k: int = 1000,
        effort: int | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        where: str | None = None,
    ) -> Dense:
        """A retriever over the vectors that `index.encode(encoder)` stored; see `fontes.neural.Dense` for the parameters."""
        from ..neural.dense.dense import Dense

        return Dense(
            index=self._index,
            encoder=encoder,
            algorithm=algorithm,
            k=k,
            effort=effort,
            dtype=dtype,
            threads=threads,
            where=where,
        )

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
        where: str | None = None,
    ) -> Late:
        """A retriever over the token vectors that `encode_late` stored; see `fontes.neural.Late` for the parameters."""
        from ..neural.late.late import Late

        return Late(
            index=self._index,
            colbert=colbert,
            algorithm=algorithm,
            k=k,
            nprobe=nprobe,
            threshold=threshold,
            candidates=candidates,
            nbits=nbits,
            threads=threads,
            where=where,
        )

    def splade(
        self, encoder: SparseEncoder | str, *, k: int = 1000, threads: int | None = None, where: str | None = None
    ) -> SpladeRetriever:
        """A retriever over the weights that `index.encode(splade)` stored; see `fontes.neural.SpladeRetriever`."""
        from ..neural.sparse.retriever import SpladeRetriever

        return SpladeRetriever(index=self._index, encoder=encoder, k=k, threads=threads, where=where)

    def encode(
        self,
        encoder: Encoder | SparseEncoder,
        *,
        dtype: str | None = None,
        overwrite: bool = False,
        progress: Report = silent,
        ray: bool | str | None = None,
    ) -> None:
        """Stores the documents' vectors by `encoder` with the index, for `index.dense(encoder)` or `index.splade(encoder)`.

        Only documents that have none are encoded: all of them the first time, later those that were added. An encoding that was
        interrupted or killed goes on where it was. Where there are float32 vectors of this encoder, others are made of them. An
        index may hold the vectors of several encoders; an index built anew in its place has none of them.

        Args:
            encoder: Makes the vectors. Where its precision is "auto", it is that in which those of other documents were made.
            dtype: "float32", "float16", or "int8": whole numbers with one scale for each vector. None: those that the other
                documents' vectors have, float32 where there are none. The weights of a learned sparse encoder are always stored
                to four decimals.
            overwrite: Encode again where these vectors are there already; else there is nothing to do for such documents.
            progress: Is called as documents are done.
            ray: Encode on a cluster, in the precision in which the models run here: True for a Ray on this machine, or the one
                that RAY_ADDRESS names; or an address. Its nodes see the index's folder and the model under the same paths.

        Raises:
            FontesError: The disk is full, or the cluster lost; what is encoded stays.
        """
        from ..neural.dense.settings import in_precision, precision_of, settings_of
        from ..neural.encoders.base import document_vectors
        from ..neural.late.colbert import ColBERT
        from ..neural.models.base import settled
        from ..neural.sparse.base import is_sparse

        settings, own = settings_of(encoder), encoder
        if not overwrite:
            own = in_precision(encoder, self._vectors.precision(encoder.fingerprint))
        own = settled(own) if ray else own
        precision = partial(precision_of, own)
        if is_sparse(encoder):
            if dtype is not None:
                raise ParameterError(f"dtype is of dense vectors; the weights of {encoder!r} are stored to four decimals")
            weights = Making(settings, cast("SparseEncoder", own).encode_documents, precision)
            with elsewhere(ray, encoder) as actors:
                self._vectors.add_weights(encoder, weights, overwrite, progress, actors)
            return
        if isinstance(encoder, ColBERT):
            raise ParameterError(
                f"{encoder!r} has a vector for each token: fontes.neural.encode_late(index, colbert) stores them"
            )
        vectors = Making(settings, partial(document_vectors, cast("Encoder", own)), precision)
        with elsewhere(ray, encoder) as actors:
            self._vectors.add(cast("Encoder", encoder), vectors, dtype, overwrite, progress, actors)


def merge_token_vectors(leaves: Sequence[Leaf], folders: Sequence[Path], folder: Path) -> None:
    """Carries token vectors over to a merged segment; see `neural.late.merging.merge_tokens`."""
    from ..neural.late.merging import merge_tokens

    merge_tokens(leaves, folders, folder)


def token_vectors_fit(folder: Path) -> list[str]:
    """What tells the centroids of token vectors from those of another fit; see `neural.late.merging.fit_in`."""
    from ..neural.late.merging import fit_in

    return fit_in(folder)
