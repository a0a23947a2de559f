"""Learned sparse encoders, and SPLADE: a masked language model weights the tokens of its vocabulary for a text."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import getattr_static
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from ...core.arrays import Indices, Objects, Records
from ...core.errors import InputError, ParameterError
from ...core.part import Part
from ...core.registry import provided
from ...core.run import Run
from ...core.strings import offsets_of
from ...core.values import Doc, Topic, Topics, text_of
from ...core.work import Progress, reporter, unreported
from ...index.embeddings.weights import WEIGHTS, TermVectors
from ...lexical.learned_sparse import LearnedSparseWeighting
from ...lexical.retriever import Lexical, checked_weights
from ..models.base import Pretrained, check_fields, token_ids
from ..models.compute import as_objects, in_batches
from ..stored import named_model
from .model import WEIGHT, SpladeCheckpoint, SpladeModel

if TYPE_CHECKING:
    from ...index import Index
    from ...index.embeddings.weights import DocumentWeights


@dataclass(frozen=True)
class Splade(Pretrained[SpladeModel], name="splade_encoder"):
    """A learned sparse encoder (Formal, Piwowarski and Clinchant, SIGIR 2021; v2: Formal et al., arXiv 2109.10086).

    The weight of a token of the vocabulary is the greatest log(1 + relu(logit)) over the positions of the text; checkpoints may
    configure a sum, or the logarithm twice. The vectors equal those of sentence-transformers' SparseEncoder; a text without
    words has no weights. Models whose queries need no transformer (a router of sentence-transformers with static weights, such
    as OpenSearch's) run too.

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
        """The tokens by id. Loads the model."""
        return self._model.vocabulary

    @property
    def length(self) -> int:
        """Maximum number of tokens read of a text. Loads the model; ParameterError if `max_length` exceeds its positions."""
        return self._length(self._model)

    def encode_documents(self, docs: Sequence[Doc]) -> TermVectors:
        """Weights of documents (title, a space, text); the composition of batches changes them by rounding only."""
        model = self._model
        terms = self.document_terms or model.checkpoint.terms
        return self._encode(model, [text_of(doc) for doc in docs], self._document_prompt(model), terms, self._in_batches)

    def document_lengths(self, docs: Sequence[Doc]) -> list[int]:
        """Number of tokens of each untruncated document, special tokens and prompt included."""
        model = self._model
        prompt = self._document_prompt(model)
        return list(map(len, token_ids(model.tokenizer, [prompt + text_of(doc) for doc in docs])))

    @unreported
    def encode_queries(self, texts: Sequence[str]) -> TermVectors:
        """Weights of queries; on a CPU each query is encoded by itself, so that its weights do not depend on the others."""
        model = self._model
        prompt = model.checkpoint.query_prompt if self.query_prompt is None else self.query_prompt
        terms = self.query_terms or model.checkpoint.terms
        if (static := model.static) is not None:
            return _term_vectors(model, [static.weights(prompt + text if text.strip() else "", terms) for text in texts])
        run = partial(in_batches, tokens=1) if model.prepared.device == "cpu" else self._in_batches
        return self._encode(model, texts, prompt, terms, run)

    def _encode(
        self, model: SpladeModel, texts: Sequence[str], prompt: str, terms: int | None, run: Callable[..., Objects]
    ) -> TermVectors:
        """Weights of texts after a prompt, at most `terms` per text; `run` calls a function on batches as `in_batches` does."""
        rows = [np.empty(0, WEIGHT)] * len(texts)
        with_words = [i for i, text in enumerate(texts) if text.strip()]
        ids = model.ids([prompt + texts[i] for i in with_words], self._length(model))

        def work(batch: Indices) -> Objects:
            return as_objects(model.weights([ids[i] for i in batch], terms))

        if ids:
            for i, row in zip(with_words, run([len(text_ids) for text_ids in ids], work=work), strict=True):
                rows[i] = row
        return _term_vectors(model, rows)

    def _document_prompt(self, model: SpladeModel) -> str:
        return model.checkpoint.document_prompt if self.document_prompt is None else self.document_prompt

    def _length(self, model: SpladeModel) -> int:
        if self.max_length is not None and self.max_length > model.limit:
            raise ParameterError(
                f"max_length is {self.max_length}, but {self.name_or_path} has positions for {model.limit} tokens only"
            )
        return self.max_length or model.length

    def _settings(self) -> dict[str, object]:
        """The parameters that change the weights of documents."""
        return {name: value for name, value in super()._settings().items() if not name.startswith("query_")}

    def _load(self, folder: Path, device: str) -> SpladeModel:
        return SpladeModel(str(self.name_or_path), SpladeCheckpoint.of(folder), self.precision, device)


def _term_vectors(model: SpladeModel, rows: list[Records]) -> TermVectors:
    weights = np.concatenate([np.empty(0, WEIGHT), *rows])
    bounds = offsets_of(list(map(len, rows)))
    return TermVectors(model.vocabulary, bounds, weights["term"].copy(), weights["weight"].copy())


@runtime_checkable
class SparseEncoder(Protocol):
    """Encodes documents and queries as weights of terms, above 0, whose inner product is the score.

    `fingerprint` identifies everything that changes the weights of documents, as the fingerprint of a dense `Encoder` does.
    """

    @property
    def vocabulary(self) -> Sequence[str]:
        """The terms by number; each occurs once."""
        ...

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits."""
        ...

    def encode_documents(self, docs: Sequence[Doc]) -> TermVectors:
        """Weights of documents, in their order."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> TermVectors:
        """Weights of queries, in their order, each independent of the others."""
        ...


def is_sparse(encoder: object) -> TypeGuard[SparseEncoder]:
    """Whether an encoder computes weights of terms; does not load its model."""
    return getattr_static(encoder, "vocabulary", None) is not None and hasattr(encoder, "encode_documents")


@dataclass(frozen=True)
class SpladeRetriever(Lexical, name="splade"):
    """Learned sparse retrieval over the weights that `index.encode` stored: the inner product of query and document.

    A topic is searched by its text, rewritten or not, encoded by itself. Weights of a topic with text, as from feedback, and
    structured queries refer to terms of the index and are ignored. A topic with weights and no text is searched by its weights,
    whose terms must be tokens of the model's vocabulary. The search is the same as for BM25; the run does not depend on the
    batch, k or threads.

    Args:
        index: The index with the weights.
        encoder: Encodes topics and documents; a string is the name under which weights are stored (`fontes encode --name`), or
            the model of a `Splade`.
        k: Maximum documents per topic.
        threads: Search threads, which do not change the run; None: one per processor.
        where: Filter on document metadata, such as "year >= 2020 and lang in ('cs', 'en')"; scores stay those of the whole
            collection. None: no filter.

    Raises:
        ParameterError: When called: the index has no weights of this encoder, or a parameter is outside its range.
        InputError: When called: a topic has weights of other terms and no text.
    """

    reads_queries = False  # the terms of structured queries are terms of the index, not of the model

    index: Index = field(repr=False)
    encoder: SparseEncoder | str = field(metadata={"string": "splade_encoder"})
    k: int = field(default=1000, metadata={"least": 1})
    threads: int | None = field(default=None, repr=False, metadata={"least": 1})
    where: str | None = None

    def params(self) -> dict[str, Any]:
        """Return the parameters by name, with the encoder of named weights in place of their name."""
        named = named_model(self.index, WEIGHTS, self.encoder)
        return {**super().params(), **({} if named is self.encoder else {"encoder": named})}

    @property
    def weighting(self) -> LearnedSparseWeighting:
        """The weighting by the documents' stored weights."""
        return LearnedSparseWeighting(self.searched.scale)

    @property
    def searched(self) -> DocumentWeights:
        """Stored weights of the documents; raises ParameterError without weights of this encoder."""
        return self.index.weights(self._encoder)

    def check(self) -> None:
        check_fields(self)
        self._filter  # noqa: B018  # raises for an invalid condition
        self._encoder  # noqa: B018  # raises for anything but a sparse encoder

    def apply(self, topics: Topics, /) -> Run:
        self.check()
        run = super().apply(topics) if self.index.actors is None else super().apply(self._encoded(topics)).with_(topics=topics)
        lists = self.searched
        facts = {"encoder": lists.meta["fingerprint"], "weights": lists.fingerprint}
        return run.with_(provenance={**run.provenance, **facts})

    def prepare(self) -> None:
        """Encode the documents if the index has no weights of this encoder."""
        self.check()
        try:
            self.searched  # noqa: B018
        except ParameterError:  # no weights yet
            provided("encode")(self.index, self._encoder)

    def key(self) -> str | None:
        """Text of this stage with all parameters of its encoder; None for an encoder from outside Fontes."""
        encoder = self._encoder
        if not isinstance(encoder, Part) or encoder.key() is None:
            return None
        return f"{self!r} {self.index.fingerprint} {self.searched.fingerprint}"

    def _encoded(self, topics: Topics) -> Topics:
        """Topics with weights in place of texts, for actors, which do not load models."""
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

    def _counts(self, topics: Sequence[Topic]) -> list[dict[str, float]]:
        """Records and weights of each topic; texts are encoded one by one, since a batch may change weights."""
        report = reporter()
        searched, start = self.searched, time.perf_counter()
        bags: list[dict[str, float]] = []
        absent: dict[str, Topic] = {}  # tokens of topics that occur in no document
        for number, topic in enumerate(topics, 1):
            weights: Mapping[str, float] = topic.weights or {}
            if topic.text.strip():
                weights = self._encoder.encode_queries([topic.text])[0]
            else:
                absent |= {term: topic for term in weights if not searched.df_of(term)}
            bags.append(checked_weights(topic, weights))
            report(Progress("encoding", number, len(topics), time.perf_counter() - start, "topics"))
        if absent and (unknown := absent.keys() - set(self._encoder.vocabulary)):
            term = min(unknown)
            raise InputError(
                f"topic '{absent[term].id}', term '{term}': {self._encoder!r} has no such token; give the topic a text, which "
                "is encoded, or weights of the model's tokens"
            )
        return bags
