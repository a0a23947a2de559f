"""Pipelines as text: what is written is what is read, and what is wrong is said with its place."""

import ast
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to
from support.toys import Ask, Find, Join, Model, Read, Shelf, toys

from fontes.core import Cut, FontesError, ParameterError, Pipeline, Run, Stage, Topics
from fontes.core.expression import part, pipeline, tunable
from fontes.core.function import stage
from fontes.core.where import MAX_DEPTH
from fontes.index import Index

SHELF = Shelf()
FIND = Find(SHELF)


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    with toys():
        yield


def test_a_stage_prints_the_text_that_makes_it() -> None:
    for made, text in [
        (FIND, "toy_find()"),
        (FIND % 3, "toy_find() % 3"),
        (Find(SHELF, k=3), "toy_find() % 3"),
        (Find(SHELF, k=30), "toy_find(k=30)"),
        (Find(SHELF, 0.5, threads=3), "toy_find(k1=0.5)"),
        (Ask() >> FIND, "toy_ask() >> toy_find()"),
        (FIND % 5 >> Read(Model("m")), 'toy_find() % 5 >> toy_read("m")'),
        (FIND >> Read(Model("m", 9), 2), 'toy_find() >> toy_read(toy_model("m", length=9), factor=2)'),
        (FIND >> Read(Model("m")) % 4, 'toy_find() >> toy_read("m") % 4'),
        (0.7 * FIND + 0.3 * (FIND % 2), "0.7 * toy_find() + 0.3 * (toy_find() % 2)"),
        ((FIND + FIND) % 3, "(toy_find() + toy_find()) % 3"),
        (FIND + FIND >> Read(Model("m")), 'toy_find() + toy_find() >> toy_read("m")'),
        (2 * (0.5 * FIND), "2 * (0.5 * toy_find())"),
        (-1.5 * FIND % 3, "-1.5 * toy_find() % 3"),
        ((FIND >> Read(Model("m"))) + FIND, '(toy_find() >> toy_read("m")) + toy_find()'),
        (Cut(2) >> Read(Model("m")), 'cut(2) >> toy_read("m")'),
        (Join((FIND, 2 * FIND), "x"), 'toy_join(toy_find(), 2 * toy_find(), method="x")'),
        (FIND >> Read(Model('a "b" \\')), "toy_find() >> toy_read('a \"b\" \\\\')"),
    ]:
        assert repr(made) == made.text == text
        again = pipeline(text, SHELF)
        assert repr(again) == text
        assert again("x") == made("x") if made.takes is Topics else again == made


SIMPLE = st.builds(lambda k1, k: Find(SHELF, k1, k), st.floats(0, 4, width=32), st.integers(1, 10))
TREES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, w: w * a, inner, st.floats(-3, 3)),
        st.builds(lambda a, k: a % k, inner, st.integers(1, 20)),
        st.builds(lambda a, f: a >> Read(Model("m"), f), inner, st.integers(-3, 3)),
        st.builds(lambda a: Ask() >> a, inner),
        st.builds(lambda a, b: Join((a, b)), inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=up_to(150), deadline=None)
@given(TREES)
def test_whatever_is_built_with_operators_is_read_back_as_the_same(made: Stage) -> None:
    again = pipeline(made.text, SHELF)
    assert again.text == made.text
    assert again("x") == made("x")


@settings(max_examples=up_to(300), deadline=None)
@given(st.one_of(st.text(max_size=60), st.text("toy_find()>%*+-.,='\"[]{}0123456789 \n", max_size=60)))
def test_any_text_is_a_stage_or_a_sentence(text: str) -> None:
    with contextlib.suppress(FontesError):
        assert isinstance(pipeline(text, SHELF), Stage)


def test_a_text_is_never_evaluated() -> None:
    tree = ast.parse(Path(pipeline.__code__.co_filename).read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"eval", "exec", "compile", "__import__", "getattr_static", "import_module"}


def test_stages_over_several_indexes_name_their_own() -> None:
    title, text = Shelf("title", "1"), Shelf("text", "2")
    made = pipeline('0.2 * toy_find(index="title") + toy_find()', indexes={"text": text, "title": title})
    assert made == 0.2 * Find(title) + Find(text)
    assert made.text == '0.2 * toy_find(index="title") + toy_find(index="text")'
    assert pipeline(made.text, indexes={"title": title, "text": text}) == made


def test_indexes_of_one_name_are_told_apart_by_numbers() -> None:
    one, other = Shelf("x", "1"), Shelf("x", "2")
    made = Find(one) + Find(other)
    assert made.text == 'toy_find(index="x") + toy_find(index="x_2")'
    assert made("q").provenance["indexes"] == {"x": "1", "x_2": "2"}


def test_the_provenance_of_a_run_makes_it_again() -> None:
    run = (Ask() >> FIND % 4 >> Read(Model("m"), 3))("x")
    assert pipeline(run.provenance["system"], SHELF)("x") == run
    assert run.provenance["indexes"] == {"shelf": "f00"}


def test_systems_are_spoken_of_by_name() -> None:
    first = pipeline("toy_find(k1=0.5)", SHELF)
    assert pipeline('first % 2 >> toy_read("m")', SHELF, systems={"first": first}) == first % 2 >> Read(Model("m"))


def test_a_part_that_is_no_stage_has_a_text_too() -> None:
    assert part('toy_model("m", length=3)') == Model("m", 3)
    assert Model("m", 3, "cpu").text == 'toy_model("m", length=3)'
    assert part('toy_model("m", device="cpu")').device == "cpu"


def test_a_stage_of_a_function_takes_part_in_pipelines_and_has_no_text() -> None:
    @stage(takes=Run, gives=Run)
    def doubled(run: Run) -> dict[str, dict[str, float]]:
        return {t: {hit.id: 2 * hit.score for hit in run[t]} for t in run}

    run = (FIND % 2 >> doubled)("x")
    assert run.to_dict() == {"1": {"d0": 24.0, "d1": 22.0}}
    assert repr(FIND >> doubled) == "toy_find() >> stage(doubled)"
    assert (FIND >> doubled).key() is None
    lower = stage(lambda topics: [topic.text.lower() for topic in topics.values()], gives=Topics)
    assert lower("ABC")["1"].text == "abc"


def test_what_is_tuned_is_known_by_its_path() -> None:
    make, space = tunable('toy_find(k1=tune()) + toy_find(k1=tune(0.3, 0.9)) >> toy_read("m", factor=tune([1, 2, 5]))', SHELF)
    assert space == {"toy_find__k1": (0.5, 1.5, 0.5), "toy_find_2__k1": (0.3, 0.9), "toy_read__factor": [1, 2, 5]}
    assert make(toy_find_2__k1=0.7, toy_read__factor=5) == Find(SHELF) + Find(SHELF, 0.7) >> Read(Model("m"), 5)


def test_pipelines_of_pipelines_keep_their_parentheses() -> None:
    inner = Pipeline((FIND, Read(Model("m"))))
    assert Pipeline((Ask(), inner)).text == 'toy_ask() >> (toy_find() >> toy_read("m"))'


def test_a_parameter_may_be_a_mapping_by_strings(tmp_path):
    index = Index.build([("1", "spring")], tmp_path / "x", separate=True)
    assert pipeline('bm25(fields={"title": 3, "text": .5})', index) == index.bm25(fields={"title": 3, "text": 0.5})


def test_lists_are_nested_up_to_a_depth():
    for depth, nested in ((MAX_DEPTH - 1, False), (MAX_DEPTH, True)):
        with pytest.raises(ParameterError) as error:
            pipeline(f"toy_find({'[' * depth}{']' * depth})", Shelf())
        assert (f"nested more than {MAX_DEPTH} deep" in str(error.value)) == nested


def test_capitals_name_the_same_stage() -> None:
    assert pipeline("TOY_Find(k1=2)", Shelf("x", "1")) == pipeline("toy_find(k1=2)", Shelf("x", "1"))
    assert pipeline("ToyFind()", Shelf("x", "1")).text == "toy_find()"
