"""Topics in plain lines: ids before a colon, two bars or a space; and texts without ids."""

import re
import shlex
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core import InputError
from fontes.core.errors import InputWarning
from fontes.formats import read_topics

SHAPES = {
    "TREC Terabyte": (
        "1:after school program\n2:u.s. oil: history\n3:hp\n",
        {"1": "after school program", "2": "u.s. oil: history", "3": "hp"},
    ),
    "TREC Million Query 2009": ("20001:1:river ferry\n20002:4:a pier\n", {"20001": "river ferry", "20002": "a pier"}),
    "one line": ("201:raspberry pi\n", {"201": "raspberry pi"}),
    "TREC Genomics": ("<160>What is PrnP?\n<161>What is a < b?\n", {"160": "What is PrnP?", "161": "What is a < b?"}),
    "FIRE AILA": (
        "AILA_Q1||The appellant sold || leased.\nAILA_Q2||He.\n",
        {"AILA_Q1": "The appellant sold || leased.", "AILA_Q2": "He."},
    ),
    "Terrier": ("1 after school program\n\n2 oil history\r\n", {"1": "after school program", "2": "oil history"}),
    "one bar": ("MB01|a pier\nMB02|a ferry\n", {"MB01": "a pier", "MB02": "a ferry"}),
    "a numbered list": ("1. a pier\n2. a ferry\n", {"1": "a pier", "2": "a ferry"}),
    "numbers with brackets": ("Q1) a pier\nQ2) a ferry\n", {"Q1": "a pier", "Q2": "a ferry"}),
    "other line ends inside": ("1:a\u2028pier\n2:a\x85ferry\n", {"1": "a\u2028pier", "2": "a\x85ferry"}),
    "ids with letters": ("MB01: a pier\nMB02: a ferry\n", {"MB01": "a pier", "MB02": "a ferry"}),
}


@each("shape", SHAPES)
def test_lines_with_ids_are_topics(tmp_path: Path, shape: str) -> None:
    content, expected = SHAPES[shape]
    (tmp_path / "t.txt").write_text(content)
    assert {topic.id: topic.text for topic in read_topics(tmp_path / "t.txt").values()} == expected


def test_texts_without_ids_are_numbered_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("how to cook\nwhat is rust\n")
    with pytest.warns(InputWarning, match=r"t\.txt: the lines have no ids, so they are numbered from 1$"):
        topics = read_topics(tmp_path / "t.txt")
    assert {topic.id: topic.text for topic in topics.values()} == {"1": "how to cook", "2": "what is rust"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("348\tIs the fear of open places\ta disorder\n349\tchem\n", {"348": "Is the fear of open places", "349": "chem"}),
        ("1\tq one\n2\tq two\tnarr\n", {"1": "q one", "2": "q two"}),
    ],
)
def test_the_options_for_a_third_column_or_a_tab_in_a_text_read_the_file(tmp_path: Path, fontes, content, expected) -> None:
    (tmp_path / "t.tsv").write_text(content)
    with pytest.raises(InputError) as caught:
        read_topics(tmp_path / "t.tsv")
    options = shlex.split(re.search(r"by number: ([^,;]*)", str(caught.value))[1])
    ft.Index.build([("d1", "places chem q")], tmp_path / "i")
    code, run, _ = fontes("search", tmp_path / "i", "--topics", tmp_path / "t.tsv", *options)
    assert (code, [line.split()[0] for line in run.splitlines()]) == (0, list(expected))
    fields = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}
    assert {topic.id: topic.text for topic in read_topics(tmp_path / "t.tsv", fields=fields).values()} == expected
