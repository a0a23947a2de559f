"""`LlmQuestions`: questions that documents answer, written by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ..core.errors import ParameterError
from ..core.values import Doc, text_of
from ..storage.hashes import hash_text
from .answers import StoredAnswer
from .base import FILE, LlmPart
from .prompts import plain_passage
from .queries import example_pairs, lines_of, one_line


@dataclass(frozen=True)
class LlmQuestions(LlmPart, name="llm_questions"):
    """Writes questions that a document answers, for training without judgments (InPars; Bonifacio et al., SIGIR 2022).

    A last question that is cut off by the limit of tokens is left out.

    Args:
        examples: A file of JSON lines with "query" and "passage", as examples in the prompt; the paper has three of MS MARCO.
            A few of your own show which questions are wanted (Promptagator; Dai et al., ICLR 2023). Small models need them.
        words: Words of a document that the model reads.
    """

    placeholders: ClassVar[tuple[str, ...]] = ("passage", "count", "examples")

    prompt: str = field(default="questions", kw_only=True, metadata=FILE)
    examples: str = field(default="", kw_only=True, metadata=FILE)
    words: int = field(default=500, kw_only=True, metadata={"least": 1})

    def questions(self, docs: Sequence[Doc], count: int = 1) -> list[list[str]]:
        """Return at most `count` questions for each document; none for an empty answer or a document without text.

        Args:
            docs: The documents.
            count: Maximum number of questions per document.

        Raises:
            FontesError: As `Model.ask`.
        """
        self.check()
        prompt, pairs = self._prompt, self._pairs
        values = {"count": count, "examples": _examples_text(pairs)}
        texts = [plain_passage(text_of(doc), self.words) for doc in docs]
        requests = [self.request(prompt.messages([text], pairs, **values)) for text in texts if text]
        answers = iter(self.llm.ask(requests))
        return [_questions_in(next(answers), count) if text else [] for text in texts]

    def check(self) -> None:
        if self._pairs and not self._prompt.takes_examples:
            raise ParameterError(
                f"prompt {self.prompt} has no place for examples: write {{examples}}, or a section '## user, for each example'"
            )
        super().check()

    def key(self) -> str | None:
        key = super().key()
        return key if key is None or not self.examples else f"{key} {hash_text(_examples_text(self._pairs))}"

    @property
    def _pairs(self) -> tuple[tuple[str, str], ...]:
        return example_pairs(self.examples) if self.examples else ()


def _examples_text(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the text for the placeholder {examples}."""
    return "\n\n".join(f"Document: {passage}\nQuestions:\n{query}" for query, passage in pairs)


def _questions_in(answer: StoredAnswer, count: int) -> list[str]:
    text = answer.final_text.rpartition("\n")[0] if answer.finish == "length" else answer.final_text
    return list(dict.fromkeys(filter(None, map(one_line, lines_of(text, count)))))
