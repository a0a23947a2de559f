"""Structured queries as JSON values."""

import json
from typing import Any

import pytest
from hypothesis import given
from support.queries import QUERY
from support.small_collections import PROPERTY

from fontes.core import InputError
from fontes.core.query import MAX_DEPTH, AnyOf, Condition, Group, Phrase, Term, Window

WHOLE = Group(
    must=(Term("water", "title", 2.0),),
    should=(
        Phrase(("hot", "spring"), (0, 2), 3),
        Window(("hot", "spring"), 8),
        AnyOf(("spa",), phrases=(Phrase(("hot", "tub"), (0, 1)),)),
    ),
    must_not=(Group(should=(Condition("year < 2020"), Term("desert"))),),
)
JSON = {
    "must": [{"term": "water", "field": "title", "weight": 2.0}],
    "should": [
        {"terms": ["hot", "spring"], "offsets": [0, 2], "slop": 3},
        {"terms": ["hot", "spring"], "width": 8},
        {"terms": ["spa"], "phrases": [{"terms": ["hot", "tub"], "offsets": [0, 1]}]},
    ],
    "must_not": [{"should": [{"where": "year < 2020"}, {"term": "desert"}]}],
}


def test_a_query_is_written_with_the_names_of_its_arguments_and_without_defaults() -> None:
    assert WHOLE.to_dict() == JSON
    assert Group.from_dict(JSON) == WHOLE


def test_the_scored_leaves_are_those_that_must_or_should_match_in_order() -> None:
    group = Group(must=(Condition("year < 2020"), Group(should=(Term("a"), Term("b")))), should=(Term("c"),))
    assert [leaf.term for leaf in group.scored] == ["a", "b", "c"]
    assert list(WHOLE.scored) == [*WHOLE.must, *WHOLE.should]


def test_a_single_clause_is_read_as_a_group_of_it() -> None:
    assert Group.from_dict({"term": "water"}) == Group(should=(Term("water"),))


@PROPERTY
@given(QUERY)
def test_any_query_is_read_back_from_its_json(query: Group) -> None:
    assert Group.from_dict(json.loads(json.dumps(query.to_dict()))) == query


def test_groups_within_each_other_are_bounded() -> None:
    def nested(depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {"term": "a"}
        for _ in range(depth):
            values = {"must": [values]}
        return values

    assert Group.from_dict(nested(MAX_DEPTH)).must
    with pytest.raises(InputError, match="groups are nested more than 50 deep"):
        Group.from_dict(nested(5000))
