"""Queries by language models: self-contained questions, hypothetical passages, keywords and simpler questions."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import ClassVar

from ..core.checks import check_whole
from ..core.errors import InputError, ParameterError
from ..core.parameters import tuned
from ..core.run import Run
from ..core.stage import Stage
from ..core.values import Topic, Topics
from ..formats.records import json_rows
from ..fusion import fuse
from ..neural.dense.dense import HYPOTHETICAL
from ..rewrite.statements import statements_of
from ..rewrite.turns import earlier, utterance
from ..storage.files import reading
from ..storage.hashes import hash_text
from .answers import Request, StoredAnswer
from .base import FILE, LlmPart, fact_of, with_fact
from .prompts import plain_passage

LABEL = re.compile(r"(?:rewrite|rewritten question|passage|question|query)\s*:\s*", re.IGNORECASE)
ITEM = re.compile(r"\s*(?:[-*•]|\(?\d{1,2}[.):])\s+")
MAX_STATEMENTS = 1_000  # words about the user in a prompt
MAX_LINE = 300  # maximum number of characters of a keyword or a question
QUOTES = {'"': '"', "“": "”", "'": "'"}


@dataclass(frozen=True)
class LlmTopics(LlmPart, Stage[Topics, Topics]):
    """Base class of stages that make queries from a model's answers.

    An empty answer leaves the query unchanged, and is counted as repaired.
    """

    def apply(self, topics: Topics, /) -> Topics:
        self.check()
        requests = {topic.id: self.requests(topic) for topic in topics.values()}
        answers = iter(self.llm.ask([request for topic_requests in requests.values() for request in topic_requests]))
        texts = {topic_id: list(islice(answers, len(topic_requests))) for topic_id, topic_requests in requests.items()}
        return Topics(self._rewritten(topic, texts[topic.id]) for topic in topics.values())

    @abstractmethod
    def requests(self, topic: Topic) -> list[Request]:
        """Return the requests for a topic; an empty list leaves the topic unchanged."""

    @abstractmethod
    def query(self, topic: Topic, texts: Sequence[str]) -> str:
        """Return the new query from the non-empty texts of the answers, of which there is at least one."""

    def _metadata(self, topic: Topic, texts: Sequence[str]) -> dict[str, object]:
        return {}

    def _rewritten(self, topic: Topic, answers: Sequence[StoredAnswer]) -> Topic:
        if not answers:
            return topic
        texts = [text for answer in answers if (text := answer.final_text)]
        query = self.query(topic, texts) if texts else ""
        note = fact_of(self.llm, answers, repaired=len(answers) - len(texts) if query else len(answers))
        changes = {"weights": None, "query": None, "origin": topic, "metadata": self._metadata(topic, texts) if query else {}}
        return with_fact(topic, note, text=query or self._unchanged(topic), **changes)

    def _unchanged(self, topic: Topic) -> str:
        return topic.text


@dataclass(frozen=True)
class LlmRewrite(LlmTopics, name="llm_rewrite"):
    """Rewrites the last turn of a conversation into a self-contained question (Ye et al., Findings of EMNLP 2023).

    Topics without turns stay unchanged. Only the first line of an answer is used; an empty answer leaves the raw utterance.

    Args:
        answers: Earlier turns whose answers the model reads.
        words: Words of each answer that the model reads.
        statements: Whether the model reads the statements about the user (TREC iKAT) before the turns: those that `statements`
            has chosen, or all.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("query", "context")

    prompt: str = field(default="rewrite", kw_only=True, metadata=FILE)
    answers: int = field(default=3, metadata={"least": 0})
    words: int = field(default=100, metadata={"least": 1})
    statements: bool = False

    def requests(self, topic: Topic) -> list[Request]:
        if not utterance(topic).strip() or not topic.turns:
            return []
        return [self.request(self._prompt.messages(query=utterance(topic), context=self._context(topic)))]

    def query(self, topic: Topic, texts: Sequence[str]) -> str:
        return one_line(texts[0])

    def _unchanged(self, topic: Topic) -> str:
        return utterance(topic)

    def _context(self, topic: Topic) -> str:
        turns = earlier(topic)
        statements = statements_of(topic) if self.statements else ()
        lines = [f"Known about the user: {plain_passage(' '.join(statements), MAX_STATEMENTS)}"] if statements else []
        for number, turn in enumerate(turns):
            lines.append(f"Q: {turn.text.strip()}")
            if number >= len(turns) - self.answers and turn.answer.strip():
                lines.append(f"A: {plain_passage(turn.answer, self.words)}")
        return "\n".join(lines) or "(none)"


@dataclass(frozen=True)
class Hyde(LlmTopics, name="hyde"):
    """Makes hypothetical documents: passages that would answer the query (HyDE; Gao et al., ACL 2023).

    `dense` searches with the mean of the vectors of the passages, encoded as documents, and of the query. For other stages the
    text of the topic is the query followed by the passages.

    Args:
        k: Number of passages; the paper samples 8.
        temperature: Temperature of the samples, from 0 to 2.
    """

    prompt: str = field(default="hyde", kw_only=True, metadata=FILE)
    k: int = field(default=8, metadata={"least": 1})
    temperature: float = 0.7

    def requests(self, topic: Topic) -> list[Request]:
        if not topic.text.strip():
            return []
        messages = self._prompt.messages(query=topic.text)
        return [self.request(messages, temperature=self.temperature, sample=number) for number in range(self.k)]

    def query(self, topic: Topic, texts: Sequence[str]) -> str:
        return " ".join([topic.text, *map(_without_label, texts)])

    def check(self) -> None:
        if (
            isinstance(self.temperature, bool)
            or not isinstance(self.temperature, (int, float))
            or not 0 <= self.temperature <= 2
        ):
            raise ParameterError(f"temperature is a number from 0 to 2, not {self.temperature!r}")
        super().check()

    def _metadata(self, topic: Topic, texts: Sequence[str]) -> dict[str, object]:
        return {HYPOTHETICAL: {"query": topic.text, "passages": list(map(_without_label, texts))}}


@dataclass(frozen=True)
class Query2Doc(LlmTopics, name="query2doc"):
    """Expands the query with a passage that would answer it (query2doc; Wang et al., EMNLP 2023).

    The query is repeated, which multiplies the weight of its terms over those of the passage: equation 1 of the paper.

    Args:
        examples: A file of JSON lines with "query" and "passage", as examples in the prompt; the paper has four of MS MARCO.
        repeat: Number of times the query is repeated: 5 for lexical stages, as in the paper, 1 for dense ones.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("query", "examples")

    prompt: str = field(default="query2doc", kw_only=True, metadata=FILE)
    examples: str = field(default="", kw_only=True, metadata=FILE)
    repeat: int = tuned(5, (1, 10), (1, 1000))

    def requests(self, topic: Topic) -> list[Request]:
        messages = self._prompt.messages(query=topic.text, examples=self._examples())
        return [self.request(messages)] if topic.text.strip() else []

    def query(self, topic: Topic, texts: Sequence[str]) -> str:
        return " ".join([*[topic.text] * self.repeat, _without_label(texts[0])])

    def check(self) -> None:
        check_whole("repeat", self.repeat)
        self._examples()
        super().check()

    def key(self) -> str | None:
        key = super().key()
        return key if key is None or not self.examples else f"{key} {hash_text(self._examples())}"

    def _examples(self) -> str:
        """Return the examples as text for the prompt."""
        if not self.examples:
            return ""
        return "\n\n".join(f"Query: {query}\nPassage: {passage}" for query, passage in example_pairs(self.examples))


def example_pairs(file: str) -> tuple[tuple[str, str], ...]:
    """Return queries and passages of a file of JSON lines with "query" and "passage"; InputError for any other file."""
    path = Path(file).expanduser()
    state = path.stat() if path.is_file() else None
    return _read_pairs(path, None if state is None else (state.st_mtime_ns, state.st_size))


@lru_cache(8)
def _read_pairs(file: Path, stamp: tuple[int, int] | None) -> tuple[tuple[str, str], ...]:
    with reading(file) as source:
        pairs = [
            (_example_text(row, "query", source.name, number), _example_text(row, "passage", source.name, number))
            for number, row in json_rows(source)
        ]
    if not pairs:
        raise InputError(f'{file}: there are no examples; write lines such as {{"query": …, "passage": …}}')
    return tuple(pairs)


def _example_text(row: dict[str, object], name: str, file: str, number: int) -> str:
    text = row.get(name)
    if not isinstance(text, str) or not text.strip():
        raise InputError.at(file, number, f"an example has a text under '{name}', not {text!r}")
    return " ".join(text.split())


@dataclass(frozen=True)
class LlmKeywords(LlmTopics, name="llm_keywords"):
    """Makes keywords for the causes of an event from a query and its narrative, like `causal_keywords`, which needs no model.

    Topics without a narrative stay unchanged.

    Args:
        n: Maximum number of keywords or phrases.
        title: Whether the new query begins with the old one.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("narrative", "query", "count")

    prompt: str = field(default="keywords", kw_only=True, metadata=FILE)
    n: int = field(default=15, metadata={"least": 1})
    title: bool = True

    def requests(self, topic: Topic) -> list[Request]:
        if not topic.narrative.strip():
            return []
        return [self.request(self._prompt.messages(query=topic.text, narrative=topic.narrative.strip(), count=self.n))]

    def query(self, topic: Topic, texts: Sequence[str]) -> str:
        keywords = lines_of(texts[0].replace(",", "\n"), self.n)
        return " ".join([*([topic.text] if self.title else []), *keywords]) if keywords else ""


@dataclass(frozen=True)
class Subquestions(LlmPart, Stage[Topics, Run], name="subquestions"):
    """Searches with a query and with simpler questions that a model derives from it, and fuses the runs.

    The runs, one of which is for the query itself, are fused by reciprocal ranks (Cormack et al., SIGIR 2009).

    Args:
        retriever: Stage that searches for each question.
        n: Maximum number of simpler questions.
        k: Constant of the fusion, as in `fuse`.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("query", "count")

    retriever: Stage[Topics, Run] = field()
    prompt: str = field(default="subquestions", kw_only=True, metadata=FILE)
    n: int = field(default=3, metadata={"least": 1})
    k: float = 60

    def apply(self, topics: Topics, /) -> Run:
        self.check()
        filled = [topic for topic in topics.values() if topic.text.strip()]
        requests = [self.request(self._prompt.messages(query=topic.text, count=self.n)) for topic in filled]
        answers = dict(zip((topic.id for topic in filled), self.llm.ask(requests), strict=True))
        questions = {topic_id: lines_of(answer.final_text, self.n) for topic_id, answer in answers.items()}
        runs = [self.retriever(topics)]
        for number in range(self.n):
            divided = (topic for topic in filled if number < len(questions[topic.id]))
            question_topics = Topics(Topic(topic.id, questions[topic.id][number], origin=topic) for topic in divided)
            if question_topics:
                runs.append(self.retriever(question_topics))
        fused = fuse(*runs, k=self.k) if len(runs) > 1 else runs[0]
        notes = {
            topic_id: fact_of(self.llm, [answer], repaired=int(not questions[topic_id])) for topic_id, answer in answers.items()
        }
        with_notes = (with_fact(t, notes[t.id]) if t.id in notes else t for t in fused.topics.values())
        return fused.with_(topics=Topics(with_notes), documents=runs[0].documents)

    def check(self) -> None:
        if not isinstance(self.retriever, Stage):
            raise ParameterError(f"subquestions takes a stage that searches, such as bm25(), not {self.retriever!r}")
        self.retriever.require(Topics, Run, "subquestions")
        super().check()


def _without_label(text: str) -> str:
    return " ".join(LABEL.sub("", text, count=1).split() if LABEL.match(text) else text.split())


def one_line(text: str) -> str:
    """Return the first line that is not blank, without a label and surrounding quotes."""
    lines = (LABEL.sub("", line.strip(), count=1) if LABEL.match(line.strip()) else line.strip() for line in text.splitlines())
    line = next(filter(None, lines), "")
    return line[1:-1].strip() if len(line) > 2 and QUOTES.get(line[0]) == line[-1] else line


def lines_of(text: str, count: int) -> list[str]:
    """Return the first `count` distinct lines of a list, without bullets and numbers."""
    lines = (ITEM.sub("", line, count=1) if ITEM.match(line) else line for line in text.splitlines())
    return list(dict.fromkeys(short for line in lines if (short := " ".join(line.split())[:MAX_LINE])))[:count]
