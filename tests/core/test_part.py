"""Parts: parameters, trees, registering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field

import pytest
from support.toys import TOYS, Ask, Find, Join, Model, Read, Shelf, toys

from fontes.core import ParameterError, Pipeline, Run, Stage, Topics
from fontes.core.hints import nearest
from fontes.core.parameters import parameters, signature, summary
from fontes.core.part import Part, stages, walk
from fontes.core.registry import Registry
from fontes.core.work import Progress

SHELF = Shelf()
TREE = Ask() >> Find(SHELF) % 5 >> Read(Model("m"))


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    with toys():
        yield


def test_a_tree_is_walked_from_the_outside_in() -> None:
    assert [type(part) for part in walk(TREE)] == [Pipeline, Ask, Find, Read, Model]
    assert TREE.parts() == TREE.stages  # type: ignore[attr-defined]


def test_parameters_of_parts_inside_are_changed_by_name_or_field() -> None:
    assert TREE.with_(toy_find__k1=0.5) == Ask() >> Find(SHELF, 0.5) % 5 >> Read(Model("m"))
    assert TREE.with_(toy_read__model__length=7) == Ask() >> Find(SHELF) % 5 >> Read(Model("m", 7))
    assert TREE.with_(toy_model__length=7) == TREE.with_(toy_read__model__length=7)
    both = Find(SHELF) + Find(SHELF, 0.5)
    assert both.with_(toy_find__k1=2.0) == Find(SHELF, 2.0) + Find(SHELF, 2.0)


def test_map_changes_parts_from_the_inside_out_and_leaves_the_tree_it_was_given() -> None:
    seen: list[str] = []

    def change(part: Part) -> Part:
        seen.append(type(part).__name__)
        return part.with_(length=3) if isinstance(part, Model) else part

    changed = Join((TREE, Find(SHELF))).map(change)
    assert seen == ["Ask", "Find", "Model", "Read", "Pipeline", "Find", "Join"]
    assert changed == Join((TREE.with_(toy_model__length=3), Find(SHELF)))
    assert Ask() >> Find(SHELF) % 5 >> Read(Model("m")) == TREE
    assert TREE.map(lambda part: part) is TREE


def test_map_tells_parts_apart_that_are_made_of_strings_on_the_way() -> None:
    """Such parts live no longer than their mapping, so the next one may get the identity of the one before."""
    stages = tuple(Read(f"model {number}") for number in range(50))  # type: ignore[arg-type]
    changed = Join(stages).map(lambda part: part.with_(length=3) if isinstance(part, Model) else part)
    assert [stage.params()["model"] for stage in changed.stages] == [Model(f"model {n}", 3) for n in range(50)]  # type: ignore[attr-defined]


def test_what_is_lacking_is_prepared_in_all_parts() -> None:
    prepared: list[Part] = []

    @dataclass(frozen=True)
    class Slow(Stage[Run, Run]):
        def apply(self, run: Run, /) -> Run:
            return run

        def prepare(self, ray: bool | str | None = None) -> None:
            prepared.append(self)

    (TREE >> Slow() + Slow()).prepare()
    assert prepared == [Slow(), Slow()]


def test_progress_reaches_the_stages_inside() -> None:
    told: list[Progress] = []
    (Ask() >> Join((Find(SHELF) + 2 * Find(SHELF),)))("x", progress=told.append)
    assert [(p.task, p.done, p.fraction, p.unit) for p in told] == [("finding", 1, 1.0, "topics")] * 2


def test_what_a_stage_takes_and_gives_is_said_once() -> None:
    assert (Ask().takes, Ask().gives, Find(SHELF).gives, Read(Model("m")).takes) == (Topics, Topics, Run, Run)
    assert (TREE.takes, TREE.gives) == (Topics, Run)
    assert signature(Find) == ("Topics", "Run")
    assert signature(Model) == ("", "")
    assert signature(Join) == ("any", "Run")


def test_parameters_are_described_by_the_class_alone() -> None:
    known = parameters(Find)
    assert list(known) == ["k1", "k", "threads"]
    assert known["k1"].description == "Their scores are multiplied by this."
    assert (known["k1"].kind, known["k1"].default, known["k1"].range) == ("float", 1.0, (0.5, 1.5, 0.5))
    assert parameters(Read)["model"].default is MISSING
    assert parameters(Read)["model"].string == "toy_model"
    assert summary(Find) == "Finds the same documents for each topic."


@dataclass(frozen=True)
class Remembering(Part):
    weights: dict[str, float] = field(default_factory=dict)
    printed: dict[str, float] = field(default_factory=dict, compare=False)
    cache: dict[str, float] = field(default_factory=dict, repr=False, compare=False)


def test_a_dict_that_is_neither_compared_nor_shown_can_be_changed() -> None:
    stage = Remembering({"title": 2.0})
    stage.cache["a"] = 1.0
    for parameter in (stage.weights, stage.printed):
        with pytest.raises(TypeError):
            parameter["a"] = 1.0
    assert stage == Remembering({"title": 2.0})
    assert hash(stage) == hash(Remembering({"title": 2.0}))
    assert repr(stage) == 'Remembering(weights={"title": 2.0})'
    assert stage.with_(weights={"title": 3.0}).cache is stage.cache


def test_two_classes_of_one_name_are_an_error() -> None:
    with pytest.raises(ParameterError, match="two stages are called 'toy_ask'"):
        stages.add("toy_ask", Find)
    stages.add("toy_ask", Ask)


def test_a_name_registers_a_class_and_is_not_inherited() -> None:
    with stages.restored():

        class Named(Part, name="toy_named"):
            pass

        class Derived(Named):
            pass

        assert stages["toy_named"] is Named
        assert Derived.name == ""


def test_an_unknown_name_says_the_nearest_or_all() -> None:
    registry: Registry[int] = Registry("fontes.nothing", "thing")
    registry.add("alpha", 1)
    with pytest.raises(ParameterError, match="did you mean 'alpha'"):
        registry["alpa"]
    assert nearest("zzz", ["alpha", "beta"]) == "there are alpha, beta"
    assert (list(registry), len(registry), registry.items()) == (["alpha"], 1, [("alpha", 1)])


def test_all_stages_of_the_rooms_are_found_without_importing_torch() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from fontes.core.part import stages; assert 'mono_t5' in stages and 'bm25' in stages; "
        "assert len(stages.items()) == len(stages) > 30; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_the_toys_leave_nothing_behind() -> None:
    assert set(TOYS) <= set(stages)


def test_the_key_of_a_stage_includes_its_index_and_is_missing_without_one() -> None:
    from fontes.lexical import QueryLikelihood

    key = QueryLikelihood(SHELF, mu=500).key()  # type: ignore[arg-type]
    assert key is not None
    assert "Shelf f00" in key
    assert key == QueryLikelihood(Shelf("other name"), mu=500).key()  # type: ignore[arg-type]
    assert key != QueryLikelihood(Shelf(fingerprint="f01"), mu=500).key()  # type: ignore[arg-type]
    assert QueryLikelihood(object()).key() is None  # type: ignore[arg-type]
    assert Find(SHELF).key() is None  # a stage from outside Fontes, which has no `key` of its own
