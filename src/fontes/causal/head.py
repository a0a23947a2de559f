"""Classifier of sentences that report a cause: logistic regression over a sentence's vector and its cues."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, ParameterError
from ..core.values import Doc
from ..neural.models.hub import loaded
from ..storage.files import write
from .pairs import causal_pairs

if TYPE_CHECKING:
    from ..neural import Encoder

FORMAT = 1
SHIPPED = Path(__file__).with_name("cnc_v2.json")
PROBE = "The bridge was closed because its cables had rusted, and so the ferry runs again."
NEARLY = 0.05  # maximum distance of the probe's vector from training; 16-bit precision moves it by less than 0.045
CUE_SCALE = 0.5  # value of a cue feature; sentence vectors have length 1
CUE_FEATURES = ("any cue", "cue other than of time", "denied cue")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CausalHead:
    """Logistic regression for the probability that a sentence reports a cause.

    Args:
        encoder: Name of the encoder that it was trained over.
        weights: One for each dimension of the encoder's vectors.
        cues: One for each of `CUE_FEATURES`, which `cue_features` finds in the sentence's text.
        bias: Intercept.
        threshold: Minimum probability at which a sentence is said to report a cause.
        probe: Vector of the sentence `PROBE`, which tells encoders apart.
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
        """Load a head that `save` wrote.

        Raises:
            InputError: The file is anything else, or cannot be read.
        """
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as e:
            raise InputError(f"cannot read the head {path}: {e.strerror}") from e
        except (ValueError, RecursionError) as e:
            raise InputError(f"{path} is no head: it is not JSON") from e
        if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
            raise InputError(f"{path} is no head of format {FORMAT}; train_causality makes one (fontes train causality)")
        try:
            lists: dict[str, Any] = {name: tuple(map(float, values.pop(name))) for name in ("weights", "cues", "probe")}
            head = cls(**lists, **values)
        except (KeyError, TypeError, ValueError) as e:
            raise InputError(f"{path} is a damaged head: {e}; train_causality makes a new one (fontes train causality)") from e
        if len(head.weights) != len(head.probe) or len(head.cues) != len(CUE_FEATURES):
            raise InputError(f"{path} is a damaged head: {len(head.weights)} weights for {len(head.probe)} dimensions")
        return head

    def save(self, path: str | Path) -> None:
        """Write the head as JSON; equal heads give equal bytes.

        Raises:
            InputError: The file cannot be written.
        """
        values = {"format": FORMAT, **asdict(self)}
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
        write(path, [f"{{\n{lines}\n}}\n".encode()])

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits, a hash of all numbers."""
        numbers = np.array([*self.weights, *self.cues, self.bias, self.threshold, *self.probe])
        return hashlib.blake2b(numbers.tobytes(), digest_size=16).hexdigest()

    def probabilities(self, vectors: NDArray[np.float32], cues: Floats) -> NDArray[np.float32]:
        """Probability of each sentence, float32 (n,).

        Args:
            vectors: Vectors of the sentences, (n, dim), of length 1.
            cues: Their `cue_features`, float64 (n, 3).
        """
        logits = vectors @ np.array(self.weights) + cues @ np.array(self.cues) + self.bias
        probabilities: NDArray[np.float32] = (1 / (1 + np.exp(-logits))).astype(np.float32)
        return probabilities

    def classify(self, encoder: Encoder, sentences: Sequence[str]) -> NDArray[np.float32]:
        """The probability that each sentence reports a cause, float32 (n,).

        Raises:
            ParameterError: The head was trained over another encoder.
        """
        self.check(encoder)
        return self.probabilities(sentence_vectors(encoder, sentences), cue_features(sentences))

    def check(self, encoder: Encoder) -> None:
        """Raise ParameterError if the head was trained over another encoder."""
        loaded(("causal head", self.fingerprint, encoder.fingerprint), lambda: self._checked(encoder))

    def _checked(self, encoder: Encoder) -> bool:
        mine = f"the head was trained over {self.encoder}"
        advice = "take that encoder, or train a head over this one: train_causality (fontes train causality)"
        if encoder.dim != len(self.weights):
            raise ParameterError(f"{mine}, whose vectors have {len(self.weights)} dimensions, not {encoder.dim}; {advice}")
        distance = float(np.linalg.norm(sentence_vectors(encoder, [PROBE])[0] - np.array(self.probe)))
        if distance > NEARLY:
            raise ParameterError(f"{mine}, and {encoder!r} gives other vectors (distance {distance:.2f}); {advice}")
        return True


@cache
def shipped_head() -> CausalHead:
    """The head of the package: all-MiniLM-L6-v2, trained on the Causal News Corpus, version 2 (CC0)."""
    return CausalHead.load(SHIPPED)


def sentence_vectors(encoder: Encoder, sentences: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of sentences, scaled to length 1, float32 (n, dim)."""
    from ..neural.encoders.base import unit

    return unit(encoder.encode_documents([Doc("", sentence) for sentence in sentences]))


def cue_features(sentences: Sequence[str]) -> Floats:
    """Features from the `causal_pairs` of each sentence, float64 (n, 3): `CUE_SCALE` for each of `CUE_FEATURES` present."""
    features = np.zeros((len(sentences), len(CUE_FEATURES)))
    for row, sentence in zip(features, sentences, strict=True):
        strength, denied = cue_strength(sentence)
        row[:] = strength > 0, strength == 1, denied
    return features * CUE_SCALE


def cue_strength(sentence: str) -> tuple[float, bool]:
    """Strength of a sentence's cues, and whether one of them is negated.

    1 for a connective or a verb, 0.5 for weak cues alone (after, following, amid), 0 for none.
    """
    pairs = causal_pairs(sentence, weak=True)
    denied = any(pair.negated for pair in pairs)
    if all(pair.negated for pair in pairs):
        return 0.0, denied
    return (1.0 if any(not pair.negated for pair in causal_pairs(sentence)) else 0.5), denied
