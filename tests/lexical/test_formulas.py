"""The page of formulas: each number of its tables, computed here from tf, df and dl by plain arithmetic, and by Fontes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import log, sqrt
from pathlib import Path
from typing import NamedTuple

import pytest
from support.each import each

import fontes as ft

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "formulas.md"
DOCS = {"d1": "hot spring hot water", "d2": "hot rock", "d3": "cold water cold water cold lake"}
TF = {doc: Counter(text.split()) for doc, text in DOCS.items()}
DL = {doc: sum(counts.values()) for doc, counts in TF.items()}
DF = Counter(term for counts in TF.values() for term in counts)
CF = Counter(term for text in DOCS.values() for term in text.split())
N, AVGDL, TOKENS = len(DOCS), sum(DL.values()) / len(DOCS), sum(DL.values())
Weight = Callable[[str, str], float]  # of a term in a document that has it


def bm25(idf: Callable[[int], float], tf_part: Callable[[int, float], float], b: float = 0.4) -> Weight:
    return lambda term, doc: idf(DF[term]) * tf_part(TF[doc][term], 1 - b + b * DL[doc] / AVGDL)


def lucene(df: int) -> float:
    return log(1 + (N - df + 0.5) / (df + 0.5))


def robertson(df: int) -> float:
    return log((N - df + 0.5) / (df + 0.5))


def okapi(df: int) -> float:
    floor = 0.25 * sum(robertson(DF[term]) for term in DF) / len(DF)
    return robertson(df) if robertson(df) >= 0 else floor


def rise(k1: float = 0.9, factor: bool = True, delta: float = 0.0) -> Callable[[int, float], float]:
    return lambda tf, length: (k1 + 1 if factor else 1) * tf / (tf + k1 * length) + delta


def bm25l(tf: int, length: float, k1: float = 0.9, delta: float = 0.5) -> float:
    c = tf / length + delta
    return (k1 + 1) * c / (k1 + c)


def tfidf(tf: Callable[[str, str], float], idf: Callable[[int], float] = lambda df: log(N / df)) -> Weight:
    return lambda term, doc: tf(term, doc) * idf(DF[term])


def unit(weight: Weight) -> Weight:
    return lambda term, doc: weight(term, doc) / sqrt(sum(weight(other, doc) ** 2 for other in TF[doc]))


def smooth(df: int) -> float:
    return log((1 + N) / (1 + df)) + 1


def plain(term: str, doc: str) -> float:
    return TF[doc][term]


def sublinear(term: str, doc: str) -> float:
    return 1 + log(TF[doc][term])


def dirichlet(mu: float) -> Weight:
    def weight(term: str, doc: str) -> float:
        p = (CF[term] + 1) / (TOKENS + 1)  # as Lucene
        return max(log(1 + TF[doc][term] / (mu * p)) + log(mu / (DL[doc] + mu)), 0.0)

    return weight


def jelinek_mercer(share: float) -> Weight:
    return lambda term, doc: log(1 + (1 - share) * TF[doc][term] / DL[doc] / (share * (CF[term] + 1) / (TOKENS + 1)))


def atire(df: int) -> float:
    return log(N / df)


LUCENE = bm25(lucene, rise(factor=False))
WEIGHTS: dict[str, Weight] = {
    "tfidf(norm=None)": tfidf(plain),
    "tfidf(norm=None, relative_tf=True)": tfidf(lambda term, doc: TF[doc][term] / DL[doc]),
    "tfidf(sublinear_tf=True, norm=None)": tfidf(sublinear),
    "tfidf(smooth_idf=True, norm=None)": tfidf(plain, smooth),
    "tfidf()": unit(tfidf(plain)),
    "tfidf(sublinear_tf=True)": unit(tfidf(sublinear)),
    "tfidf(smooth_idf=True)": unit(tfidf(plain, smooth)),
    "bm25()": LUCENE,
    'bm25(variant="robertson")': bm25(robertson, rise()),
    'bm25(variant="okapi")': bm25(okapi, rise(1.5), 0.75),
    'bm25(variant="atire")': bm25(atire, rise()),
    'bm25(variant="plus")': bm25(lambda df: log((N + 1) / df), rise(delta=1.0)),
    'bm25(variant="l")': bm25(lambda df: log((N + 1) / (df + 0.5)), bm25l),
    "bm25(b=0)": bm25(lucene, rise(factor=False), 0.0),
    "bm25(b=1)": bm25(lucene, rise(factor=False), 1.0),
    "bm25(k1=0)": bm25(lucene, rise(0.0, factor=False)),
    'bm25(variant="atire", k1=1.2, b=0.75)': bm25(atire, rise(1.2), 0.75),
    "bm25(k3=0)": LUCENE,
    "bm25(k3=1.2)": LUCENE,
    "bm25(k3=8)": LUCENE,
    "ql(mu=10)": dirichlet(10.0),
    'ql(smoothing="jelinek-mercer")': jelinek_mercer(0.1),
}


def query(stage: str, text: str) -> dict[str, float]:
    """The weights of the query's terms."""
    counts = Counter(text.split())
    if "k3=" in stage:
        k3 = float(re.search(r"k3=([\d.]+)", stage)[1])  # type: ignore[index]
        return {term: (k3 + 1) * qtf / (k3 + qtf) for term, qtf in counts.items()}
    if stage.startswith("tfidf") and "norm=None" not in stage:
        return {term: qtf / sqrt(sum(n * n for n in counts.values())) for term, qtf in counts.items()}
    return dict(counts)


class Row(NamedTuple):
    stage: str
    query: str
    cells: tuple[float, ...]  # the weight of "hot" in d1, and the scores of the documents


def rows() -> Iterator[Row]:
    query_text = ""
    for line in PAGE.read_text("utf-8").splitlines():
        if found := re.search(r'The query is "([\w ]+)"', line):
            query_text = found[1]
        if found := re.match(r"\| `([^`]+)` \|.*?((?: -?\d*\.\d{4} \|){4})$", line):
            yield Row(found[1], query_text, tuple(float(cell) for cell in found[2].strip(" |").split(" | ")))


ROWS = list(rows())


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    docs = [ft.Doc(doc, text) for doc, text in DOCS.items()]
    return ft.Index.build(docs, tmp_path_factory.mktemp("formulas") / "three.index", analyzer="standard")


def test_the_page_has_a_row_for_each_formula() -> None:
    assert {row.stage for row in ROWS} == set(WEIGHTS)


@each("row", ROWS)
def test_each_number_is_that_of_the_formula_and_of_fontes(row: Row, index: ft.Index) -> None:
    weight, terms = WEIGHTS[row.stage], query(row.stage, row.query)
    scores = [sum(q * weight(term, doc) for term, q in terms.items() if term in TF[doc]) for doc in DOCS]
    assert row.cells == pytest.approx((weight("hot", "d1"), *scores), abs=5.1e-5)
    found = ft.pipeline(row.stage, index)(row.query)["1"]
    by_id = dict(zip(found.ids, found.scores.tolist(), strict=True))
    assert [by_id[doc] for doc in DOCS] == pytest.approx(scores, rel=1e-6)


def test_the_page_states_the_counts_of_the_documents() -> None:
    text = PAGE.read_text("utf-8")
    for doc, words in DOCS.items():
        assert f"| {doc} | {words} | {DL[doc]} |" in text
    assert f"N = {N}, avgdl = {AVGDL:g}, and df is {DF['hot']} for both `hot` and `water`" in text
    assert DF["hot"] == DF["water"]
