"""Samples in the package: `harbour`, the news of an invented port, for learning and testing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..core import Doc, InputError, Qrels, Topic
from ..formats import read_corpus, read_qrels, read_topics
from .base import Dataset

HARBOUR = Path(__file__).parent / "harbour"
TASKS = {"causal": "topics.xml", "claims": "queries.jsonl", "conversations": "topics.json", "posts": "queries.jsonl"}


class Harbour(Dataset):
    """150 short news stories of Quenmouth, an invented port, from 2014 to 2018, with four tasks as splits.

    "causal": 12 events with a narrative, in TREC XML; documents that report why an event happened are relevant. "claims": 50
    claims; the evidence of a claim is any one of its sets of documents (`Qrels.groups`). "conversations": 6 conversations of 6
    to 8 turns, in the JSON format of TREC CAsT; each turn is a topic. "posts": 40 short posts that refer to a story without
    naming it. Grades are 2, 1 and 0. `harbour.causal`, `harbour.claims`, … have one task as their only split.

    Args:
        task: The only task; by default all four.
    """

    def __init__(self, task: str | None = None) -> None:
        self.name = f"harbour/{task}" if task else "harbour"
        self._tasks = [task] if task else sorted(TASKS)

    @property
    def corpus(self) -> Iterable[Doc]:
        """Stories in the order of their dates, with the metadata `date` (YYYY-MM-DD) and `section`."""
        return read_corpus(HARBOUR / "corpus.jsonl")

    @property
    def splits(self) -> list[str]:
        """The tasks, sorted."""
        return list(self._tasks)

    @property
    def causal(self) -> Harbour:
        """Causes of events. Grade 2: reports causes or explains by them; 1: reports an aggravation or a cause of a cause."""
        return Harbour("causal")

    @property
    def claims(self) -> Harbour:
        """Evidence for claims. Grade 2: evidence, alone or with its group; 1: related to the claim but not decisive."""
        return Harbour("claims")

    @property
    def conversations(self) -> Harbour:
        """Answers to turns. Grade 2: answers the turn; 1: answers a part of it, or in passing."""
        return Harbour("conversations")

    @property
    def posts(self) -> Harbour:
        """Stories behind posts. Grade 2: the story; 1: another story of the same event."""
        return Harbour("posts")

    @property
    def claim_labels(self) -> Mapping[str, str]:
        """Effect of the evidence on each claim, by claim id: "SUPPORT" or "CONTRADICT"."""
        return {topic.id: topic.metadata["label"] for topic in self._all_topics("claims")}

    def _all_topics(self, split: str) -> Iterable[Topic]:
        return read_topics(HARBOUR / split / TASKS[split]).values()

    def _qrels(self, split: str) -> Qrels:
        return read_qrels(HARBOUR / split / "qrels.txt", groups=True)


harbour = Harbour()
SAMPLES = {collection.name: collection for collection in (harbour, *map(Harbour, TASKS))}


def sample(name: str) -> Dataset:
    """Return the sample of this name, such as "harbour" or "harbour/causal".

    Raises:
        InputError: The sample does not exist.
    """
    if name not in SAMPLES:
        raise InputError(f"there is no sample '{name}'; there are {', '.join(SAMPLES)}")
    return SAMPLES[name]
