"""The methods by which an index makes stages, and the file in which they are written."""

import dataclasses
import inspect
import pickle
import runpy
from pathlib import Path

import pytest
from support.each import each
from support.small_collections import DOCS

import fontes as ft
from fontes.core.parameters import summary
from fontes.core.part import stages
from fontes.index import Index

METHODS = ("bm25", "tfidf", "ql", "learned_sparse", "rm3", "causal_feedback", "dense", "late", "splade")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("i") / "papers.index")


@each("name", METHODS)
def test_a_method_of_the_index_has_the_parameters_of_its_stage(index: Index, name: str) -> None:
    fields = [field for field in dataclasses.fields(stages[name]) if field.name != "index"]
    method = getattr(index, name)
    parameters = list(inspect.signature(method).parameters.values())
    assert inspect.getdoc(method).startswith(summary(stages[name])[:60])
    assert [parameter.name for parameter in parameters] == [field.name for field in fields]
    for parameter, field in zip(parameters, fields, strict=True):
        nothing = field.default is dataclasses.MISSING
        assert parameter.default is inspect.Parameter.empty if nothing else parameter.default == field.default, parameter.name


@each("name", METHODS)
def test_a_method_passes_each_parameter_to_the_field_of_its_name(
    index: Index, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages[name], "check", lambda self: None)
    method = getattr(index, name)
    values = {parameter: object() for parameter in inspect.signature(method).parameters}
    stage = method(**values)
    assert type(stage) is stages[name]
    assert stage.index is index.state
    assert {key: getattr(stage, key) for key in values} == values


def test_an_index_has_no_method_of_a_stage_that_works_on_no_index(index: Index) -> None:
    with pytest.raises(AttributeError, match="no attribute 'cut'"):
        index.cut(10)  # type: ignore[attr-defined]
    assert "bm25" in dir(index)
    assert "cut" not in dir(index)
    assert not hasattr(index.state, "bm25")


def test_an_index_is_one_with_methods_wherever_it_is_opened(index: Index) -> None:
    assert type(Index.open(index.path)) is type(index) is ft.Index
    assert type(pickle.loads(pickle.dumps(index))) is ft.Index


def test_an_index_has_the_public_attributes_of_its_state(index: Index) -> None:
    public = {name for name in dir(index.state) if not name.startswith("_")}
    assert public - set(dir(index)) == {"newest"}  # makes a state
    assert index.doc("d1") == index.state.doc("d1")
    assert index.path is index.state.path
    assert "Return the document" in inspect.getdoc(ft.Index.doc)


def test_the_methods_are_written_down_as_their_stages_are() -> None:
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "index_methods.py"))
    assert tool["FILE"].read_text(encoding="utf-8") == tool["written"](), "run: python tools/index_methods.py"


def test_a_stage_reads_the_state_that_it_was_made_over_for_good(tmp_path) -> None:
    index = Index.build([("a", "water"), ("b", "desert")], tmp_path / "x")
    before = index.bm25()
    index.add([("c", "water")])
    assert before.search("water").ids == ["a"]
    assert sorted(index.bm25().search("water").ids) == ["a", "c"]
    assert before.with_(k1=2.0).index is before.index
    assert stages["bm25"](index=index).index is index.state
