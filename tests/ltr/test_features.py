"""Features of candidates are the scores of the stages themselves, and facts of documents and topics."""

from pathlib import Path

import numpy as np
from support.each import each
from support.ranked import candidates, documents, topics
from support.word_encoder import Words

from fontes.core import Run, Topics
from fontes.core.expression import pipeline
from fontes.index import Index
from fontes.ltr import feature_matrix
from fontes.ltr.features import feature_names, features_of

STAGES = (
    "bm25()",
    'bm25(variant="robertson", k1=1.2, b=0.75, k3=2)',
    'bm25(fields={"title": 3, "text": 1})',
    'bm25(fields={"title": 1}, combine="sum")',
    "ql()",
    "tfidf()",
    "query() >> bm25()",
    "sdm() >> ql()",
    "bm25() % 5 >> rm3() >> bm25()",
)


@each("text", STAGES)
def test_a_score_is_the_stages_own_bit_for_bit(index: Index, text: str) -> None:
    one = pipeline(text, index)
    run = one(topics())
    scores = one.candidate_scores(run)
    assert run.rows > 100
    assert scores.dtype == np.float32
    assert np.array_equal(scores, run.scores)


def test_a_run_stage_as_feature_gives_new_scores_and_none_for_omitted_candidates(index: Index) -> None:
    run = candidates(index)
    for last in (index.boost("price"), index.collapse("kind", keep=5)):
        scores, new = last.candidate_scores(run), last(run).to_dict()
        rows = [(topic_id, hit.id) for topic_id, ranking in run.items() for hit in ranking]
        kept = {row: score for row, score in zip(rows, scores.tolist(), strict=True) if not np.isnan(score)}
        assert kept == {(topic_id, doc_id): score for topic_id, ranking in new.items() for doc_id, score in ranking.items()}


@each("query", ["+spring water -karst", '"spring water"', "title:spring water^2", "(spring water) OR basin"])
def test_a_structured_query_scores_candidates_as_its_own_search(index: Index, query: str) -> None:
    whole = index.query() >> index.bm25()
    own, every = whole(query), Run.of({"1": dict.fromkeys(index.ids, 0.0)}, Topics.of({"1": query}))
    scores = dict(zip(every["1"].ids, whole.candidate_scores(every).tolist(), strict=True))
    assert own.rows > 0
    assert {doc_id: score for doc_id, score in scores.items() if score} == own.to_dict()["1"]


def test_a_candidate_without_the_words_scores_0_whatever_the_limits(index: Index) -> None:
    every = Run.of({"q0": dict.fromkeys(index.ids, 0.0)}, topics())
    own = index.bm25()(topics())["q0"]
    for one in (index.bm25(), index.bm25(k=1), index.bm25(where="kind == 'k1'")):
        scores = dict(zip(every["q0"].ids, one.candidate_scores(every).tolist(), strict=True))
        assert {doc_id: score for doc_id, score in scores.items() if score} == dict(
            zip(own.ids, own.scores.tolist(), strict=True)
        )


def test_vectors_give_the_products_of_the_dense_search(tmp_path: Path) -> None:
    index = Index.build(documents(), tmp_path / "v.index")
    encoder = Words(("spring", "water", "karst"))
    index.encode(encoder)
    dense = index.dense(encoder)
    run = dense(topics())
    assert np.array_equal(dense.candidate_scores(run), run.scores)
    asked = Topics.of({"a": "spring water", "b": " ", "c": "nothing"})
    every = Run.of({name: dict.fromkeys(index.ids, 0.0) for name in asked}, asked)
    scores = dense.candidate_scores(every)
    found = dense(asked)
    for name, rows in zip(asked, np.split(scores, 3), strict=True):
        there = {doc_id: s for doc_id, s in zip(every[name].ids, rows.tolist(), strict=True) if not np.isnan(s)}
        assert there == found.to_dict()[name]


def test_columns_lengths_and_covered_terms_are_numbers(index: Index) -> None:
    run = Run.of(
        {"a": {"d0": 3.0, "d1": 2.0, "d2": 1.5}, "b": {"d5": 1.0}}, Topics.of({"a": "spring spring water xyz", "b": ""})
    )
    text = (
        'column("date"), column("price"), column("open"), length(), length("title"), query_length(), coverage(), '
        'coverage("title"), score()'
    )
    matrix = feature_matrix(run, features_of(text, index))
    docs = documents()
    days = (np.datetime64("2011-02-11") - np.datetime64("1970-01-01")).astype(int)
    assert matrix.dtype == np.float64
    assert np.isnan(matrix[0, :3]).all()
    assert matrix[1, :3].tolist() == [days, 1 / 3, 0.0]
    assert matrix[2, 2] == 1.0
    for row, number in enumerate((0, 1, 2, 5)):
        words = set(f"{docs[number]['title']} {docs[number]['text']}".split())
        held = len(words & {"spring", "water"})
        assert matrix[row, 3] == 1 + len(docs[number]["text"].split())
        assert matrix[row, 4] == 1
        if row < 3:
            assert matrix[row, 5] == 4
            assert matrix[row, 6] == held / 3
            assert matrix[row, 7] == (docs[number]["title"] in ("spring", "water")) / 3
    assert matrix[3, 5] == 0
    assert np.isnan(matrix[3, 6:8]).all()
    assert matrix[:, 8].tolist() == [3.0, 2.0, 1.5, 1.0]


def test_names_say_what_changes_a_feature_alone(index: Index) -> None:
    texts = ["bm25() % 7", "bm25(where=\"kind == 'k1'\", k=3)", "query() >> ql() % 3", "score()"]
    names = [feature_names(features_of([text], index))[0] for text in texts]
    assert names == ["bm25(k1=0.9, b=0.4)", "bm25(k1=0.9, b=0.4)", "query() >> ql(mu=1000.0)", "score()"]
    feedback = feature_names(features_of(["bm25() % 5 >> rm3() >> bm25() % 9"], index))[0]
    assert feedback.startswith("bm25(k1=0.9, b=0.4) % 5 >> rm3(")
    assert "% 9" not in feedback
