"""Submissions to TREC iKAT: runs with an answer to each turn, and with the statements about the user that it considers.

Written in the form of 2025, a turn a line, as the track's program validate_trec_ikat25.py checks it
(https://github.com/irlabamsterdam/iKAT); read also in that of 2023 and 2024, one JSON object.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from ..core import InputError, Run, Topics
from ..core.answers import cited_answer
from ..core.run import Ranking
from ..core.values import Documents, Topic
from .format import File, Format
from .records import json_line, json_rows, json_value, named

MAX_REFERENCES = 1000
MAX_WORDS = 250  # of an answer; the track's program removes longer ones
SENTENCE_END = re.compile(r"[.!?][\"'”’)]*(?=\s|$)")
BY_HAND = re.compile(r"\bmanual(?:_statements)?\(")  # stages that read what people wrote
STATEMENTS = "statements"  # key of a topic's metadata: the chosen statements


class Ikat(Format, name="ikat"):
    """Runs of TREC iKAT, with the text of the answers and the chosen statements where topics carry them.

    The tag `TEAM/RUN` becomes `team_id` and `run_id`; without "/" it is both. `run_type` is "manual" if a stage reads manual
    rewrites or statements named as relevant, otherwise "automatic". The answer is that of `answer("M")`, with the documents
    that it cites, or else the first whole sentences of the best document, up to 250 words; without documents it is empty.
    """

    def sniff(self, kind: str, file: File) -> float:
        first = file.first
        is_line = isinstance(first, dict) and {"turn_id", "references"} <= first.keys()
        return 0.95 if is_line or (isinstance(file.value, dict) and {"run_name", "turns"} <= file.value.keys()) else 0.0

    def read_run(self, file: File, topics: Topics) -> Run:
        is_line = isinstance(file.first, dict) and "turn_id" in file.first
        turns = json_rows(file) if is_line else enumerate(_turns(json_value(file), file.name), 1)
        noun = "line" if is_line else "turn"
        rows = [(topic, *hit) for number, turn in turns for topic, hit in _hits(turn, f"{file.name}, {noun} {number}")]
        with named(file.name):
            return Run.of(rows, topics)

    def write_run(self, run: Run, tag: str) -> Iterator[bytes]:
        team, slash, name = tag.partition("/")
        by_hand = BY_HAND.search(str(run.provenance.get("system", "")))
        metadata = {"team_id": team, "run_id": name if slash else tag, "run_type": "manual" if by_hand else "automatic"}
        for topic in run.topics.values():
            ranking = run[topic.id]
            yield json_line({"turn_id": topic.id, "metadata": metadata, **entry_of(topic, ranking, run.documents)})


def entry_of(topic: Topic, ranking: Ranking, documents: Documents | None) -> dict[str, object]:
    """Return the references and the response of a turn, as JSON values."""
    references = {hit.id: hit.score for hit in ranking[:MAX_REFERENCES]}
    text, cited = response_of(topic, ranking, documents)
    response = {
        "rank": 1,
        "text": text,
        "citations": {doc_id: references[doc_id] for doc_id in cited if doc_id in references},
        "ptkb_provenance": list(topic.metadata.get(STATEMENTS, ())),
    }
    return {"references": references, "responses": [response]}


def response_of(topic: Topic, ranking: Ranking, documents: Documents | None) -> tuple[str, tuple[str, ...]]:
    """Return the text of the answer to a turn, and the ids of the documents behind it."""
    answer = cited_answer(topic)
    if answer and answer["sentences"]:
        cited = (citation["document"] for sentence in answer["sentences"] for citation in sentence["citations"])
        return whole_sentences(answer["text"]), tuple(dict.fromkeys(cited))
    if documents is None or not len(ranking):
        return "", ()
    (best,) = documents.docs([ranking[0].id])
    return whole_sentences(best.text or best.title), (best.id,)


def whole_sentences(text: str) -> str:
    """Return the first sentences of a text, with at most 250 words as the track counts them; a longer sentence is cut."""
    words = unicodedata.normalize("NFKC", text).split()
    if len(words) <= MAX_WORDS:
        return " ".join(words)
    first = " ".join(words[:MAX_WORDS])
    ends = [match.end() for match in SENTENCE_END.finditer(first)]
    return first[: ends[-1]] if ends else first


def _turns(value: object, name: str) -> Iterable[object]:
    turns = value.get("turns") if isinstance(value, dict) else None
    if not isinstance(turns, list):
        raise InputError(f"{name}: not a run of iKAT: 'turns' is not a list")
    return turns


def _hits(turn: object, where: str) -> Iterator[tuple[str, tuple[str, float]]]:
    """Yield the topic and each document with its score: the references of 2025, or the passages of the first response."""
    if not isinstance(turn, dict) or not isinstance(turn.get("turn_id"), str):
        raise InputError(f"{where}: no 'turn_id', which is a text such as 1-1_2")
    references = turn.get("references")
    if references is None:
        responses = turn.get("responses")
        first = responses[0] if isinstance(responses, list) and responses else {}
        passages = first.get("passage_provenance", []) if isinstance(first, dict) else None
        if not isinstance(passages, list) or not all(isinstance(p, dict) and isinstance(p.get("id"), str) for p in passages):
            raise InputError(f"{where}: 'passage_provenance' is not a list of objects with 'id' and 'score'")
        rows = [(passage["id"], passage.get("score")) for passage in passages]
    elif isinstance(references, dict):
        rows = list(references.items())
    else:
        raise InputError(f"{where}: 'references' is not an object from passage to score")
    for doc_id, score in rows:
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            raise InputError(f"{where}: the score of '{doc_id}' is {score!r}, not a number")
        yield turn["turn_id"], (doc_id, float(score))
