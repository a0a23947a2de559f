"""Search of an index part by part: after any history, all that it finds is what a scan of its documents finds, to the bit."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.scorer import Scorer

from fontes.core import Doc, Topic, Topics
from fontes.core.query import Group, Phrase, Term
from fontes.index import Index, packing
from fontes.lexical import BM25
from fontes.lexical.direct import Direct
from fontes.storage.compiled import load

MODELS: list[dict[str, Any]] = [{}, {"variant": "atire", "k1": 1.2, "b": 0.75}, {"variant": "robertson", "k1": 0.4, "b": 1.0}]


class History:
    """An index in several segments, and the terms of the documents that must be in it."""

    def __init__(self, path: Path, seed: int) -> None:
        self.draw, self.path, self.texts, self.years = random.Random(seed), path, {}, dict[str, int]()
        self.texts: dict[str, list[str]]
        self.index = Index.build(self.docs(self.draw.choice([30, 300, 900])), path, analyzer="whitespace", positions=True)

    def docs(self, count: int) -> list[Doc]:
        """New documents, of which some are equal, some are empty and some are known by an id that was there before."""
        docs = []
        for _ in range(count):
            words = [f"w{min(60, int(self.draw.paretovariate(0.7)))}" for _ in range(self.draw.randrange(14))]
            if self.texts and self.draw.random() < 0.3:
                words = self.draw.choice(list(self.texts.values()))
            doc_id = f"{self.draw.choice('aZé東')}{self.draw.randrange(10**6)}"
            self.texts[doc_id], self.years[doc_id] = words, self.draw.randrange(2000, 2010)
            docs.append(Doc(doc_id, " ".join(words), metadata={"year": self.years[doc_id]}))
        return list({doc.id: doc for doc in docs}.values())

    def change(self) -> None:
        """Add or delete some documents."""
        if self.draw.random() < 0.6:
            self.index.add(self.docs(self.draw.choice([1, 1, 5, 70])))
        else:
            gone = self.draw.sample(sorted(self.texts), min(len(self.texts) - 1, self.draw.choice([1, 3, 20])))
            self.index.delete(gone)
            for doc_id in gone:
                del self.texts[doc_id]

    def query(self) -> Group:
        """A query of terms and phrases, each at most once."""
        words = [f"w{n}" for n in self.draw.sample(range(1, 62), 5)]
        terms = [Term(word, weight=self.draw.choice([1.0, 1.0, 2.0])) for word in words]
        clauses: list[Any] = [*terms, Phrase((words[0], words[1]), (0, 1)), Phrase((words[2], words[2]), (0, 2))]
        self.draw.shuffle(clauses)
        a, b, c = sorted(self.draw.choices(range(5), k=3))
        return Group(tuple(clauses[:a]), tuple(clauses[a:b]), tuple(clauses[b:c])) if b else Group(should=tuple(clauses[:2]))


def pairs(ranking: Any) -> list[tuple[str, np.float32]]:
    return [(hit.id, np.float32(hit.score)) for hit in ranking]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_after_any_history_a_search_finds_what_a_scan_of_all_documents_finds(tmp_path: Path, seed: int) -> None:
    load()
    history = History(tmp_path / "x", seed)
    models = [MODELS[seed % 3], MODELS[(seed + 1) % 3]]
    for _ in range(5):
        history.change()
        index, draw = history.index, history.draw
        where = f"year < {draw.randrange(2001, 2010)}"
        for parameters in models:
            scorer = Scorer(history.texts, **parameters)

            def passes(doc: str, where: str = where) -> bool:
                return history.years[doc] < int(where[-4:])

            for _ in range(4):
                words = draw.choices([f"w{n}" for n in range(1, 65)], k=draw.randrange(1, 7))
                counts = {word: float(words.count(word)) for word in words}
                weights = {word: draw.choice([-1.0, 0.5, 2.0]) for word in words}
                topics = Topics([Topic("1", " ".join(words)), Topic("2", "", weights=weights)])
                k = draw.choice([1, 3, 10, 40, 1000])
                stage = BM25(index.state, **parameters)
                assert pairs(stage.search(topics["1"], k)) == scorer.bag(counts, k)
                assert pairs(stage.search(topics["2"], k)) == scorer.bag(weights, k)
                run = (stage % k)(topics)
                assert [pairs(run["1"]), pairs(run["2"])] == [scorer.bag(counts, k), scorer.bag(weights, k)]
                every = [doc for doc, _ in scorer.bag(counts, 10**6)]
                assert sorted(index.ids.take(stage.matches(topics["1"]))) == sorted(every)
                assert stage.count(topics["1"]) == stage.search(topics["1"], 1).total == len(every)
                filtered = stage.with_(where=where)
                assert pairs(filtered.search(topics["1"], k)) == scorer.bag(counts, k, passes)
                assert pairs((filtered % k)(topics)["2"]) == scorer.bag(weights, k, passes)
                assert filtered.count(topics["1"]) == len(scorer.bag(counts, 10**6, passes))
                query = history.query()
                topic = Topic("3", "", query=query)
                assert pairs(stage.search(topic, k)) == scorer.query(query, k)
                assert stage.count(topic) == len(scorer.query(query, 10**6))
                assert pairs(filtered.search(topic, k)) == scorer.query(query, k, passes)


def test_a_change_keeps_the_lists_and_bounds_of_segments_that_stay(tmp_path: Path) -> None:
    load()
    history = History(tmp_path / "x", 5)
    history.index.add(history.docs(200))
    before = BM25(history.index.state)
    before.search("w1 w2")
    history.index.add(history.docs(1))
    after = BM25(history.index.state)
    after.search("w1 w2")
    first, second = (Direct.of(stage.index, stage.weighting) for stage in (before, after))
    assert first is not None
    assert second is not None
    assert len(first._parts) == 2
    assert len(second._parts) == 3
    for name in ("docs", "places", "best", "rows", "rank", "blob"):
        assert np.shares_memory(first._parts[0][name], second._parts[0][name]), name


@each("lengths", ["exact", "lucene"])
@each("variant", ["lucene", "atire", "robertson", "okapi"])
def test_deleted_documents_that_alone_have_terms_give_no_warning(tmp_path: Path, variant: str, lengths: str) -> None:
    load()
    docs = [Doc(f"a{i}", "a b") for i in range(9)] + [Doc(f"empty{i}", "") for i in range(60)]
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace")
    for last in (5, 0):
        index.delete([f"a{i}" for i in range(last, 9) if f"a{i}" in index.ids])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert len(BM25(index.state, variant=variant, lengths=lengths).search("a b")) == last


def test_a_phrase_has_its_idf_where_postings_have_no_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MIN_CODED", 2)
    load()
    history = History(tmp_path / "x", 3)
    for _ in range(2):
        query = Group((Phrase(("w1", "w1"), (0, 1)),))
        found = pairs(BM25(history.index.state).search(Topic("1", "", query=query), 5))
        assert found == Scorer(history.texts).query(query, 5)
        assert found
        history.index.add(history.docs(9))


def test_documents_without_terms_keep_searches_in_one_compiled_call(tmp_path: Path) -> None:
    load()
    history = History(tmp_path / "x", 3)
    history.index.add([Doc("empty", "")])
    stage = BM25(history.index.state)
    assert Direct.of(stage.index, stage.weighting) is not None
    scorer = Scorer({**history.texts, "empty": []})
    assert pairs(stage.search("w1 w2", 10)) == scorer.bag({"w1": 1.0, "w2": 1.0}, 10)
