"""`split`: topics into training and test, without duplicates; `leakage`: what two sets of topics share."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ..core.checks import hinted
from ..core.errors import InputError, ParameterError
from ..core.values import Qrels, Topic, Topics
from ..formats import write_qrels, write_topics
from ..tuning.folds import Groups, connected, drawn_units, split_by, units_of
from .duplicates import Duplicate, check_near, duplicates_of

REPORTED_PAIRS = 3  # duplicate pairs of each kind in a report


class Side(NamedTuple):
    """Topics and judgments of one side of a split."""

    topics: Topics
    qrels: Qrels

    @classmethod
    def of(cls, value: object) -> Side:
        """Return the side of a pair of topics and judgments (or None), or of one of both; anything that is read as these."""
        if isinstance(value, Qrels):
            return cls(Topics(), value)
        topics, qrels = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        return cls(Topics.read(topics), Qrels() if qrels is None else Qrels.of(qrels))

    def only(self, ids: Container[str]) -> Side:
        """Return the judged topics among `ids`, and their judgments."""
        topics = Topics(topic for topic in self.topics.values() if topic.id in ids and topic.id in self.qrels)
        return Side(topics, self.qrels.only(topics))

    def split(self, share: float, seed: int) -> tuple[Side, Side]:
        """Return the judged topics in two sides; the second is a random share of them."""
        first, second = split_by(str, [topic_id for topic_id in self.topics if topic_id in self.qrels], share, seed, least=0)
        return self.only(first), self.only(second)

    def save(self, directory: str | Path, name: str = "topics") -> None:
        """Write NAME.jsonl, and judgments as NAME.qrels (TREC), to a folder.

        Raises InputError if a file cannot be written.
        """
        folder = Path(directory)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be created ({error.strerror or error})") from None
        write_topics(self.topics, folder / f"{name}.jsonl")
        if self.qrels:
            write_qrels(self.qrels, folder / f"{name}.qrels")


@dataclass(frozen=True, repr=False)
class Leakage:
    """Texts and documents that test topics share with training topics.

    Args:
        train: Number of training topics.
        test: Number of test topics.
        same: Pairs with equal text, exact or normalised; `id` is the test topic, `of` the training topic.
        near: Pairs whose similarity is at least `threshold`.
        threshold: Least similarity of near pairs; None: near pairs were not searched.
        documents: Documents relevant on both sides, each with the ids of its training topics and of its test topics.
        judged: Whether both sides have judgments; otherwise `documents` is empty.
    """

    train: int
    test: int
    same: tuple[Duplicate, ...]
    near: tuple[Duplicate, ...]
    threshold: float | None
    documents: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    judged: bool

    @property
    def topics(self) -> frozenset[str]:
        """Test topics that share a text or a relevant document with training."""
        shared = (topic_id for _, test in self.documents.values() for topic_id in test)
        return frozenset([*(pair.id for pair in (*self.same, *self.near)), *shared])

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for JSON."""
        return {
            "train": self.train,
            "test": self.test,
            "threshold": self.threshold,
            "topics": len(self.topics),
            "same": [_json_pair(pair) for pair in self.same],
            "near": [_json_pair(pair) for pair in self.near],
            "documents": {d: {"train": list(train), "test": list(test)} for d, (train, test) in self.documents.items()},
        }

    def __str__(self) -> str:
        lines = [f"leakage from {self.train:,} training topics to {self.test:,} test topics:"]
        lines.append(self._line("the same text", {pair.id for pair in self.same}, self.same))
        if self.threshold is not None:
            lines.append(self._line(f"similarity {self.threshold:g} or more", {pair.id for pair in self.near}, self.near))
        shared = {topic_id for _, test in self.documents.values() for topic_id in test}
        if self.judged:
            lines.append(self._line("a relevant document", shared, ()))
        return "\n".join(lines)

    def _line(self, shared: str, topics: set[str], pairs: Sequence[Duplicate]) -> str:
        share = f"{len(topics) / self.test:.1%}" if self.test else "0.0%"
        noun = "test topic " if len(topics) == 1 else "test topics"
        return f"  {shared:<22} {len(topics):>6,} {noun}  {share:>6}  {_examples(pairs)}".rstrip()

    def __repr__(self) -> str:
        return f"Leakage({len(self.topics)} of {self.test} test topics)"


@dataclass(frozen=True, repr=False)
class Split:
    """Result of `split`. `train` and `test` are pairs: `topics, qrels = split.train`.

    Args:
        train: Training side.
        test: Test side.
        duplicates: Topics left out, each with the topic kept in its place (`of`).
        leakage: Remaining overlap of the two sides.
        unjudged: Number of topics left out because they have no judgments.
        unknown: Number of judged topics left out because they have no text.
        groups: Number of groups; without `groups`, number of topics.
    """

    train: Side
    test: Side
    duplicates: tuple[Duplicate, ...]
    leakage: Leakage
    unjudged: int = 0
    unknown: int = 0
    groups: int = 0

    def save(self, directory: str | Path) -> None:
        """Write train.jsonl and test.jsonl, and with judgments train.qrels and test.qrels (TREC), to a folder.

        Raises InputError if a file cannot be written.
        """
        for name, side in (("train", self.train), ("test", self.test)):
            side.save(directory, name)

    def to_dict(self) -> dict[str, object]:
        """Return topic ids of both sides and the report as plain values, for JSON."""
        return {
            "train": list(self.train.topics),
            "test": list(self.test.topics),
            "groups": self.groups,
            "unjudged": self.unjudged,
            "unknown": self.unknown,
            "duplicates": [_json_pair(pair) for pair in self.duplicates],
            "leakage": self.leakage.to_dict(),
        }

    def __str__(self) -> str:
        train, test = len(self.train.topics), len(self.test.topics)
        grouped = "" if self.groups == train + test else f" in {self.groups:,} groups"
        share = f"{test / (train + test):.1%}"
        lines = [f"{train + test:,} topics{grouped}: {train:,} for training, {test:,} for testing ({share})"]
        if self.unjudged:
            lines.append(f"{_count_of(self.unjudged, 'topic')} without judgments left out")
        if self.unknown:
            lines.append(f"{_count_of(self.unknown, 'judged topic')} without text left out")
        for kind in ("exact", "normalised", "near"):
            if pairs := [pair for pair in self.duplicates if pair.kind == kind]:
                lines.append(f"{_count_of(len(pairs), f'{kind} duplicate')} left out: {_examples(pairs)}")
        return "\n".join([*lines, str(self.leakage)])

    def __repr__(self) -> str:
        return f"Split({len(self.train.topics)} train, {len(self.test.topics)} test, {len(self.duplicates)} duplicates)"


@hinted
def split(
    topics: object, qrels: object = None, test: float = 0.2, *, groups: Groups = None, near: float | None = 0.8, seed: int = 0
) -> Split:
    """Divide topics into training and test, without duplicates, independently of the order of the input.

    Among duplicates the topic with the first id is kept; a later topic is left out if it duplicates a kept one. A kept topic
    inherits the judgments of removed topics with equal text, the higher grade on conflict, but not the judgments of near
    duplicates. Groups are shuffled by `seed` and go to the test side as long as they fit.

    Args:
        topics: Anything `Topics.read` accepts, such as a list of existing splits, which are merged.
        qrels: Anything `Qrels.of` accepts; if given, only judged topics are divided.
        test: Share of test topics, a float below 1, or their number, an int.
        groups: Topics that must stay on one side. "document": topics that share a relevant document, transitively;
            "conversation": topics with equal ids before the last "_"; a mapping from topic id to group name; or a function from
            topic to group name.
        near: Least Jaccard similarity of 5-character shingles of duplicates; None: only texts that are equal except for case,
            white space and punctuation.
        seed: Seed of the shuffle.

    Raises:
        InputError: Two different texts have the same id, or there are too few topics.
        ParameterError: Parameter out of range.
    """
    check_near(near)
    merged, judged = Topics.read(topics), Qrels() if qrels is None else Qrels.of(qrels)
    if not merged:
        raise InputError("there are no topics")
    remaining = {i: merged[i] for i in sorted(merged) if qrels is None or i in judged}
    unjudged = len(merged) - len(remaining)
    if not remaining:
        raise InputError("none of the topics has judgments; do topics and qrels belong together?")
    unknown = sum(topic_id not in merged for topic_id in judged)
    duplicates = _find_duplicates(list(remaining.values()), near)
    judged = _inherit_judgments(judged, duplicates)
    for pair in duplicates:
        del remaining[pair.id]
    units = units_of(Topics(remaining.values()), judged, groups)
    test_ids = _test_topics(units, test, len(remaining), seed)
    sides = []
    for is_test in (False, True):
        ids = [i for i in remaining if (i in test_ids) == is_test]
        rows = (row for row in judged.rows() if row[0] in remaining and (row[0] in test_ids) == is_test)
        sides.append(Side(Topics(remaining[i] for i in ids), Qrels(sorted(rows))))
    # Kept topics are never duplicates, so only documents can be shared.
    shared = _leakage(sides[0], sides[1], near, [])
    return Split(sides[0], sides[1], tuple(duplicates), shared, unjudged, unknown, len(units))


def units_without_leakage(topics: Topics, qrels: Qrels, *, groups: Groups = None, near: float | None = 0.8) -> list[list[str]]:
    """Return the ids of topics that share a group or duplicate one another, transitively; arguments as in `split`."""
    same = duplicates_of([topics[i] for i in sorted(topics)], near)
    links = [[(topic_id, f"group {n}") for topic_id in unit] for n, unit in enumerate(units_of(topics, qrels, groups))]
    links += [[(pair.id, f"pair {n}"), (pair.of, f"pair {n}")] for n, pair in enumerate(same)]
    return connected(sorted(topics), links)


def leakage(train: object, test: object, near: float | None = 0.8) -> Leakage:
    """Find texts, near texts and relevant documents that test topics share with training topics; raises as `split`.

    Args:
        train: A pair (topics, qrels), both as in `split`, in which unjudged topics are left out; or topics alone, as Topics or
            a `pathlib.Path`.
        test: The same for the test side.
        near: As in `split`.
    """
    check_near(near)
    sides = [Side.of(train), Side.of(test)]
    sides = [Side(side.topics.judged(side.qrels), side.qrels) if side.qrels else side for side in sides]
    return _leakage(sides[0], sides[1], near, _shared_texts(sides[0], sides[1], near))


def _shared_texts(train: Side, test: Side, near: float | None) -> list[Duplicate]:
    """Return pairs of a test and a training topic with equal or near text, most similar first."""
    topics = [*train.topics.values(), *test.topics.values()]
    numbered = [replace(topic, id=str(number)) for number, topic in enumerate(topics)]  # both sides may use the same ids
    pairs = []
    for pair in duplicates_of(numbered, near):
        later, earlier = int(pair.id), int(pair.of)
        if earlier < len(train.topics) <= later:
            pairs.append(replace(pair, id=topics[later].id, of=topics[earlier].id))
    return sorted(pairs, key=lambda pair: (-pair.similarity, pair.id, pair.of))


def _leakage(train: Side, test: Side, near: float | None, pairs: list[Duplicate]) -> Leakage:
    in_train, in_test = _relevant(train), _relevant(test)
    return Leakage(
        len(train.topics),
        len(test.topics),
        tuple(pair for pair in pairs if pair.kind != "near"),
        tuple(pair for pair in pairs if pair.kind == "near"),
        near,
        {doc: (tuple(in_train[doc]), tuple(ids)) for doc, ids in sorted(in_test.items()) if doc in in_train},
        bool(train.qrels and test.qrels),
    )


def _relevant(side: Side) -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for topic_id, grades in side.qrels.items():
        for doc_id, grade in grades.items():
            if grade >= 1:
                topics.setdefault(doc_id, []).append(topic_id)
    return topics


def _find_duplicates(topics: list[Topic], near: float | None) -> list[Duplicate]:
    """Return the topics that duplicate a kept topic, each with the most similar kept topic."""
    earlier: dict[str, list[Duplicate]] = {}
    for pair in duplicates_of(topics, near):
        earlier.setdefault(pair.id, []).append(pair)
    left_out: dict[str, Duplicate] = {}
    for topic in topics:
        kept = [pair for pair in earlier.get(topic.id, ()) if pair.of not in left_out]
        if kept:
            kinds = ("exact", "normalised", "near")
            left_out[topic.id] = min(kept, key=lambda pair: (-pair.similarity, kinds.index(pair.kind), pair.of))
    return list(left_out.values())


def _inherit_judgments(qrels: Qrels, duplicates: Iterable[Duplicate]) -> Qrels:
    """Return the judgments, extended by those of left-out topics with equal text."""
    same = {pair.id: pair.of for pair in duplicates if pair.kind != "near"}
    if not any(topic_id in qrels for topic_id in same):
        return qrels
    rows = [(i, group, doc, grade) for topic, group, doc, grade in qrels.rows() for i in {topic, same.get(topic, topic)}]
    highest: dict[tuple[str, str], int] = {}
    for topic, _, doc, grade in rows:
        highest[topic, doc] = max(highest.get((topic, doc), grade), grade)
    return Qrels((topic, group, doc, highest[topic, doc]) for topic, group, doc, _ in rows)


def _test_topics(units: list[list[str]], test: float, count: int, seed: int) -> set[str]:
    if isinstance(test, bool) or not isinstance(test, (int, float)) or test <= 0 or (isinstance(test, float) and test >= 1):
        raise ParameterError(f"test must be a share between 0 and 1, or a number of topics, not {test!r}")
    size = test if isinstance(test, int) else max(1, round(test * count))
    if size >= count:
        raise InputError(f"{count} topics are too few to keep {size} for testing and leave some for training")
    chosen = set(drawn_units(units, size, seed))
    if not chosen:
        raise InputError(f"no group of topics is small enough for a test side of {size}; use a larger one, or other groups")
    return chosen


def _examples(pairs: Sequence[Duplicate]) -> str:
    more = ", …" if len(pairs) > REPORTED_PAIRS else ""
    return ", ".join(f"{pair.id} = {pair.of}" for pair in pairs[:REPORTED_PAIRS]) + more


def _count_of(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _json_pair(pair: Duplicate) -> dict[str, object]:
    return {"id": pair.id, "of": pair.of, "kind": pair.kind, "similarity": round(pair.similarity, 4)}
