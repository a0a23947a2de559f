"""Learning of a recipe: its topics, without leakage between sides, and the resulting models and weights."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..core import InputError, ParameterError, Qrels, Run, Stage, Topic, Topics
from ..core.part import walk
from ..core.progress import Report, silent
from ..experiments.cache import Cache
from ..experiments.provenance import hash_of_qrels, hash_of_topics
from ..experiments.runner import reproducible
from ..experiments.systems import Searches
from ..measures import evaluate
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
MIN_TOPICS = 2  # least number of topics to choose weights on
NOBODY = Side(Topics(), Qrels())


@dataclass(frozen=True)
class RecipeTraining:
    """Topics that a recipe learns from and chooses with, and the models and weights it makes of them.

    A model is trained once and found in `models` of the folder by a hash of its data, settings and start. An interrupted
    training resumes.

    Args:
        train: Topics and judgments that models learn from.
        dev: Topics and judgments to choose weights and validate on.
        folder: Results folder; None: nothing is trained or chosen, the recipe is only inspected.
        progress: Called with the progress of each step.
        notes: What was trained and chosen, in order.
    """

    train: Side = NOBODY
    dev: Side = NOBODY
    folder: Path | None = None
    progress: Report = silent
    notes: list[dict[str, Any]] = field(default_factory=list)

    def at(self, folder: Path, progress: Report) -> RecipeTraining:
        """Return a copy with a folder and a progress report."""
        return replace(self, folder=folder, progress=progress)

    @property
    def chooses(self) -> bool:
        """Whether there are topics to choose with, or the recipe is only inspected."""
        return self.folder is None or bool(self.dev.qrels)

    @property
    def hashes(self) -> dict[str, Any]:
        """Return the hashes of the sides, for the lock."""
        sides = {"train": self.train, "dev": self.dev}
        return {name: {"sha256": _hash(side), "topics": len(side.qrels)} for name, side in sides.items() if side.qrels}

    def run(self, stage: Stage[Topics, Run], side: Side) -> Run:
        """Return the run of a stage on the topics of a side, from the cache if it is there."""
        assert self.folder is not None
        return Searches(side.topics, Cache(self.folder / CACHE), self.progress).of("", self._ready(stage)).run

    def cross_encoder(
        self, role: str, start: str, candidates: Stage[Topics, Run], settings: CrossEncoderSettings, **mining: Any
    ) -> str:
        """Return the folder of a cross-encoder trained from `start` on negatives out of `candidates`.

        Args:
            role: The recipe's name for the model.
            start: Model to train.
            candidates: Source of negatives.
            settings: Training settings.
            **mining: Parameters of `mine_negatives`.
        """

        def train(place: Path, examples: Examples, validation: Examples | None) -> None:
            train_cross_encoder(examples, place, start, settings, Validation(validation), progress=self.progress)

        return self._trained("cross-encoder", role, start, candidates, settings, mining, train)

    def bi_encoder(
        self, role: str, start: str, candidates: Stage[Topics, Run], settings: BiEncoderSettings, **mining: Any
    ) -> str:
        """Return the folder of a bi-encoder, with the parameters of `cross_encoder`."""

        def train(place: Path, examples: Examples, validation: Examples | None) -> None:
            train_bi_encoder(examples, place, start, settings, SearchValidation(validation), progress=self.progress)

        return self._trained("bi-encoder", role, start, candidates, settings, mining, train)

    def best(
        self, role: str, stages: Mapping[str, Stage[Topics, Run]], measure: str, sides: Sequence[Side], depth: int = 20
    ) -> str:
        """Return the name of the stage that is best on some sides; topics are left out as by `weights`.

        Args:
            role: The recipe's name for the choice.
            stages: Stages by name; ties go to the one of fewest parts, then to the first.
            measure: Measure, with a cutoff of at most `depth`.
            sides: Topics that none of the stages has learned from.
            depth: Documents per topic.
        """
        if self.folder is None or len(stages) == 1:
            return next(iter(stages))
        topics = Topics(topic for side in sides for topic in side.topics.values())
        both = Side(topics, Qrels(row for side in sides for row in side.qrels.rows()))
        runs = {name: self.run(stage % depth, both) for name, stage in stages.items()}
        qrels = without_twins(next(iter(runs.values())), both.qrels) or both.qrels
        values = {name: float(evaluate(run, qrels, measure)[measure]) for name, run in runs.items()}
        chosen = max(values, key=lambda name: (round(values[name], 12), -sum(1 for _ in walk(stages[name]))))
        facts = {"role": role, "choice": chosen, "of": len(values), "measure": measure, "value": values[chosen]}
        self.notes.append({**facts, "topics": len(qrels), "left_out": len(both.qrels) - len(qrels)})
        return chosen

    def weights(self, role: str, stages: Sequence[Stage[Topics, Run]], measure: str, step: float = 0.1) -> tuple[float, ...]:
        """Return the best weights on the dev topics for the sum of the stages' scores, each scaled to 0 to 1.

        Topics whose relevant document has a twin among the hits, another document of the same words, are left out.

        Args:
            role: The recipe's name for the choice.
            stages: Two or more stages.
            measure: Measure to maximise.
            step: Smallest difference between two weights.

        Raises:
            InputError: Too few topics to choose with.
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

    def noted(self, role: str, model: str) -> str:
        """Return a model's folder or name, after noting the facts of its training.json."""
        if self.folder is not None:
            self.notes.append({"role": role, "model": model, **training_facts(Path(model))})
        return model

    def _ready(self, stage: Stage[Topics, Run]) -> Stage[Topics, Run]:
        one: Any = reproducible({"": stage})[""]
        one.prepare(self.progress)
        return one  # type: ignore[no-any-return]

    def _trained(
        self,
        kind: str,
        role: str,
        start: str,
        candidates: Stage[Topics, Run],
        settings: CrossEncoderSettings | BiEncoderSettings,
        mining: Mapping[str, Any],
        train: Callable[[Path, Examples, Examples | None], None],
    ) -> str:
        check_training(f"training a {kind}")
        if self.folder is None:
            return Start(start)
        place = self._place(kind, start, candidates, settings, mining)
        if not place.exists():
            train(place, *self._examples(candidates, mining))
        return self.noted(role, str(place))

    def _place(self, kind: str, start: str, candidates: Stage[Topics, Run], settings: Any, mining: Mapping[str, Any]) -> Path:
        from ..neural.models.hub import fingerprint, located

        assert self.folder is not None
        if not self.train.qrels:
            raise InputError("there are no judgments to learn from; give some as train")
        start_of = fingerprint(located(start, kind, kind))
        data = [_hash(self.train), _hash(self.dev), self._ready(candidates).key() or repr(candidates)]
        key = hash_json([version("fontes"), kind, start_of, settings.model_dump(), dict(mining), data])
        return self.folder / MODELS / f"{kind}-{key[:16]}"

    def _examples(self, candidates: Stage[Topics, Run], mining: Mapping[str, Any]) -> tuple[Examples, Examples | None]:
        def mined(side: Side) -> Examples:
            return mine_negatives(self.run(candidates, side), *side, progress=self.progress, **mining).examples

        return mined(self.train), mined(self.dev) if self.dev.qrels else None


def training_facts(model: Path) -> dict[str, Any]:
    """Return the facts in the training.json of a model; empty if there is none."""
    try:
        said = json.loads((model / IDENTITY).read_text(encoding="utf-8"))
        facts = {name: said[name] for name in ("kind", "base", "rows", "steps", "best", "seconds", "precision", "device")}
        return {**facts, "queries": said["facts"].get("queries")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def without_twins(run: Run, qrels: Qrels) -> Qrels:
    """Return the judgments of topics of which no relevant document has a twin among the hits of the run.

    A twin has the same words, ignoring case and punctuation, and is not judged relevant itself.
    """
    documents = run.documents_for("looking for twins")
    words: dict[str, str] = {}
    for topic_id in qrels:
        unread = [doc for doc in (run[topic_id].ids if topic_id in run else ()) if doc not in words]
        texts = documents.docs(unread) if unread else ()
        words.update({doc.id: " ".join(re.findall(r"\w+", f"{doc.title} {doc.text}".lower())) for doc in texts})

    def doubtful(topic_id: str) -> bool:
        ids = run[topic_id].ids if topic_id in run else []
        counts = Counter(words[doc] for doc in ids)
        relevant = Counter(words[doc] for doc in ids if qrels[topic_id].get(doc, 0) > 0)
        return any(counts[text] > count for text, count in relevant.items())

    return Qrels(row for row in qrels.rows() if not doubtful(row[0]))


def _hash(side: Side) -> str:
    return hash_json([hash_of_topics(side.topics), hash_of_qrels(side.qrels)])


def parted(topics: Topics, qrels: Qrels, share: float, seed: int) -> tuple[Side, Side]:
    """Return the judged topics in two parts, the second a share of them drawn by the seed."""
    ids = sorted(topic_id for topic_id in topics if topic_id in qrels)
    order = np.random.default_rng(seed).permutation(len(ids))
    drawn = {ids[i] for i in order[: round(share * len(ids))].tolist()}
    return side_of(topics, qrels, set(ids) - drawn), side_of(topics, qrels, drawn)


def side_of(topics: Topics, qrels: Qrels, ids: Container[str]) -> Side:
    """Return the judged ones of the given topics, and their judgments."""
    those = Topics(topic for topic in topics.values() if topic.id in ids and topic.id in qrels)
    return Side(those, Qrels(row for row in qrels.rows() if row[0] in those))


def distinct(topics: Topics, qrels: Qrels) -> Side:
    """Return the judged topics, the first of those with equal text, with the judgments of all of them.

    Raises:
        InputError: Two of them judge a document differently.
    """
    first: dict[str, str] = {}
    judged = [topic for topic in topics.values() if topic.id in qrels]
    same = {topic.id: first.setdefault(topic.text, topic.id) for topic in judged}
    rows = (((same[topic], group, doc, grade)) for topic, group, doc, grade in qrels.rows() if topic in same)
    return Side(Topics(topic for topic in judged if same[topic.id] == topic.id), Qrels(rows))


LEAKS = ("error", "drop")
LEARN, CHOOSE, MEASURE = "to learn from", "to choose with", "to measure with"
SHOWN = 60  # characters of a text


def check_leaks(leaks: str) -> None:
    """Raise ParameterError for an invalid value of `leaks`."""
    if leaks not in LEAKS:
        raise ParameterError(f"leaks must be {' or '.join(LEAKS)}, not '{leaks}'")


def without_leaks(learning: RecipeTraining, measured: Topics, read: Callable[[Topics], Topics], drop: bool) -> RecipeTraining:
    """Return the sides without topics whose text is on a later side, in the order train, dev, test.

    Texts are compared as models read them, ignoring surrounding white space.

    Args:
        learning: Training and dev sides.
        measured: Topics to measure with.
        read: Function that gives topics as models read them.
        drop: Whether such topics are left out and noted; otherwise they are an error.

    Raises:
        InputError: Texts on two sides, all listed; or no training topic is left.
    """
    if not learning.train.topics and not learning.dev.topics:
        return learning
    used: dict[str, tuple[Topic, str]] = {}
    pairs: dict[str, list[tuple[Topic, Topic, str]]] = {}
    for topics, side in ((measured, MEASURE), (learning.dev.topics, CHOOSE), (learning.train.topics, LEARN)):
        texts = _texts(topics, read)
        pairs[side] = [(topic, *used[text]) for topic, text in texts if text in used]
        for topic, text in texts:  # afterwards: topics of one side may share a text
            used.setdefault(text, (topic, side))
    if not any(pairs.values()):
        return learning
    if not drop:
        lines = [
            f"  topic '{topic.id}' ({side}) has the text of topic '{other.id}' ({where}): {_shown(topic)}"
            for side in (LEARN, CHOOSE)
            for topic, other, where in pairs[side]
        ]
        head = "a topic has" if len(lines) == 1 else f"{len(lines):,} topics have"
        last = "take each out of one of the two sides, or leave all of them out with leaks='drop' (--leaks drop)"
        raise InputError.of_lines([f"{head} a text that is on two sides:", *lines, last])
    sides = {}
    for name, side, later in (("train", LEARN, "chosen or measured with"), ("dev", CHOOSE, "measured with")):
        before: Side = getattr(learning, name)
        out = {topic.id for topic, _, _ in pairs[side]}
        sides[name] = side_of(*before, set(before.topics) - out)
        if out:
            learning.notes.append({"role": side, "without": f"{len(out):,} of {len(before.topics):,}, whose text is {later}"})
    if learning.train.topics and not sides["train"].topics:
        raise InputError("no topic to learn from is left: the text of each is chosen or measured with; give others")
    return replace(learning, train=sides["train"], dev=sides["dev"])


def _texts(topics: Topics, read: Callable[[Topics], Topics]) -> list[tuple[Topic, str]]:
    if not topics:
        return []
    as_read = read(topics)
    return [(topic, as_read[topic.id].text.strip() or topic.text.strip()) for topic in topics.values()]


def _shown(topic: Topic) -> str:
    text = " ".join(topic.text.split())
    return f'"{text[:SHOWN]}{"…" if len(text) > SHOWN else ""}"'
