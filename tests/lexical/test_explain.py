"""Explanations: they add up to the score, and name what went in."""

import math
from collections.abc import Iterator

import pytest
from support.each import each
from support.lexical import MODELS, TOPICS, model

from fontes.core import Explanation, Topic
from fontes.core.query import Group, Phrase, Term
from fontes.index import Index
from fontes.lexical.bm25 import VARIANTS
from fontes.lexical.retriever import plan_of


@each("parameters", MODELS)
def test_an_explanation_adds_up_to_the_score_of_every_hit(index, parameters):
    retriever = model(index, parameters)
    for topic in TOPICS.values():
        for hit in retriever.search(topic, 1000)[::71]:
            explanation = retriever.explain(topic, hit.id)
            assert explanation.value == pytest.approx(hit.score, rel=1e-6, abs=1e-9)
            assert sum(part.value for part in explanation.parts) == pytest.approx(hit.score, rel=1e-6, abs=1e-6)
            for term in explanation.parts:
                posting, query = term.parts
                assert term.value == pytest.approx(posting.value * query.value, rel=1e-7)


@each("variant", list(VARIANTS))
def test_an_explanation_names_what_went_in(index, variant):
    hit = index.bm25(variant=variant).search("w1")[0]
    explanation = index.bm25(variant=variant).explain("w1 w1 nothing", hit.id)
    text, doc = str(explanation), index.ordinal(hit.id)
    for part in ("'w1'", f"N={len(index)}", f"dl={index.lengths[doc]}", f"df={index.df[index.terms.find('w1')]}", "qtf=2"):
        assert part in text
    idf, tf_part = explanation.parts[0].parts[0].parts
    assert explanation.parts[0].parts[0].value == pytest.approx(idf.value * tf_part.value, rel=1e-12)
    assert explanation.to_dict()["parts"][0]["label"] == "'w1'"


def test_an_explanation_of_tfidf_multiplies_and_divides_to_its_value(index):
    hit = index.tfidf(sublinear_tf=True).search("w1")[0]
    posting = index.tfidf(sublinear_tf=True).explain("w1", hit.id).parts[0].parts[0]
    tf, idf, length = (part.value for part in posting.parts)
    assert posting.value == pytest.approx(tf * idf / length, rel=1e-12)


def test_an_explanation_of_a_query_counts_the_documents_of_all_segments(tmp_path):
    docs = [("a", "x y"), ("b", "x"), ("c", "x y"), ("d", "z"), ("e", "x y")]
    one, several = (Index.build(docs[:n], tmp_path / f"{n}", analyzer="whitespace", positions=True) for n in (4, 2))
    several.add(docs[2:])
    several.delete("e")
    topic = Topic("1", "", query=Group(should=(Term("x"), Phrase(("x", "y"), (0, 1)))))
    for name in ("bm25", "tfidf"):
        explained = str(getattr(several, name)().explain(topic, "c"))
        assert "N=4, df=3" in explained
        assert "N=4, df=2" in explained
        assert explained == str(getattr(one, name)().explain(topic, "c"))


LN2, P = math.log(4 / 2), (31 + 1) / (50 + 1)  # of 4 documents 2 have the term; 31 of 50 tokens are it
ROW = math.hypot(30 * LN2, 15 * math.log(4))
TREES: list[tuple[str, dict[str, object], list[tuple[float, str]]]] = [
    (
        "bm25",
        {},
        [
            (math.log(1 + 2.5 / 2.5), "idf (lucene): N=4, df=2"),
            (30 / (30 + 0.9 * (0.6 + 0.4 * 45 / 12.5)), "tf part: tf=30, k1=0.9"),
            (0.6 + 0.4 * 45 / 12.5, "length: 1 - b + b dl / avgdl, b=0.4, dl=45, avgdl=12.5000"),
            (2, "query part: qtf=2"),
        ],
    ),
    (
        "bm25",
        {"variant": "plus", "lengths": "lucene", "k3": 2, "delta": 0.5},
        [
            (math.log(4 / 2), "idf (plus): N=3, df=2"),
            (1.9 * 30 / (30 + 0.9 * (0.6 + 0.4 * 44 * 3 / 50)) + 0.5, "tf part: tf=30, k1=0.9, delta=0.5"),
            (0.6 + 0.4 * 44 * 3 / 50, "length: 1 - b + b dl / avgdl, b=0.4, dl=45 kept as 44, avgdl=16.6667"),
            (3 * 2 / (2 + 2), "query part: qtf=2"),
        ],
    ),
    ("tfidf", {}, [(30, "tf=30"), (LN2, "idf: N=4, df=2"), (ROW, "length of the document's row"), (1, "query part: qtf=2")]),
    (
        "tfidf",
        {"sublinear_tf": True, "norm": None},
        [(1 + math.log(30), "1 + ln tf, tf=30"), (LN2, "idf: N=4, df=2"), (2, "query part: qtf=2")],
    ),
    (
        "tfidf",
        {"relative_tf": True, "norm": None},
        [(30 / 45, "tf / dl, tf=30, dl=45"), (LN2, "idf: N=4, df=2"), (2, "query part: qtf=2")],
    ),
    (
        "ql",
        {"mu": 10},
        [
            (math.log(1 + 30 / (10 * P)) + math.log(10 / 55), "log likelihood ratio (dirichlet, mu=10): tf=30, dl=45"),
            (P, "p(t|C): cf=31, tokens=50"),
            (2, "query part: qtf=2"),
        ],
    ),
    (
        "ql",
        {"smoothing": "jelinek-mercer", "lengths": "lucene"},
        [
            (math.log(1 + 0.9 * 30 / 44 / (0.1 * P)), "log likelihood ratio (jelinek-mercer, lambda=0.1): tf=30, dl=44"),
            (P, "p(t|C): cf=31, tokens=50"),
            (2, "query part: qtf=2"),
        ],
    ),
]


@each(("model_name", "parameters", "expected"), TREES)
def test_an_explanation_shows_the_parts_of_the_formula_with_their_values(tmp_path, model_name, parameters, expected):
    docs = [("1", " ".join(["a"] * 30 + ["b"] * 15)), ("2", "a c c c"), ("3", "c"), ("4", "")]
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace")
    retriever = getattr(index, model_name)(**parameters)
    explanation = retriever.explain("a a nothing", "1")
    assert explanation.label == f"{retriever!r}: sum over terms"
    assert [part.label for part in explanation.parts] == ["'a'"]
    nodes = list(walk(explanation.parts[0]))
    for value, label in expected:
        assert [node.value for node in nodes if node.label == label] == [pytest.approx(value)], label
    unlabelled = {"'a'", "idf times tf part", "tf times idf", "tf times idf over the row's length"}
    assert {node.label for node in nodes} - unlabelled == {label for _, label in expected}


def walk(explanation: Explanation) -> Iterator[Explanation]:
    yield explanation
    for part in explanation.parts:
        yield from walk(part)


def test_a_document_without_a_match_is_explained_as_zero(index):
    found = set(index.bm25(k=5_000).search("w1", 5_000).ids)
    other = next(doc for doc in index.ids if doc not in found)
    for retriever in (index.bm25(), index.tfidf()):
        explanation = retriever.explain("w1", other)
        assert explanation.value == 0
        assert explanation.label == "no term of the topic is in the document"
        assert explanation.parts == ()
        assert retriever.explain("", other).value == 0


def test_a_plan_has_the_clauses_the_segments_and_the_code(tmp_path):
    docs = [{"id": f"d{n}", "text": f"all red{n % 2} plum{n % 3} cherry{n % 5}", "year": 2000 + n} for n in range(30)]
    index = Index.build(docs, tmp_path / "x", analyzer="whitespace", positions=True, threads=1)
    bm25, query = index.bm25(), index.query() >> index.bm25(where="year >= 2020")
    assert str(bm25.plan("plum1 red0 unknown")).splitlines() == [
        "bm25(k1=0.9, b=0.4): one compiled call",
        "optional  'plum1'        10",
        "optional  'red0'         15",
        "segment   1 of 1         30",
    ]
    plan = plan_of(query, '+plum1 (red0 -cherry1) -"plum1 cherry2" year:[2010 TO *]')
    assert plan.code == "compiled loops over clauses"
    assert plan.rows == (
        ("required", "'plum1'", 10),
        ("required", "what holds where year >= 2010", 20),
        ("optional", "one of 'red0' but none of 'cherry1'", 12),
        ("excluded", '"plum1 cherry2"', 2),
        ("filter", "year >= 2020", 10),
        ("segment", "1 of 1", 30),
    )
    index.add([{"id": "new", "text": "plum1"}])
    assert index.bm25().plan("plum1").rows == (("optional", "'plum1'", 11), ("segment", "1 of 2", 30), ("segment", "2 of 2", 1))
    clauses = plan_of(index.query() >> index.bm25(), '+"red1 plum1" all')
    assert (clauses.code, clauses.rows[-1]) == ("compiled loops over clauses", ("segment", "2 of 2", 1))
    assert plan_of(index.bm25() >> index.rm3() >> index.ql(), "plum1").stage.startswith("ql(")
    assert index.tfidf().plan("plum1").code == "compiled loops over terms"
