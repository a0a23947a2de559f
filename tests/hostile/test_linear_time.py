"""Texts from outside are read in time linear in their length: if it were quadratic, each of these would take half a minute."""

import time
from collections.abc import Callable
from typing import Any

from support.each import each

from fontes.causal.narratives import relevant_part
from fontes.core.errors import FontesError
from fontes.lexical.syntax import read
from fontes.llm import StoredAnswer
from fontes.llm.judging import label_of
from fontes.measures.names import COMMA
from fontes.rewrite import PlainPosts

LENGTH = 60_000


def grade_of_answer(text: str) -> object:
    return label_of(StoredAnswer(service="s", model="m", parameters={}, sample=0, messages=(("user", "x"),), text=text))


READERS: dict[Callable[[str], Any], tuple[str, ...]] = {
    grade_of_answer: ("#", " ", "\n\t", "final score", "final score:   ", "1.", "0 ", "final score (O) ", "<think>", "-1 "),
    FontesError: (" ", "\t \n", " \t"),
    PlainPosts().plain: (" ", "\n", "-", "— ", "(@a", "@", "(@a) "),
    relevant_part: ("Mr. ", "it does not mean ", "it does not meet ", "a though ", ", except for "),
    read: ("“", "“a", "“a”", '"', "a:", "[a TO ", "a“ "),
    COMMA.split: (",", "a,", "(,"),
}


@each(("reader", "pump"), [(reader, pump) for reader, pumps in READERS.items() for pump in pumps])
def test_a_text_is_read_in_linear_time(reader: Callable[[str], Any], pump: str) -> None:
    text, start = pump * (LENGTH // len(pump)), time.process_time()
    reader(text)
    assert time.process_time() - start < 5
