"""What is tuned: whose parameter a name is, what its present value is, and how a setting makes the stage."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest

import fontes as ft
from fontes.tuning.search import RUNS, MemoizedStage, RunMemory
from fontes.tuning.space import default_space, maker_of


def test_the_default_space_has_the_ranges_of_the_classes(collection):
    index, _, _ = collection
    usual = {"k1": (0.1, 4.5, 0.2), "b": (0, 1, 0.1), "k3": [None, 0, 2, 8]}
    space = default_space(index.bm25())
    assert list(space) == ["k1", "b", "k3"]
    assert space["k1"][:2] == usual["k1"][:2]
    assert space["b"][:2] == usual["b"][:2]
    assert list(space["k3"]) == usual["k3"]
    assert list(default_space(index.ql())) == ["mu"]
    assert list(default_space(index.ql(smoothing="jelinek-mercer"))) == ["lambda_"]
    assert list(default_space(index.ql() + index.bm25())) == ["mu", "k1", "b", "k3"]


def test_a_stage_gives_present_values_and_ranges_by_name(collection):
    index, _, _ = collection
    stage = index.bm25(k1=1.3) >> index.rm3(fb_docs=4) >> index.bm25(b=0.2)
    maker, space = maker_of(stage, {"k1": [1], "bm25__b": [1], "fb_docs": [1]}, None)
    assert maker.default == {"k1": 1.3, "bm25__b": 0.4, "fb_docs": 4}
    assert maker.unchanged == stage
    assert space == {"k1": [1], "bm25__b": [1], "fb_docs": [1]}
    assert maker({"k1": 2.0, "fb_docs": 9}) == index.bm25(k1=2.0) >> index.rm3(fb_docs=9) >> index.bm25(k1=2.0, b=0.2)
    assert maker.ranges["k1"][:2] == (0.1, 4.5)
    assert maker({}) == stage


def test_a_name_that_parts_of_several_kinds_have_needs_its_part(collection):
    index, _, _ = collection
    stage = index.bm25() + index.ql()
    maker, _ = maker_of(stage, {"ql__k": [5], "bm25__k": [7]}, None)
    assert maker({"ql__k": 5, "bm25__k": 7}) == index.bm25(k=7) + index.ql(k=5)


def test_paths_of_a_text_name_the_first_second_and_third_part_of_a_kind(collection):
    index, _, _ = collection
    text = "bm25(k1=tune([1])) >> rm3(fb_docs=tune([2])) >> bm25(b=0.3, k1=tune([2]))"
    text += " >> rm3() >> bm25(k1=tune([3]), b=tune([0.5]))"
    maker, space = maker_of(text, None, index)
    assert dict(space) == {"bm25__k1": [1], "rm3__fb_docs": [2], "bm25_2__k1": [2], "bm25_3__k1": [3], "bm25_3__b": [0.5]}
    assert maker.default == {"bm25__k1": 0.9, "rm3__fb_docs": 10, "bm25_2__k1": 0.9, "bm25_3__k1": 0.9, "bm25_3__b": 0.4}
    setting = {"bm25__k1": 1, "rm3__fb_docs": 2, "bm25_2__k1": 2, "bm25_3__k1": 3, "bm25_3__b": 0.5}
    first = index.bm25(k1=1) >> index.rm3(fb_docs=2) >> index.bm25(k1=2, b=0.3)
    assert maker(setting) == first >> index.rm3() >> index.bm25(k1=3, b=0.5)
    changed, added = maker_of("bm25(k1=tune())", {"bm25__k1": [0.7]}, {"only": index})
    assert dict(added) == {"bm25__k1": [0.7]}
    assert changed.ranges["bm25__k1"][:2] == (0.1, 4.5)


def test_a_function_gives_the_defaults_of_its_signature(collection):
    index, _, _ = collection

    def make(k1=1.1, *rest, b, **others):
        return index.bm25(k1=k1, b=b)

    maker, _ = maker_of(make, {"b": [0.1]}, None)
    assert (maker.default, maker.ranges, maker.unchanged) == ({}, {}, None)
    maker, _ = maker_of(make, {"b": [0.1], "k1": [2], "more": [1]}, None)
    assert maker.default == {"k1": 1.1}
    assert maker.unchanged is None
    assert maker({"k1": 2, "b": 0.1, "more": 1}) == index.bm25(k1=2, b=0.1)
    maker, _ = maker_of(functools.partial(make, b=0.7), {"k1": [2]}, None)
    assert maker.unchanged == index.bm25(k1=1.1, b=0.7)
    assert maker.default == {"k1": 1.1}


def test_of_a_function_without_a_signature_nothing_is_known():
    maker, space = maker_of(dict, {"k1": [2]}, None)
    assert (maker.make, maker.unchanged, maker.default, maker.ranges, space) == (dict, None, {}, {}, {"k1": [2]})


def test_a_memory_runs_each_stage_once_and_forgets_those_used_longest_ago(collection):
    _, topics, _ = collection
    calls = []

    @dataclass(frozen=True, eq=False)
    class Counted(ft.Stage[ft.Topics, ft.Run]):
        def apply(self, topics, /):
            calls.append(self)
            return ft.Run.of({t: {"d01": 1.0} for t in topics})

    memory = RunMemory(topics)
    stages = [Counted() for _ in range(RUNS + 1)]
    for stage in stages[:RUNS]:
        assert memory.run(stage) is memory.run(stage)
    assert calls == stages[:RUNS]
    memory.run(stages[0])  # used last now
    memory.run(stages[RUNS])  # one too many: the second goes
    assert len(calls) == RUNS + 1
    memory.run(stages[0])
    assert len(calls) == RUNS + 1
    memory.run(stages[1])
    assert len(calls) == RUNS + 2


def test_inner_stages_are_remembered_for_the_memorys_own_topics_only(collection):
    index, topics, _ = collection
    memory = RunMemory(topics)
    single = index.bm25()
    assert memory.reusing(single) is single
    seen = []

    @dataclass(frozen=True, eq=False)
    class Noted(ft.Stage[ft.Topics, ft.Run]):
        def apply(self, topics, /):
            seen.append(list(topics))
            return single(topics)

    stage = Noted() >> index.rm3(fb_docs=2) >> Noted()
    whole = (single >> index.rm3(fb_docs=2) >> single)(topics).to_dict()
    for _ in range(2):
        reused = memory.reusing(stage)
        assert [type(part) for part in ft.core.part.walk(reused)].count(MemoizedStage) == 2
        assert reused(topics).to_dict() == whole
    assert len(seen) == 3  # the first search once, the second, of expanded queries, each time
    some = ft.Topics.of({"other": "moss fern"})
    assert reused(some).to_dict() == stage(some).to_dict()
    assert seen[3:] == [["other"]] * 4


@pytest.fixture(scope="module")
def separate(tmp_path_factory):
    docs = [ft.Doc(f"d{n}", "water " * n + "stone", "spring" if n % 2 else "") for n in range(6)]
    return ft.Index.build(docs, tmp_path_factory.mktemp("tune") / "fields.index", separate=True)


def test_a_dot_names_the_weight_or_the_b_of_one_field(separate):
    stage = separate.bm25(fields={"title": 3, "text": 1}, b=0.5)
    maker, _ = maker_of(stage, {"fields.title": [1, 2], "bm25__b.title": [0.1], "k1": [2]}, None)
    assert maker.default == {"fields.title": 3, "bm25__b.title": 0.5, "k1": 0.9}
    assert maker.ranges["fields.title"] == (0.5, 10.0, 0.5)
    made = maker({"fields.title": 2, "bm25__b.title": 0.1, "k1": 2})
    assert made == separate.bm25(k1=2, fields={"title": 2, "text": 1}, b={"title": 0.1, "text": 0.5})
    joined, _ = maker_of(separate.bm25(), {"fields.title": [4]}, None)
    assert joined.default == {"fields.title": 1}
    assert joined({"fields.title": 4}) == separate.bm25(fields={"title": 4, "text": 1})
    assert list(default_space(separate.bm25(fields={"title": 1}, b={"title": 0.3}))) == ["k1", "b.title", "k3"]


def test_a_text_tunes_single_values_of_a_mapping(separate):
    text = "bm25(fields={'title': tune(), 'text': 1}, b={'title': tune(0, 1), 'text': 0.4})"
    maker, space = maker_of(text, None, separate)
    assert dict(space) == {"bm25__fields.title": (0.5, 10.0, 0.5), "bm25__b.title": (0, 1)}
    assert maker.default == {"bm25__fields.title": 1.0, "bm25__b.title": 0.4}
    made = maker({"bm25__fields.title": 7, "bm25__b.title": 0.9})
    assert made == separate.bm25(fields={"title": 7, "text": 1}, b={"title": 0.9, "text": 0.4})


def test_weights_of_fields_are_tuned_by_cross_validation(separate):
    topics = ft.Topics.of({f"q{n}": "spring water" for n in range(4)})
    qrels = ft.Qrels.of({f"q{n}": {"d5": 1} for n in range(4)})
    stage = separate.bm25(fields={"title": 1, "text": 1})
    for method in ({"method": "grid"}, {"method": "random", "trials": 3}):
        found = ft.tune(stage, {"fields.title": (0.5, 4, 0.5)}, topics, qrels, "RR", folds=2, **method)
        assert found.stage.fields["title"] == found.params["fields.title"]
        assert found.to_dict()["params"] == found.params
        assert "fields.title=" in str(found)
