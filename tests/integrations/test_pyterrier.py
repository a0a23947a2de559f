"""PyTerrier: a stage as a transformer and a transformer as a stage, with the real package; no Java is started."""

import pytest
from support.sockets import DOCS, MISSING, QRELS, TOPICS, build

import fontes as ft

pytestmark = pytest.mark.slow
pt = pytest.importorskip("pyterrier", reason=MISSING.format("python-terrier"))

import pandas as pd  # noqa: E402

from fontes.integrations.pyterrier import FontesTransformer, pyterrier_stage  # noqa: E402

FRAME = pd.DataFrame({"qid": list(TOPICS), "query": list(TOPICS.values())})


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("pyterrier"))


def run_of(frame):
    return ft.Run.of(zip(frame.qid, frame.docno, frame.score, strict=True), ft.Topics.of(TOPICS))


def test_a_stage_retrieves_as_a_transformer_and_ties_stay(index):
    run = index.bm25()(TOPICS)
    frame = FontesTransformer(index.bm25())(FRAME.assign(lang="en"))
    assert list(frame.columns) == ["qid", "query", "lang", "docno", "score", "rank"]
    assert run_of(frame) == run
    assert frame["rank"].tolist() == [i for ranking in run.values() for i in range(len(ranking))]
    assert frame["docno"].tolist() == [doc_id for ranking in run.values() for doc_id in ranking.ids]
    tied = frame[(frame.qid == "q2") & frame.docno.isin(["b", "c"])]
    assert tied.score.nunique() == 1
    assert tied.docno.tolist() == ["c", "b"]
    assert set(frame.lang) == {"en"}


def test_columns_are_texts_and_metadata_and_an_operator_of_pyterrier_joins(index):
    stage = FontesTransformer(index, columns=["text", "title", "year"])
    first = stage.search("springs").iloc[0]
    assert (first.docno, first.text, first.title, first.year) == ("a", DOCS[0].text, "Springs", 1990)
    with pytest.raises(ft.core.ParameterError, match="no document of the results has 'yeer'; did you mean 'year'"):
        FontesTransformer(index, columns=["text", "yeer"]).search("springs")
    cut = (stage % 1).compile()
    assert isinstance(cut, FontesTransformer)
    assert cut(FRAME).docno.tolist() == ["a", "c"]
    summed = (0.5 * stage + stage)(FRAME)
    expected = run_of(stage(FRAME))
    assert run_of(summed).to_dict()["q1"] == pytest.approx({d: 1.5 * s for d, s in expected.to_dict()["q1"].items()})


def test_an_experiment_of_pyterrier_measures_what_ours_measures(index):
    pytest.importorskip("ir_measures")
    qrels = pd.DataFrame(
        [(t, d, g) for t, grades in QRELS.items() for d, g in grades.items()], columns=["qid", "docno", "label"]
    )
    frame = pt.Experiment([FontesTransformer(index.bm25())], FRAME, qrels, ["map", "ndcg_cut_10"])
    ours = ft.evaluate(index.bm25()(TOPICS), QRELS, ["AP", "nDCG@10"])
    assert frame[["map", "ndcg_cut_10"]].iloc[0].tolist() == pytest.approx([ours["AP"], ours["nDCG@10"]])


@ft.stage(takes=ft.Run, gives=ft.Run)
def longest(run):
    return {t: {d.id: len(d.text) for d in ranking.docs()} for t, ranking in run.items()}


def test_a_reranker_reads_texts_of_the_frame_or_of_the_index(index):
    rows = pd.DataFrame({"qid": ["q1", "q1"], "query": ["x", "x"], "docno": ["a", "d"], "score": [1.0, 2.0], "rank": [1, 0]})
    assert FontesTransformer(longest, documents=index)(rows).docno.tolist() == ["a", "d"]
    texts = rows.assign(text=["short", "much longer"])
    result = FontesTransformer(longest)(texts)
    assert result[["docno", "score", "text"]].values.tolist() == [["d", 11.0, "much longer"], ["a", 5.0, "short"]]


@pytest.mark.parametrize("sign", ["__add__", "__or__", "__xor__"])
def test_a_reranker_reads_the_texts_that_an_operator_of_pyterrier_leaves_out(index, sign):
    springs = FontesTransformer(index.bm25(where="kind == 'spring'"), columns=["text", "title"])
    others = FontesTransformer(index.bm25(where="kind != 'spring'"))
    joined = getattr(springs, sign)(others)
    frame = FRAME[FRAME.qid == "q1"]
    assert joined(frame).text.isna().tolist() == [False, True, True, True]
    lengths = {doc.id: len(doc.text) for doc in DOCS if doc.id != "e"}
    reranked = (joined >> FontesTransformer(longest, documents=index))(frame)
    assert dict(zip(reranked.docno, reranked.score, strict=True)) == lengths
    assert set(reranked["query"]) == {"hot water"}
    with pytest.raises(ft.FontesError, match=r"row 2 of the DataFrame: the text of document '[bcd]' is missing; .*documents"):
        (joined >> FontesTransformer(longest))(frame)


def test_the_query_is_that_of_the_first_row_that_has_one(index):
    springs, others = (FontesTransformer(index.bm25(where=f"kind {sign} 'spring'")) for sign in ("==", "!="))
    frame = FRAME[FRAME.qid == "q1"]
    assert (others + springs)(frame)["query"].isna().tolist() == [True, False, False, False]
    assert set((others + springs >> FontesTransformer(longest, documents=index))(frame)["query"]) == {"hot water"}
    lost = springs + others  # springs finds nothing for q2
    with pytest.raises(ft.FontesError, match=r"row 5 of the DataFrame: the query of topic 'q2' is missing.*pt.apply.query"):
        (lost >> FontesTransformer(longest, documents=index))(FRAME)
    mended = lost >> pt.apply.query(lambda row: TOPICS[row.qid]) >> FontesTransformer(longest, documents=index)
    assert set(mended(FRAME)["query"]) == {"hot water", "cold well"}


def test_a_text_of_one_row_is_that_of_the_document_in_others(index):
    rows = pd.DataFrame({"qid": ["q1", "q2"], "query": ["x", "y"], "docno": ["a", "a"], "score": [1.0, 2.0]})
    assert FontesTransformer(longest)(rows.assign(text=[None, "four"])).score.tolist() == [4, 4]
    with pytest.raises(ft.FontesError, match=r"document 'a': the text is 0.5, which is neither a string nor a whole number"):
        FontesTransformer(longest)(rows.assign(text=0.5))


def test_a_transformer_is_a_stage_and_back(index):
    bm25 = index.bm25()
    stage = pyterrier_stage(FontesTransformer(bm25))
    assert stage(TOPICS) == bm25(TOPICS)
    assert ft.fuse(stage, bm25)(TOPICS).rows == bm25(TOPICS).rows
    halved = pt.apply.doc_score(lambda row: row["score"] / 2)
    both = bm25 >> pyterrier_stage(halved, takes=ft.Run)
    assert both(TOPICS).scores.tolist() == pytest.approx((bm25(TOPICS).scores / 2).tolist())
    assert [doc.id for doc in both(TOPICS)["q1"].docs()] == both(TOPICS)["q1"].ids


def test_texts_reach_a_reranker_of_pyterrier(index):
    counted = pyterrier_stage(pt.apply.doc_score(lambda row: float(len(row["text"]))), takes=ft.Run)
    run = (index.bm25() >> counted)({"q": "water"})
    assert dict(zip(run["q"].ids, run["q"].scores, strict=True)) == {d.id: len(d.text) for d in DOCS if "water" in d.text}


def test_what_is_wrong_is_said(index):
    stage = FontesTransformer(index)
    with pytest.raises(pt.validate.InputValidationError):
        stage(FRAME.drop(columns="query"))
    with pytest.raises(ft.FontesError, match="row 2 of the DataFrame: the qid is missing"):
        stage(FRAME.assign(qid=["q1", None, "q3"]))
    with pytest.raises(ft.FontesError, match="row 2 of the DataFrame: the query of topic 'q2' is missing"):
        stage(FRAME.assign(query=["a", None, "b"]))
    with pytest.raises(ft.FontesError, match="gives no column 'docno'"):
        pyterrier_stage(pt.Transformer.identity())(TOPICS)
    with pytest.raises(ft.FontesError, match="not int"):
        pyterrier_stage(7)
    assert list(stage(FRAME[:0])) == ["qid", "query", "docno", "score", "rank"]
