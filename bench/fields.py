"""What fields give: BM25F beside BM25 of joined fields, agreement with other libraries, and speed.

    python bench/fields.py --data FOLDER [--peers PYTHON] [--only quality|agreement|speed|lucene] [--lucene JAR] [--java FOLDER]

Quality: BM25 (k1, b) and BM25F (k1, b and the weight of the title), each tuned by cross-validation on the same folds, nDCG@10.
Agreement: sums of BM25 by field beside those of bm25s and rank_bm25, from tokens that Fontes analysed, in the environment of
`--peers`, an interpreter that has both. Speed: wikipedia_passages. With a jar of Lucene 10.5 and Jackson, and a Java 25 with
javac: BM25F beside CombinedFieldQuery.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import harness
import numpy as np

import fontes as ft
from fontes.tuning.result import interval

MEASURE = "nDCG@10"
COLLECTIONS = (
    ("scifact", "train"),
    ("scifact", "test"),
    ("cranfield", "test"),
    ("cisi", "test"),
    ("checkthat20_task2", "train"),
)
SPACE = {"k1": [0.5, 0.9, 1.3, 1.7, 2.1], "b": [0.2, 0.4, 0.6, 0.8, 1.0]}
TITLE = {"fields.title": [0.5, 1, 2, 3, 4, 6, 8, 12]}
PARAMETERS = {"k1": 0.9, "b": 0.4}
WEIGHTS = {"title": 3.0, "text": 1.0}
PEER = """
import json, sys
import bm25s, numpy as np
from rank_bm25 import BM25Okapi
given = json.load(sys.stdin)
totals = {}
for field, weight in given["weights"].items():
    docs, topics = given["docs"][field], given["topics"]
    model = bm25s.BM25(method="lucene", k1=given["k1"], b=given["b"], dtype="float64")
    model.index(docs, show_progress=False)
    known = [[word for word in topic if word in model.vocab_dict] for topic in topics]
    scores = np.array([model.get_scores(topic) if topic else np.zeros(len(docs)) for topic in known])
    totals["bm25s lucene"] = totals.get("bm25s lucene", 0) + weight * scores
    okapi = BM25Okapi(docs, k1=given["k1"], b=given["b"])
    totals["rank_bm25 okapi"] = totals.get("rank_bm25 okapi", 0) + weight * np.array([okapi.get_scores(t) for t in topics])
np.savez(sys.argv[1], **totals)
"""


def build(folder: Path, work: Path, separate: bool = True) -> ft.Index:
    corpus = next(path for path in (folder / "corpus.jsonl", folder / "corpus.jsonl.gz") if path.exists())
    return ft.Index.build(corpus, work / f"{folder.name}-{separate}", separate=separate, overwrite=True)


def quality(data: Path, work: Path) -> None:
    head = ("collection", "topics", "BM25", "BM25F", "difference", "BM25's parameters", "BM25F's parameters")
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for name, split in COLLECTIONS:
        index = build(data / name, work)
        topics, qrels = ft.read_topics(data / name / "queries.jsonl"), ft.read_qrels(data / name / f"qrels/{split}.tsv")
        joined = ft.tune(index.bm25(), SPACE, topics, qrels, MEASURE)
        fields = ft.tune(index.bm25(fields={"title": 1, "text": 1}), {**SPACE, **TITLE}, topics, qrels, MEASURE)
        difference = fields.values - joined.values
        low, high = interval(difference, fields.units)
        print(
            f"| {name}, {split} | {len(difference)} | {joined.score:.4f} | {fields.score:.4f} "
            f"| {difference.mean():+.4f} [{low:+.4f}, {high:+.4f}] | {joined.params} | {fields.params} |",
            flush=True,
        )


def agreement(data: Path, work: Path, peer: str) -> None:
    for name in ("scifact", "cranfield"):
        index, topics = build(data / name, work), ft.read_topics(data / name / "queries.jsonl")
        topics = ft.Topics(list(topics.values())[:200])
        docs = list(index.docs(index.ids.tolist()))
        fields = {"title": [doc.title or "" for doc in docs], "text": [doc.text for doc in docs]}
        given = {
            "docs": {field: index.analyzer.many(texts) for field, texts in fields.items()},
            "topics": index.analyzer.many([topic.text for topic in topics.values()]),
            "weights": WEIGHTS,
            **PARAMETERS,
        }
        scores = work / "scores.npz"
        subprocess.run([peer, "-c", PEER, str(scores)], input=json.dumps(given), text=True, check=True)
        for peer_name, theirs in np.load(scores).items():
            stage = index.bm25(variant=peer_name.split()[1], fields=WEIGHTS, combine="sum", k=len(index), **PARAMETERS)
            run, ours = stage(topics), np.zeros(theirs.shape)
            ours[np.repeat(np.arange(len(run)), np.diff(run.bounds)), run.codes] = run.scores
            apart = np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-3)
            print(f"{name}, {len(topics)} topics, {peer_name}: largest relative difference {apart.max():.1e}")


def lucene(data: Path, work: Path, jar: Path, java: Path) -> None:
    subprocess.run([java / "javac", "-cp", jar, "-d", work, harness.HERE / "CombinedFields.java"], check=True)
    for name in ("scifact", "cranfield"):
        index, topics = build(data / name, work), ft.read_topics(data / name / "queries.jsonl")
        topics = ft.Topics(list(topics.values())[:200])
        docs = list(index.docs(index.ids.tolist()))
        fields = {"title": [doc.title or "" for doc in docs], "text": [doc.text for doc in docs]}
        df = {term: int(index.df[number]) for number, term in enumerate(index.terms.tolist())}
        words = [
            [term for term in set(terms) if term in df] for terms in index.analyzer.many([t.text for t in topics.values()])
        ]
        given = {
            "docs": {field: [" ".join(terms) for terms in index.analyzer.many(texts)] for field, texts in fields.items()},
            "topics": [{term: df[term] for term in terms} for terms in words],
            "weights": WEIGHTS,
            **PARAMETERS,
        }
        (work / "given.json").write_text(json.dumps(given))
        classes = f"{work}:{jar}"
        subprocess.run([java / "java", "-cp", classes, "CombinedFields", work / "given.json", work / "out.json"], check=True)
        weighted = ft.Topics(
            ft.Topic(topic, "", weights=dict.fromkeys(own, 1.0)) for topic, own in zip(topics, words, strict=True)
        )
        run = index.bm25(fields=WEIGHTS, lengths="lucene", k=len(index), **PARAMETERS)(weighted)
        own_df, same_df = json.loads((work / "out.json").read_text())
        for said, theirs in (("its own df", own_df), ("df of the fields together", same_df)):
            apart, same = [], 0
            for topic, scores in zip(run.topics, theirs, strict=True):
                ours = {index.ordinal(hit.id): hit.score for hit in run[topic]}
                assert ours.keys() == {int(doc) for doc in scores}
                apart += [abs(ours[int(doc)] - score) / score for doc, score in scores.items()]
                best = sorted(scores, key=scores.__getitem__)[-10:]
                same += len({int(doc) for doc in best} & {index.ordinal(hit.id) for hit in run[topic][:10]})
            median, most = np.quantile(apart, (0.5, 0.99))
            print(f"{name}, {len(topics)} topics, CombinedFieldQuery, {said}: the same top 10: {same / len(topics) / 10:.1%}")
            print(f"    relative differences: median {median:.1e}, 99% {most:.1e}, greatest {max(apart):.1e}")


def speed(data: Path, work: Path, runs: int) -> None:
    folder = data / "wikipedia_passages"
    index = build(folder, work)
    topics = ft.read_topics(folder / "queries.jsonl")
    stages = {
        "bm25()": index.bm25(),
        "bm25(fields=…)": index.bm25(fields=WEIGHTS),
        "bm25(fields=…, b by field)": index.bm25(fields=WEIGHTS, b={"title": 0.4, "text": 0.6}),
        'bm25(fields=…, combine="sum")': index.bm25(fields=WEIGHTS, combine="sum"),
        "tfidf()": index.tfidf(),
        "tfidf(fields=…)": index.tfidf(fields=WEIGHTS),
        "ql()": index.ql(),
        "ql(fields=…)": index.ql(fields=WEIGHTS),
    }
    with ft.work(threads=1):
        (index.bm25(k1=0.5) % 10)(topics)  # compiles the kernels
        print("| model | impacts, s | 1,803 topics, k=10, ms a topic | one topic at a time |\n|---|---|---|---|")
        for name, stage in stages.items():
            start = time.perf_counter()
            (stage % 10)(topics)
            first = time.perf_counter() - start
            batches, singles = [], []
            for _ in range(runs):
                start = time.perf_counter()
                (stage % 10)(topics)
                batches.append(time.perf_counter() - start)
                start = time.perf_counter()
                for topic in topics.values():
                    stage.search(topic, 10)
                singles.append(time.perf_counter() - start)
            batch, single = (1000 * float(np.median(times)) / len(topics) for times in (batches, singles))
            print(f"| `{name}` | {first - float(np.median(batches)):.2f} | {batch:.3f} | {single:.3f} |", flush=True)


def main() -> None:
    parser = harness.data_option(__doc__)
    parser.add_argument("--peers", default=sys.executable, help="an interpreter that has bm25s and rank_bm25 (default: this)")
    parser.add_argument("--runs", type=int, default=5, help="how often speed is measured (default: %(default)s)")
    parser.add_argument("--only", choices=("quality", "agreement", "speed", "lucene"), help="one part (default: all)")
    parser.add_argument("--lucene", type=Path, help="a jar with Lucene and Jackson")
    parser.add_argument(
        "--java", type=Path, default=Path("/usr/bin"), help="the folder of java and javac (default: %(default)s)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        if options.only in (None, "agreement"):
            agreement(options.data, work, options.peers)
        if options.lucene and options.only in (None, "lucene"):
            lucene(options.data, work, options.lucene, options.java)
        if options.only in (None, "speed"):
            speed(options.data, work, options.runs)
        if options.only in (None, "quality"):
            quality(options.data, work)


if __name__ == "__main__":
    main()
