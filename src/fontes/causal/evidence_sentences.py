"""The sentences of documents with their likelihood of reporting a cause, worked out once a process."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..text.sentences import sentence_spans
from .head import CausalHead, cue_features, cue_strength, sentence_vectors
from .pairs import CausalPair, causal_pairs

if TYPE_CHECKING:
    from ..neural import Encoder

LIMIT = 128 * 2**20  # bytes of remembered documents: some 16,000 of ten sentences


@dataclass(frozen=True, eq=False)
class Sentences:
    """The sentences of a document.

    Args:
        texts: The text of each sentence.
        probabilities: That each reports a cause, float32 (n,).
        vectors: Of the sentences, float16 (n, dim); None without an encoder.
    """

    texts: tuple[str, ...]
    probabilities: NDArray[np.float32]
    vectors: NDArray[np.float16] | None

    def text(self, n: int) -> str:
        return " ".join(self.texts[n].split())

    def pairs(self, n: int) -> list[CausalPair]:
        """The causes and effects that sentence `n` states, those with cues of time among them."""
        return causal_pairs(self.texts[n], weak=True)

    @property
    def bytes(self) -> int:
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return vectors + self.probabilities.nbytes + sum(map(len, self.texts)) + 200


class _Memory:
    """The sentences of the documents that were asked for last."""

    def __init__(self) -> None:
        self._recent: OrderedDict[bytes, Sentences] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Sentences | None:
        with self._lock:
            if key in self._recent:
                self._recent.move_to_end(key)
            return self._recent.get(key)

    def put(self, key: bytes, sentences: Sentences) -> None:
        with self._lock:
            if key not in self._recent:
                self._recent[key] = sentences
                self._bytes += sentences.bytes
            while self._bytes > LIMIT:
                self._bytes -= self._recent.popitem(last=False)[1].bytes


_memory = _Memory()


def evidence_of(texts: Sequence[str], encoder: Encoder | None, head: CausalHead | None, how: str) -> list[Sentences]:
    """The sentences of documents, in the order of the documents; those that are new are encoded together.

    Args:
        texts: The documents.
        encoder: Gives the sentences' vectors; without it and its head the probabilities are `cue_strength`.
        head: The classifier over the vectors.
        how: How sentences are found: see `sentence_spans`.
    """
    model = f"{encoder.fingerprint} {getattr(encoder, 'precision', '')} {head.fingerprint}" if encoder and head else "cues"
    keys = [_key(f"{model}\0{how}\0{text}") for text in texts]
    known = {key: _memory.get(key) for key in keys}
    new = {key: text for key, text in zip(keys, texts, strict=True) if known[key] is None}
    split = {key: tuple(text[a:b] for a, b in sentence_spans(text, how)) for key, text in new.items()}
    everything = [sentence for sentences in split.values() for sentence in sentences]
    if encoder is None or head is None:
        probabilities = np.array([cue_strength(sentence)[0] for sentence in everything], dtype=np.float32)
        vectors = None
    else:
        vectors = sentence_vectors(encoder, everything).reshape(len(everything), encoder.dim)
        probabilities = head.probabilities(vectors, cue_features(everything))
    start = 0
    for key, sentences in split.items():
        rows = slice(start, start + len(sentences))
        halved = None if vectors is None else vectors[rows].astype(np.float16)
        known[key] = read = Sentences(sentences, probabilities[rows].copy(), halved)
        _memory.put(key, read)
        start = rows.stop
    return [one for key in keys if (one := known[key]) is not None]


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
