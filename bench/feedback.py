"""Compares RM3 and query likelihood with Anserini's: AP and nDCG@10 of both, and how far scores are apart.

    FONTES_DATA=DIR python bench/feedback.py [--collections scifact,cranfield] [--peers DIR]

Prints a Markdown table. Anserini runs through Pyserini in the peers' environment, where this same program is called with
`anserini CORPUS.jsonl TOPICS.jsonl FOLDER`. Fontes uses lengths="lucene"; topics are those that qrels/test.tsv judges.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

COLLECTIONS = "cranfield med cisi npl scifact"
MODELS = {
    "BM25": "set_bm25 0.9 0.4",
    "BM25 and RM3": "set_rm3 10 10 0.5",
    "query likelihood, Dirichlet": "set_qld 1000",
    "query likelihood, Jelinek-Mercer": "set_qljm 0.1",
}
SIMILARITIES = {"set_bm25": "BM25Similarity", "set_qld": "LMDirichletSimilarity", "set_qljm": "LMJelinekMercerSimilarity"}
HITS, BOUND = 1000, 0.005


def main() -> None:
    from agreement import lines
    from harness import machine, options, table

    parser = options(__doc__)
    parser.add_argument("--collections", default=COLLECTIONS.replace(" ", ","), help="names, separated by commas")
    given = parser.parse_args()
    print(machine(), flush=True)
    rows = []
    for name in given.collections.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows += compare(given.peers, given.data / name, Path(folder), lines)
    header = ["collection, model", "topics", "AP: Anserini", "Fontes", "nDCG@10: Anserini", "Fontes"]
    header += ["largest difference of a score", f"AP within {BOUND}"]
    table("RM3 and query likelihood: Anserini / Fontes", header, rows)


def compare(peer: Path, source: Path, work: Path, lines: Any) -> list[list[str]]:
    """A row for each model."""
    import peers

    from fontes import Index, Run, Topics, evaluate, read_qrels, read_topics

    qrels = read_qrels(source / "qrels" / "test.tsv")
    every = read_topics(source / "queries.jsonl")
    topics = Topics(every[topic] for topic in every if topic in qrels)
    asked = [json.dumps({"_id": topic.id, "text": topic.text}) for topic in topics.values()]
    (work / "topics.jsonl").write_text("\n".join(asked), encoding="utf-8")
    peers.call(peer, "feedback.py", "anserini", source / "corpus.jsonl", work / "topics.jsonl", work)
    index = Index.build(source / "corpus.jsonl", work / "fontes")
    bm25 = index.bm25(lengths="lucene")
    stages = (bm25, bm25 >> index.rm3() >> bm25, index.ql(lengths="lucene"))
    stages += (index.ql(smoothing="jelinek-mercer", lengths="lucene"),)
    rows = []
    for number, (name, stage) in enumerate(zip(MODELS, stages, strict=True)):
        scores = {
            topic: {doc: float(score) for _, doc, score in some}
            for topic, some in groupby((line.split("\t") for line in lines(work / f"{number}.tsv")), key=lambda row: row[0])
        }
        ranks = {t: {doc: -float(rank) for rank, doc in enumerate(docs)} for t, docs in scores.items()}
        theirs, run = evaluate(Run.of(ranks), qrels, ["AP", "nDCG@10"]), stage(topics)
        ours = evaluate(run, qrels, ["AP", "nDCG@10"])
        exact = lines(work / f"{number}.raw.tsv") if (work / f"{number}.raw.tsv").exists() else lines(work / f"{number}.tsv")
        found = run.to_dict()
        apart = [
            abs(found[topic][doc] - float(score))
            for topic, doc, score in (line.split("\t") for line in exact)
            if doc in found.get(topic, {})
        ]
        measures = [f"{m[key]:.4f}" for key in ("AP", "nDCG@10") for m in (theirs, ours)]
        within = "yes" if abs(ours["AP"] - theirs["AP"]) <= BOUND else "no"
        rows.append([f"{source.name}, {name}", f"{len(topics)}", *measures, f"{max(apart):.1e}", within])
    return rows


def anserini(corpus: Path, topics: Path, folder: Path) -> None:
    """Indexes with vectors of the documents and writes MODEL.tsv as Pyserini has it, and MODEL.raw.tsv with Lucene's scores."""
    from pyserini.pyclass import autoclass as java  # isort: skip; it starts the Java machine
    from engines import contents
    from jnius import cast
    from pyserini.search.lucene import LuceneSearcher

    (folder / "contents").mkdir()
    docs = (json.dumps({"id": i, "contents": text}) for i, text in zip(*contents(corpus), strict=True))
    (folder / "contents" / "docs.jsonl").write_text("\n".join(docs), encoding="utf-8")
    arguments = f"-collection JsonCollection -generator DefaultLuceneDocumentGenerator -input {folder / 'contents'}"
    index = str(folder / "lucene")
    java("io.anserini.index.IndexCollection").main([*arguments.split(), "-index", index, "-storeDocvectors"])
    asked = [json.loads(line) for line in topics.read_text(encoding="utf-8").splitlines()]
    lucene, write = "org.apache.lucene.", java("com.fasterxml.jackson.databind.ObjectMapper")().writeValueAsString
    reader = java(f"{lucene}index.DirectoryReader").open(
        java(f"{lucene}store.FSDirectory").open(java("java.io.File")(index).toPath())
    )
    ids = [reader.storedFields().document(number).get("id") for number in range(reader.maxDoc())]
    plain = java(f"{lucene}search.IndexSearcher")(cast(f"{lucene}index.IndexReader", reader))
    analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    query = java("io.anserini.search.query.BagOfWordsQueryGenerator")().buildQuery
    for number, model in enumerate(MODELS.values()):
        setter, *values = model.split()
        parameters = [float(value) for value in values]
        searcher = LuceneSearcher(index)
        searcher.set_bm25(0.9, 0.4)
        if setter == "set_rm3":
            searcher.set_rm3(*map(int, parameters[:2]), parameters[2])
        elif setter == "set_qld":
            searcher.set_qld(*parameters)
        if setter in SIMILARITIES:
            plain.setSimilarity(java(f"{lucene}search.similarities.{SIMILARITIES[setter]}")(*parameters))
            with (folder / f"{number}.raw.tsv").open("w", encoding="utf-8") as file:
                for topic in asked:
                    hits = json.loads(write(plain.search(query("contents", analyzer, topic["text"]), HITS)))["scoreDocs"]
                    file.writelines(f"{topic['_id']}\t{ids[hit['doc']]}\t{hit['score']!r}\n" for hit in hits)
        if setter == "set_qljm":  # Pyserini has no method for it
            (folder / f"{number}.tsv").write_bytes((folder / f"{number}.raw.tsv").read_bytes())
            continue
        with (folder / f"{number}.tsv").open("w", encoding="utf-8") as file:
            for topic in asked:
                for hit in searcher.search(topic["text"], HITS):
                    file.write(f"{topic['_id']}\t{hit.docid}\t{hit.score!r}\n")
    sys.stdout.write("\n{}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["anserini"]:
        anserini(*map(Path, sys.argv[2:5]))
    else:
        main()
