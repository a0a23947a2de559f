"""`LearningToRank`: a stage that orders candidates by a trained model."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..core.errors import FontesError, ParameterError
from ..core.part import Part, walk
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

    `fontes train ranker` trains the model: LambdaMART (Burges, 2010) by LightGBM, a linear model, or SetRank, which reads all
    candidates of a topic at once. Features are computed in
    one pass over the candidates. A retriever scores the candidates and does not search, so its `% k` and `where` have no
    effect. Scores may be below 0, and are comparable only within a topic. The run's provenance has the model's digest and
    features, and the number of topics that the model has learned from. The stage also logs this number, because training
    topics must not count in an evaluation.

    Args:
        index: The index of the candidates and features.
        model: Model's folder.
        features: Features in the model's order, as stages or `column`, `length`, … None: those that the model names.

    Raises:
        InputError: There is no model; or, in a call, a document is not in the index.
        ParameterError: The model has learned from other features, or over an index with another analyzer.
        IndexFormatError: The model is damaged.
    """

    starts_from_scores: ClassVar[bool] = False

    index: Index = field(repr=False)
    model: str | Path
    features: object = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.features, list):
            object.__setattr__(self, "features", tuple(self.features))

    def check(self) -> None:
        if not isinstance(self.model, (str, Path)):
            raise ParameterError(f"ltr: model is the folder of a model, not {self.model!r}")

    def check_needs(self) -> None:
        self._model_and_features  # noqa: B018  # raises the error

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model."""
        return self._model_and_features[0].digest

    def prepare(self) -> None:
        """Encode the documents if a feature needs vectors that the index lacks."""
        for feature in self._model_and_features[1]:
            feature.prepare()

    def key(self) -> str | None:
        """Return the identity of this stage: the contents of the model and the features, not the model's folder."""
        model, features = self._model_and_features
        keys = [feature.key() for feature in features]
        return None if None in keys else f"{type(self).__qualname__}({model.digest}, {self.index.fingerprint}, {keys})"

    def apply(self, run: Run, /) -> Run:
        model, features = self._model_and_features
        scores = model.predict(feature_matrix(run, features), run.bounds) if run.rows else run.scores
        training_topics = int(np.isin(hashes(run.topics), model.topics).sum())
        if training_topics > 1:  # a single one may be a user's query
            logger.warning("%s: the model has learned from %d of the %d topics", self, training_topics, len(run.topics))
        facts = {"model": model.digest, "learner": model.learner, "features": model.features, "seen": training_topics}
        return run.with_scores(scores, {**run.provenance, "ltr": facts})

    def explained(self, run: Run, row: int) -> Explanation:
        """Explain a score by the contribution of each feature.

        The contribution to a linear model is weight times feature; to trees, its Shapley value (Lundberg et al., 2018), which
        is LightGBM's `pred_contrib`; to SetRank, the change of the score if the candidate's features, one after the other,
        change from their means to their values, the mean of two orders. Contributions sum to the score.
        """
        model, features = self._model_and_features
        number = int(run.topic_numbers[row])
        first, last = run.bounds[number : number + 2].tolist()
        matrix, row_in_topic = feature_matrix(run, features)[first:last], row - first
        *contributions, constant = model.contributions(matrix, row_in_topic)[0].tolist()
        score = float(np.float32(model.predict(matrix)[row_in_topic]))
        topic, doc_id = list(run.topics)[number], run.ids[int(run.codes[row])]
        parts = []
        for i, feature in enumerate(features):
            details: tuple[Explanation, ...] = ()
            if isinstance(feature, Stage):
                with suppress(FontesError):
                    details = (feature.explain_in(run, topic, doc_id),)
            parts.append(Explanation(contributions[i], model.account(i, float(matrix[row_in_topic, i])), details))
        parts.append(Explanation(constant, model.constant_label))
        return Explanation(score, f"{self!r}: sum over the features", tuple(parts))

    @cached_property
    def _model_and_features(self) -> tuple[RankModel, tuple[Part, ...]]:
        """The model and its features, checked once; no features for an index without documents, which has no columns."""
        self.check()
        model = RankModel.load(self.model)
        if not self.index.leaves:
            return model, ()
        features = features_of(model.features if self.features is None else self.features, self.index)
        names = feature_names(features)
        if names != model.features:
            if sorted(names) == sorted(model.features):
                problem = "in another order"
            else:
                unknown = next((name for name in names if name not in model.features), None)
                problem = f"from {', '.join(model.features)}{f', not from {unknown}' if unknown else ''}"
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


def analyzer_facts(index: Index) -> dict[str, object]:
    """Return the facts of an index that its features depend on, as JSON values: analyzer and fields."""
    return {"analyzer": {**index.manifest["analyzer"], "libraries": None}, "fields": list(index.fields)}


def fingerprints(feature: Part) -> list[str]:
    """Return the fingerprints of the models in a feature."""
    return [str(value) for part in walk(feature) if isinstance(value := getattr(part, "fingerprint", None), str)]
