"""Lucene's own account of a collection, through Pyserini's Java machine: terms, exact scores, Anserini's run, and tokens.

    python lucene.py collection ANALYZER CORPUS.jsonl QUERIES.jsonl FOLDER
    python lucene.py tokens < JSON of {analyzer: [texts]}

Runs in the peers' environment; agreement.py calls it. Pyserini's searchers round scores to four decimals and break ties by id
(ScoreTiesAdjusterReranker); `raw.tsv` has the scores as Lucene gives them, `adjusted.run` is what Anserini writes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyserini.pyclass import autoclass as java  # isort: skip; it starts the Java machine
from jnius import cast
from pyserini.index.lucene import LuceneIndexReader

HITS = 1000
LUCENE = "org.apache.lucene."
ANALYSIS = f"{LUCENE}analysis."


def analyzer(name: str) -> Any:
    """Lucene's analyzer that Fontes' `name` follows; CJKAnalyzer without its English stop words."""
    if name == "english":
        return java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    if name == "cjk":
        return java(f"{ANALYSIS}cjk.CJKAnalyzer")(java(f"{ANALYSIS}CharArraySet")(1, False))
    return java(ANALYSIS + {"standard": "standard.StandardAnalyzer", "czech": "cz.CzechAnalyzer"}[name])()


def tokens(name: str, texts: list[str]) -> list[list[str]]:
    chosen, analyze = analyzer(name), java("io.anserini.analysis.AnalyzerUtils").analyze
    return [list(analyze(chosen, text).toArray()) for text in texts]


def collection(name: str, corpus: Path, queries: Path, folder: Path) -> None:
    """Indexes, and writes terms.tsv, raw.tsv and, for the English analyzer, adjusted.run."""
    docs, topics = list(_lines(corpus)), [topic for topic in _lines(queries) if topic["text"].strip()]
    texts = [f"{doc['title']} {doc['text']}" if doc.get("title") else doc["text"] for doc in docs]
    if name != "english":  # Anserini knows languages by code, and not every one: give it the tokens
        texts = [" ".join(found) for found in tokens(name, texts)]
    source, index = folder / "contents", folder / "lucene"
    source.mkdir(parents=True)
    lines = (json.dumps({"id": doc["_id"], "contents": text}) for doc, text in zip(docs, texts, strict=True))
    (source / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    arguments = f"-collection JsonCollection -generator DefaultLuceneDocumentGenerator -input {source} -index {index}"
    java("io.anserini.index.IndexCollection").main([*arguments.split(), *(["-pretokenized"] if name != "english" else [])])
    with (folder / "terms.tsv").open("w", encoding="utf-8") as file:
        for term in LuceneIndexReader(str(index)).terms():
            file.write(f"{term.term}\t{term.df}\t{term.cf}\n")
    with (folder / "raw.tsv").open("w", encoding="utf-8") as file:
        for topic_id, doc_id, score in raw(index, analyzer(name), topics):
            file.write(f"{topic_id}\t{doc_id}\t{score!r}\n")
    if name == "english":
        plain = (f"{topic['_id']}\t{' '.join(topic['text'].split())}\n" for topic in topics)
        (folder / "topics.tsv").write_text("".join(plain), encoding="utf-8")
        arguments = f"-topicReader TsvString -bm25 -bm25.k1 0.9 -bm25.b 0.4 -hits {HITS} -threads 2 -index {index}"
        files = ["-topics", str(folder / "topics.tsv"), "-output", str(folder / "adjusted.run")]
        java("io.anserini.search.SearchCollection").main([*arguments.split(), *files])


def raw(index: Path, chosen: Any, topics: list[dict[str, str]]) -> Iterator[tuple[str, str, float]]:
    """Topic, document and exact score of the best HITS in trec_eval's order, straight from Lucene's IndexSearcher."""
    path = java("java.io.File")(str(index)).toPath()
    reader = java(f"{LUCENE}index.DirectoryReader").open(java(f"{LUCENE}store.FSDirectory").open(path))
    searcher = java(f"{LUCENE}search.IndexSearcher")(cast(f"{LUCENE}index.IndexReader", reader))
    searcher.setSimilarity(java(f"{LUCENE}search.similarities.BM25Similarity")(0.9, 0.4))
    build = java("io.anserini.search.query.BagOfWordsQueryGenerator")().buildQuery
    write = java("com.fasterxml.jackson.databind.ObjectMapper")().writeValueAsString  # one call for all hits of a topic
    fields = reader.storedFields()
    ids = [fields.document(number).get("id") for number in range(reader.maxDoc())]
    for topic in topics:
        query, depth = build("contents", chosen, topic["text"]), min(HITS + 200, len(ids))
        hits = json.loads(write(searcher.search(query, depth)))["scoreDocs"]
        if len(hits) == depth < len(ids) and hits[HITS - 1]["score"] == hits[-1]["score"]:  # ties that go on
            hits = json.loads(write(searcher.search(query, len(ids))))["scoreDocs"]
        ordered = sorted(((hit["score"], ids[hit["doc"]]) for hit in hits), reverse=True)
        yield from ((topic["_id"], doc_id, score) for score, doc_id in ordered[:HITS])


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    if sys.argv[1] == "tokens":
        given = json.load(sys.stdin)
        sys.stdout.write("\n" + json.dumps({name: tokens(name, texts) for name, texts in given.items()}) + "\n")
    else:
        collection(sys.argv[2], *map(Path, sys.argv[3:6]))
        sys.stdout.write("\n{}\n")
