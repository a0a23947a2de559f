"""`Calibration`: a trained map from scores to probabilities, and the held-out topics that promises rest on."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.arrays import Float32s, Float64s, UInt64s
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.values import Explanation
from ..ltr.model import hashes
from ..storage.arrays import write_array
from ..storage.artifact import Artifact, ArtifactKind, commit, seal, settings, staging
from ..storage.caches import Cached
from .held_out import PROMISES, HeldOutTopics, Promise, best_probabilities
from .maps import FEATURES, MAPS, ProbabilityMap, features_of, in_order

KIND = ArtifactKind(
    "fontes-calibration", 1, "a calibration", "restore it from a copy or train it again: fontes train calibration"
)
CARD = "README.md"
CALIBRATIONS_IN_MEMORY = 8
_CALIBRATIONS: Cached[tuple[Path, str], Calibration] = Cached(CALIBRATIONS_IN_MEMORY)


class Calibration:
    """A calibration of one pipeline, for `calibrated(FOLDER)`.

    Attributes:
        facts: The pipeline ("system"), settings and figures of the training, as JSON values.
        map: From scores to probabilities.
        held_out: Topics from which the map has not learned, on which promises rest.
        topics: uint64, ascending; hashes of the texts of all topics of the training.
        digest: SHA-256 of the files; empty for a calibration that was not loaded from files.
        folder: Its folder; empty for one that was not loaded from files.
    """

    def __init__(
        self,
        facts: Mapping[str, Any],
        map: ProbabilityMap,
        held_out: HeldOutTopics,
        topics: UInt64s,
        digest: str = "",
        folder: str = "",
    ) -> None:
        self.facts, self.map, self.held_out = dict(facts), map, held_out
        self.topics, self.digest, self.folder = topics, digest, folder
        self._promises: dict[tuple[str, float, float], Promise] = {}

    @classmethod
    def load(cls, path: str | Path, digest: str = "") -> Calibration:
        """Load a calibration that `save` wrote.

        Args:
            path: Its folder.
            digest: Its digest, if it must be that one. While it is in memory, the folder may hold another.

        Raises:
            InputError: There is no calibration.
            IndexFormatError: It is damaged, or has another format version.
            ParameterError: The folder has one with another digest.
        """
        folder = Path(path).expanduser()

        def opened() -> Artifact:
            if not folder.is_dir():
                raise InputError(f"there is no calibration at {folder}; train one: fontes train calibration")
            artifact = Artifact(folder, KIND)
            if artifact.digest != (digest or artifact.digest):
                raise ParameterError(f"{path} has changed since the run; run the pipeline again")
            return artifact

        return _CALIBRATIONS.get((folder.absolute(), digest or opened().digest), lambda: _read(opened(), str(path)))

    def save(self, path: str | Path) -> None:
        """Write the calibration and its card to a folder, atomically, in place of a calibration there.

        Equal calibrations give equal bytes.

        Raises:
            InputError: The folder cannot be written.
        """
        target = Path(path).expanduser()
        try:
            with staging(target) as folder:
                for field in fields(self.held_out):
                    write_array(folder, field.name, getattr(self.held_out, field.name))
                for name, array in {"weights": self.map.weights, "curve": self.map.curve, "topics": self.topics}.items():
                    write_array(folder, name, array)
                (folder / CARD).write_text(self._card(), encoding="utf-8")
                seal(folder, KIND, {"map": self.map.kind, **self.facts})
                commit(folder, target)
        except OSError as error:
            raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None

    def probabilities(self, run: Run) -> Float32s:
        """Return the probability that each row's document is relevant, float32 (rows,), in (0, 1).

        It falls along each ranking, strictly where the score does.

        Raises:
            InputError: A score is infinite, or a topic has no text.
        """
        return in_order(self.map.probabilities(self.map.log_odds(features_of(run))), run)

    def apply(self, run: Run) -> Run:
        """Return the run with probabilities as scores, and in its provenance "calibration": model, digest, map and notes.

        Raises:
            ParameterError: The run comes from another pipeline than those of the training.
            InputError: As `probabilities`.
        """
        seen = int(np.isin(hashes(run.topics), self.topics).sum())
        facts = {"model": self.folder, "digest": self.digest, "map": self.map.kind, "notes": self._notes(run), "seen": seen}
        return run.with_scores(self.probabilities(run), {**run.provenance, "calibration": facts})

    def promise(self, kind: str, level: float, confidence: float = 0.9) -> Promise:
        """Return a promise; see `HeldOutTopics.promise`.

        Args:
            kind: "recall", "precision", "complete", or "answerable" for `abstain`, whose level is 1 - false_alarm.
            level: Its level, between 0 and 1.
            confidence: Probability of a promise of precision over the choice of calibration topics.

        Raises:
            ParameterError: A number is out of its range, the topics are too few, or the run does not reach the level.
        """
        key = kind, level, confidence
        if key not in self._promises:
            self._promises[key] = self.held_out.promise(*key)
        return self._promises[key]

    def greatest(self, kind: str, confidence: float = 0.9) -> float | None:
        """Return the greatest level of a promise that the held-out topics allow, in thousandths; None if they allow none."""
        return self.held_out.greatest(kind, confidence)

    def p_values(self, run: Run) -> Float64s:
        """Return the conformal p-value of the best documents of each topic of a run of `apply`, float64 (topics,)."""
        return self.held_out.p_values(best_probabilities(run))

    def explained(self, run: Run, row: int) -> Explanation:
        """Explain the probability of a row of a run with one topic, from its score."""
        self._notes(run)  # raises for another pipeline
        features = features_of(run)[row : row + 1]
        log_odds = self.map.log_odds(features)
        weights = self.map.weights.tolist()
        terms = [
            Explanation(weight * value, f"{name}: weight {weight:.6g} times {value:.6g}")
            for name, weight, value in zip(FEATURES, weights, features[0].tolist(), strict=False)
        ]
        parts = (
            Explanation(float(run.scores[row]), f"score before, rank {row + 1}"),
            Explanation(float(log_odds[0]), "log odds: sum", (*terms, Explanation(weights[-1], "constant"))),
        )
        return Explanation(float(self.probabilities(run)[row]), f"probability, {self.map.kind} in the log odds", parts)

    def _notes(self, run: Run) -> list[str]:
        """Check the run's pipeline against that of the training; return what is other in the collection or a filter."""
        learned, system = self.facts.get("system"), run.provenance.get("system")
        if not learned or not system:
            depth = int(np.diff(run.bounds).max(initial=0))
            unknown = "whether it is the pipeline of the training is unknown"
            return [f"{unknown}, whose longest ranking has {self.facts['depth']:,} documents and here {depth:,}"]
        notes = []
        if system != learned:
            if _unfiltered(system) != _unfiltered(learned):
                raise ParameterError(
                    f"calibrated: {self.folder or 'the calibration'} was trained for {learned}, not for {system}; train one "
                    "for this pipeline: fontes train calibration"
                )
            notes.append("the filter is another than in the training")
        if sorted(run.provenance.get("indexes", {}).values()) != self.facts.get("indexes"):
            notes.append("the collection is another than in the training, or has changed")
        return notes

    def _card(self) -> str:
        facts = "\n".join(f"* {key}: {value}" for key, value in self.facts.items())
        greatest = {kind: self.greatest(kind) for kind in PROMISES}
        levels = "\n".join(f"* `cut({kind}=…)`: {f'up to {level:g}' if level else 'none'}" for kind, level in greatest.items())
        count, units = len(self.held_out.unit), self.held_out.units
        return (
            f"# A calibration of {self.facts.get('system') or 'a run'}\n\nScores become probabilities of relevance: "
            f"`… >> calibrated(FOLDER)`.\n\nPromises rest on {count} topics ({units} units) that are new to the map. "
            "They hold for topics that are drawn as these were, over the same collection and pipeline, and for relevance as it "
            f"was judged.\n\n{levels}\n\n## Training\n\n{facts}\n"
        )


def _read(artifact: Artifact, path: str) -> Calibration:
    artifact.check()
    kind, arrays = artifact.fact("map", str), artifact.arrays
    curve_shape: dict[str, tuple[int | None, ...]] = {"logistic": (0,), "beta": (3,), "isotonic": (2, None)}
    if kind not in MAPS:
        raise artifact.damaged(f"{artifact.folder} has an unknown map '{kind}'")
    weights = np.array(arrays.array("weights", "<f8", len(FEATURES) + 1))
    curve = np.array(arrays.array("curve", "<f8", *curve_shape[kind]))
    if not (np.isfinite(weights).all() and np.isfinite(curve).all()):
        raise artifact.damaged(f"{artifact.folder} has weights that are no finite numbers")
    unit = np.array(arrays.array("unit", "<i4", None))
    grid, count = np.array(arrays.array("grid", "<f4", None)), len(unit)
    retrieved = np.array(arrays.array("retrieved", "<f4", None))
    held_out = HeldOutTopics(
        unit=unit,
        relevant=np.array(arrays.array("relevant", "<i4", count)),
        bounds=np.array(arrays.bounds("bounds", len(retrieved), count, "<i8")),
        retrieved=retrieved,
        shares=np.array(arrays.array("shares", "<f4", len(retrieved))),
        complete=np.array(arrays.array("complete", "<f4", count)),
        best=np.array(arrays.array("best", "<f4", count)),
        grid=grid,
        kept=np.array(arrays.array("kept", "<i4", count, len(grid))),
    )
    topics = np.array(arrays.array("topics", "<u8", None))
    facts = {key: value for key, value in settings(artifact.meta).items() if key != "map"}
    return Calibration(facts, ProbabilityMap(kind, weights, curve), held_out, topics, artifact.digest, path)


def _unfiltered(text: str) -> str:
    """Return the text of a pipeline without its filters."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "where"]
    return ast.unparse(tree)


def with_notes(promise: Promise, notes: list[str]) -> Promise:
    """Return the promise with what weakens it in its statement."""
    return replace(promise, statement="; ".join([promise.statement, *(f"but {note}" for note in notes)])) if notes else promise
