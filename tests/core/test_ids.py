"""Ids are strings; a number is refused where it would become a string without anybody's doing."""

from __future__ import annotations

import pytest

from fontes.core import InputError, Qrels, Run, Topic, Topics


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Run.of({1: {"a": 1.0}}), "the topic id 1 is no string; write str(1), which is '1'"),
        (lambda: Run.of({"1": {2: 1.0}}), "the document id 2 is no string"),
        (lambda: Run.of({"1": [(2, 1.0)]}), "the document id 2 is no string"),
        (lambda: Qrels.of({1: {"a": 1}}), "the topic id 1 is no string"),
        (lambda: Qrels.of({"1": {2.0: 1}}), "the document id 2.0 is no string; write str(2.0), which is '2.0'"),
        (lambda: Topics.of({1: "flu"}), "the topic id 1 is no string"),
        (lambda: Topics.of([Topic(1, "flu")]), "the topic id 1 is no string"),
    ],
)
def test_a_number_as_an_id_is_an_error_that_shows_what_to_write(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)


def test_a_topic_without_text_in_a_mapping_is_named():
    with pytest.raises(InputError, match="topic 'q1' is no text but a float; give a mapping from id to text or Topic"):
        Topics.of({"q1": float("nan")})
