"""What each lexical formula gains or loses by the length of the relevant documents.

    FONTES_DATA=DIR python bench/lengths.py

CTKFacts: claims in Czech, and the paragraphs of their evidence. Articles: those of wikipedia_passages, put together again, with
their titles taken out of the text; a title looks for its article. The passages themselves, all of 48 words, have no lengths to
study. All formulas have k1=0.9 and b=0.4 unless a row says otherwise; nothing is tuned. Topics are divided into quarters by the
mean length, in analysed terms, of their relevant documents. Prints Markdown tables of nDCG@10, and of differences from BM25
(lucene) with 95% intervals.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import harness
import numpy as np
from harness import table
from long_documents import bare, named

import fontes as ft
from fontes.comparison.statistics import bootstrap

MEASURE = "nDCG@10"
BASELINE = "BM25, lucene"
PARTS = 4


def systems(index: ft.Index) -> dict[str, Any]:
    """The formulas by label; the first is the baseline."""
    return {
        BASELINE: index.bm25(),
        "BM25, atire": index.bm25(variant="atire"),
        "BM25+, delta 1": index.bm25(variant="plus"),
        "BM25+, delta .25": index.bm25(variant="plus", delta=0.25),
        "BM25L, delta .5": index.bm25(variant="l"),
        "BM25, b 0": index.bm25(b=0.0),
        "BM25, b .75": index.bm25(b=0.75),
        "BM25, k1 2, b .75": index.bm25(k1=2.0, b=0.75),
        "BM25L, k1 2, b .75": index.bm25(variant="l", k1=2.0, b=0.75),
        "BM25, k3 1.2": index.bm25(k3=1.2),
        "TF-IDF": index.tfidf(),
        "TF-IDF, 1 + ln tf": index.tfidf(sublinear_tf=True),
        "TF-IDF, tf / dl, not of unit length": index.tfidf(relative_tf=True, norm=None),
        "likelihood, Dirichlet": index.ql(),
    }


def articles(path: Path) -> Iterator[ft.Doc]:
    """The articles of passages whose ids are the article's, "-" and a number, without their titles."""
    texts: dict[str, list[str]] = {}
    titles: dict[str, str] = {}
    for doc in ft.read_corpus(path):
        article = doc.id.rpartition("-")[0]
        titles[article] = doc.title
        texts.setdefault(article, []).append(doc.text)
    for article, passages in texts.items():
        yield ft.Doc(article, named(titles[article]).sub("", " ".join(passages)), metadata={"title": titles[article]})


def study(title: str, index: ft.Index, topics: ft.Topics, qrels: ft.Qrels) -> None:
    """Print the tables of a collection."""
    length_of = dict(zip(index.ids, (int(index.state.lengths[n]) for n in range(len(index))), strict=True))
    lengths = {
        topic: float(np.mean([length_of[doc] for doc, grade in grades.items() if grade > 0 and doc in length_of]))
        for topic, grades in qrels.items()
        if any(grade > 0 and doc in length_of for doc, grade in grades.items())
    }
    names = sorted(lengths, key=lambda topic: (lengths[topic], topic))
    values = {label: per_topic(stage, topics, qrels, names) for label, stage in systems(index).items()}
    parts = [np.arange(len(names)), *np.array_split(np.arange(len(names)), PARTS)]
    column = np.array([lengths[name] for name in names])
    labels = ["all", *(f"{column[part[0]]:,.0f} to {column[part[-1]]:,.0f}" for part in parts[1:])]
    rows = [[BASELINE, *(bare(f"{values[BASELINE][part].mean():.4f}") for part in parts)]]
    rows += [
        [label, *(bare(gain(values[label][part] - values[BASELINE][part])) for part in parts)]
        for label in values
        if label != BASELINE
    ]
    header = ["", *labels]
    table(f"{title}: {len(index):,} documents, {len(names):,} topics; terms of the relevant documents", header, rows)


def per_topic(stage: Any, topics: ft.Topics, qrels: ft.Qrels, names: Iterable[str]) -> np.ndarray:
    found = ft.evaluate((stage % 100)(topics), qrels, MEASURE).per_topic(MEASURE)
    return np.array([found[name] for name in names])


def gain(differences: np.ndarray) -> str:
    low, high = (float(bound[0]) for bound in bootstrap(differences.reshape(-1, 1)))
    return f"{differences.mean():+.4f} ({low:+.4f} to {high:+.4f})"


def main() -> None:
    given = harness.data_option(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = given.data / "ctkfacts_cs"
        if folder.is_dir():
            index = ft.Index.build(folder / "corpus.jsonl", Path(work) / "czech", analyzer="czech")
            qrels = ft.read_qrels(folder / "qrels" / "test.tsv")
            study("CTKFacts", index, ft.read_topics(folder / "queries.jsonl").judged(qrels), qrels)
        docs = list(articles(given.data / "wikipedia_passages" / "corpus.jsonl.gz"))
        index = ft.Index.build(docs, Path(work) / "articles", analyzer="english")
        topics = ft.Topics(ft.Topic(doc.id, str(doc.metadata["title"])) for doc in docs)
        study("Articles", index, topics, ft.Qrels((doc.id, "0", doc.id, 1) for doc in docs))


if __name__ == "__main__":
    main()
