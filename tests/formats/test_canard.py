"""Topics of CANARD: the official form, the form with questions alone, and what is wrong with a file."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fontes.core import Topics, Turn
from fontes.formats import read_topics


def read_canard(path: Path) -> Topics:
    return read_topics(path, format="canard")


OFFICIAL: list[dict[str, Any]] = [
    {
        "History": ["Ada Lovelace", "Notes"],
        "QuAC_dialog_id": "C_1",
        "Question": "What did she write?",
        "Question_no": 1,
        "Rewrite": "What did Ada Lovelace write?",
    },
    {
        "History": ["Ada Lovelace", "Notes", "What did she write?", "Notes on a machine."],
        "QuAC_dialog_id": "C_1",
        "Question": " Whose machine? ",
        "Question_no": 2,
        "Rewrite": "Whose machine did Ada Lovelace write notes on?",
    },
]
QUESTIONS = [
    {"QuAC_dialog_id": "C_1", "Question_no": 1, "HistoryQuestions": [], "Question": "who is he", "Rewrite": "who is Bo"},
    {"QuAC_dialog_id": "C_1", "Question_no": 2, "HistoryQuestions": ["who is he"], "Question": "why", "Rewrite": "why Bo"},
]


def written(path: Path, value: Any) -> Path:
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, value)) if lines else json.dumps(value, indent=1), encoding="utf-8")
    return path


def test_the_official_form_gives_rewrites_and_earlier_answers(tmp_path: Path) -> None:
    topics = read_canard(written(tmp_path / "dev.json", OFFICIAL))
    assert list(topics) == ["C_1_1", "C_1_2"]
    assert topics["C_1_2"].text == "Whose machine?"
    assert topics["C_1_2"].description == "Ada Lovelace: Notes"
    assert topics["C_1_2"].turns == (
        Turn("What did she write?", manual="What did Ada Lovelace write?", answer="Notes on a machine."),
        Turn("Whose machine?", manual="Whose machine did Ada Lovelace write notes on?"),
    )
    assert topics["C_1_1"].turns == (Turn("What did she write?", manual="What did Ada Lovelace write?"),)


def test_a_history_of_questions_alone_gives_turns_without_answers(tmp_path: Path) -> None:
    topics = read_canard(written(tmp_path / "train.jsonl", QUESTIONS))
    assert topics["C_1_2"].turns == (Turn("who is he", manual="who is Bo"), Turn("why", manual="why Bo"))
    assert topics["C_1_2"].description == ""


def test_read_topics_finds_the_format_from_the_content(tmp_path: Path) -> None:
    for name, rows in (("a.json", OFFICIAL), ("b.jsonl", OFFICIAL), ("c.jsonl", QUESTIONS), ("d.jsonl", QUESTIONS[:1])):
        path = written(tmp_path / name, rows)
        assert list(read_topics(path).values()) == list(read_canard(path).values())
    assert read_topics(written(tmp_path / "e.txt", OFFICIAL), format="canard")["C_1_1"].text == "What did she write?"


def test_a_gzipped_file_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "dev.json.gz"
    path.write_bytes(gzip.compress(json.dumps(OFFICIAL).encode()))
    assert list(read_topics(path)) == ["C_1_1", "C_1_2"]


def test_an_earlier_turn_whose_item_is_not_in_the_file_has_no_rewrite(tmp_path: Path) -> None:
    topics = read_canard(written(tmp_path / "part.json", OFFICIAL[1:]))
    assert topics["C_1_2"].turns[0] == Turn("What did she write?", answer="Notes on a machine.")


@pytest.mark.slow
def test_the_released_files_have_the_published_number_of_questions(shared: Path) -> None:
    train, dev = read_canard(shared / "canard" / "train.jsonl"), read_canard(shared / "canard" / "dev.json")
    assert (len(train), len(dev)) == (31526, 3430)  # Elgohary et al. 2019, table 2
    assert all(turn.manual for topics in (train, dev) for topic in topics.values() for turn in topic.turns)
    assert all(turn.answer for topic in dev.values() for turn in topic.turns[:-1])
    topic = dev["C_2d211835213b45588ad5ca868ce7fabd_0_2"]
    assert topic.turns[0].answer == "Zappa and the Mothers of Invention"
    assert topic.turns[-1].manual == "When did Zappa and the Mothers of Invention disband?"
