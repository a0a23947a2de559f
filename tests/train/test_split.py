"""Splits: what is a duplicate, what stays together, and what leaks."""

import itertools
import json
import random
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from support.each import each
from support.examples import up_to
from typer.testing import CliRunner

import fontes as ft
from fontes.app.cli import app
from fontes.train.duplicates import SHINGLE, duplicates_of, near_pairs, normalised

LONG = "the minister said on monday that the bridge over the river will open again in the spring of next year"


def texts(*given: str) -> ft.Topics:
    return ft.Topics.of({f"t{i:02}": text for i, text in enumerate(given)})


def jaccard(one: str, other: str) -> float:
    a, b = ({t[i : i + SHINGLE] for i in range(max(1, len(t) - SHINGLE + 1))} for t in (one, other))
    return len(a & b) / len(a | b)


def pairs(topics: ft.Topics, near: float | None = 0.8) -> dict[tuple[str, str], str]:
    return {(pair.of, pair.id): pair.kind for pair in duplicates_of(list(topics.values()), near)}


def test_texts_are_the_same_but_for_case_space_and_punctuation():
    found = pairs(texts("Is it true?", "is  it TRUE", "Is it true?", "is it not true", "ſtraße", "STRASSE!"), None)
    assert found == {
        ("t00", "t01"): "normalised",
        ("t00", "t02"): "exact",
        ("t01", "t02"): "normalised",
        ("t04", "t05"): "normalised",
    }


def test_texts_without_a_letter_are_not_all_the_same():
    assert pairs(texts("?!", "…", "?!", " ")) == {("t00", "t02"): "exact"}
    assert normalised(ft.Topic("1", "?!")) == "?!"


def test_a_long_text_with_one_word_more_is_near_and_one_that_differs_more_is_not():
    found = duplicates_of(list(texts(LONG, f"{LONG} says", f"{LONG[:60]} something else altogether").values()), 0.8)
    assert [(pair.id, pair.of, pair.kind) for pair in found] == [("t01", "t00", "near")]
    assert found[0].similarity == pytest.approx(jaccard(LONG, f"{LONG} says"))


@settings(max_examples=up_to(60), deadline=None)
@given(
    st.lists(st.text("abc ", max_size=14), unique=True, max_size=25),
    st.sampled_from([0.05, 0.3, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0]),
)
def test_near_pairs_are_exactly_those_that_all_comparisons_give(given, near):
    expected = [(a, b) for a, b in itertools.combinations(range(len(given)), 2) if jaccard(given[a], given[b]) >= near - 1e-12]
    found = near_pairs(given, near)
    assert [(a, b) for a, b, _ in found] == expected
    for a, b, similarity in found:
        assert similarity == pytest.approx(jaccard(given[a], given[b]))


def test_turns_that_ask_the_same_in_other_conversations_are_no_duplicates():
    def turn(topic_id: str, *said: str) -> ft.Topic:
        return ft.Topic(topic_id, said[-1], turns=tuple(ft.Turn(text) for text in said))

    topics = [turn("1_2", "What is moss?", "Where does it grow?"), turn("2_2", "What is fern?", "Where does it grow?")]
    again = turn("3_2", "what is moss", "where does it grow")
    longer = turn("1_3", "What is moss?", "Where does it grow?", "Why?")
    assert duplicates_of(topics, 0.5) == []
    assert [(p.id, p.of, p.kind) for p in duplicates_of([*topics, again, longer], 0.5)] == [("3_2", "1_2", "normalised")]


def many(count: int = 60) -> tuple[ft.Topics, ft.Qrels]:
    """Topics that differ, three to a document and four to a conversation."""
    rng = random.Random(7)
    words = [f"{a}{b}" for a in ("stone", "water", "moss", "fern", "well") for b in ("like", "less", "wards", "fall")]
    topics = {f"c{i // 4:02}_{i % 4}": " ".join(rng.sample(words, 8)) for i in range(count)}
    return ft.Topics.of(topics), ft.Qrels.of({t: {f"d{i // 3}": 1} for i, t in enumerate(topics)})


def test_both_sides_together_are_all_topics_with_their_judgments():
    topics, qrels = many()
    found = ft.split(topics, qrels, test=0.25)
    assert (len(found.train.topics), len(found.test.topics)) == (45, 15)
    assert found.train.topics.keys() | found.test.topics.keys() == topics.keys()
    for side in found.train, found.test:
        assert side.qrels.to_dict() == {t: dict(qrels[t]) for t in side.topics}
    assert len(ft.split(topics, qrels, test=7).test.topics) == 7
    train_topics, train_qrels = found.train
    assert train_topics is found.train.topics
    assert train_qrels is found.train.qrels


def test_a_split_and_its_leakage_cannot_be_changed():
    split = ft.split(*many(), test=0.25)
    for value, name in ((split, "seed"), (split, "train"), (split.leakage, "documents")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)


def test_the_split_depends_on_the_seed_and_not_on_the_order():
    topics, qrels = many()
    one = ft.split(topics, qrels, groups="document", seed=3)
    back = ft.split(list(topics.values())[::-1], dict(reversed(qrels.to_dict().items())), groups="document", seed=3)
    assert one.to_dict() == back.to_dict()
    assert one.test.qrels.to_dict() == back.test.qrels.to_dict()
    assert ft.split(topics, qrels, groups="document", seed=4).test.topics.keys() != one.test.topics.keys()


@pytest.mark.parametrize("groups", ["document", "conversation", lambda topic: topic.id[-1]])
def test_a_group_is_never_torn_apart(groups):
    topics, qrels = many()
    found = ft.split(topics, qrels, test=0.3, groups=groups)
    assert 0 < len(found.test.topics) <= 18

    def names(ids) -> set[object]:
        if groups == "document":
            return {d for t in ids for d in qrels[t]}
        return {t[:3] if groups == "conversation" else t[-1] for t in ids}

    assert not names(found.train.topics) & names(found.test.topics)


def test_topics_that_one_other_joins_by_its_documents_are_one_group():
    """a and b share no document; c, which comes last, shares one with each. Likewise along a chain."""
    judged = {"a": {"1"}, "b": {"2"}, "c": {"1", "2"}, "p": {"5"}, "q": {"6"}, "r": {"7"}, "s": {"6", "7"}, "t": {"5", "7"}}
    words = [f"{word}{n}" for word in ("stone", "water", "moss", "fern") for n in range(12)]
    rng = random.Random(3)
    alone = {f"x{n}": {f"own{n}"} for n in range(8)}
    topics = ft.Topics.of({topic: " ".join(rng.sample(words, 9)) for topic in (judged | alone)})
    qrels = ft.Qrels.of({topic: dict.fromkeys(docs, 1) for topic, docs in (judged | alone).items()})
    sizes = set()
    for seed in range(25):
        found = ft.split(topics, qrels, test=0.5, groups="document", seed=seed)
        assert found.groups == 2 + len(alone)
        assert not found.leakage.documents
        for group in ("abc", "pqrst"):
            inside = set(group) & found.test.topics.keys()
            assert inside in (set(), set(group))
            sizes.add((group, len(inside)))
    assert sizes == {("abc", 0), ("abc", 3), ("pqrst", 0), ("pqrst", 5)}


def test_a_document_of_grade_0_joins_no_topics():
    topics, _ = many(8)
    qrels = ft.Qrels.of({topic: {"shared": 0, f"own{n}": 1} for n, topic in enumerate(topics)})
    assert ft.split(topics, qrels, test=2, groups="document").groups == 8


def test_without_groups_shared_documents_are_reported_as_leakage():
    topics, qrels = many()
    found = ft.split(topics, qrels)
    documents = sorted({d for grades in qrels.values() for d in grades})
    sides = {d: tuple(tuple(t for t in side.topics if d in qrels[t]) for side in (found.train, found.test)) for d in documents}
    expected = {d: both for d, both in sides.items() if all(both)}
    assert expected
    assert found.leakage.documents == expected
    assert found.leakage.topics == {t for _, ids in expected.values() for t in ids}


def test_duplicates_are_left_out_and_reported():
    topics, _ = many(8)
    first = next(iter(topics.values())).text
    more = [*topics.values(), ft.Topic("x1", first), ft.Topic("x2", first.upper() + "."), ft.Topic("x3", first + "s")]
    found = ft.split(more, test=2)
    assert {(pair.id, pair.of, pair.kind) for pair in found.duplicates} == {
        ("x1", "c00_0", "exact"),
        ("x2", "c00_0", "normalised"),
        ("x3", "c00_0", "near"),
    }
    assert not {"x1", "x2", "x3"} & (found.train.topics.keys() | found.test.topics.keys())
    assert "1 normalised duplicate left out: x2 = c00_0" in str(found)
    assert ft.train.leakage(found.train, found.test).topics == frozenset()
    assert len(ft.split(more, near=None).duplicates) == 2


def test_a_topic_that_is_near_only_to_one_left_out_is_kept():
    chain = [LONG[i : i + 80] for i in (0, 5, 10)]
    assert jaccard(chain[0], chain[2]) < 0.85 < min(jaccard(*chain[:2]), jaccard(*chain[1:]))
    found = ft.split(texts(*chain, "moss", "fern"), near=0.85)
    assert [(pair.id, pair.of) for pair in found.duplicates] == [("t01", "t00")]


def test_the_judgments_of_the_same_text_go_to_the_topic_that_is_kept():
    topics = texts("Is moss a plant?", "is moss a plant", "what is fern", "why is water wet")
    qrels = {"t00": {"a": 1, "b": 0}, "t01": {"b": 2, "c": 1}, "t02": {"d": 1}, "t03": {"e": 1}}
    found = ft.split(topics, qrels, test=1)
    judged = found.train.qrels.to_dict() | found.test.qrels.to_dict()
    assert judged == {"t00": {"a": 1, "b": 2, "c": 1}, "t02": {"d": 1}, "t03": {"e": 1}}


def test_the_judgments_of_a_near_text_do_not():
    topics = texts(LONG, f"{LONG} says", "moss", "fern")
    qrels = {"t00": {"a": 1}, "t01": {"b": 1}, "t02": {"c": 1}, "t03": {"d": 1}}
    found = ft.split(topics, qrels, test=1)
    assert (found.train.qrels.to_dict() | found.test.qrels.to_dict())["t00"] == {"a": 1}


def test_given_splits_are_merged(tmp_path):
    topics, qrels = many(12)
    parts = [ft.Topics(list(topics.values())[i : i + 4]) for i in (0, 4, 8)]
    judged = [ft.Qrels((t, "0", d, 1) for t in part for d in qrels[t]) for part in parts]
    merged = ft.split([parts[1], parts[2], parts[0]], [judged[2], judged[0], judged[1]], test=3)
    assert merged.to_dict() == ft.split(topics, qrels, test=3).to_dict()
    files = []
    for i, part in enumerate(parts):
        ft.write_topics(part, tmp_path / f"{i}.jsonl")
        files.append(tmp_path / f"{i}.jsonl")
    assert ft.split(files, qrels, test=3).to_dict() == merged.to_dict()
    assert ft.split([*parts, parts[0]], qrels, test=3).to_dict() == merged.to_dict()


def test_topics_without_judgments_and_judgments_without_topics_are_counted():
    topics, qrels = many(12)
    more = ft.Topics([*topics.values(), ft.Topic("new", "a topic that nobody has judged")])
    found = ft.split(more, qrels.to_dict() | {"gone": {"d1": 1}})
    assert (found.unjudged, found.unknown) == (1, 1)
    assert "1 topic without judgments left out\n1 judged topic without text left out" in str(found)


def test_leakage_between_given_splits_names_pairs_and_documents():
    train = ft.Topics.of({"1": "Is moss a plant?", "2": LONG, "3": "what is fern"})
    test = ft.Topics.of({"1": "is moss a plant", "5": f"{LONG} says", "6": "why is water wet", "7": "is moss a plant!"})
    judged = {"1": {"a": 1}, "2": {"b": 1}, "3": {"c": 1}}, {"1": {"x": 1}, "5": {"y": 1}, "6": {"c": 1, "b": 0}, "7": {"z": 1}}
    found = ft.train.leakage((train, judged[0]), (test, judged[1]))
    assert [(pair.id, pair.of, pair.kind) for pair in found.same] == [("1", "1", "normalised"), ("7", "1", "normalised")]
    assert [(pair.id, pair.of) for pair in found.near] == [("5", "2")]
    assert found.documents == {"c": (("3",), ("6",))}
    assert found.topics == {"1", "5", "6", "7"}
    lines = str(found).splitlines()
    assert lines[0] == "leakage from 3 training topics to 4 test topics:"
    assert lines[1].split()[:6] == ["the", "same", "text", "2", "test", "topics"]
    assert lines[3].split()[-4:] == ["1", "test", "topic", "25.0%"]
    assert json.loads(json.dumps(found.to_dict()))["topics"] == 4
    alone = ft.train.leakage(train, test, near=None)
    assert (len(alone.same), alone.near, alone.documents) == (2, (), {})
    assert "relevant document" not in str(alone)


def test_the_command_writes_both_sides_and_prints_the_report(tmp_path: Path):
    topics, qrels = many(24)
    items = list(topics.values())
    ft.write_topics(items[:12], tmp_path / "a.jsonl")
    ft.write_topics(items[12:], tmp_path / "b.jsonl")
    ft.write_qrels(qrels, tmp_path / "q.txt")
    arguments = ["split", str(tmp_path / "a.jsonl"), str(tmp_path / "q.txt"), "--with", str(tmp_path / "b.jsonl")]
    arguments += ["--test", "0.25", "--group", "document", "--seed", "2"]
    done = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out")])
    expected = ft.split(topics, qrels, 0.25, groups="document", seed=2)
    assert done.output == f"{expected}\n"
    for name, side in (("train", expected.train), ("test", expected.test)):
        assert dict(ft.read_topics(tmp_path / f"out/{name}.jsonl")) == dict(side.topics)
        assert ft.read_qrels(tmp_path / f"out/{name}.qrels").to_dict() == side.qrels.to_dict()
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert json.loads(done.output) == expected.to_dict()


def test_the_splits_of_checkthat_2020_leak(shared):
    folder = shared / "checkthat20_task2"
    topics = ft.read_topics(folder / "queries.jsonl")
    train, dev, test = (ft.read_qrels(folder / f"qrels/{name}.tsv") for name in ("train", "dev", "test"))
    found = ft.train.leakage((topics, train), (topics, test))
    assert {(pair.id, pair.of) for pair in found.same} == {("1001", "973"), ("1093", "457")}
    shared_documents = {d for g in train.values() for d in g} & {d for g in test.values() for d in g}
    assert found.documents.keys() == shared_documents
    new = ft.split(topics, [train, dev, test], groups="document")
    assert not new.leakage.topics
    assert new.leakage == ft.train.leakage(new.train, new.test)
    assert len(new.duplicates) == 7


@pytest.mark.parametrize(("extra", "ellipsis"), [(3, False), (4, True)])
def test_a_report_names_three_duplicates_and_marks_that_there_are_more(extra: int, ellipsis: bool):
    report = str(ft.split(texts(*["the same text"] * (1 + extra), "another one"), near=None, test=1))
    line = next(line for line in report.splitlines() if "duplicates left out" in line)
    assert line == f"{extra} exact duplicates left out: t01 = t00, t02 = t00, t03 = t00{', …' if ellipsis else ''}"


@each(("test", "size"), [(0.01, 1), (0.3, 2), (0.5, 2), (0.7, 4), (1, 1), (4, 4)])
def test_a_test_side_has_the_rounded_share_and_at_least_one_topic(test: float, size: int):
    divided = ft.split(texts("alpha", "bravo", "charlie", "delta", "echo"), near=None, test=test)
    assert (len(divided.train.topics), len(divided.test.topics)) == (5 - size, size)


def test_leakage_of_two_topics_without_judgments_is_of_their_texts():
    leaking = ft.train.leakage(texts("alpha", "bravo"), texts("charlie", "bravo"), near=None)
    assert [(pair.id, pair.of) for pair in leaking.same] == [("t01", "t01")]


def test_a_report_counts_groups_only_where_topics_share_them():
    topics = texts("alpha", "bravo", "charlie", "delta")
    assert str(ft.split(topics, near=None, test=1)).startswith("4 topics: 3 for training, 1 for testing (25.0%)")
    grouped = ft.split(topics, near=None, test=2, groups=lambda topic: topic.id in ("t00", "t01"))
    assert str(grouped).startswith("4 topics in 2 groups: 2 for training, 2 for testing (50.0%)")
