"""Collections that come with the package: `harbour`, the news of an invented port, to learn on and to test with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..core import Doc, InputError, Qrels, Topic
from ..formats import read_corpus, read_qrels, read_topics
from .base import Dataset

HARBOUR = Path(__file__).parent / "harbour"
TASKS = {"causal": "topics.xml", "claims": "queries.jsonl", "conversations": "topics.json", "posts": "queries.jsonl"}


class Harbour(Dataset):
    """150 short news stories of Quenmouth, a port that does not exist, from 2014 to 2018, with four tasks as splits.

    The split "causal" has 12 events with a narrative, in TREC XML; relevant is what reports why they happened. "claims" has
    50 claims; the evidence of a claim is one set of documents or another (`Qrels.groups`). "conversations" has 6
    conversations of 6 to 8 turns, in the JSON of TREC CAsT; a topic is a turn. "posts" has 40 short posts that point at a
    story without naming it. Grades are 2, 1 and 0. `harbour.causal` and so on have the one task as their one split.

    Args:
        task: The one task; by default all four.
    """

    def __init__(self, task: str | None = None) -> None:
        self.name = f"harbour/{task}" if task else "harbour"
        self._tasks = [task] if task else sorted(TASKS)

    @property
    def corpus(self) -> Iterable[Doc]:
        """The stories in the order of their dates; the metadata hold `date` (YYYY-MM-DD) and `section`."""
        return read_corpus(HARBOUR / "corpus.jsonl")

    @property
    def splits(self) -> list[str]:
        """The tasks, in alphabetical order."""
        return list(self._tasks)

    @property
    def causal(self) -> Harbour:
        """Why did it happen? Grade 2: reports a cause or explains by causes; 1: aggravated, or a cause of a cause."""
        return Harbour("causal")

    @property
    def claims(self) -> Harbour:
        """Is it so? Grade 2: evidence, alone or with the others of its group; 1: bears on the claim, does not decide it."""
        return Harbour("claims")

    @property
    def conversations(self) -> Harbour:
        """What does this turn ask? Grade 2: answers it; 1: answers a part of it, or in passing."""
        return Harbour("conversations")

    @property
    def posts(self) -> Harbour:
        """Which story is it about? Grade 2: this one; 1: another story of the same happening."""
        return Harbour("posts")

    @property
    def claim_labels(self) -> Mapping[str, str]:
        """Claim id to "SUPPORT" or "CONTRADICT": what its evidence does to the claim."""
        return {topic.id: topic.metadata["label"] for topic in self._all_topics("claims")}

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return read_topics(HARBOUR / split / TASKS[split]).values()

    def _qrels(self, split: str) -> Qrels:
        return read_qrels(HARBOUR / split / "qrels.txt")


harbour = Harbour()
SAMPLES = {collection.name: collection for collection in (harbour, *map(Harbour, TASKS))}


def sample(name: str) -> Dataset:
    """The collection of this name that comes with the package, such as "harbour" or "harbour/causal".

    Raises:
        InputError: For a name that does not exist.
    """
    if name not in SAMPLES:
        raise InputError(f"there is no sample '{name}'; there are {', '.join(SAMPLES)}")
    return SAMPLES[name]
