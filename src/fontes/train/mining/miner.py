"""The work of mining: of hits and relevant documents to groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...core.checks import check_whole
from ...core.errors import ParameterError
from ...core.run import Ranking
from ...core.values import Doc, Documents, Hit
from ...neural.encoders.base import text_of
from ..duplicates import Duplicate, kind_of
from ..examples import Example, Passage, short
from .mined import Tally

NEAR = 0.8  # the Jaccard similarity of shingles from which on two texts are duplicates, as for `split`
SAMPLING = ("top", "random")


@dataclass(frozen=True)
class Mining:
    """Which hits become negatives.

    Args:
        per_positive: The most negatives of a group.
        ranks: The window of ranks that they come from, counted from 1 in the run, with both ends.
        margin: How far below the relevant document, in scores of the run, a negative must lie at least; None: anywhere.
        sampling: "top" takes the best of the window, "random" draws from it without replacement.
        guard_duplicates: Whether candidates are left out whose text is that of a relevant document, or nearly, or that of a
            negative that was taken before.
        seed: Of the draw.
        gold_last: Whether a relevant document that is not in the window takes the window's last place, so that the hit there
            is no negative.
    """

    per_positive: int = 4
    ranks: tuple[int, int] = (1, 100)
    margin: float | None = None
    sampling: str = SAMPLING[0]
    guard_duplicates: bool = True
    seed: int = 0
    gold_last: bool = False

    def check(self) -> None:
        """Raises ParameterError for what makes no sense."""
        check_whole("per_positive", self.per_positive)
        check_whole("seed", self.seed, 0)
        if not isinstance(self.ranks, (tuple, list)) or len(self.ranks) != 2:
            raise ParameterError(f"ranks must be two numbers, the first and the last rank, not {self.ranks!r}")
        first = check_whole("the first of the ranks", self.ranks[0])
        check_whole("the last of the ranks", self.ranks[1], first)
        if self.margin is not None and (isinstance(self.margin, bool) or not isinstance(self.margin, (int, float))):
            raise ParameterError(f"margin must be a number, or None, not {self.margin!r}")
        if self.margin is not None and not 0 <= self.margin < float("inf"):
            raise ParameterError(f"margin must be a number from 0 up, not {self.margin!r}")
        if self.sampling not in SAMPLING:
            raise ParameterError(f"sampling is {' or '.join(SAMPLING)}, not '{self.sampling}'")


@dataclass
class Group:
    """A relevant document of a topic, on the way to an example.

    Args:
        ranking: The hits of the topic.
        query: Its text.
        positive: The relevant document.
        relevant: The ids that are no negatives.
        guarded: The documents of which no negative may be a duplicate.
        rank: The rank of the relevant document; 0 where it is not among the hits.
        preferred: The candidates that nobody has looked at, those first that are to be taken first.
        negatives: Those that were taken.
    """

    ranking: Ranking
    query: str
    positive: Passage
    relevant: frozenset[str]
    guarded: Sequence[Doc]
    rank: int = 0
    preferred: list[Hit] = field(default_factory=list)
    negatives: list[Passage] = field(default_factory=list)


class Miner:
    """Makes examples, and counts what happens.

    Args:
        settings: Which hits become negatives.
        documents: The way to their text.
        tally: Where it is counted.
        read: What is read of a negative.
    """

    def __init__(self, settings: Mining, documents: Documents, tally: Tally, read: Callable[[Doc], str] = text_of) -> None:
        self.settings = settings
        self.documents = documents
        self.tally = tally
        self.read = read

    def examples(self, groups: Sequence[Group]) -> list[Example]:
        """The examples of groups, in their order. Documents are read for all groups together, which is quicker."""
        most = self.settings.per_positive
        for group in groups:
            self._prepare(group)
        open_groups = list(groups)
        while open_groups := [group for group in open_groups if group.preferred and len(group.negatives) < most]:
            ids = list(dict.fromkeys(hit.id for group in open_groups for hit in group.preferred[:most]))
            docs = dict(zip(ids, self.documents.docs(ids), strict=True))
            for group in open_groups:
                self._take(group, docs)
        return [self._example(group) for group in groups]

    def _prepare(self, group: Group) -> None:
        """Puts the candidates of the window into the order in which they are to be taken."""
        settings, topic = self.settings, group.ranking.topic.id
        ids, scores = group.ranking.ids, group.ranking.scores.tolist()
        group.rank = ids.index(group.positive.id) + 1 if group.positive.id in ids else 0
        first, last = settings.ranks
        if settings.gold_last and not first <= group.rank <= last:
            last -= 1
        window = [Hit(ids[n], scores[n], n + 1) for n in range(first - 1, min(last, len(ids))) if ids[n] not in group.relevant]
        if settings.margin is not None:
            bound = scores[group.rank - 1] - settings.margin if group.rank else None
            window = [hit for hit in window if bound is not None and hit.score <= bound]
        if settings.sampling == "random":
            window.sort(key=lambda hit: drawn(settings.seed, topic, group.positive.id, hit.id))
        group.preferred = window

    def _take(self, group: Group, docs: dict[str, Doc]) -> None:
        """Takes of the candidates, of which so many have been read as a group needs, those that fit."""
        most = self.settings.per_positive
        some, group.preferred = group.preferred[:most], group.preferred[most:]
        for hit in some:
            if len(group.negatives) < most and self._fits(docs[hit.id], group):
                group.negatives.append(Passage(hit.id, self.read(docs[hit.id]), short(hit.score), hit.rank))

    def _example(self, group: Group) -> Example:
        negatives = sorted(group.negatives, key=lambda passage: passage.rank or 0)
        self.tally.group(group.rank, [passage.rank or 0 for passage in negatives])
        topic = group.ranking.topic.id
        return Example(topic, group.query, group.positive, tuple(negatives), f"topic '{topic}'")

    def _fits(self, doc: Doc, group: Group) -> bool:
        text = self.read(doc)
        if not text.strip():
            self.tally.leave_out("empty")
            return False
        if not self.settings.guard_duplicates:
            return True
        for gold in group.guarded:
            kind = kind_of(text_of(doc), text_of(gold), NEAR)
            if kind:
                self.tally.duplicates.append(Duplicate(doc.id, gold.id, kind, NEAR if kind == "near" else 1.0))
                return False
        if any(kind_of(text, negative.text, NEAR) for negative in group.negatives):
            self.tally.leave_out("repeated")
            return False
        return True


def drawn(seed: int, *names: str) -> bytes:
    """The place of something in a random order that depends on the seed and the names alone: the same on every machine."""
    return hashlib.blake2b("\0".join((str(seed), *names)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
