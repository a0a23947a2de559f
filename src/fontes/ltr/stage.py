"""`LearningToRank`: candidates ordered by a trained model over their features."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core.errors import FontesError, ParameterError
from ..core.part import Part, walk
from ..core.progress import ProgressCallback
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Explanation
from ..reorder.candidates import Reordering
from .features import check_features, feature_matrix, feature_names, features_of
from .model import RankModel, hashes

if TYPE_CHECKING:
    from ..index import Index

logger = logging.getLogger("fontes.ltr")


@dataclass(frozen=True)
class LearningToRank(Reordering, name="ltr"):
    """Orders candidates by a trained model over their features: `bm25() % 100 >> ltr("FOLDER")`.

    `fontes train ranker` makes the model: LambdaMART (Burges, 2010) by LightGBM, or a linear one. Features are computed in one
    pass over the candidates: a retriever scores these and does not search, so its `% k` and `where` do not matter. Scores may
    be below 0, and compare candidates of one topic only. The run's provenance names the model's digest and features,
    and how many of the topics the model has learned from, which is logged, too, as they measure nothing.

    Args:
        index: The index of the candidates and features.
        model: Model's folder.
        features: Features in the model's order, as stages or `column`, `length`, … None: those that the model names.

    Raises:
        InputError: There is no model, or when called: a document is not in the index.
        ParameterError: The model has learned from other features, or over an index with another analyzer.
        IndexFormatError: The model is damaged.
        MissingExtraError: The model has trees, and LightGBM is not installed.
    """

    starts_from_scores: ClassVar[bool] = False

    index: Index = field(repr=False)
    model: str | Path
    features: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.features, list):
            object.__setattr__(self, "features", tuple(self.features))

    def check(self) -> None:
        if not isinstance(self.model, (str, Path)):
            raise ParameterError(f"ltr: model is the folder of a model, not {self.model!r}")

    def check_needs(self) -> None:
        self._ready  # noqa: B018  # which says what is wrong

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model."""
        return self._ready[0].digest

    def prepare(self, progress: ProgressCallback) -> None:
        """Encode the documents if a feature needs vectors that the index lacks."""
        for feature in self._ready[1]:
            feature.prepare(progress)

    def key(self) -> str | None:
        """Identity of this stage: model and features, whatever the model's folder."""
        model, features = self._ready
        keys = [feature.key() for feature in features]
        return None if None in keys else f"{type(self).__qualname__}({model.digest}, {self.index.fingerprint}, {keys})"

    def apply(self, run: Run, progress: ProgressCallback, /) -> Run:
        model, features = self._ready
        scores = model.predict(feature_matrix(run, features, progress)).astype(np.float32) if run.rows else run.scores
        seen = int(np.isin(hashes(run.topics), model.topics).sum())
        if seen > 1:  # a single one may be a question that somebody asks
            logger.warning("%s: the model has learned from %d of the %d topics", self, seen, len(run.topics))
        facts = {"model": model.digest, "learner": model.learner, "features": model.features, "seen": seen}
        return run.with_scores(scores, {**run.provenance, "ltr": facts})

    def explained(self, run: Run, row: int) -> Explanation:
        """Explain a score by what each feature contributes.

        A linear model gives weight times feature. Trees give the contributions of LightGBM's `pred_contrib` (Lundberg et al.,
        2018). Both sum to the score.
        """
        model, features = self._ready
        matrix = feature_matrix(run, features)[row : row + 1]
        (shares,), score = model.contributions(matrix), float(np.float32(model.predict(matrix)[0]))
        topic, doc_id = list(run.topics)[int(run.topic_numbers[row])], run.ids[int(run.codes[row])]
        parts = []
        for number, feature in enumerate(features):
            inner: list[Explanation] = []
            if isinstance(feature, Stage):
                with suppress(FontesError):
                    inner = [feature.explain_in(run, topic, doc_id)]
            parts.append(Explanation(float(shares[number]), model.account(number, float(matrix[0, number])), tuple(inner)))
        parts.append(Explanation(float(shares[-1]), model.constant_label))
        return Explanation(score, f"{self!r}: sum over the features", tuple(parts))

    @cached_property
    def _ready(self) -> tuple[RankModel, tuple[Part, ...]]:
        """The model and its features, checked once; over an index without documents, whose columns nobody knows, the model."""
        self.check()
        model = RankModel.load(self.model)
        if not self.index.leaves:
            return model, ()
        features = features_of(model.features if self.features is None else self.features, self.index)
        names = feature_names(features)
        if names != model.features:
            odd = next((name for name in names if name not in model.features), None)
            order = sorted(names) == sorted(model.features)
            problem = "in another order" if order else f"from {', '.join(model.features)}{f', not from {odd}' if odd else ''}"
            raise ParameterError(
                f"ltr: the model {self.model} has learned {problem}; leave features out to take the model's own, or train a "
                "model with these"
            )
        if model.facts.get("analyzer") != analyzer_facts(self.index):
            raise ParameterError(
                f"ltr: the model {self.model} has learned over an index with another analyzer or other fields than "
                f"{self.index.path}; train a model over this index"
            )
        check_features(features, self.index)
        for name, feature in zip(names, features, strict=True):
            if fingerprints(feature) != model.facts.get("models", {}).get(name, []):
                raise ParameterError(
                    f"ltr: the model behind the feature {name} has changed since {self.model} was trained; train it again"
                )
        return model, features


def analyzer_facts(index: Any) -> dict[str, Any]:
    """Return what of an index its features depend on: analyzer and fields."""
    return {"analyzer": {**index.manifest["analyzer"], "libraries": None}, "fields": list(index.fields)}


def fingerprints(feature: Part) -> list[str]:
    """Return the fingerprints of the models in a feature."""
    return [str(value) for one in walk(feature) if isinstance(value := getattr(one, "fingerprint", None), str)]
