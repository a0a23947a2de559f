"""Rerankers by language models: listwise by windows, pointwise by log-probabilities, setwise by a heap.

An answer can only order the documents in its prompt.
"""

from __future__ import annotations

import math
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..core.arrays import Float32s
from ..core.errors import InputError, ParameterError
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Doc, Explanation, Topic, Topics, text_of
from ..rerank.reranker import Reranker
from .answers import Request, StoredAnswer
from .base import FILE, LlmPart, explanation_of, fact_of, provenance_of, with_fact
from .model import Dialogue, run_dialogues
from .prompts import LABELS, Prompt, plain_passage

BRACKETED = re.compile(r"\[(\d+)\]")
NUMBER = re.compile(r"\d+")
MAX_DIGITS = 6  # maximum number of digits of an identifier
PASSAGE = re.compile(r"\b(?i:passage)\W*([A-Za-z])\b")
LETTER = re.compile(r"(?<!\w)([A-Z])(?!\w)")
UNDECIDED = math.log(0.5)  # score of an answer without log-probabilities


@dataclass
class Ordering:
    """An order of a topic's documents, and how it came about.

    Args:
        order: Positions of the documents in the original ranking, from 0, best first.
        steps: Each request, the positions of the documents in its prompt, and its answer.
        repaired: Number of answers that did not order all documents of the prompt.
        unknown: Number of identifiers in answers that stand for no document of the prompt.
        missing: Number of documents of prompts that the answers left out.
    """

    order: list[int]
    steps: list[tuple[Request, list[int], StoredAnswer]] = field(default_factory=list)
    repaired: int = 0
    unknown: int = 0
    missing: int = 0


@dataclass(frozen=True)
class LlmReranker(LlmPart, Stage[Run, Run]):
    """Base class of rerankers that compare several documents in a prompt.

    All documents of the run are reranked, so put `% 100` before. The new scores of n documents are n for the first, down to 1.
    The query is the topic's text; a document is its title and text, cut to `words`.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("passage", "query", "count", "number", "label")

    words: int = field(default=300, kw_only=True, metadata={"least": 1})

    @abstractmethod
    def ordering(self, query: str, passages: Sequence[str]) -> Dialogue[Ordering]:
        """Yield requests, receive their answers, and return the order of the passages."""

    def apply(self, run: Run, /) -> Run:
        self.check()
        rows = [slice(first, last) for first, last in zip(run.bounds[:-1].tolist(), run.bounds[1:].tolist(), strict=True)]
        topics = list(run.topics.values())
        orderings = run_dialogues(
            self.llm, [self._dialogue(run, topic, topic_rows) for topic, topic_rows in zip(topics, rows, strict=True)]
        )
        scores = np.empty(run.rows, dtype=np.float32)
        for topic_rows, ordering in zip(rows, orderings, strict=True):
            scores[topic_rows.start + np.array(ordering.order, dtype=np.intp)] = np.arange(len(ordering.order), 0, -1)
        notes = [
            fact_of(
                self.llm,
                [answer for _, _, answer in ordering.steps],
                repaired=ordering.repaired,
                unknown=ordering.unknown,
                missing=ordering.missing,
            )
            for ordering in orderings
        ]
        with_notes = (with_fact(t, note) if note["sums"] else t for t, note in zip(topics, notes, strict=True))
        return run.with_scores(scores).with_(topics=Topics(with_notes))

    def explain_in(self, run: Run, topic_id: str, doc_id: str) -> Explanation:
        """Explain the rank of a document by each prompt that contained it, with the stored answer."""
        number = list(run.topics).index(topic_id)
        rows = slice(int(run.bounds[number]), int(run.bounds[number + 1]))
        ids = [run.ids[int(code)] for code in run.codes[rows]]
        if doc_id not in ids:
            return Explanation(0.0, f"{doc_id} is not in the run that is reranked")
        (ordering,) = run_dialogues(self.llm, [self._dialogue(run, run.topics[topic_id], rows)])
        position = ids.index(doc_id)
        parts = tuple(
            explanation_of(
                request, answer, positions.index(position) + 1, f"its place among the {len(positions)} documents of a prompt"
            )
            for request, positions, answer in ordering.steps
            if position in positions
        )
        score = len(ids) - ordering.order.index(position)
        return Explanation(
            float(score), f"{self!r}: from place {position + 1} to {ordering.order.index(position) + 1} of {len(ids)}", parts
        )

    def _dialogue(self, run: Run, topic: Topic, rows: slice) -> Dialogue[Ordering]:
        ids = run.ids.take(run.codes[rows])
        if len(ids) < 2:
            return Ordering(list(range(len(ids))))
        check_text(topic)
        passages = [plain_passage(text_of(doc), self.words) for doc in run.documents_for(type(self).__name__).docs(ids)]
        return (yield from self.ordering(topic.text, passages))


@dataclass(frozen=True)
class LlmListwise(LlmReranker, name="llm_listwise"):
    """Orders the documents of sliding windows, from the last to the first, by an answer each (RankGPT; Sun et al., EMNLP 2023).

    Windows overlap, so a document may rise through several. An incomplete order is repaired: identifiers that stand for no
    document of the window are dropped, and documents that the answer left out follow in their old order; the run's provenance
    counts both.

    Args:
        window: Documents of a window.
        step: Number of documents by which the next window begins earlier.
        words: Words of each document that the model reads.
    """

    prompt: str = field(default="rankgpt", kw_only=True, metadata=FILE)
    window: int = field(default=20, metadata={"least": 2})
    step: int = field(default=10, metadata={"least": 1})

    def check(self) -> None:
        super().check()
        if self.step > self.window:
            raise ParameterError(f"step is {self.step}, which leaves documents out of windows of {self.window}")

    def ordering(self, query: str, passages: Sequence[str]) -> Dialogue[Ordering]:
        result, prompt = Ordering(list(range(len(passages)))), self._prompt
        end = len(passages)
        while end > 0:
            start = max(0, end - self.window)
            positions = result.order[start:end]
            messages = prompt.messages([passages[position] for position in positions], query=query, count=len(positions))
            request = self.request(messages)
            answer = yield request
            order, unknown, missing = permutation(answer.final_text, len(positions))
            result.steps.append((request, positions, answer))
            result.order[start:end] = [positions[number] for number in order]
            result.repaired += bool(unknown or missing)
            result.unknown += unknown
            result.missing += missing
            end = 0 if start == 0 else end - self.step
        return result


@dataclass(frozen=True)
class LlmSetwise(LlmReranker, name="llm_setwise"):
    """Sorts the best documents to the top by a heap, whose nodes a model compares (setwise; Zhuang et al., SIGIR 2024).

    A prompt has a document and its children in the heap; the answer names the most relevant of them. If it names none of them,
    the document stays above its children, and the answer is counted as repaired. Documents beyond `k` keep their order.

    Args:
        k: Documents that are sorted to the top.
        children: Children of a node; a prompt has one more document.
        words: Words of each document that the model reads.
    """

    prompt: str = field(default="setwise", kw_only=True, metadata=FILE)
    max_tokens: int = field(default=16, kw_only=True, metadata={"least": 1})
    k: int = field(default=10, metadata={"least": 1})
    children: int = field(default=3, metadata={"least": 2})
    words: int = field(default=100, kw_only=True, metadata={"least": 1})

    def check(self) -> None:
        super().check()
        if self.children >= len(LABELS):
            raise ParameterError(f"children is {self.children}; a prompt labels {len(LABELS)} documents by letters")

    def ordering(self, query: str, passages: Sequence[str]) -> Dialogue[Ordering]:
        result = Ordering([])
        heap, best = list(range(len(passages))), list[int]()
        for node in range(len(heap) // self.children, -1, -1):
            yield from self._sift(query, passages, heap, node, result)
        while len(best) < min(self.k, len(passages)):
            best.append(heap[0])
            last = heap.pop()
            if heap:
                heap[0] = last
                if len(best) < self.k:
                    yield from self._sift(query, passages, heap, 0, result)
        result.order = [*best, *(position for position in range(len(passages)) if position not in set(best))]
        return result

    def _sift(self, query: str, passages: Sequence[str], heap: list[int], node: int, result: Ordering) -> Dialogue[None]:
        """Move a node down the heap until it is more relevant than its children."""
        while (first := self.children * node + 1) < len(heap):
            nodes = [node, *range(first, min(first + self.children, len(heap)))]
            positions = [heap[i] for i in nodes]
            messages = self._prompt.messages([passages[position] for position in positions], query=query, count=len(positions))
            request = self.request(messages)
            answer = yield request
            result.steps.append((request, positions, answer))
            label, unknown = choice(answer.final_text, len(positions))
            result.repaired += label is None
            result.unknown += unknown
            largest = nodes[label or 0]
            if largest == node:
                return
            heap[node], heap[largest] = heap[largest], heap[node]
            node = largest


@dataclass(frozen=True)
class LlmPointwise(LlmPart, Reranker, name="llm_pointwise"):
    """Scores each document by the probability that a model's first token is "yes" and not "no".

    The score is the log-probability of the first of the prompt's two answers against the second, 0 or less. If a service gives
    the log-probability of neither, the score is the logarithm of one half, and the answer is counted as repaired.

    Args:
        prompt: "yes_no"; "qwen3_reranker", which suits the models of this name; or the path of your own file.
        words: Words of each document that the model reads.
        cache: As for `Reranker`; answers are stored in any case.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("passage", "query")
    chooses: ClassVar[bool] = True

    prompt: str = field(default="yes_no", kw_only=True, metadata=FILE)
    words: int = field(default=300, kw_only=True, metadata={"least": 1})

    @property
    def fingerprint(self) -> str:
        return self.key() or ""

    def key(self) -> str | None:
        return LlmPart.key(self)

    def apply(self, run: Run, /) -> Run:
        scores, facts, notes = self._score_run(run)
        rescored = run.with_scores(scores, {**run.provenance, "reranked": facts})
        with_notes = (with_fact(t, note) if note["sums"] else t for t, note in zip(run.topics.values(), notes, strict=True))
        return rescored.with_(topics=Topics(with_notes))

    def rescored(self, run: Run) -> tuple[Float32s, dict[str, Any]]:
        scores, facts, notes = self._score_run(run)
        return scores, {**facts, **provenance_of(notes)}

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Float32s:
        prompt = self._prompt
        answers = self.llm.ask([self._request(prompt, query, text) for query, text in pairs])
        return np.array([self._score(answer, prompt.choices)[0] for answer in answers], dtype=np.float32)

    def explain(self, query: str | Topic, doc_id: str | Doc) -> Explanation:
        """Explain the score of a document, given as `index.doc(id)`, by the request and its answer."""
        if not isinstance(doc_id, Doc):
            raise InputError(
                f"llm_pointwise explains the score of a document, not of the id {doc_id!r}: pass index.doc({doc_id!r})"
            )
        request = self._request(self._prompt, query.text if isinstance(query, Topic) else query, text_of(doc_id))
        (answer,) = self.llm.ask([request])
        return explanation_of(
            request, answer, self._score(answer, request.choices)[0], f"{self!r}: log-probability of {self._prompt.choices[0]}"
        )

    def _score_run(self, run: Run) -> tuple[Float32s, dict[str, object], list[dict[str, object]]]:
        """Return the scores of all rows, facts for the provenance, and a fact about the answers of each topic."""
        self.check()
        documents, topics, prompt = run.documents_for(type(self).__name__), list(run.topics.values()), self._prompt
        requests = []
        for topic, first, last in zip(topics, run.bounds[:-1].tolist(), run.bounds[1:].tolist(), strict=True):
            if last > first:
                check_text(topic)
                docs = documents.docs(run.ids.take(run.codes[first:last]))
                requests += [self._request(prompt, topic.text, text_of(doc)) for doc in docs]
        answers = self.llm.ask(requests)
        scored = [self._score(answer, prompt.choices) for answer in answers]
        notes = [
            fact_of(self.llm, answers[first:last], repaired=sum(repaired for _, repaired in scored[first:last]))
            for first, last in zip(run.bounds[:-1].tolist(), run.bounds[1:].tolist(), strict=True)
        ]
        scores = np.array([score for score, _ in scored], dtype=np.float32)
        return scores, {"fingerprint": self.fingerprint, "pairs": run.rows, "from_cache": 0}, notes

    def _request(self, prompt: Prompt, query: str, text: str) -> Request:
        return self.request(prompt.messages([plain_passage(text, self.words)], query=query), choices=prompt.choices)

    @staticmethod
    def _score(answer: StoredAnswer, words: Sequence[str]) -> tuple[float, bool]:
        """Return the score of an answer, and whether the answer has no log-probabilities."""
        yes, no = (answer.choices.get(word) for word in words)
        if yes is None or no is None:
            return UNDECIDED, True
        return float(-np.logaddexp(0.0, no - yes)), False


def permutation(text: str, count: int) -> tuple[list[int], int, int]:
    """Return the order of documents in an answer such as "[2] > [1]", repaired.

    Args:
        text: The answer.
        count: Number of documents, whose identifiers count from 1.

    Returns:
        All numbers from 0 to count - 1, those in the answer first; the number of identifiers that stand for no document; and
        the number of documents that the answer left out.
    """
    identifiers = BRACKETED.findall(text) or NUMBER.findall(text)
    numbers = [int(identifier) - 1 if len(identifier) <= MAX_DIGITS else -1 for identifier in identifiers]
    listed = list(dict.fromkeys(number for number in numbers if 0 <= number < count))
    missing = [number for number in range(count) if number not in set(listed)]
    return listed + missing, sum(not 0 <= number < count for number in numbers), len(missing)


def choice(text: str, count: int) -> tuple[int | None, int]:
    """Return the number of the label that an answer names first, and the number of unknown labels.

    Args:
        text: The answer, such as "B" or "Passage B".
        count: Number of labels, from A.

    Returns:
        The number of the label, from 0, and 0; None and 1 for an unknown label; or None and 0 for an answer without a label.
    """
    text = unicodedata.normalize("NFKC", text)  # which turns a Kelvin sign into a K
    match = PASSAGE.search(text) or LETTER.search(text)
    if match is None:
        return None, 0
    number = LABELS.index(match[1].upper())
    return (number, 0) if number < count else (None, 1)


def check_text(topic: Topic) -> None:
    """Raise InputError for a topic without a text."""
    if not topic.text.strip():
        raise InputError(
            f"topic '{topic.id}' has documents to rerank but no text; a run that was read from a file gets its topics with "
            "read_run(path, topics)"
        )
