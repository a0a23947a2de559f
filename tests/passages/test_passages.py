"""Runs of passages: how documents are split, what their ids and scores are, and how they become documents again."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import fontes as ft
from fontes.core.expression import pipeline
from fontes.passages import PassageDocuments
from fontes.passages.split import _pack_sentences

CZECH = "Příliš žluťoučký kůň úpěl. Ďábelské ódy zněly. A pak bylo ticho."


class Collection:
    """Documents in memory, and how often they were asked for."""

    def __init__(self, docs: Iterable[ft.Doc]) -> None:
        self.by_id = {doc.id: doc for doc in docs}
        self.asked = 0

    def docs(self, ids: Iterable[str]) -> list[ft.Doc]:
        self.asked += 1
        return [self.by_id[i] for i in ids]


def numbered(n: int) -> str:
    return " ".join(f"w{i}" for i in range(n))


def texts(passages: ft.Passages, text: str) -> list[str]:
    return [p.text for p in passages.of(ft.Doc("d", text))]


def run_over(*docs: ft.Doc) -> ft.Run:
    scores = {"q1": {doc.id: 3.0 - i for i, doc in enumerate(docs)}, "q2": {docs[-1].id: 7.5}, "q3": {}}
    return ft.Run.of(scores, ft.Topics.of({"q1": "one", "q2": "two", "q3": "three"})).with_(documents=Collection(docs))


def test_windows_start_every_stride_words_until_one_reaches_the_end() -> None:
    assert texts(ft.Passages(words=4, stride=2), numbered(9)) == ["w0 w1 w2 w3", "w2 w3 w4 w5", "w4 w5 w6 w7", "w6 w7 w8"]
    assert texts(ft.Passages(words=4, stride=4), numbered(8)) == ["w0 w1 w2 w3", "w4 w5 w6 w7"]
    assert texts(ft.Passages(words=4, stride=1), numbered(3)) == ["w0 w1 w2"]


def test_the_stride_of_an_odd_number_of_words_is_rounded_up() -> None:
    assert texts(ft.Passages(words=5), numbered(9)) == ["w0 w1 w2 w3 w4", "w3 w4 w5 w6 w7", "w6 w7 w8"]
    assert texts(ft.Passages(words=1), numbered(2)) == ["w0", "w1"]


def test_the_default_is_150_words_every_75() -> None:
    found = texts(ft.Passages(), numbered(301))
    assert [p.split()[0] for p in found] == ["w0", "w75", "w150", "w225"]
    assert [len(p.split()) for p in found] == [150, 150, 150, 76]


@given(st.integers(1, 60), st.integers(1, 12), st.data())
def test_windows_are_those_of_a_plain_loop(n: int, words: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, words))
    whole, expected, start = numbered(n).split(), [], 0
    while True:
        expected.append(" ".join(whole[start : start + words]))
        if start + words >= n:
            break
        start += stride
    assert texts(ft.Passages(words=words, stride=stride), numbered(n)) == expected


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 8))
def test_sentences_are_packed_as_a_plain_loop_packs_them(lengths: list[int], most: int) -> None:
    """Whole sentences as long as they fit; one that fits into no passage begins one and is cut after each `most` words."""
    sentences = [[f"S{number}.{word}" for word in range(length)] for number, length in enumerate(lengths)]
    expected: list[list[str]] = [[]]
    for sentence in sentences:
        if expected[-1] and len(expected[-1]) + len(sentence) > most:
            expected.append([])
        for word in sentence:
            if len(expected[-1]) == most:
                expected.append([])
            expected[-1].append(word)
    text = "  ".join(" ".join(sentence) for sentence in sentences)
    spans, at = [], 0
    for sentence in sentences:
        end = at + len(" ".join(sentence))
        spans.append((at, end))
        at = end + 2
    assert [text[a:b].split() for a, b in _pack_sentences(text, spans, most)] == expected


@given(st.integers(0, 60), st.integers(1, 12), st.data())
def test_every_word_is_in_a_passage_and_no_passage_is_inside_the_one_before_it(n: int, words: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, words))
    found = [set(p.split()) for p in texts(ft.Passages(words=words, stride=stride), numbered(n))]
    assert set().union(*found) == set(numbered(n).split())
    assert all(len(p) <= words for p in found)
    assert all(not b <= a for a, b in pairwise(found))


def test_a_passage_is_its_part_of_the_text_unchanged() -> None:
    text = "  Žluť\u00a0oučký\n\nkůň\t(úpěl) ďábelské  ódy. "
    assert texts(ft.Passages(words=3, stride=3), text) == ["Žluť\u00a0oučký\n\nkůň", "(úpěl) ďábelské  ódy."]


def test_each_ideograph_counts_as_a_word() -> None:
    assert texts(ft.Passages(words=4, stride=4), "東京都の温泉は hot springs です。") == [
        "東京都の",
        "温泉は hot",
        "springs です。",
    ]


def test_a_document_without_words_has_one_empty_passage() -> None:
    for passages in (ft.Passages(), ft.Passages(sentences="nupunkt")):
        for text in ("", " \n\t "):
            assert passages.of(ft.Doc("d", text, "Title")) == [ft.Doc("d%p0", "", "Title")]


def test_title_and_metadata_stay_with_each_passage() -> None:
    doc = ft.Doc("d", numbered(5), "Title", {"year": 1999})
    kept = ft.Passages(words=3, stride=3).of(doc)
    assert [(p.id, p.title, p.metadata) for p in kept] == [("d%p0", "Title", {"year": 1999}), ("d%p1", "Title", {"year": 1999})]
    assert {p.title for p in ft.Passages(words=3, stride=3, title=False).of(doc)} == {""}


def test_sentences_are_packed_up_to_max_words() -> None:
    text = "One two three. Four five six seven. Eight nine. Ten eleven twelve."
    packed = ft.Passages(sentences="nupunkt", max_words=7)
    assert texts(packed, text) == ["One two three. Four five six seven.", "Eight nine. Ten eleven twelve."]
    assert texts(packed.with_(max_words=6), text) == [
        "One two three.",
        "Four five six seven. Eight nine.",
        "Ten eleven twelve.",
    ]
    assert texts(packed, "Only one sentence here.") == ["Only one sentence here."]


def test_a_sentence_that_is_too_long_is_cut_by_words() -> None:
    text = f"Short one. {numbered(8)} end. Last one."
    assert texts(ft.Passages(sentences="nupunkt", max_words=4), text) == [
        "Short one.",
        "w0 w1 w2 w3",
        "w4 w5 w6 w7",
        "end. Last one.",
    ]


def test_czech_sentences_are_found() -> None:
    assert texts(ft.Passages(sentences="nupunkt", max_words=4), CZECH) == [
        "Příliš žluťoučký kůň úpěl.",
        "Ďábelské ódy zněly.",
        "A pak bylo ticho.",
    ]


@given(st.text(max_size=200), st.integers(1, 8))
def test_any_text_is_split_without_losing_a_word(text: str, most: int) -> None:
    found = texts(ft.Passages(sentences="nupunkt", max_words=most), text)
    assert "".join("".join(p.split()) for p in found) == "".join(text.split())


def test_passages_inherit_score_and_topic() -> None:
    run = run_over(ft.Doc("a", numbered(5)), ft.Doc("b", "short"))
    split = ft.Passages(words=3, stride=3)(run)
    assert split.to_dict() == {"q1": {"a%p1": 3.0, "a%p0": 3.0, "b%p0": 2.0}, "q2": {"b%p0": 7.5}, "q3": {}}
    assert split.topics is run.topics
    assert [d.text for d in split["q1"].docs()] == ["w3 w4", "w0 w1 w2", "short"]


def test_there_and_back_is_the_run_that_it_was() -> None:
    for aggregate in ["max", "mean", "first"]:
        run = run_over(ft.Doc("a", numbered(700)), ft.Doc("b%p3", ""), ft.Doc("http://c/#7", numbered(151)))
        back = (ft.Passages() >> ft.to_documents(aggregate))(run)
        assert back == run
        assert back.documents is run.documents


def test_documents_get_the_best_the_mean_the_sum_or_the_first_of_their_passages() -> None:
    run = ft.Run.of({"q": {"a%p2": 5.0, "a%p10": -1.0, "b%p0": 2.0, "a%p1": 0.5}})
    assert ft.to_documents()(run).to_dict() == {"q": {"a": 5.0, "b": 2.0}}
    assert ft.to_documents("mean")(run).to_dict() == {"q": {"b": 2.0, "a": 1.5}}
    assert ft.to_documents("sum")(run).to_dict() == {"q": {"a": 4.5, "b": 2.0}}
    assert ft.to_documents("first")(run).to_dict() == {"q": {"b": 2.0, "a": 0.5}}


def test_joining_equals_a_plain_loop_on_random_runs() -> None:
    generator = random.Random(1)
    scores = {
        f"q{t}": {f"d{generator.randrange(40)}%p{generator.randrange(12)}": generator.gauss(0, 1) for _ in range(200)}
        for t in range(5)
    }
    plain = {"max": max, "sum": sum, "mean": lambda x: sum(x) / len(x)}
    for aggregate, function in plain.items():
        expected = {}
        for topic, ranking in scores.items():
            by_doc: dict[str, list[float]] = {}
            for passage, score in sorted(ranking.items(), key=lambda item: int(item[0].partition("%p")[2])):
                by_doc.setdefault(passage.partition("%p")[0], []).append(float(np.float32(score)))
            expected[topic] = {d: float(np.float32(function(s))) for d, s in by_doc.items()}
        assert ft.to_documents(aggregate)(ft.Run.of(scores)) == ft.Run.of(expected)


def test_a_tie_of_documents_is_broken_by_their_ids() -> None:
    run = ft.Run.of({"q": {"a%p9": 1.0, "b%p0": 1.0, "c%p1": 1.0}})
    assert ft.to_documents()(run)["q"].ids == ["c", "b", "a"]


def test_ids_as_in_cast_are_had_with_another_separator() -> None:
    run = run_over(ft.Doc("MARCO_D3-4", numbered(4)))
    split = ft.Passages(words=2, stride=2, separator="-")(run)
    assert split["q1"].ids == ["MARCO_D3-4-1", "MARCO_D3-4-0"]
    assert ft.to_documents()(split)["q1"].ids == ["MARCO_D3-4"]  # it knows the separator from the run
    assert ft.to_documents(separator="-")(ft.Run.of(split.to_dict()))["q1"].ids == ["MARCO_D3-4"]


def test_all_from_the_first_separator_on_can_be_taken_off_as_at_cast_2021() -> None:
    wapo = "WAPO_1cf6896e-67be-11e1-ae17-a3ce76ec4751"
    run = ft.Run.of({"q": {f"{wapo}-3": 2.0, "WAPO_1cf6896e-9-1": 3.0, "D7-0": 1.0}})
    run = run.with_(documents=ft.Passages(separator="-").over(Collection([])))
    assert ft.to_documents()(run).to_dict() == {"q": {"WAPO_1cf6896e-9": 3.0, wapo: 2.0, "D7": 1.0}}
    split_at = "FIRST".lower()  # equal to the word in the code, but not the same object
    first = ft.to_documents("sum", split_at=split_at)(run)
    assert first.to_dict() == {"q": {"WAPO_1cf6896e": 5.0, "D7": 1.0}}
    assert first.documents is None  # which do not have documents of these ids


class Counting(ft.Passages):
    """Keeps the texts that it splits."""

    def splitter(self) -> Any:
        return lambda texts: (calls.extend(texts), ft.Passages.splitter(self)(texts))[1]


calls: list[str] = []


def test_text_is_split_when_asked_for_and_not_again() -> None:
    docs = Collection([ft.Doc("a", numbered(400)), ft.Doc("b", "x")])
    split = Counting().over(docs)
    assert docs.asked == 0
    calls.clear()
    assert [d.id for d in split.docs(["a%p1", "b%p0", "a%p0"])] == ["a%p1", "b%p0", "a%p0"]
    for _ in range(3):
        split.docs(["a%p2"])
    assert len(calls) == 2


def test_the_places_of_so_many_documents_are_remembered_and_then_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.passages.aggregate.MAX_CACHED_DOCUMENTS", 3)
    split = Counting(words=2, stride=2).over(Collection([ft.Doc(i, numbered(3)) for i in "abcd"]))
    for some, anew in (("abc", 3), ("c", 0), ("d", 1), ("ab", 2), ("cb", 1)):
        calls.clear()
        assert split.counts(list(some)) == [2] * len(some)
        assert len(calls) == anew, some
    assert [doc.text for doc in split.docs(["d%p1", "a%p0"])] == ["w2", "w0 w1"]


def test_a_run_of_passages_goes_through_pickle_with_its_text(tmp_path: Path) -> None:
    index = ft.Index.build([("a", numbered(5)), ("b", "w1 w9")], tmp_path / "i")
    split = (index.bm25() % 5 >> ft.Passages(words=3, stride=3))("w1")
    again = pickle.loads(pickle.dumps(split))
    assert again == split
    assert again["1"].docs() == split["1"].docs()
    assert isinstance(again.documents, PassageDocuments)


def test_passages_of_passages_come_back_one_level_at_a_time() -> None:
    run = run_over(ft.Doc("a", numbered(8)))
    outer = ft.Passages(words=4, stride=4)(run)
    inner = ft.Passages(words=2, stride=2)(outer)
    assert inner["q1"].ids[0] == "a%p1%p1"
    assert inner["q1"].docs()[0].text == "w6 w7"
    assert ft.to_documents()(inner) == outer


def test_passages_of_a_corpus_can_be_indexed_and_found(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(json.dumps({"_id": i, "title": "", "text": t}) for i, t in [("a", numbered(4)), ("b", "")]))
    index = ft.Index.build(ft.Passages(words=2, stride=2).docs(corpus), tmp_path / "i")
    assert index.ids.tolist() == ["a%p0", "a%p1", "b%p0"]
    found = (index.bm25() >> ft.to_documents())("w3")
    assert found.to_dict() == {"1": {"a": pytest.approx(index.bm25()("w3").scores[0])}}
    assert found.documents is None


def test_the_stages_have_a_text_that_makes_them_again() -> None:
    split = ft.Passages(words=20, title=False) >> ft.to_documents("mean", split_at="first")
    assert repr(split) == 'passages(words=20, title=False) >> to_documents(aggregate="mean", split_at="first")'
    assert pipeline(split.text) == split
    assert pipeline('passages(words=20, title=False) >> to_documents("mean", split_at="first")') == split


def test_passages_are_marked_as_their_documents_are() -> None:
    class Marking(Collection):
        def marked(self, query: str, doc: ft.Doc) -> str:
            return f"{query}: {doc.text}"

    assert ft.Passages().over(Collection([])).marked is None
    assert ft.Passages().over(Marking([])).marked("q", ft.Doc("a", "x")) == "q: x"
