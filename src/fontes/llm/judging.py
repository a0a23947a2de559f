"""Relevance judgments by language models, each with a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from ..core.run import Run
from ..core.values import Doc, Qrels, Topic, text_of
from ..core.work import ProgressCallback, work
from .answers import StoredAnswer
from .base import FILE, LlmPart
from .prompts import plain_passage

SCORE = re.compile(r"final score(?:\s*\(O\))?\W{0,10}(?=\d)", re.IGNORECASE)
DIGIT = re.compile(r"(?<![\w.])[0-3](?![\w.]*\d)")
MINUS, OVER = r"\-\u2010-\u2013\u2212\ufe63\uff0d", r"/\u2044\u2215"
GRADE = re.compile(  # not a part of another number, such as -1, .5, 3.5, 2/3, 1-2 and "1 or 2"
    rf"(?<![\w.,{OVER}{MINUS}])([0-3])(?:\.0{{1,3}})?"
    rf"(?![\w%]|[.,:]\d|[ \t]{{0,3}}(?:[{OVER}{MINUS}÷×^]|or\b|to\b)[ \t]{{0,3}}\d)"
)
MAX_REASON = 1000  # characters of a reason that are stored


class Label(NamedTuple):
    """A judgment of a document.

    Attributes:
        grade: 0 to 3; None if the answer has no grade.
        reason: The model's text before the grade, on one line.
        sum: SHA-256 under which the answer is stored.
    """

    grade: int | None
    reason: str
    sum: str


@dataclass(frozen=True)
class LlmJudge(LlmPart):
    """Judges documents, from 0 to 3, by UMBRELA's prompt (Upadhyay et al., 2024) or by your own guidelines.

    An answer without a grade gives no judgment.

    Args:
        model: Language model; a string is the name of an `llm`.
        prompt: "umbrela_reasons"; "umbrela", as published, without reasons; or the path of a file with guidelines. It has the
            placeholders {passage}, {query}, {description} and {narrative}, and asks for a line "##final score: N".
        words: Words of a document that the model reads.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("passage", "query", "description", "narrative")

    prompt: str = field(default="umbrela_reasons", kw_only=True, metadata=FILE)
    words: int = field(default=500, kw_only=True, metadata={"least": 1})

    def labels(self, pairs: Sequence[tuple[Topic, Doc]]) -> list[Label]:
        """Return the judgment of each pair of a topic and a document.

        Args:
            pairs: The pairs.

        Raises:
            FontesError: As `Model.ask`.
        """
        self.check()
        prompt = self._prompt
        requests = [
            self.request(
                prompt.messages(
                    [plain_passage(text_of(doc), self.words)],
                    query=topic.text,
                    description=topic.description,
                    narrative=topic.narrative,
                )
            )
            for topic, doc in pairs
        ]
        return [label_of(answer) for answer in self.llm.ask(requests)]

    def judge(self, run: Run, k: int = 20, progress: ProgressCallback | None = None) -> Qrels:
        """Return judgments of the best `k` documents of each topic of a run, such as labels for `evaluate(machine=…)`."""
        documents = run.documents_for(type(self).__name__)
        best = run.top(k)
        pairs = [(topic, doc) for topic in best.topics.values() for doc in documents.docs([hit.id for hit in best[topic.id]])]
        with work(progress=progress):
            labels = self.labels(pairs)
        return Qrels(
            (topic.id, "0", doc.id, label.grade)
            for (topic, doc), label in zip(pairs, labels, strict=True)
            if label.grade is not None
        )


def label_of(answer: StoredAnswer) -> Label:
    """Return the judgment in an answer: its last "final score", or else the only number from 0 to 3 that it contains.

    A negative number, a fraction or a range gives no grade.
    """
    text = answer.final_text
    if scores := list(SCORE.finditer(text)):
        starts, reason = [scores[-1].end()], text[: scores[-1].start()].rstrip().rstrip("#")
    else:
        starts, reason = [digit.start() for digit in DIGIT.finditer(text)], text
    grades = {match and match[1] for match in (GRADE.match(text, start) for start in starts)}
    grade = grades.pop() if len(grades) == 1 else None
    if grade is None:
        return Label(None, "", answer.digest)
    return Label(int(grade), " ".join(reason.split())[:MAX_REASON], answer.digest)
