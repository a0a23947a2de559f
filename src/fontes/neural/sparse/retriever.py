"""Learned sparse retrieval: lexical search over the weights that a model gave the documents."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ...core.errors import InputError, ParameterError
from ...core.part import Part
from ...core.progress import Progress, Report, silent
from ...core.run import Run
from ...core.values import Topic, Topics
from ...lexical.learned_sparse import LearnedSparseWeighting
from ...lexical.retriever import Lexical, bag_of
from ..models.base import check_fields
from .splade import SparseEncoder, is_sparse

if TYPE_CHECKING:
    from ...index import Index
    from ...index.embeddings.weights import JoinedWeights, WeightLists


@dataclass(frozen=True)
class SpladeRetriever(Lexical, name="splade"):
    """Learned sparse retrieval over the weights that `index.encode(splade)` stored: the inner product of query and document.

    A topic is searched by its text, which is encoded by itself, a rewritten one too; weights that it brings beside a text,
    as feedback does, and structured queries are of the index's terms and not of the model's, and do not count. A topic of
    weights alone is searched by these, each of which is of a token of the model's vocabulary. The search is that of BM25
    and gives the same run for the same weights whatever the batch, k and threads.

    Args:
        index: The index that holds the weights.
        encoder: Encodes topics and documents; a string is the model of a `Splade`.
        k: How many documents a topic gets at most.
        threads: How many threads search; they do not change the run. None: as many as the machine has.
        where: What must hold of a document's metadata, such as "year >= 2020 and lang in ('cs', 'en')"; others are left out
            before the search. None: nothing.

    Raises:
        ParameterError: When it is called: the index holds no weights of this encoder, or a parameter is outside its range.
        InputError: When it is called: a topic has weights of other terms and no text.
    """

    reads_queries = False  # their terms are the index's and not the model's

    index: Index = field(repr=False)
    encoder: SparseEncoder | str = field(metadata={"string": "splade_encoder"})
    k: int = field(default=1000, metadata={"least": 1})
    threads: int | None = field(default=None, repr=False, metadata={"least": 1})
    where: str | None = None

    @property
    def weighting(self) -> LearnedSparseWeighting:
        """The documents' weights as they are stored."""
        return LearnedSparseWeighting(self.searched.scale)

    @property
    def searched(self) -> WeightLists | JoinedWeights:
        """The weights of the documents.

        Raises:
            ParameterError: The index holds none of this encoder.
        """
        return self.index.weights(self._encoder)

    def check(self) -> None:
        check_fields(self)
        self._filter  # noqa: B018  # which says what is wrong with it
        self._encoder  # noqa: B018  # which says where it is none

    def apply(self, topics: Topics, progress: Report, /) -> Run:
        self.check()
        if self.index.actors is None:
            run = super().apply(topics, progress)
        else:
            run = super().apply(self._encoded(topics), progress).with_(topics=topics)
        lists = self.searched
        facts = {"encoder": lists.meta["fingerprint"], "weights": lists.fingerprint}
        return run.with_(provenance={**run.provenance, **facts})

    def prepare(self, progress: Report) -> None:
        """Encodes the documents where the index has no weights of this encoder."""
        self.check()
        try:
            self.searched  # noqa: B018
        except ParameterError:  # there are none
            self.index.encode(self._encoder, progress=progress)

    def key(self) -> str | None:
        """The stage with all parameters of its encoder; None for an encoder that is not of Fontes."""
        encoder = self._encoder
        if not isinstance(encoder, Part) or encoder.key() is None:
            return None
        return f"{self!r} {self.index.fingerprint} {self.searched.fingerprint}"

    def _encoded(self, topics: Topics) -> Topics:
        """The topics with weights in place of their texts, for actors that hold the documents and not the model."""
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

    def _counts(self, topics: Sequence[Topic], progress: Report = silent) -> list[dict[int, float]]:
        """The numbers and weights of each topic's terms; each text is encoded by itself, as batches change weights."""
        searched, start = self.searched, time.perf_counter()
        bags: list[dict[int, float]] = []
        absent: dict[str, Topic] = {}  # tokens that topics bring and no document has
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
