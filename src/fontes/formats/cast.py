"""TREC CAsT and iKAT: conversations; each user turn is a topic with the conversation so far.

A topic's id is `<conversation>_<turn>`, its text the raw utterance. Its `turns` are the conversation up to and including
this turn, oldest first, each with the manual and automatic rewrite, the canonical answer and its id if present. Answer ids
are `<document>-<passage>` in 2021; in 2022, an answer made from several passages has the id of the first.

Formats: evaluation_topics of 2019 to 2022 from the track's repository (https://github.com/daltonj/treccastweb), flat or
as a tree (2022), where a turn's conversation is the path from the root. The topics of iKAT 2023 to 2025
(https://github.com/irlabamsterdam/iKAT), whose resolved utterances are the manual rewrites, and whose statements about the user
(PTKB) are the list `metadata["ptkb"]`; those relevant to the turn, numbers or texts, are `metadata["relevant_ptkb"]`. The
answer's id is the first of its sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..core import InputError, Topic, Topics, Turn
from ..core.checks import as_number
from ..core.tabular import join_with_or
from .format import File, Format
from .records import json_line, json_rows, json_value

TURNS = ("turn", "turns", "responses")
NUMBERS = ("number", "turn_id", "turn")
RAW = ("raw_utterance", "utterance", "raw", "user_utterance")
MANUAL = ("manual_rewritten_utterance", "manual", "resolved_utterance")
AUTOMATIC = ("automatic_rewritten_utterance", "automatic")
ANSWER = ("passage", "response", "automatic_passage")
ANSWER_ID = ("canonical_result_id", "manual_canonical_result_id", "canonical_id")
SOURCES = ("provenance", "response_provenance", "citations")
PTKB, RELEVANT = "ptkb", "relevant_ptkb"  # keys of a topic's metadata; the first also of a conversation
RELEVANT_KEYS = ("relevant_ptkbs", "ptkb_provenance")
CONVERSATION_NUMBERS = ("number", "conv_id")
AUTOMATIC_ANSWER_ID = ("automatic_canonical_result_id", "automatic_canonical_id")
TEXTS = (*RAW, *MANUAL, *AUTOMATIC, *ANSWER, *ANSWER_ID, *AUTOMATIC_ANSWER_ID, "passage_id")
MAX_TURNS = 1_000  # turns of a conversation; each holds all earlier ones
CAST_NEEDS = "which a CAsT file needs; as jsonl, topics of any kind are written with their turns"  # end of an error


class Cast(Format, name="cast"):
    """Conversations of TREC CAsT 2019 to 2022 and iKAT 2023 to 2025: the official JSON, or one turn or conversation a line."""

    def sniff(self, kind: str, file: File) -> float:
        if isinstance(file.first, dict):
            return 0.95 if _is_turn(file.first) or _is_conversation(file.first) else 0.0
        return 0.6 if _are_conversations(file.value) or _is_conversation(file.value) else 0.0

    def read_topics(self, file: File) -> Iterator[Topic]:
        first = file.start.split("\n", 1)[0].rstrip()
        if not (first.startswith("{") and first.endswith("}")):
            value = json_value(file)
            return cast_topics([value] if isinstance(value, dict) else value, file.name)
        if _is_conversation(file.first):
            return cast_topics([row for _, row in json_rows(file)], file.name)
        return turn_topics(json_rows(file), file.name)

    def write_topics(self, topics: Topics) -> Iterator[bytes]:
        yield json_line(cast_conversations(topics.values()), indent=1)


def cast_topics(conversations: Any, name: str) -> Iterator[Topic]:
    """Yield topics from the official JSON; turns that paths share give one topic. InputError if malformed."""
    if not _are_conversations(conversations):
        turns = join_with_or(TURNS)
        raise InputError(f"{name}: not a CAsT file: a list of conversations, each with its turns under {turns}, is wanted")
    seen: dict[str, str] = {}
    for position, conversation in enumerate(conversations, 1):
        if not isinstance(conversation, dict):
            raise InputError(f"{name}, item {position}: a {type(conversation).__name__} where a conversation belongs")
        conversation_number = next((conversation[key] for key in CONVERSATION_NUMBERS if key in conversation), None)
        if not _is_label(conversation_number):
            raise InputError(f"{name}, item {position}: the conversation has no number")
        where = f"{name}, conversation {conversation_number}"
        rows = _turns(conversation)
        if rows is None or not all(isinstance(row, dict) and _is_label(_turn_number(row)) for row in rows):
            raise InputError(f"{where}: '{_turns_key(conversation)}' is not a list of turns with numbers")
        _check_length(len(rows), where)
        if any("parent" in row or "participant" in row for row in rows):
            paths = _tree_paths(rows, where)
        else:
            paths = _flat_paths(rows, where)
        statements = _statements(conversation, where)
        row_by_number = {str(_turn_number(row)): row for row in rows}
        for number, path in paths:
            topic_id = f"{conversation_number}_{number}"
            if topic_id in seen:
                if seen[topic_id] != path[-1].text:
                    raise InputError(f"{where}: turn {number} occurs twice, with different utterances")
                continue
            seen[topic_id] = path[-1].text
            description, metadata = _description(conversation, where), _metadata(statements, row_by_number[number], where)
            yield Topic(topic_id, path[-1].text, description=description, turns=path, metadata=metadata)


def turn_topics(rows: Iterable[tuple[int, dict[str, object]]], name: str) -> Iterator[Topic]:
    """Yield topics from (line number, turn) rows with the keys `topic`, `turn`, `raw`, `manual`, `automatic`, …

    Turns of 2022 are numbered `<branch>-<position>`. The file does not record where a branch starts, so the conversation so far
    covers only the branch; the tree has all of it.
    """
    paths: dict[tuple[str, str], tuple[Turn, ...]] = {}
    for number, row in rows:
        where = f"{name}, line {number}"
        if not _is_turn(row):
            raise InputError(f"{where}: not a turn: 'topic', 'turn' and 'raw' are wanted, found {', '.join(row)}")
        for key in ("topic", "turn", "_id"):
            if not _is_label(row.get(key, "")):
                raise InputError(f"{where}: '{key}' is a {type(row[key]).__name__}, not a number or a text")
        branch, dash, _ = str(row["turn"]).partition("-")
        branch_key = (str(row["topic"]), branch if dash else "")
        path = paths[branch_key] = (*paths.get(branch_key, ()), _turn(row, row, where))
        _check_length(len(path), where)
        topic_id = str(row.get("_id") or f"{row['topic']}_{row['turn']}")
        yield Topic(topic_id, path[-1].text, description=_description(row, where), turns=path)


def cast_conversations(topics: Iterable[Topic]) -> list[dict[str, object]]:
    """Return the official flat JSON, readable by `cast_topics`, for topics with ids `<conversation>_<turn>`.

    A rewritten topic's text becomes the automatic rewrite. A branching conversation is written once per branch, with the
    shared turns repeated, as in the flat file of 2022. Raises InputError if an id has another form, a turn is empty, or an
    earlier turn is not among the topics.
    """
    grouped: dict[str, list[Topic]] = {}
    for topic in topics:
        conversation, _, number = topic.id.rpartition("_")
        if not conversation or not number:
            raise InputError(f"topic '{topic.id}': the id is not <conversation>_<turn>, such as 106_1, {CAST_NEEDS}")
        if not (turns := topic.turns or (Turn(topic.text),))[-1].text.strip():
            raise InputError(f"topic '{topic.id}': the turn is empty, {CAST_NEEDS}")
        grouped.setdefault(conversation, []).append(replace(topic, turns=turns))
    return [row for conversation, group in grouped.items() for row in _branches(conversation, group)]


def _are_conversations(value: object) -> bool:
    return isinstance(value, list) and bool(value) and _is_conversation(value[0])


def _is_conversation(value: Any) -> bool:
    """Whether a value has a list of turns, those of iKAT with utterances; topics may have turns, too."""
    turns = _turns(value) if isinstance(value, dict) else None
    if turns is None or _turns_key(value) == TURNS[0]:
        return turns is not None
    return bool(turns) and isinstance(turns[0], dict) and any(name in turns[0] for name in RAW)


def _turns_key(conversation: Mapping[str, object]) -> str:
    return next((key for key in TURNS if key in conversation), TURNS[0])


def _turns(conversation: Mapping[str, object]) -> list[Any] | None:
    turns = conversation.get(_turns_key(conversation))
    return turns if isinstance(turns, list) else None


def _turn_number(row: Mapping[str, object]) -> object:
    return next((row[name] for name in NUMBERS if name in row), None)


def _statements(conversation: Mapping[str, object], where: str) -> dict[str, str]:
    """Return the statements about the user of a conversation by number, from 1 if they are a list."""
    statements = conversation.get(PTKB) or {}
    if isinstance(statements, list):
        statements = dict(enumerate(statements, 1))
    if not isinstance(statements, dict) or not all(isinstance(statement, str) for statement in statements.values()):
        raise InputError(f"{where}: '{PTKB}' is neither a list nor an object of texts")
    return {str(number): statement for number, statement in statements.items()}


def _metadata(statements: Mapping[str, str], row: Mapping[str, object], where: str) -> dict[str, object]:
    """Return the metadata of a turn: the statements about its user, and those that the file names as relevant."""
    if not statements:
        return {}
    named = next((row[key] for key in RELEVANT_KEYS if key in row), None)
    if named is None:
        return {PTKB: list(statements.values())}
    if not isinstance(named, list):
        raise InputError(f"{where}: the relevant statements of turn {_turn_number(row)} are not a list")
    texts = [item.get("text", item.get("id")) if isinstance(item, dict) else item for item in named]
    relevant = [statements.get(str(text), str(text)) for text in texts if isinstance(text, str) or str(text) in statements]
    return {PTKB: list(statements.values()), RELEVANT: relevant}


def _is_label(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def _check_length(turns: int, where: str) -> None:
    if turns > MAX_TURNS:
        raise InputError(f"{where}: the conversation has more than {MAX_TURNS:,} turns; divide it")


def _description(row: Mapping[str, object], where: str) -> str:
    description = row.get("description") or ""
    if not isinstance(description, str):
        raise InputError(f"{where}: 'description' is a {type(description).__name__}, not a text")
    return description


def _is_turn(row: Mapping[str, object]) -> bool:
    return "topic" in row and "turn" in row and any(name in row for name in RAW)


def _branches(number: str, topics: list[Topic]) -> Iterator[dict[str, object]]:
    """Yield root-to-leaf paths, in which the first occurrence of each topic has its own answer."""
    topic_at: dict[tuple[Turn, ...], Topic] = {}
    followers: dict[tuple[Turn, ...], list[Topic]] = {}
    for topic in topics:
        topic_at.setdefault(_unanswered(topic.turns), topic)
        followers.setdefault(topic.turns[:-1], []).append(topic)
    description = next((topic.description for topic in topics if topic.description), "")
    written: set[str] = set()
    for topic in sorted(topics, key=lambda topic: len(topic.turns)):
        if topic.id in written:
            continue
        path = []
        for position in range(1, len(topic.turns)):
            earlier = topic_at.get(_unanswered(topic.turns[:position]))
            if earlier is None:
                problem = f"turn {position} of its conversation is not one of the topics"
                raise InputError(f"topic '{topic.id}': {problem}, {CAST_NEEDS}")
            path.append(_cast_row(earlier, topic.turns[position - 1]))
        following: Topic | None = topic
        while following is not None:
            written.add(following.id)
            path.append(_cast_row(following, following.turns[-1]))
            following = next((t for t in followers.get(following.turns, ()) if t.id not in written), None)
        head = {"description": description} if description else {}
        if statements := topic.metadata.get(PTKB):
            head[PTKB] = statements
        yield {"number": as_number(number), **head, "turn": path}


def _cast_row(topic: Topic, turn: Turn) -> dict[str, object]:
    unrewritten = topic.text in (turn.text, turn.manual)
    row = {
        RAW[0]: turn.text,
        MANUAL[0]: turn.manual,
        AUTOMATIC[0]: turn.automatic if unrewritten else topic.text,
        ANSWER[0]: turn.answer,
        ANSWER_ID[0]: turn.answer_id,
    }
    relevant = {RELEVANT_KEYS[0]: topic.metadata[RELEVANT]} if RELEVANT in topic.metadata else {}
    return {
        "number": as_number(topic.id.rpartition("_")[2]),
        **{name: value for name, value in row.items() if value},
        **relevant,
    }


def _unanswered(path: tuple[Turn, ...]) -> tuple[Turn, ...]:
    return (*path[:-1], replace(path[-1], answer="", answer_id=""))


def _flat_paths(rows: list[dict[str, Any]], where: str) -> Iterator[tuple[str, tuple[Turn, ...]]]:
    path: tuple[Turn, ...] = ()
    for row in rows:
        path = (*path, _turn(row, row, where))
        yield str(_turn_number(row)), path


def _tree_paths(rows: list[dict[str, object]], where: str) -> Iterator[tuple[str, tuple[Turn, ...]]]:
    """Yield each user turn's id and path, each turn with the system's answer on that path."""
    by_number = {str(_turn_number(row)): row for row in rows}
    first_answer: dict[str, dict[str, Any]] = {}
    for row in rows:
        if _is_system(row):
            first_answer.setdefault(str(row.get("parent")), row)
    unanswered: dict[str, object] = {}
    turns: dict[tuple[int, int], Turn] = {}  # by row and answer, since the paths of a conversation share them
    for number, row in by_number.items():
        if _is_system(row):
            continue
        path: list[Turn] = []
        answer = first_answer.get(number, unanswered)
        current: dict[str, Any] | None = row
        for _ in rows:
            if current is None:
                break
            if _is_system(current):
                answer = current
            else:
                key = (id(current), id(answer))
                path.append(turns.get(key) or turns.setdefault(key, _turn(current, answer, where)))
                answer = unanswered
            parent = current.get("parent")
            if parent is not None and str(parent) not in by_number:
                raise InputError(f"{where}: turn {_turn_number(current)} follows turn {parent}, which does not exist")
            current = None if parent is None else by_number[str(parent)]
        if current is not None:
            raise InputError(f"{where}: turn {number} follows itself")
        yield number, tuple(reversed(path))


def _is_system(row: Mapping[str, object]) -> bool:
    return str(row.get("participant", "")).lower() == "system"


def _turn(row: Mapping[str, object], answer: Mapping[str, object], where: str) -> Turn:
    text = _first(row, RAW)
    number = _turn_number(row)
    if not text.strip():
        raise InputError(f"{where}: turn {number} has no raw utterance")
    for name in TEXTS:
        for value in (row.get(name), answer.get(name)):
            if isinstance(value, (dict, list)):
                raise InputError(f"{where}: '{name}' of turn {number} is a {type(value).__name__}, not a text")
    return Turn(text, _first(row, MANUAL), _first(row, AUTOMATIC), _first(answer, ANSWER), _answer_id(answer))


def _answer_id(row: Mapping[str, object]) -> str:
    answer_id = _first(row, ANSWER_ID)
    if answer_id and row.get("passage_id") is not None:
        return f"{answer_id}-{row['passage_id']}"
    lists = (row.get(name) for name in SOURCES)
    first = next((sources[0] for sources in lists if isinstance(sources, list) and sources), "")
    return answer_id or _first(row, AUTOMATIC_ANSWER_ID) or (str(first) if _is_label(first) else "")


def _first(row: Mapping[str, object], names: tuple[str, ...]) -> str:
    return next((str(row[name]) for name in names if row.get(name)), "")
