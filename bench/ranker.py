"""Learning to rank beside tuned BM25 and fusion, by nested cross-validation; and beside PyTerrier on the same features.

    python bench/ranker.py COLLECTION --work DIR [--splits train,dev,test] [--group none] [--encoder MODEL] [--topics N]
    python bench/ranker.py COLLECTION --work DIR [--splits train,dev,test] --peer ENVIRONMENT/bin/python

COLLECTION is a folder in BEIR's form. The held-out runs go to DIR/NAME/*.run; tables to standard output. The peer's environment
has python-terrier and lightgbm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

LEXICAL = (
    'bm25(), bm25(k1=1.5, b=0.75), bm25(fields={"title": 1}), bm25(fields={"text": 1}), ql(), tfidf(), length(), '
    'query_length(), coverage(), coverage("title")'
)
GRID = {"k1": [0.6, 0.9, 1.2, 1.6, 2.0], "b": [0.2, 0.4, 0.6, 0.8]}
MEASURES = ["nDCG@10", "AP", "RR@10"]
FOLDS, TREES = 5, 100
LEARNERS = ("linear", "lightgbm", "setrank")
SET: dict[str, Any] = {"epochs": 40, "patience": 8, "folds": 3}  # of SetRank, whose passes take longer than trees
PEER = """
import json, sys
import lightgbm, numpy, pandas, pyterrier
folder = sys.argv[1]
text = {"qid": str, "docno": str}
rows = pandas.read_json(folder + "/candidates.jsonl", lines=True, dtype=text).assign(query="")
rows["features"] = list(numpy.load(folder + "/features.npy"))
qrels = pandas.read_json(folder + "/qrels.jsonl", lines=True, dtype=text)
facts = json.load(open(folder + "/facts.json"))
train, test = (rows[rows.qid.isin(set(facts[side]))] for side in ("train", "test"))
ranker = pyterrier.ltr.apply_learned_model(lightgbm.LGBMRanker(n_estimators=facts["trees"], **facts["parameters"]), form="ltr")
ranker.fit(train, qrels, train, qrels)
ranker.transform(test)[["qid", "docno", "score"]].to_json(folder + "/peer.jsonl", orient="records", lines=True)
"""


def main() -> None:
    """Measure, or compare with the peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--splits", default="test")
    parser.add_argument("--encoder")
    parser.add_argument("--group", default="document", help="topics that stay in one fold; none: all alone")
    parser.add_argument("--learner", action="append", choices=LEARNERS, help="which (default: all)")
    parser.add_argument("--topics", type=int, help="about so many of the topics, evenly chosen (default: all)")
    parser.add_argument("--peer", type=Path)
    options = parser.parse_args()
    import fontes as ft

    place = options.work / options.collection.name
    place.mkdir(parents=True, exist_ok=True)
    folder, corpus = place / "index", options.collection / "corpus.jsonl"
    index = ft.Index.open(folder) if folder.exists() else ft.Index.build(corpus, folder, analyzer="english", separate=True)
    splits = [ft.read_qrels(options.collection / "qrels" / f"{split}.tsv") for split in options.splits.split(",")]
    qrels = ft.Qrels(row for judged in splits for row in judged.rows())
    topics = ft.read_topics(options.collection / "queries.jsonl").judged(qrels)
    if options.peer:
        beside(index, topics, qrels, place, options.peer)
    else:
        if options.topics:
            qrels = qrels.only(list(topics)[:: max(1, len(topics) // options.topics)])
            topics = topics.judged(qrels)
        group = None if options.group == "none" else options.group
        measure(index, topics, qrels, place, options.encoder, group, options.learner or LEARNERS)


def measure(
    index: Any, topics: Any, qrels: Any, place: Path, encoder: str | None, group: str | None, learners: Sequence[str]
) -> None:
    """Compare held-out runs."""
    import fontes as ft
    from fontes.train import RankerSettings, validate_ranker
    from fontes.tuning import fit_weights

    runs = {
        "bm25": index.bm25()(topics),
        "bm25 tuned": held_out(ft.tune(index.bm25(), GRID, topics, qrels, folds=FOLDS, groups=group), topics),
    }
    parts, features = [index.bm25(), index.ql()], LEXICAL
    if encoder:
        start = time.perf_counter()
        dense = index.dense(encoder)
        dense.prepare()
        say(f"encoded in {time.perf_counter() - start:.0f} s")
        parts, features = [index.bm25(), dense], f'{LEXICAL}, dense("{encoder}")'
        runs["dense"] = dense(topics)
    of_parts = [stage(topics) for stage in parts]
    runs["rrf"], runs["wsum"] = ft.fuse(*of_parts), fit_weights(of_parts, qrels, "nDCG@10", folds=FOLDS).run
    candidates = (ft.fuse(*parts) if encoder else index.bm25())(topics).top(100)
    for learner in learners:
        start = time.perf_counter()
        settings = RankerSettings(learner=learner, group=group, **(SET if learner == "setrank" else {}))
        result = validate_ranker(index, candidates, qrels, features, settings, folds=FOLDS)
        say(f"{learner}: {result}\n{time.perf_counter() - start:.0f} s")
        runs[f"ltr {learner}"] = result.run
    for name, run in runs.items():
        ft.write_run(run, str(place / f"{'dense' if encoder else 'lexical'} {name}.run".replace(" ", "-")))
    for baseline in ("bm25 tuned", "rrf"):
        say(str(ft.compare(runs, topics, qrels, MEASURES, baseline=baseline, allow_empty=True)))


def held_out(tuning: Any, topics: Any) -> Any:
    """Return the run of each topic with the parameters that the other folds have chosen."""
    import fontes as ft

    rows: list[tuple[str, str, float]] = []
    for fold in tuning.folds:
        own = ft.Topics(topics[tuning.topic_ids[place]] for place in fold.topics.tolist())
        run = tuning.stage.with_(**fold.choice)(own)
        rows += [(topic_id, hit.id, hit.score) for topic_id, ranking in run.items() for hit in ranking]
    return ft.Run.of(rows)


def beside(index: Any, topics: Any, qrels: Any, place: Path, python: Path) -> None:
    """Learn from half of the topics, here and in PyTerrier, as many trees with the same features and parameters."""
    import fontes as ft
    from fontes.ltr.features import features_of
    from fontes.train.learners import RankerCandidates, RankerSettings, TreeLearner

    run = index.bm25()(topics).top(100)
    data = RankerCandidates.of(run, qrels, features_of(LEXICAL, index))
    sides = ft.split(topics, qrels, 0.5)
    names = np.array(list(run.topics), dtype=object)[run.topic_numbers]
    of_train = np.isin(names, list(sides.train.topics))
    learned, settings, trees = data.only(np.flatnonzero(of_train)), RankerSettings(), TreeLearner()
    parameters = trees._parameters(learned, settings)
    rows = [(topic_id, hit.id) for topic_id, ranking in run.items() for hit in ranking]
    lines(place / "candidates.jsonl", ({"qid": topic_id, "docno": doc_id} for topic_id, doc_id in rows))
    lines(place / "qrels.jsonl", ({"qid": t, "docno": doc, "label": max(grade, 0)} for t, _, doc, grade in qrels.rows()))
    np.save(place / "features.npy", data.matrix)
    facts = {"train": list(sides.train.topics), "test": list(sides.test.topics), "trees": TREES, "parameters": parameters}
    (place / "facts.json").write_text(json.dumps(facts))
    subprocess.run([python, "-c", PEER, str(place)], check=True)
    scores = trees.model(learned, settings, {"trees": TREES}).predict(data.matrix)
    tested = set(sides.test.topics)
    ours = ft.Run.of((*row, score) for row, score in zip(rows, scores.tolist(), strict=True) if row[0] in tested)
    of_peer = map(json.loads, (place / "peer.jsonl").read_text().splitlines())
    peer = ft.Run.of((str(row["qid"]), str(row["docno"]), row["score"]) for row in of_peer)
    say(
        str(
            ft.compare(
                {"fontes": ours, "pyterrier": peer}, None, sides.test.qrels, MEASURES, baseline="pyterrier", allow_empty=True
            )
        )
    )


def lines(path: Path, rows: Any) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
