"""What errors of tasks say: the file and line, side, setting or topic at fault, and what to do."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.errors import check_error

import fontes as ft
from fontes.core import FontesError, InputError, ParameterError
from fontes.tasks import TaskOptions, TaskProject, new_project, registry

TOPICS = ft.Topics.of({"1": "one", "2": "two"})
DOCS = {"a", "b", "c", "10", "11"}
TABLE = "post_id\tpreds\n"
POSTS = "checkthat2025-4b"
FIRST = "1 Q0 a 1 2.5 t\n2 Q0 a 1 5 t\n"
SCIFACT, FEVER = (
    json.dumps({key: 1, value: ["a"]}) + "\n" for key, value in (("claim_id", "doc_ids"), ("id", "predicted_pages"))
)


def check_fault(path: Path, task: str, sides: dict[str, ft.Topics], names: str, remedy: str = "") -> None:
    """Assert that a line of the refusal of a submission, which lists all faults, names this one and what to do."""
    with pytest.raises(InputError) as caught:
        registry[task]().check_submission(path, sides, DOCS)
    parts = [part for part in f"{names} … {remedy}".split(" … ") if part]
    assert any(all(part in line for part in parts) for line in str(caught.value).splitlines()), (str(caught.value), parts)


@each(
    ("task", "name", "text", "names", "remedy"),
    [
        (POSTS, "p.tsv", "id\tpreds\n", "p.tsv, line 1: … 'id\\tpreds'", "'post_id<tab>preds'"),
        (POSTS, "p.tsv", f"{TABLE}1\t['a']\n1\t['a']\n", "p.tsv, line 3: topic '1'", "keep one"),
        (POSTS, "p.tsv", f"{TABLE}1\ta b\n", "p.tsv, line 2", "post and list of documents"),
        (POSTS, "p.tsv", f"{TABLE}1,['a']\n", "p.tsv, line 2: no tab", "between the id and the list"),
        (POSTS, "p.tsv", f"{TABLE}9\t['a']\n", "p.tsv, line 2: topic '9' … such as '1'", "take it out"),
        (POSTS, "p.tsv", f"{TABLE}1\t['a', 'x']\n", "p.tsv, line 2: topic '1': … 'x'", "in the collection"),
        (POSTS, "p.tsv", f"{TABLE}1\t['a', 'a']\n", "p.tsv, line 2: topic '1' lists document 'a' twice", "keep the first"),
        (
            POSTS,
            "p.tsv",
            f"{TABLE}1\t['a', 'b', 'c', '10', '11', 'd']\n",
            "p.tsv, line 2: topic '1' … more than 5",
            "keep the first 5",
        ),
        (POSTS, "p.tsv", f"{TABLE}1\t['a']\n", "no line of topic '2'", "add a line for each"),
        ("touche", "run.txt", "1 Q0 a 1 2.5\n", "run.txt, line 1: 5 columns", "topic Q0 document rank score tag"),
        *(
            ("touche", "run.txt", f"1 Q0 a {rank} {score} x\n", f"line 1: rank '{rank}' and score '{score}'", "be numbers")
            for rank, score in (("first", "2.5"), ("1_0", "2.5"), ("1", "2_5"))
        ),
        ("touche", "run.txt", "1 Q0 a 1 nan x\n", "line 1: the score is NaN", ""),
        ("touche", "run.txt", "1 Q0 a 1 1 x\n1 Q0 b 2 2 x\n", "line 2: topic '1': rank 2 and score 2", "after rank 1"),
        ("touche", "run.txt", "1 Q0 x 1 1 x\n", "line 1: topic '1': … 'x'", ""),
        *(
            (
                "beir",
                "run.txt",
                f"{FIRST}1 Q0 b {rank} {score} t\n",
                f"line 3: topic '1': rank {rank} and score {score}",
                "rank 1",
            )
            for rank, score in ((1, 1.0), (0, 1.0), (2, 2.6))
        ),
        ("scifact", "s.jsonl", '{"claim_id": 1, "docs": []}\n', "s.jsonl, line 1", "'claim_id' and list 'doc_ids'"),
        ("scifact", "s.jsonl", "{\n", "s.jsonl, line 1", "JSON"),
        ("scifact", "s.jsonl", SCIFACT, "no line of topic '2'", "add a line for each"),
        ("fever", "f.jsonl", FEVER, "no line of topic '2'", "add a line for each"),
        ("fever", "f.jsonl", '{"id": 1, "predicted_pages": [["x", 1.0]]}\n', "f.jsonl, line 1: topic '1': … 'x'", ""),
        ("longeval", "run.txt", "1 Q0 a 1 1 x\n", "the folder '", "the snapshots test"),
    ],
)
def test_submissions_are_refused_with_line_and_remedy(
    tmp_path: Path, task: str, name: str, text: str, names: str, remedy: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    check_fault(path, task, {"test": TOPICS}, names, remedy)


@each(
    ("task", "name", "text"),
    [("touche", "run_2020.txt", "1 Q0 a 1 1 t\n"), ("scifact", "x_2020.jsonl", SCIFACT), ("fever", "x_2020.jsonl", FEVER)],
)
def test_topics_of_another_side_are_named(tmp_path: Path, task: str, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    sides = {"2020": ft.Topics.of({"9": "nine"}), "2021": TOPICS}
    check_fault(path, task, sides, "topic '1' … such as '9'")


@each(
    ("old", "new", "names", "remedy"),
    [
        ('choose = "posts"', 'choose = "dev"', "choose: … side 'dev'", "there are posts"),
        ('task = "beir"', 'task = "bier"', "task 'bier'", ""),
        ('topics = "', 'topic = "', "key 'topic'", "did you mean 'topics'?"),
        ('measure = "nDCG@10"', 'measure = "nDGC@10"', "nDGC", ""),
        ("task = ", "task == ", "task.toml", "not TOML"),
        ("[sides.posts]", '[sides."../posts"]', "'../posts' of a side", "letters"),
    ],
)
def test_a_project_file_names_the_setting_at_fault(tmp_path: Path, old: str, new: str, names: str, remedy: str) -> None:
    project = new_project("beir:sample:harbour/posts", tmp_path / "p")
    file = project.folder / "task.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    check_error(lambda: TaskProject.open(project.folder), FontesError, names, remedy)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda p: TaskProject.open(p), FontesError, "task.toml", "no project of a task"),
        (lambda p: TaskOptions(rerank="a", train="b"), ParameterError, "rerank", "give one of them"),
        (lambda p: TaskOptions(depth=0), ParameterError, "depth … 0", "whole number"),
    ],
)
def test_folders_and_options(
    tmp_path: Path, call: Callable[[Path], Any], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(tmp_path), error, names, remedy)
