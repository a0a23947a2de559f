"""Maximal marginal relevance over terms and vectors."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.hashed_encoder import Hashed

from fontes.core import Run
from fontes.core.expression import pipeline, tunable
from fontes.index import Index
from fontes.reorder import term_vectors
from fontes.reorder.term_vectors import TermVectors
from fontes.text import Analyzer

TEXTS = ["red fish", "red fish blue", "green bird", "red fish red", "green tree stands", "blue sea and fish", "lone stone"]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Index:
    docs = [(f"d{n}", text) for n, text in enumerate(TEXTS)]
    return Index.build(docs, tmp_path_factory.mktemp("zoo") / "zoo.index", analyzer="whitespace")


RUN = {"q": {f"d{n}": 7.0 - n // 2 for n in range(len(TEXTS))}, "r": {"d0": 1.0, "d3": 1.0}, "s": {}}


def by_hand(ranking: dict[str, float], similarity: Any, share: float, k: int) -> list[tuple[str, float]]:
    """Return the choices of Carbonell and Goldstein, one by one from the formula."""
    least, best = min(ranking.values()), max(ranking.values())
    relevance = {doc: (score - least) / (best - least) if best > least else 1.0 for doc, score in ranking.items()}
    chosen: list[tuple[str, float]] = []
    while len(chosen) < min(k, len(ranking)):
        values = {
            doc: float(
                np.float32(share * relevance[doc] - (1 - share) * max([0.0, *(similarity(doc, other) for other, _ in chosen)]))
            )
            for doc in ranking.keys() - dict(chosen)
        }
        chosen.append(max(((doc, value) for doc, value in values.items()), key=lambda one: (one[1], one[0])))
    return chosen


def cosine_of_terms(one: str, other: str) -> float:
    df = Counter(word for text in TEXTS for word in set(text.split()))
    vectors = []
    for doc in (one, other):
        tf = Counter(TEXTS[int(doc[1:])].split())
        vectors.append({word: (1 + math.log(count)) * math.log(len(TEXTS) / df[word]) for word, count in tf.items()})
    product = sum(weight * vectors[1].get(word, 0.0) for word, weight in vectors[0].items())
    return product / math.prod(math.sqrt(sum(weight**2 for weight in vector.values())) for vector in vectors)


@each("share", [0.0, 0.3, 0.5, 1.0])
def test_choices_are_those_of_the_formula(zoo: Index, share: float) -> None:
    run = zoo.mmr(lambda_=share)(RUN)
    for topic in ("q", "r"):
        expected = by_hand(RUN[topic], cosine_of_terms, share, 1000)
        assert run[topic].ids == [doc for doc, _ in expected]
        assert run[topic].scores.tolist() == pytest.approx([value for _, value in expected], abs=1e-6)
    assert len(run["s"]) == 0


def test_vectors_are_compared_where_an_encoder_is_named(zoo: Index) -> None:
    encoder = Hashed()
    zoo.encode(encoder)
    stage = zoo.mmr(lambda_=0.4, encoder=encoder)
    vectors = zoo.embeddings(encoder).decoded(slice(0, len(TEXTS))).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def cosine(one: str, other: str) -> float:
        return float(vectors[int(one[1:])] @ vectors[int(other[1:])])

    expected = by_hand(RUN["q"], cosine, 0.4, 1000)
    assert stage(RUN)["q"].ids == [doc for doc, _ in expected]
    assert (stage % 3)(RUN)["q"].ids == [doc for doc, _ in expected[:3]]


def test_a_cut_is_the_beginning_of_the_whole(zoo: Index) -> None:
    whole = zoo.mmr()(RUN)
    for k in range(1, 8):
        assert (zoo.mmr() % k)(RUN) == whole.top(k)
    assert repr(pipeline("bm25() % 100 >> mmr(lambda_=0.3) % 10", zoo)).endswith("% 100 >> mmr(lambda_=0.3) % 10")


def test_an_explanation_is_the_sum_of_relevance_and_similarity(zoo: Index) -> None:
    stage = zoo.bm25() >> zoo.mmr(lambda_=0.5)
    for hit in stage.search("red fish blue"):
        explained = stage.explain("red fish blue", hit.id)
        assert explained.value == pytest.approx(hit.score)
        assert sum(part.value for part in explained.parts[1:]) == pytest.approx(hit.score, abs=1e-6)
        assert explained.parts[0] == zoo.bm25().explain("red fish blue", hit.id)
    first = stage.search("red fish blue", 1)[0].id
    assert "nearest of those chosen before" not in str(stage.explain("red fish blue", first))
    assert "not among the 1 documents" in (zoo.bm25() >> zoo.mmr(k=1)).explain("red fish", "d5").label


def test_the_share_is_tuned(zoo: Index) -> None:
    make, space = tunable("bm25() >> mmr(lambda_=tune())", zoo)
    assert space == {"mmr__lambda_": (0.1, 0.9, 0.1)}
    assert repr(make(mmr__lambda_=0.2)).endswith("mmr(lambda_=0.2)")


def test_documents_without_terms_resemble_none(tmp_path: Path) -> None:
    index = Index.build([("a", "tea"), ("b", ""), ("c", "tea")], tmp_path / "x.index")
    assert index.mmr()(Run.of({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}))["q"].ids == ["a", "b", "c"]


def test_vectors_of_terms_are_those_of_the_analysed_documents_whatever_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = [{"_id": f"d{n}", "title": text.split()[0], "text": text} for n, text in enumerate(TEXTS)]
    analyzer = Analyzer(tokenizer="whitespace", words=(1, 2))
    index = Index.build(docs, tmp_path / "apart.index", analyzer=analyzer, separate=True)
    index.add([{"_id": "e", "title": "red", "text": "red fish swims"}])
    ids = [*index.ids[:]]
    bags = [Counter(terms) for terms in index.analyzed(ids)]
    weights = [
        {term: (1 + math.log(tf)) * math.log(len(ids) / int(index.df[index.term_number(term)])) for term, tf in bag.items()}
        for bag in bags
    ]
    lengths = [math.sqrt(sum(weight**2 for weight in own.values())) for own in weights]
    places = [3, 0, 7, 5, 3, 1]
    expected = [
        [sum(w * weights[b].get(t, 0) for t, w in weights[a].items()) / (lengths[a] * lengths[b]) for b in places]
        for a in places
    ]
    for max_bytes in (term_vectors.MAX_BYTES, 0):
        monkeypatch.setattr(term_vectors, "MAX_BYTES", max_bytes)
        for _ in range(2):
            vectors = TermVectors.of(index.state).matrix(np.array(places))
            assert (vectors @ vectors.T).toarray() == pytest.approx(np.array(expected))
