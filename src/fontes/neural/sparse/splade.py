"""Learned sparse encoders, and SPLADE: a masked language model weighs the tokens of its vocabulary for a text."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import getattr_static
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError, ParameterError
from ...core.part import Part
from ...core.progress import Progress, ProgressCallback, silent
from ...core.run import Run
from ...core.values import Doc, Topic, Topics, text_of
from ...index.embeddings.weights import TermVectors
from ...lexical.learned_sparse import LearnedSparseWeighting
from ...lexical.retriever import Lexical, bag_of
from ..models.base import Pretrained, check_fields, token_ids
from ..models.compute import as_objects, in_batches
from .model import WEIGHT, SpladeCheckpoint, SpladeModel

if TYPE_CHECKING:
    from ...index import Index
    from ...index.embeddings.weights import JoinedWeights, WeightLists


@dataclass(frozen=True)
class Splade(Pretrained[SpladeModel], name="splade_encoder"):
    """A learned sparse encoder (Formal, Piwowarski and Clinchant, SIGIR 2021; v2: Formal et al., arXiv 2109.10086).

    The weight of a token of the vocabulary is the greatest log(1 + relu(logit)) over the positions of the text, or as the
    checkpoint says: a sum, or the logarithm twice. The vectors equal those of sentence-transformers' SparseEncoder; a text
    without words has none. Models whose queries need no transformer (sentence-transformers' router with static weights, such as
    OpenSearch's) run as well.

    Args:
        name_or_path: A SparseEncoder of sentence-transformers or a masked language model: a folder, or a name on the hub.
        max_length: Maximum tokens read of a text, special ones included. None: the model's.
        document_terms: Maximum terms of a document, those of greatest weight. None: the model's, or all.
        query_terms: Maximum terms of a query. None: the model's, or all.
        document_prompt: Text before each document. None: the model's own.
        query_prompt: Text before each query. None: the model's own.

    Raises:
        InputError: On use: the model is missing, or is not a SPLADE model.
        ParameterError: On use: a parameter is outside its range.
    """

    kind = "SPLADE model"

    max_length: int | None = field(default=None, metadata={"least": 3})
    document_terms: int | None = field(default=None, metadata={"least": 1})
    query_terms: int | None = field(default=None, metadata={"least": 1})
    document_prompt: str | None = None
    query_prompt: str | None = None

    @property
    def vocabulary(self) -> list[str]:
        """The tokens by number. Loads the model."""
        return self._model.vocabulary

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a text. Loads the model; raises ParameterError beyond its positions."""
        return self._length(self._model)

    def encode_documents(self, docs: Sequence[Doc], progress: ProgressCallback = silent) -> TermVectors:
        """Weights of documents (title, a space, text); the batch changes them by rounding only."""
        model = self._model
        prompt = model.checkpoint.document_prompt if self.document_prompt is None else self.document_prompt
        terms = self.document_terms or model.checkpoint.terms
        return self._encode(model, [text_of(doc) for doc in docs], prompt, terms, partial(self._in_batches, progress=progress))

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each untruncated document, special tokens and prompt included."""
        model = self._model
        prompt = model.checkpoint.document_prompt if self.document_prompt is None else self.document_prompt
        return list(map(len, token_ids(model.tokenizer, [prompt + text_of(doc) for doc in docs])))

    def encode_queries(self, texts: Sequence[str]) -> TermVectors:
        """Weights of queries, each encoded by itself on a CPU, so that its weights do not depend on the others."""
        model = self._model
        prompt = model.checkpoint.query_prompt if self.query_prompt is None else self.query_prompt
        terms = self.query_terms or model.checkpoint.terms
        if (static := model.static) is not None:
            return _term_vectors(model, [static.weights(prompt + text if text.strip() else "", terms) for text in texts])
        run = partial(in_batches, tokens=1) if model.prepared.device == "cpu" else self._in_batches
        return self._encode(model, texts, prompt, terms, run)

    def _encode(
        self, model: SpladeModel, texts: Sequence[str], prompt: str, terms: int | None, run: Callable[..., NDArray[Any]]
    ) -> TermVectors:
        rows = [np.empty(0, WEIGHT)] * len(texts)
        numbers = [number for number, text in enumerate(texts) if text.strip()]
        ids = model.ids([prompt + texts[number] for number in numbers], self._length(model))

        def work(batch: NDArray[np.intp]) -> NDArray[Any]:
            return as_objects(model.weights([ids[i] for i in batch], terms))

        for number, row in zip(numbers, run([len(one) for one in ids], work=work) if ids else [], strict=True):
            rows[number] = row
        return _term_vectors(model, rows)

    def _length(self, model: SpladeModel) -> int:
        if self.max_length is not None and self.max_length > model.limit:
            problem = f"but {self.name_or_path} has positions for {model.limit} tokens only"
            raise ParameterError(f"max_length is {self.max_length}, {problem}")
        return self.max_length or model.length

    def _settings(self) -> dict[str, Any]:
        """The parameters that change the weights of documents."""
        return {name: value for name, value in super()._settings().items() if not name.startswith("query_")}

    def _load(self, folder: Path, device: str) -> SpladeModel:
        return SpladeModel(str(self.name_or_path), SpladeCheckpoint.of(folder), self.precision, device)


def _term_vectors(model: SpladeModel, rows: list[NDArray[Any]]) -> TermVectors:
    bounds = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=bounds[1:])
    weights = np.concatenate([np.empty(0, WEIGHT), *rows])
    return TermVectors(model.vocabulary, bounds, weights["term"].copy(), weights["weight"].copy())


@runtime_checkable
class SparseEncoder(Protocol):
    """Encodes documents and queries as weights of terms, above 0, whose inner product is the score.

    `fingerprint` identifies everything that changes documents' weights, as that of a dense `Encoder`.
    """

    @property
    def vocabulary(self) -> Sequence[str]:
        """The terms by number, each once."""
        ...

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits."""
        ...

    def encode_documents(self, docs: Sequence[Doc], progress: ProgressCallback = silent) -> TermVectors:
        """Weights of documents, in their order."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> TermVectors:
        """Weights of queries, in their order, each independent of the others."""
        ...


def is_sparse(encoder: object) -> TypeGuard[SparseEncoder]:
    """Whether an encoder gives weights of terms; does not load its model."""
    return getattr_static(encoder, "vocabulary", None) is not None and hasattr(encoder, "encode_documents")


@dataclass(frozen=True)
class SpladeRetriever(Lexical, name="splade"):
    """Learned sparse retrieval over the weights that `index.encode(splade)` stored: the inner product of query and document.

    A topic is searched by its text, rewritten or not, encoded by itself. Weights beside a text, as from feedback, and
    structured queries refer to the index's terms and are ignored. A topic of weights alone is searched by these; its terms must
    be tokens of the model's vocabulary. The search is that of BM25 and gives the same run for the same weights for any batch,
    k and threads.

    Args:
        index: The index with the weights.
        encoder: Encodes topics and documents; a string is the model of a `Splade`.
        k: Maximum documents per topic.
        threads: Search threads, which do not change the run; None: one per processor.
        where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
            collection. None: no filter.

    Raises:
        ParameterError: When called: the index has no weights of this encoder, or a parameter is outside its range.
        InputError: When called: a topic has weights of other terms and no text.
    """

    reads_queries = False  # their terms are the index's, not the model's

    index: Index = field(repr=False)
    encoder: SparseEncoder | str = field(metadata={"string": "splade_encoder"})
    k: int = field(default=1000, metadata={"least": 1})
    threads: int | None = field(default=None, repr=False, metadata={"least": 1})
    where: str | None = None

    @property
    def weighting(self) -> LearnedSparseWeighting:
        """The documents' stored weights."""
        return LearnedSparseWeighting(self.searched.scale)

    @property
    def searched(self) -> WeightLists | JoinedWeights:
        """Stored weights of the documents; raises ParameterError if there are none of this encoder."""
        return self.index.weights(self._encoder)

    def check(self) -> None:
        check_fields(self)
        self._filter  # noqa: B018  # raises for a wrong condition
        self._encoder  # noqa: B018  # raises for anything but a sparse encoder

    def apply(self, topics: Topics, progress: ProgressCallback, /) -> Run:
        self.check()
        if self.index.actors is None:
            run = super().apply(topics, progress)
        else:
            run = super().apply(self._encoded(topics), progress).with_(topics=topics)
        lists = self.searched
        facts = {"encoder": lists.meta["fingerprint"], "weights": lists.fingerprint}
        return run.with_(provenance={**run.provenance, **facts})

    def prepare(self, progress: ProgressCallback) -> None:
        """Encode the documents if the index has no weights of this encoder."""
        self.check()
        try:
            self.searched  # noqa: B018
        except ParameterError:  # no weights yet
            self.index.encode(self._encoder, progress=progress)

    def key(self) -> str | None:
        """Identity of this stage with all parameters of its encoder; None for an encoder from outside Fontes."""
        encoder = self._encoder
        if not isinstance(encoder, Part) or encoder.key() is None:
            return None
        return f"{self!r} {self.index.fingerprint} {self.searched.fingerprint}"

    def _encoded(self, topics: Topics) -> Topics:
        """Topics with weights in place of texts, for actors, which do not load the model."""
        return Topics(
            replace(topic, text="", weights=self._encoder.encode_queries([topic.text])[0]) if topic.text.strip() else topic
            for topic in topics.values()
        )

    @property
    def _encoder(self) -> SparseEncoder:
        encoder = self.params()["encoder"]
        if not is_sparse(encoder):
            raise ParameterError(f"{self.name}: encoder is a learned sparse encoder, or the name of its model, not {encoder!r}")
        return encoder

    def _query_label(self, count: float) -> str:
        return "weight in the query's vector"

    def _counts(self, topics: Sequence[Topic], progress: ProgressCallback = silent) -> list[dict[int, float]]:
        """Term numbers and weights of each topic; texts are encoded one by one, since batches change weights."""
        searched, start = self.searched, time.perf_counter()
        bags: list[dict[int, float]] = []
        absent: dict[str, Topic] = {}  # tokens of topics that occur in no document
        for number, topic in enumerate(topics, 1):
            weights: Mapping[str, float] = topic.weights or {}
            if topic.text.strip():
                weights = self._encoder.encode_queries([topic.text])[0]
            else:
                absent |= {term: topic for term in weights if searched.term_number(term) < 0}
            bags.append(bag_of(searched, topic, weights))
            progress(Progress("encoding", number, len(topics), time.perf_counter() - start, "topics"))
        if absent and (strangers := absent.keys() - set(self._encoder.vocabulary)):
            term = min(strangers)
            raise InputError(
                f"topic '{absent[term].id}', term '{term}': {self._encoder!r} has no such token; give the topic a text, which "
                "is encoded, or weights of the model's tokens"
            )
        return bags
