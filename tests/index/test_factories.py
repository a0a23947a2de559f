"""The methods by which an index makes stages: each has the parameters of its stage, and passes them by name."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from support.small_collections import DOCS

from fontes.core.part import stages
from fontes.index import Index

FACTORIES = ("bm25", "tfidf", "ql", "learned_sparse", "rm3", "dense", "late", "splade")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("i") / "papers.index")


@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_has_the_parameters_of_the_stage_of_its_name_in_their_order_with_their_defaults(name: str) -> None:
    fields = [field for field in dataclasses.fields(stages[name]) if field.name != "index"]
    parameters = list(inspect.signature(getattr(Index, name)).parameters.values())[1:]
    assert [p.name for p in parameters] == [field.name for field in fields]
    for parameter, field in zip(parameters, fields, strict=True):
        nothing = field.default is dataclasses.MISSING
        assert parameter.default is inspect.Parameter.empty if nothing else parameter.default == field.default, parameter.name
        assert parameter.kind is (parameter.POSITIONAL_OR_KEYWORD if nothing else parameter.KEYWORD_ONLY), parameter.name


@pytest.mark.parametrize("name", FACTORIES)
def test_a_factory_passes_each_parameter_to_the_field_of_its_name(index: Index, name: str) -> None:
    parameters = list(inspect.signature(getattr(Index, name)).parameters.values())[1:]
    given = {parameter.name: object() for parameter in parameters}
    factory = getattr(Index, name)
    stage = getattr(factory, "__wrapped__", factory)(index, **given)  # without the check of their values
    assert type(stage) is stages[name]
    assert stage.index is index
    assert {key: getattr(stage, key) for key in given} == given
