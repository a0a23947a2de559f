"""On public collections BM25 measures what Anserini measures (Pyserini 1.6, figures of the collections' README)."""

import pytest
from support.each import each

from fontes.formats import read_qrels, read_topics
from fontes.index import Index
from fontes.measures import AP, R, evaluate, nDCG

FIGURES = [
    ("scifact", "test", 5_183, 0.6789, 0.6401, 0.9253),
    ("cranfield", "test", 1_400, 0.3654, 0.2879, 0.7224),
    ("med", "test", 1_033, 0.6651, 0.5118, 0.7729),
    ("npl", "test", 11_429, 0.4368, 0.2856, 0.6186),
]


@each(("name", "split", "documents", "ndcg", "ap", "recall"), FIGURES)
def test_bm25_with_its_defaults_measures_what_anserini_measures(shared, tmp_path, name, split, documents, ndcg, ap, recall):
    folder = shared / name
    index = Index.build(folder / "corpus.jsonl", tmp_path / "x")
    assert len(index) == documents
    topics, qrels = read_topics(folder / "queries.jsonl"), read_qrels(folder / "qrels" / f"{split}.tsv")
    measures = [nDCG @ 10, AP, R @ 100]
    exact = evaluate(index.bm25()(topics), qrels, measures)
    assert [exact[m] for m in measures] == pytest.approx([ndcg, ap, recall], abs=0.003)  # Lucene rounds the lengths
    rounded = evaluate(index.bm25(lengths="lucene")(topics), qrels, measures)
    assert [rounded[nDCG @ 10], rounded[AP]] == pytest.approx([ndcg, ap], abs=0.0001)
    assert rounded[R @ 100] == pytest.approx(recall, abs=0.0003)  # Lucene has another order among equal scores
