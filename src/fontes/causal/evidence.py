"""Reranking by causal evidence: the likelihood that a document reports a cause, mixed with its relevance."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays import Float32s, Float64s
from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError, PipelineError
from ..core.parameters import tuned
from ..core.run import Run
from ..core.values import Doc, Explanation, Topic
from ..core.work import Progress, reporter, unreported
from ..neural.encoders.base import Encoder, encoder_in, unit
from ..neural.models.hub import load_once
from ..rerank.reranker import Reranker
from ..storage.files import write
from ..text.external import version_of
from ..text.sentences import check_sentence_finder, sentence_spans, sentences
from .cues import CUES
from .pairs import CausalPair, causal_pairs

if TYPE_CHECKING:
    from ..neural import Encoder


FORMAT = 1
PACKAGED_HEAD = Path(__file__).with_name("cnc_v2.json")
PROBE = "The bridge was closed because its cables had rusted, and so the ferry runs again."
# Maximum distance of the probe's vector from its vector in training; 16-bit precision moves it by less than 0.045.
MAX_PROBE_DISTANCE = 0.05
CUE_SCALE = 0.5  # value of a feature that is present; sentence vectors have length 1
CUE_FEATURES = ("any cue", "cue other than of time", "denied cue")


@dataclass(frozen=True)
class CausalHead:
    """Logistic regression for the probability that a sentence reports a cause.

    Args:
        encoder: Name of the encoder whose vectors it was trained on.
        weights: One weight for each dimension of the encoder's vectors.
        cues: One weight for each of `CUE_FEATURES`.
        bias: Intercept.
        threshold: Minimum probability at which a sentence is classified as reporting a cause.
        probe: Vector of the sentence `PROBE`, which identifies the encoder.
        card: Training data and results, as plain values.
    """

    encoder: str
    weights: tuple[float, ...] = field(repr=False)
    cues: tuple[float, ...] = field(repr=False)
    bias: float = field(repr=False)
    threshold: float
    probe: tuple[float, ...] = field(repr=False)
    card: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> CausalHead:
        """Load a head that `save` wrote; raise InputError for any other file."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as e:
            raise InputError(f"cannot read the head {path}: {e.strerror}") from e
        except (ValueError, RecursionError) as e:
            raise InputError(f"{path} is not a head: it is not JSON") from e
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise InputError(f"{path} is not a head of format {FORMAT}; train_causality makes one (fontes train causality)")
        try:
            lists: dict[str, Any] = {name: tuple(map(float, values.pop(name))) for name in ("weights", "cues", "probe")}
            head = cls(**lists, **values)
        except (KeyError, TypeError, ValueError) as e:
            raise InputError(f"{path} is a damaged head: {e}; train_causality makes a new one (fontes train causality)") from e
        if len(head.weights) != len(head.probe) or len(head.cues) != len(CUE_FEATURES):
            raise InputError(f"{path} is a damaged head: {len(head.weights)} weights for {len(head.probe)} dimensions")
        return head

    def save(self, path: str | Path) -> None:
        """Write the head as JSON; equal heads give equal bytes. Raises InputError if the file cannot be written."""
        values = {"format": FORMAT, **asdict(self)}
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
        write(path, [f"{{\n{lines}\n}}\n".encode()])

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits, a hash of all numbers."""
        numbers = np.array([*self.weights, *self.cues, self.bias, self.threshold, *self.probe])
        return hashlib.blake2b(numbers.tobytes(), digest_size=16).hexdigest()

    def probabilities(self, vectors: Float32s, cues: Float64s) -> Float32s:
        """Probability of each sentence, float32 (n,), from vectors of length 1, (n, dim), and `cue_features`, (n, 3)."""
        logits = vectors @ np.array(self.weights) + cues @ np.array(self.cues) + self.bias
        probabilities: Float32s = (1 / (1 + np.exp(-logits))).astype(np.float32)
        return probabilities

    def classify(self, encoder: Encoder, sentences: Sequence[str]) -> Float32s:
        """Probability that each sentence reports a cause, float32 (n,); ParameterError for another encoder."""
        self.check(encoder)
        return self.probabilities(sentence_vectors(encoder, sentences), cue_features(sentences))

    def check(self, encoder: Encoder) -> None:
        """Raise ParameterError if the head was trained over another encoder."""
        load_once(("causal head", self.fingerprint, encoder.fingerprint), lambda: self._compare_probe(encoder))

    def _compare_probe(self, encoder: Encoder) -> bool:
        """Compare dimensions and the vector of `PROBE`; raise ParameterError if they differ."""
        trained = f"the head was trained over {self.encoder}"
        advice = "use that encoder, or train a head over this one: train_causality (fontes train causality)"
        if encoder.dim != len(self.weights):
            raise ParameterError(f"{trained}, whose vectors have {len(self.weights)} dimensions, not {encoder.dim}; {advice}")
        distance = float(np.linalg.norm(sentence_vectors(encoder, [PROBE])[0] - np.array(self.probe)))
        if distance > MAX_PROBE_DISTANCE:
            raise ParameterError(f"{trained}, and {encoder!r} gives other vectors (distance {distance:.2f}); {advice}")
        return True


@cache
def shipped_head() -> CausalHead:
    """Head of the package: for all-MiniLM-L6-v2, trained on the Causal News Corpus, version 2 (CC0)."""
    return CausalHead.load(PACKAGED_HEAD)


@unreported
def sentence_vectors(encoder: Encoder, sentences: Sequence[str]) -> Float32s:
    """Vectors of sentences, scaled to length 1, float32 (n, dim)."""
    return unit(encoder.encode_documents([Doc("", sentence) for sentence in sentences]))


def cue_features(sentences: Sequence[str]) -> Float64s:
    """Features from the `causal_pairs` of each sentence, float64 (n, 3): `CUE_SCALE` for each of `CUE_FEATURES` present."""
    features = np.zeros((len(sentences), len(CUE_FEATURES)))
    for row, sentence in zip(features, sentences, strict=True):
        strength, denied = cue_strength(sentence)
        row[:] = strength > 0, strength == 1, denied
    return features * CUE_SCALE


def cue_strength(sentence: str) -> tuple[float, bool]:
    """Strength of a sentence's cues (1: a connective or verb; 0.5: only weak ones; 0: none), and whether one is negated."""
    pairs = causal_pairs(sentence, weak=True)
    denied = any(pair.negated for pair in pairs)
    if all(pair.negated for pair in pairs):
        return 0.0, denied
    return (1.0 if any(not pair.negated for pair in causal_pairs(sentence)) else 0.5), denied


POOLS = ("max", "top3", "noisy-or")
BATCH_SIZE = 256  # documents whose sentences are encoded together


@dataclass(frozen=True)
class CausalEvidence(Reranker, name="causal_evidence"):
    """Reranks by how likely a document reports a cause: `bm25() >> causal_evidence("MODEL", weight=0.5)`.

    Each sentence, the title included, gets the probability that it reports a cause; the document's likelihood is pooled from
    them. The new score is `weight` times the likelihood plus 1 - `weight` times the run's score, both scaled to 0 to 1 for each
    topic, as in `Reranker.interpolate`. The sentences of a document are classified once per process.

    Args:
        encoder: Encodes sentences for the classifier; a string is the model of a `SentenceEncoder`. None: cues alone, 1 for
            a stated cause, 0.5 for a temporal cue.
        weight: Weight of the likelihood, 0 to 1.
        pool: "max": the likeliest sentence; "top3": the mean of the three likeliest; "noisy-or": 1 - Π (1 - p).
        near: Exponent of a sentence's cosine with the topic, a factor of its probability. None: 1 with an encoder, 0
            without.
        depth: Documents of each topic to rerank; the others follow in order.
        head: The classifier, or its file. None: the package's, for all-MiniLM-L6-v2.
        sentences: Sentence splitter: "rules", "nupunkt" or "spacy:MODEL".

    Raises:
        ParameterError: When called: a parameter is out of its range, or the head was trained over another encoder.
        InputError: When called: the run has no documents, or a topic has no text.
    """

    encoder: Encoder | str | None = field(default=None, metadata={"string": "sentence_encoder"})
    weight: float = tuned(0.5, (0.0, 1.0, 0.1))
    pool: str = "max"
    near: float | None = None
    depth: int | None = None
    head: CausalHead | str | Path | None = None
    sentences: str = "rules"

    def apply(self, run: Run, /) -> Run:
        self.check()
        reranker = self.interpolate(self.weight)
        if self.depth is None:
            return reranker.apply(run)
        return _with_remaining(reranker.apply(run.top(self.depth)), run)

    def check(self) -> None:
        super().check()
        self.interpolate(self.weight).check()
        if self.pool not in POOLS:
            raise ParameterError(f"pool is one of {', '.join(POOLS)}, not {self.pool!r}")
        power = self._power
        if isinstance(power, bool) or not isinstance(power, (int, float)) or not 0 <= power < float("inf"):
            raise ParameterError(f"near is a power from 0 up, not {self.near!r}")
        if self.encoder is None and (power or self.head is not None):
            raise ParameterError(f"{'near' if power else 'a head'} needs an encoder: CausalEvidence(encoder, …)")
        if self.depth is not None:
            check_whole("depth", self.depth)
        check_sentence_finder(self.sentences)

    def check_needs(self) -> None:
        sentences(self.sentences)
        super().check_needs()

    def document_text(self, doc: Doc) -> str:
        """Title and text of the document, as separate sentences."""
        return f"{doc.title}\n\n{doc.text}".strip()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        """Likelihoods of pairs of a query and a document, 0 to 1, float32."""
        report = reporter()
        encoder, head = self._model()
        texts = list(dict.fromkeys(text for _, text in pairs))
        evidence: dict[str, DocumentSentences] = {}
        started = time.perf_counter()
        for start in range(0, len(texts), BATCH_SIZE):
            batch = texts[start : start + BATCH_SIZE]
            evidence.update(zip(batch, evidence_of(batch, encoder, head, self.sentences), strict=True))
            scored = round((start + len(batch)) / len(texts) * len(pairs))
            report(Progress("reading for causes", scored, len(pairs), time.perf_counter() - started, "pairs"))
        vectors = self._query_vectors([query for query, _ in pairs])
        return np.array(
            [self._pool(self._weight_by_cosine(evidence[text], vectors.get(query))) for query, text in pairs], np.float32
        )

    @property
    def fingerprint(self) -> str:
        encoder, head = self._model()
        facts = {
            "evidence": 1,
            "cues": repr(CUES),
            "encoder": encoder and encoder.fingerprint,
            "head": head and head.fingerprint,
            "pool": self.pool,
            "near": self._power,
            "sentences": [self.sentences, version_of(self.sentences)],
        }
        return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=16).hexdigest()

    @property
    def chosen_precision(self) -> str:
        return str(getattr(self._encoder, "precision", "float32"))

    def key(self) -> str | None:
        return f"{super().key()} {self.chosen_precision} {self.weight!r} {self.depth!r}"

    def explain(self, query: str | Topic, doc_id: str | Doc) -> Explanation:
        """Explain the likelihood of a document (as from `index.doc(id)`), sentence by sentence, likeliest first."""
        if not isinstance(doc_id, Doc):
            raise PipelineError(
                f"CausalEvidence explains the likelihood of a document, not of the id {doc_id!r}: pass index.doc({doc_id!r})"
            )
        text = query.text if isinstance(query, Topic) else query
        [evidence] = evidence_of([self.document_text(doc_id)], *self._model(), self.sentences)
        values = self._weight_by_cosine(evidence, self._query_vectors([text]).get(text))
        parts = tuple(
            self._explain_sentence(evidence, n, float(values[n])) for n in np.argsort(-values, kind="stable").tolist()
        )
        return Explanation(self._pool(values), f"likelihood of a cause: {self.pool} of {len(values)} sentences", parts)

    def _explain_sentence(self, evidence: DocumentSentences, n: int, value: float) -> Explanation:
        """Explanation of the value of sentence `n`."""
        cues = "; ".join(f"{'not ' * pair.negated}'{pair.cue}'" for pair in evidence.pairs(n))
        label = f"{evidence.text(n)}  [{cues or 'no cue'}]"
        if not self._power:
            return Explanation(value, label)
        probability = float(evidence.probabilities[n])
        cosine = Explanation(value / max(probability, 1e-9), f"cosine to the power {self._power:g}")
        return Explanation(value, label, (Explanation(probability, "reports a cause"), cosine))

    @property
    def _encoder(self) -> Encoder | None:
        return None if self.encoder is None else encoder_in(self)

    @property
    def _power(self) -> float:
        """Value of `near`, or its default."""
        return self.near if self.near is not None else 0.0 if self.encoder is None else 1.0

    def _model(self) -> tuple[Encoder | None, CausalHead | None]:
        """The encoder and its checked head; None for both without an encoder."""
        self.check()
        encoder = self._encoder
        if encoder is None:
            return None, None
        head = shipped_head() if self.head is None else self.head
        head = head if isinstance(head, CausalHead) else CausalHead.load(head)
        head.check(encoder)
        return encoder, head

    def _query_vectors(self, texts: Sequence[str]) -> dict[str, Float32s]:
        """Vectors of queries, of length 1, by text; empty if the cosine with the topic does not count."""
        encoder = self._encoder
        if not self._power or encoder is None:
            return {}
        queries = list(dict.fromkeys(texts))
        return dict(zip(queries, unit(encoder.encode_queries(queries)), strict=True))

    def _weight_by_cosine(self, evidence: DocumentSentences, query: Float32s | None) -> Float32s:
        """Probabilities of a document's sentences, scaled by their cosine with the topic."""
        if query is None or evidence.vectors is None:
            return evidence.probabilities
        cosines = np.clip(evidence.vectors.astype(np.float32) @ query, 0, 1)
        values: Float32s = (evidence.probabilities * cosines**self._power).astype(np.float32)
        return values

    def _pool(self, values: Float32s) -> float:
        """Likelihood of a document from the values of its sentences."""
        if not len(values):
            return 0.0
        if self.pool == "noisy-or":
            return float(1 - np.prod(1 - values.astype(np.float64)))
        return float(np.sort(values)[-1 if self.pool == "max" else -3 :].mean(dtype=np.float64))


def _with_remaining(reranked: Run, run: Run) -> Run:
    """The documents of `reranked`, then the remaining ones of `run` in their order, with scores -1, -2, …"""
    scores = np.empty(run.rows, dtype=np.float32)
    for start, (topic_id, ranking) in zip(run.bounds.tolist(), run.items(), strict=False):
        top = reranked[topic_id]
        by_id = dict(zip(top.ids, top.scores.tolist(), strict=True))
        top_scores = [by_id[doc_id] for doc_id in ranking.ids[: len(top)]]
        scores[start : start + len(ranking)] = [*top_scores, *range(-1, len(top_scores) - len(ranking) - 1, -1)]
    return run.with_scores(scores, reranked.provenance)


MAX_CACHE_BYTES = 128 * 2**20  # maximum bytes of cached documents, about 16,000 documents of ten sentences


@dataclass(frozen=True, eq=False)
class DocumentSentences:
    """A document's sentences: texts, probabilities, float32 (n,), and vectors, float16 (n, dim), or None."""

    texts: tuple[str, ...]
    probabilities: Float32s
    vectors: NDArray[np.float16] | None

    def text(self, n: int) -> str:
        """Sentence `n` on one line."""
        return " ".join(self.texts[n].split())

    def pairs(self, n: int) -> list[CausalPair]:
        """Causal pairs in sentence `n`, weak cues included."""
        return causal_pairs(self.texts[n], weak=True)

    @property
    def bytes(self) -> int:
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return vectors + self.probabilities.nbytes + sum(map(len, self.texts)) + 200


class _SentenceCache:
    """The most recently used documents, up to `MAX_CACHE_BYTES` bytes."""

    def __init__(self) -> None:
        self._recent: OrderedDict[bytes, DocumentSentences] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: bytes) -> DocumentSentences | None:
        with self._lock:
            if key in self._recent:
                self._recent.move_to_end(key)
            return self._recent.get(key)

    def put(self, key: bytes, sentences: DocumentSentences) -> None:
        with self._lock:
            if key not in self._recent:
                self._recent[key] = sentences
                self._bytes += sentences.bytes
            while self._bytes > MAX_CACHE_BYTES:
                self._bytes -= self._recent.popitem(last=False)[1].bytes


_cache = _SentenceCache()


def evidence_of(
    texts: Sequence[str], encoder: Encoder | None, head: CausalHead | None, splitter: str
) -> list[DocumentSentences]:
    """Classify the sentences of documents; sentences of new documents are encoded together, and results are cached.

    Without encoder and head the probabilities are `cue_strength`. `splitter` is as for `sentence_spans`.
    """
    model = f"{encoder.fingerprint} {getattr(encoder, 'precision', '')} {head.fingerprint}" if encoder and head else "cues"
    keys = [_key(f"{model}\0{splitter}\0{text}") for text in texts]
    cached = {key: _cache.get(key) for key in keys}
    new = {key: text for key, text in zip(keys, texts, strict=True) if cached[key] is None}
    split = {key: tuple(text[a:b] for a, b in sentence_spans(text, splitter)) for key, text in new.items()}
    all_sentences = [sentence for sentences in split.values() for sentence in sentences]
    if encoder is None or head is None:
        probabilities = np.array([cue_strength(sentence)[0] for sentence in all_sentences], dtype=np.float32)
        vectors = None
    else:
        vectors = sentence_vectors(encoder, all_sentences).reshape(len(all_sentences), encoder.dim)
        probabilities = head.probabilities(vectors, cue_features(all_sentences))
    start = 0
    for key, doc_sentences in split.items():
        rows = slice(start, start + len(doc_sentences))
        doc_vectors = None if vectors is None else vectors[rows].astype(np.float16)
        cached[key] = document = DocumentSentences(doc_sentences, probabilities[rows].copy(), doc_vectors)
        _cache.put(key, document)
        start = rows.stop
    return [sentences for key in keys if (sentences := cached[key]) is not None]


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
