"""Replay of a log: other pipelines and tools search its queries again, and their answers are compared."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...comparison import Report
from ...core.errors import InputError, ParameterError
from ...core.run import Run
from ...core.values import Qrels, Topics
from ...core.work import Progress, ProgressCallback, reporter, work
from ...experiments import compare
from ...rewrite.reasoning import REASONING
from ..server.service import Service
from ..server.settings import ServerSettings
from .calls import Tools
from .log import MAX_ARGUMENT, Session
from .report import Mean, mean_of
from .sessions import QUERY, TOPICS, LoggedTopic, topics_of_log

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Replay:
    """A replayed log.

    Args:
        report: Comparison of the answers' documents, by topic.
        tokens: Mean tokens of an answer, by system.
        evidence: Relevant documents in an answer per 1,000 tokens of it, by system: the mean over topics, with its interval.
        topics: Number of queries in the log.
        judged: Number of these queries with a relevant document; only they are replayed.
    """

    report: Report
    tokens: Mapping[str, float]
    evidence: Mapping[str, Mean]
    topics: int
    judged: int

    def __str__(self) -> str:
        tokens = ", ".join(f"{name} {value:,.0f}" for name, value in self.tokens.items())
        rates = ", ".join(f"{name} {rate.mean:.2f} ({rate.low:.2f} to {rate.high:.2f})" for name, rate in self.evidence.items())
        evidence = f"relevant documents per 1,000 tokens: {rates}"
        return f"{self.report}\ntokens of an answer: {tokens}\n{evidence}\n{self.judged:,} judged of {self.topics:,} queries"


def replay(
    sessions: Sequence[Session],
    index: Path,
    pipelines: Mapping[str, str],
    qrels: Qrels,
    measures: Sequence[str],
    tools: Sequence[str] = ("search",),
    tokens: int | None = None,
    progress: ProgressCallback | None = None,
) -> Replay:
    """Search the queries of a log again and compare the answers.

    A system is a tool with a pipeline. Its run has the documents of each answer, as shown to the model: within the budget of
    tokens, near-duplicates behind their hit. Filters, k, budget and, for searches, reasoning are taken from the log. Each query
    is searched alone: `seen` is not replayed.

    Args:
        sessions: The sessions.
        index: Directory of the index.
        pipelines: Expressions by name.
        qrels: Judgments of the topics.
        measures: Names of measures.
        tools: "search", "evidence" or both.
        tokens: Budget of each answer; None: as logged.
        progress: Called after each topic.
    """
    if invalid := next((tool for tool in tools if tool not in TOPICS), None):
        raise ParameterError(f"--tool {invalid}: only {' and '.join(TOPICS)} have queries to replay")
    system_names = {
        (tool, name): name if len(tools) == 1 else tool if len(pipelines) == 1 else f"{tool} {name}"
        for tool in tools
        for name in pipelines
    }
    if len(system_names) < 2:
        raise ParameterError(
            "name two pipelines or two tools to compare: --pipeline A=EXPR --pipeline B=EXPR, or --tool evidence"
        )
    logged_topics = topics_of_log(sessions)
    judged_topics = [
        logged_topic
        for logged_topic in logged_topics
        if any(grade > 0 for grade in qrels.get(logged_topic.topic.id, {}).values())
    ]
    if not judged_topics:
        raise InputError(
            "none of the log's queries has a relevant document: nothing was read after a search, and --qrels names none"
        )
    service = Service([index], ServerSettings(seconds=600.0, query=MAX_ARGUMENT), pipelines)
    try:
        with work(progress=progress):
            answers = asyncio.run(_answers(Tools(service), judged_topics, list(system_names), tokens))
    finally:
        service.close()
    topics = Topics(logged_topic.topic for logged_topic in judged_topics)
    runs = {
        name: Run.of(
            {topic: dict(zip(ids, range(len(ids), 0, -1), strict=True)) for topic, (ids, _) in answers[key].items()}, topics
        )
        for key, name in system_names.items()
    }
    means = {name: sum(size for _, size in answers[key].values()) / len(judged_topics) for key, name in system_names.items()}
    rates = {
        name: mean_of(
            name,
            [
                1000 * sum(qrels[topic].get(doc_id, 0) > 0 for doc_id in ids) / size
                for topic, (ids, size) in answers[key].items()
            ],
            CONFIDENCE,
        )
        for key, name in system_names.items()
    }
    report = compare(runs, topics, qrels, list(measures), baseline=next(iter(runs)), allow_empty=True, cache=False)
    return Replay(report, means, rates, len(logged_topics), len(judged_topics))


Answers = dict[tuple[str, str], dict[str, tuple[list[str], int]]]


async def _answers(
    tools: Tools, topics: Sequence[LoggedTopic], systems: Sequence[tuple[str, str]], tokens: int | None
) -> Answers:
    """Documents and number of tokens of each answer, by system (tool and pipeline) and topic."""
    report = reporter()
    answers: Answers = {system: {} for system in systems}
    for number, logged in enumerate(topics, 1):
        for tool, pipeline in systems:
            logged_arguments = logged.calls[0].arguments
            arguments: dict[str, object] = {
                name: value for name in ("where", "k", "tokens") if (value := logged_arguments.get(name)) is not None
            }
            arguments |= {QUERY[tool]: logged.topic.text, "pipeline": pipeline}
            if tokens is not None:
                arguments["tokens"] = tokens
            if tool == "search":
                stated = {"syntax": logged_arguments.get("syntax"), REASONING: logged.topic.metadata.get(REASONING)}
                arguments |= {name: value for name, value in stated.items() if value}
            answer = await tools.call(tool, arguments)
            if answer.is_error:
                raise InputError(f"topic '{logged.topic.id}' cannot be replayed: {answer.text}")
            answers[tool, pipeline][logged.topic.id] = list(dict.fromkeys(answer.documents)), answer.tokens
        report(Progress("replaying", number, len(topics), 0.0, "topics"))
    return answers
