"""Training of a recipe: topics without leaks between sides, and the resulting models and weights."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..core import InputError, Qrels, Run, Stage, Topics
from ..core.part import Part, walk
from ..experiments.experiment import MODEL_PARAMETERS
from ..experiments.problems import System
from ..experiments.provenance import hash_of_qrels, hash_of_topics
from ..experiments.runner import reproducible
from ..experiments.systems import Cache, Searches
from ..measures import evaluate
from ..neural.models.hub import find_model, fingerprint
from ..neural.rerank.crossencoder import Start
from ..storage.hashes import hash_json
from ..train import (
    BiEncoderSettings,
    CrossEncoderSettings,
    Examples,
    SearchValidation,
    Side,
    Validation,
    mine_negatives,
    train_bi_encoder,
    train_cross_encoder,
)
from ..train.runner.checkpoint_folder import IDENTITY
from ..train.runner.running import check_training
from ..tuning import fit_weights

MODELS, CACHE = "models", "cache"
MIN_TOPICS = 2  # minimum number of topics to choose weights on
DIGITS = 8  # of a fingerprint in a table
NO_SIDE = Side(Topics(), Qrels())


@dataclass(frozen=True)
class RecipeTraining:
    """Topics for training and for choosing, and the models and weights that a recipe makes of them.

    A model is trained once and stored in `models` in the folder under a hash of its data, settings and starting model. An
    interrupted training resumes.

    Args:
        train: Topics and judgments to train models on.
        dev: Topics and judgments to choose weights and validate on.
        measured: Topics and judgments of the report, for choices by folds alone: each is for topics that it has not seen.
        folder: Results folder; None: nothing is trained or chosen, because the recipe is only inspected.
        notes: Trainings and choices, in order.
    """

    train: Side = NO_SIDE
    dev: Side = NO_SIDE
    measured: Side = NO_SIDE
    folder: Path | None = None
    notes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def chooses(self) -> bool:
        """Whether there are topics to choose with, or the recipe is only inspected."""
        return self.folder is None or bool(self.dev.qrels)

    @property
    def hashes(self) -> dict[str, object]:
        """Hashes of the sides, for the lock."""
        sides = {"train": self.train, "dev": self.dev}
        return {name: {"sha256": _hash(side), "topics": len(side.qrels)} for name, side in sides.items() if side.qrels}

    def run(self, stage: Stage[Topics, Run], side: Side) -> Run:
        """Return the run of a stage on the topics of a side, from the cache if it is there."""
        assert self.folder is not None
        return cached_run("", stage, side.topics, self.folder)

    def best(
        self, role: str, stages: Mapping[str, Stage[Topics, Run]], measure: str, sides: Sequence[Side], depth: int = 20
    ) -> str:
        """Return the name of the stage that is best on some sides, without topics whose documents have twins (see `weights`).

        Args:
            role: The recipe's name for the choice.
            stages: Stages by name; ties go to the one with fewest parts, then to the first.
            measure: Measure, with a cutoff of at most `depth`.
            sides: Sides on which none of the stages was trained.
            depth: Documents per topic.
        """
        if self.folder is None or len(stages) == 1:
            return next(iter(stages))
        topics = Topics(topic for side in sides for topic in side.topics.values())
        merged = Side(topics, Qrels(row for side in sides for row in side.qrels.rows()))
        runs = {name: self.run(stage % depth, merged) for name, stage in stages.items()}
        qrels = without_twins(next(iter(runs.values())), merged.qrels) or merged.qrels
        values = {name: float(evaluate(run, qrels, measure)[measure]) for name, run in runs.items()}
        chosen = max(values, key=lambda name: (round(values[name], 12), -sum(1 for _ in walk(stages[name]))))
        facts = {"role": role, "choice": chosen, "of": len(values), "measure": measure, "value": values[chosen]}
        self.notes.append({**facts, "topics": len(qrels), "left_out": len(merged.qrels) - len(qrels)})
        return chosen

    def weights(self, role: str, stages: Sequence[Stage[Topics, Run]], measure: str, step: float = 0.1) -> tuple[float, ...]:
        """Return the best weights on the dev topics for the sum of two or more stages' scores, each scaled to 0 to 1.

        A topic is left out if a relevant document has a twin among the hits, which is another document with the same words.
        `step` is the smallest difference between two weights. Raises InputError for too few topics.
        """
        if self.folder is None:
            return tuple(1 / len(stages) for _ in stages)
        runs = [self.run(stage, self.dev) for stage in stages]
        qrels = without_twins(runs[0], self.dev.qrels)
        if len(qrels) < MIN_TOPICS:
            raise InputError(f"weights are chosen on {MIN_TOPICS} topics or more, and there are {len(qrels)}; give more as dev")
        learned = fit_weights(runs, qrels, measure, folds=min(5, len(qrels)), step=step)
        facts = {"role": role, "weights": list(learned.weights), "measure": measure, "topics": len(qrels)}
        self.notes.append({**facts, "value": learned.trained, "left_out": len(self.dev.qrels) - len(qrels)})
        return learned.weights

    def note_model(self, role: str, model: str) -> str:
        """Return a model's folder or name, after noting the facts of its training.json."""
        if self.folder is not None:
            self.notes.append({"role": role, "model": model, **training_facts(Path(model))})
        return model

    def model(
        self,
        role: str,
        start: str,
        candidates: Stage[Topics, Run],
        settings: CrossEncoderSettings | BiEncoderSettings,
        ready: str | None = None,
        **mining: Any,
    ) -> str:
        """Return the folder of a model trained from `start` on negatives of `candidates`.

        If `ready` names a trained model, it is returned instead; `mining` are parameters of `mine_negatives`.
        """
        if ready is not None:
            return self.note_model(role, ready)
        kind = "bi-encoder" if isinstance(settings, BiEncoderSettings) else "cross-encoder"
        check_training(f"training a {kind}")
        if self.folder is None:
            return Start(start)
        if not self.train.qrels:
            raise InputError("there are no judgments to learn from; give some as train")
        candidates_key = prepare_system("", candidates).key() or repr(candidates)
        data = [_hash(self.train), _hash(self.dev), candidates_key]
        start_hash = fingerprint(find_model(start, kind, kind))
        key = hash_json([version("fontes"), kind, start_hash, settings.model_dump(), mining, data])
        target = self.folder / MODELS / f"{kind}-{key[:16]}"
        if not target.exists():
            examples = self._examples(self.train, candidates, mining)
            validation = self._examples(self.dev, candidates, mining) if self.dev.qrels else None
            if isinstance(settings, BiEncoderSettings):
                train_bi_encoder(examples, target, start, settings, SearchValidation(validation))
            else:
                train_cross_encoder(examples, target, start, settings, Validation(validation))
        return self.note_model(role, str(target))

    def _examples(self, side: Side, candidates: Stage[Topics, Run], mining: Mapping[str, Any]) -> Examples:
        return mine_negatives(self.run(candidates, side), *side, **mining).examples


def prepare_system(name: str, stage: System) -> Stage[Topics, Run]:
    """Return the reproducible form of a system, prepared to search; `name` is the system's name in errors."""
    system = reproducible({name: stage})[name]
    assert isinstance(system, Stage)
    system.prepare()
    return system


def cached_run(name: str, stage: System, topics: Topics, folder: Path) -> Run:
    """Return the run of a system on topics, from the cache in a results folder if it is there."""
    return Searches(topics, Cache(folder / CACHE)).of(name, prepare_system(name, stage)).run


def training_facts(model: Path) -> dict[str, object]:
    """Return the facts in the training.json of a model; empty if there is none."""
    try:
        record = json.loads((model / IDENTITY).read_text(encoding="utf-8"))
        facts = {name: record[name] for name in ("kind", "base", "rows", "steps", "best", "seconds", "precision", "device")}
        return {**facts, "queries": record["facts"].get("queries")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def weights_in(stage: Part, folder: Path) -> list[str]:
    """Return the models in a stage: name, the digits of the fingerprint, and the start of a training, if it is known.

    A model in the results folder has its path there.
    """
    texts: dict[str, None] = {}
    for part in walk(stage):
        values = (getattr(part, parameter, None) for parameter in MODEL_PARAMETERS)
        name = next((str(value) for value in values if value and isinstance(value, (str, Path))), "")
        if not name:
            continue
        fingerprint, start = getattr(part, "fingerprint", ""), training_facts(Path(name)).get("base")
        shown = Path(name).relative_to(folder).as_posix() if Path(name).is_relative_to(folder) else name
        digits = f" ({fingerprint[:DIGITS]})" if isinstance(fingerprint, str) and fingerprint else ""
        texts[f"{shown}{digits}{f', trained from {start}' if start else ''}"] = None
    return list(texts)


def _hash(side: Side) -> str:
    return hash_json([hash_of_topics(side.topics), hash_of_qrels(side.qrels)])


def without_twins(run: Run, qrels: Qrels) -> Qrels:
    """Return the judgments of the topics none of whose relevant documents has a twin among the hits of the run.

    A twin has the same words, ignoring case and punctuation, and is not judged relevant itself.
    """
    documents = run.documents_for("looking for twins")
    words: dict[str, str] = {}
    for topic_id in qrels:
        unread = [doc for doc in (run[topic_id].ids if topic_id in run else ()) if doc not in words]
        texts = documents.docs(unread) if unread else ()
        words.update({doc.id: " ".join(re.findall(r"\w+", f"{doc.title} {doc.text}".lower())) for doc in texts})

    def has_twin(topic_id: str) -> bool:
        ids = run[topic_id].ids if topic_id in run else []
        counts = Counter(words[doc] for doc in ids)
        relevant = Counter(words[doc] for doc in ids if qrels[topic_id].get(doc, 0) > 0)
        return any(counts[text] > count for text, count in relevant.items())

    return Qrels(row for row in qrels.rows() if not has_twin(row[0]))
