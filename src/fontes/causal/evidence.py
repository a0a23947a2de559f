"""Reranking by causal evidence: how likely a document reports a cause, mixed with how well it fits the topic."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core import Doc, ParameterError, PipelineError, Run
from ..core.checks import check_whole
from ..core.progress import Progress, Report, silent
from ..core.strings import Strings
from ..core.values import Explanation, Topic
from ..neural.encoders.base import unit
from ..neural.rerank.base import Reranker
from ..text.external import version_of
from .head import CausalHead, shipped_head
from .evidence_sentences import Sentences, evidence_of
from .cues import CUES

if TYPE_CHECKING:
    from ..neural import Encoder

POOLS = ("max", "top3", "noisy-or")
TOGETHER = 256  # documents whose sentences are encoded together


@dataclass(frozen=True)
class CausalEvidence(Reranker, name="causal_evidence"):
    """Reranks by how likely a document reports a cause: `bm25 % 100 >> CausalEvidence(encoder, weight=0.5)`.

    Each sentence of a document, its title among them, gets the probability that it reports a cause; the document's likelihood
    is pooled from its sentences. The new score is `weight` times the likelihood and 1 - `weight` times the run's score, both
    brought to 0 to 1 for each topic, as `Reranker.interpolate` does it.

    encoder     gives the sentences' vectors, for the classifier. None: no model; a sentence counts 1 where `causal_pairs`
                finds a cause in it that is not denied, and 0.5 where the cue is one of time ("after")
    weight      0 keeps the run's order; 1 leaves only the likelihood, which says nothing about the topic
    pool        "max": the likeliest sentence; "top3": the mean of the three likeliest; "noisy-or": 1 - Π (1 - p)
    near        a sentence's probability is multiplied by its cosine with the topic's text to this power, so that sentences
                away from the topic count less; 0: all count alike. None: 1 with an encoder, and 0 without, which has no cosine
    depth       only so many documents of each topic are read; those after them follow in the order that they had
    head        the classifier over the encoder's vectors, or its file; None: the one of the package, for all-MiniLM-L6-v2
    sentences   how sentences are found: "rules", "nupunkt" or "spacy:MODEL"
    cache       True keeps likelihoods in the user's cache folder, a path keeps them in that file

    Within a process the sentences of a document are read once, whatever the number of topics and weights. Raises ParameterError
    for parameters outside their range and for a head that was trained over another encoder; InputError where the run does not
    know its documents or a topic has no text.
    """

    encoder: Encoder | None = None
    weight: float = 0.5
    pool: str = "max"
    near: float | None = None
    depth: int | None = None
    head: CausalHead | str | Path | None = field(default=None, repr=False)
    sentences: str = "rules"

    def apply(self, run: Run, progress: Report, /) -> Run:
        if self.depth is None:
            return self.interpolate(self.weight).apply(run, progress)
        read = self.interpolate(self.weight).apply(run.top(check_whole("depth", self.depth)), progress)
        return _followed(read, run)

    def document_text(self, doc: Doc) -> str:
        """The document's title and text, which stay two sentences."""
        return f"{doc.title}\n\n{doc.text}".strip()

    def scores(self, pairs: Sequence[tuple[str, str]], progress: Report = silent) -> NDArray[np.float32]:
        """The likelihood of each pair of a query and a document, 0 to 1, float32."""
        head = self._head()
        texts = list(dict.fromkeys(text for _, text in pairs))
        found: dict[str, Sentences] = {}
        start = time.perf_counter()
        for at in range(0, len(texts), TOGETHER):
            some = texts[at : at + TOGETHER]
            found.update(zip(some, evidence_of(some, self.encoder, head, self.sentences), strict=True))
            share = (at + len(some)) / len(texts)
            progress(Progress("reranking", round(share * len(pairs)), len(pairs), time.perf_counter() - start, "pairs"))
        asked = self._queries([query for query, _ in pairs])
        return np.array([self._pooled(self._near(found[text], asked.get(query))) for query, text in pairs], dtype=np.float32)

    @property
    def fingerprint(self) -> str:
        head = self._head()
        facts = {
            "evidence": 1,
            "cues": repr(CUES),
            "encoder": self.encoder and self.encoder.fingerprint,
            "head": head and head.fingerprint,
            "pool": self.pool,
            "near": self._power,
            "sentences": [self.sentences, version_of(self.sentences)],
        }
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def chosen_precision(self) -> str:
        return str(getattr(self.encoder, "precision", "float32"))

    def key(self) -> str | None:
        return f"{super().key()} {self.chosen_precision} {self.weight!r} {self.depth!r}"

    def explain(self, query: str | Topic, doc_id: str | Doc) -> Explanation:
        """The likelihood of a document, sentence by sentence, the likeliest first. Give the document, as `index.doc(id)`."""
        if not isinstance(doc_id, Doc):
            raise PipelineError("CausalEvidence explains the likelihood of a document, not of an id: give index.doc(id)")
        text = query.text if isinstance(query, Topic) else query
        [found] = evidence_of([self.document_text(doc_id)], self.encoder, self._head(), self.sentences)
        values = self._near(found, self._queries([text]).get(text))
        parts = []
        for n in np.argsort(-values, kind="stable").tolist():
            cues = "; ".join(f"{'not ' * pair.negated}'{pair.cue}'" for pair in found.pairs(n))
            label = f"{found.text(n)}  [{cues or 'no cue'}]"
            if self._power:
                share = (Explanation(float(found.probabilities[n]), "reports a cause"),)
                near = Explanation(float(values[n] / max(found.probabilities[n], 1e-9)), f"cosine to the power {self._power:g}")
                parts.append(Explanation(float(values[n]), label, (*share, near)))
            else:
                parts.append(Explanation(float(values[n]), label))
        what = f"likelihood of a cause: {self.pool} of {len(values)} sentences"
        return Explanation(self._pooled(values), what, tuple(parts))

    @property
    def _power(self) -> float:
        return self.near if self.near is not None else 0.0 if self.encoder is None else 1.0

    def _head(self) -> CausalHead | None:
        """The head, checked against the encoder, and the other parameters with it; None without an encoder."""
        if self.pool not in POOLS:
            raise ParameterError(f"pool is one of {', '.join(POOLS)}, not {self.pool!r}")
        power = self._power
        if isinstance(power, bool) or not isinstance(power, (int, float)) or not 0 <= power < float("inf"):
            raise ParameterError(f"near is a power from 0 up, not {self.near!r}")
        if self.encoder is None:
            if power or self.head is not None:
                raise ParameterError(f"{'near' if power else 'a head'} needs an encoder: CausalEvidence(encoder, …)")
            return None
        given = self.head
        head = shipped_head() if given is None else given if isinstance(given, CausalHead) else CausalHead.load(given)
        head.check(self.encoder)
        return head

    def _queries(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of the topics' texts, where they are used."""
        if not self._power or self.encoder is None:
            return {}
        asked = list(dict.fromkeys(texts))
        return dict(zip(asked, unit(self.encoder.encode_queries(asked)), strict=True))

    def _near(self, found: Sentences, query: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """The probabilities of a document's sentences, less for those away from the topic."""
        if query is None or found.vectors is None:
            return found.probabilities
        cosines = np.clip(found.vectors.astype(np.float32) @ query, 0, 1)
        values: NDArray[np.float32] = (found.probabilities * cosines**self._power).astype(np.float32)
        return values

    def _pooled(self, values: NDArray[np.float32]) -> float:
        if not len(values):
            return 0.0
        if self.pool == "noisy-or":
            return float(1 - np.prod(1 - values.astype(np.float64)))
        return float(np.sort(values)[-1 if self.pool == "max" else -3 :].mean(dtype=np.float64))


def _followed(read: Run, whole: Run) -> Run:
    """The documents of `read`, and after them the others of `whole` as they were, with scores -1, -2, …"""
    ids, numbers, scores = [], [], []
    for n, (topic_id, ranking) in enumerate(whole.items()):
        first = read[topic_id]
        rest = ranking.ids[len(first.ids) :]
        ids += [*first.ids, *rest]
        scores += [first.scores, -np.arange(1, len(rest) + 1, dtype=np.float32)]
        numbers.append(np.full(len(ranking.ids), n))
    names = list(dict.fromkeys(ids))
    places = {name: n for n, name in enumerate(names)}
    return Run.from_columns(
        whole.topics,
        Strings.of(names),
        np.concatenate(numbers) if numbers else np.zeros(0, dtype=np.int64),
        np.array([places[name] for name in ids], dtype=np.int32),
        np.concatenate(scores).astype(np.float32) if scores else np.zeros(0, dtype=np.float32),
        documents=whole.documents,
        provenance=read.provenance,
    )
