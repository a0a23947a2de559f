"""What a cluster's processes do with language models: a query stage that knows where its service is, and stored answers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fontes.cluster.answers import RemoteAnswers
from fontes.core import Topics
from fontes.llm import AnswerFile, Query2Doc, StoredAnswer


@dataclass(frozen=True)
class Query2DocThere(Query2Doc):
    """`query2doc` with the variables of its service, which processes that began earlier lack."""

    variables: Mapping[str, str] = field(default_factory=dict, kw_only=True, repr=False)

    def apply(self, topics: Topics, /) -> Topics:
        os.environ.update(self.variables)
        return super().apply(topics)


def exchanged(actor: Any, known: str, new: StoredAnswer) -> tuple[bool, list[str]]:
    """On another machine: keeps an answer and reads one that only the driver has, twice; whether it was here before."""
    answers = RemoteAnswers(actor)
    before = bool(AnswerFile().read([known]))
    answers.write([new])
    texts = [one.text for one in answers.read([known, "0" * 64]).values()]
    return before, texts + [one.text for one in AnswerFile().read([known]).values()]
