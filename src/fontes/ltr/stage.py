"""`LearningToRank`: candidates ordered by a trained model over their features."""

from __future__ import annotations

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
from .model import RankModel

if TYPE_CHECKING:
    from ..index import Index


@dataclass(frozen=True)
class LearningToRank(Reordering, name="ltr"):
    """Orders candidates by a trained model over their features: `bm25() % 100 >> ltr("FOLDER")`.

    `fontes train ranker` makes the model: LambdaMART (Burges, 2010) by LightGBM, or a linear one. Features are computed in one
    pass over the candidates: a retriever scores these and does not search, so its `% k` and `where` do not matter. Scores may
    be below 0, and compare candidates of one topic only. The run's provenance names the model's digest and features.

    Args:
        index: The index of the candidates and features.
        model: The model's folder.
        features: The features, in the model's order: stages, `column("date")`, `length()`, `query_length()`, `coverage()`,
            `score()`. None: those that the model names.

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
        facts, features = self._model.facts, self._features
        names, learned = feature_names(features), self._model.features
        if names != learned:
            odd = next((name for name in names if name not in learned), None)
            problem = "in another order" if sorted(names) == sorted(learned) else f"from {', '.join(learned)}"
            raise ParameterError(
                f"ltr: the model {self.model} has learned {problem}{f', not from {odd}' if odd else ''}; leave features out to "
                "take the model's own, or train a model with these"
            )
        analyzer = analyzer_facts(self.index)
        if facts.get("analyzer") != analyzer:
            raise ParameterError(
                f"ltr: the model {self.model} has learned over an index with another analyzer or fields than {self.index.path}; train "
                "a model over this index"
            )
        check_features(features, self.index)
        for name, models in facts.get("models", {}).items():
            if fingerprints(features[names.index(name)]) != models:
                raise ParameterError(
                    f"ltr: the model behind the feature {name} has changed since {self.model} was trained; train it again"
                )

    def check_needs(self) -> None:
        self.check()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model."""
        return self._model.digest

    def prepare(self, progress: ProgressCallback) -> None:
        """Encode the documents if a feature needs vectors that the index lacks."""
        for feature in self._features:
            feature.prepare(progress)

    def key(self) -> str | None:
        """Identity of this stage: model and features, whatever the model's folder."""
        keys = [feature.key() for feature in self._features]
        if None in keys:
            return None
        return f"{type(self).__qualname__}({self._model.digest}, {self.index.fingerprint}, {keys})"

    def apply(self, run: Run, progress: ProgressCallback, /) -> Run:
        self._checked_features  # noqa: B018
        scores = self._model.predict(feature_matrix(run, self._features, progress)).astype(np.float32)
        facts = {"model": self._model.digest, "learner": self._model.learner, "features": self._model.features}
        return run.with_scores(scores, {**run.provenance, "ltr": facts})

    def explained(self, run: Run, row: int) -> Explanation:
        """Explain a score by what each feature contributes.

        A linear model gives weight times feature. Trees give the contributions of LightGBM's `pred_contrib` (Lundberg et al.,
        2018). Both sum to the score.
        """
        self.check()
        matrix = feature_matrix(run, self._features)[row : row + 1]
        (shares,), score = self._model.contributions(matrix), float(np.float32(self._model.predict(matrix)[0]))
        topic, doc_id = list(run.topics)[int(run.topic_numbers[row])], run.ids[int(run.codes[row])]
        parts = []
        for number, feature in enumerate(self._features):
            inner: list[Explanation] = []
            if isinstance(feature, Stage):
                with suppress(FontesError):
                    inner = [feature.explain_in(run, topic, doc_id)]
            label = self._model.account(number, float(matrix[0, number]))
            parts.append(Explanation(float(shares[number]), label, tuple(inner)))
        parts.append(Explanation(float(shares[-1]), self._model.constant_label))
        return Explanation(score, f"{self!r}: sum over the features", tuple(parts))

    @cached_property
    def _model(self) -> RankModel:
        return RankModel.load(self.model)

    @cached_property
    def _features(self) -> tuple[Part, ...]:
        return features_of(self._model.features if self.features is None else self.features, self.index)

    @cached_property
    def _checked_features(self) -> None:
        """Check once, so that a served query does not."""
        self.check()


def analyzer_facts(index: Any) -> dict[str, Any]:
    """Return what of an index its features depend on: analyzer and fields."""
    return {"analyzer": {**index.manifest["analyzer"], "libraries": None}, "fields": list(index.fields)}


def fingerprints(feature: Part) -> list[str]:
    """Return the fingerprints of the models in a feature."""
    return [str(value) for one in walk(feature) if isinstance(value := getattr(one, "fingerprint", None), str)]
