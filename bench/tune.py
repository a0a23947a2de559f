"""What tuning BM25 gives over its defaults on topics held out, and how long it takes.

    python bench/tune.py --data FOLDER

Tunes k1, b and (but for the short claims of ctkfacts_cs) k3 over the default grid by nested cross-validation on each
collection, nDCG@10. Where a collection has a test split of its own, the parameters chosen on the training topics are applied to
it as well.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import harness
import numpy as np

import fontes as ft
from fontes.tuning.result import interval

MEASURE = "nDCG@10"
COLLECTIONS = (  # folder, analyzer, split that is tuned on, split that is left for the end
    ("scifact", "english", "train", "test"),
    ("cranfield", "english", "test", None),
    ("checkthat20_task2", "english", "train", "test"),
    ("ctkfacts_cs", "czech", "test", None),
)


def tuned(
    folder: Path, analyzer: str, split: str, last: str | None, groups: str | None, work: Path, plots: Path | None
) -> None:
    index = ft.Index.build(folder / "corpus.jsonl", work / folder.name, analyzer=analyzer, overwrite=True)
    topics, qrels = ft.read_topics(folder / "queries.jsonl"), ft.read_qrels(folder / f"qrels/{split}.tsv")
    space = {"k1": (0.1, 4.5, 0.2), "b": (0.0, 1.0, 0.1)} if folder.name == "ctkfacts_cs" else None
    found = ft.tune(index.bm25(), space, topics, qrels, MEASURE, groups=groups)
    print(f"\n## {folder.name}, {split}" + (f", folds by {groups}" if groups else ""))
    print(found)
    print(f"{1000 * found.seconds / (len(found.trials) + 1):.0f} ms a setting")
    if plots is not None and groups is None:
        found.plot().save(plots / f"tune-{folder.name}.svg")
    if last is None:
        return
    unseen = ft.read_qrels(folder / f"qrels/{last}.tsv")
    asked = ft.Topics(topics[i] for i in unseen)
    given, chosen = (ft.evaluate(stage(asked), unseen, MEASURE) for stage in (index.bm25(), found.stage))
    difference = chosen.array(MEASURE) - given.array(MEASURE)
    low, high = interval(difference, np.arange(len(difference)))
    print(
        f"on {last}: {chosen[MEASURE]:.4f}, as given {given[MEASURE]:.4f}, "
        f"difference {difference.mean():+.4f} [{low:+.4f}, {high:+.4f}]"
    )


def methods(folder: Path, work: Path) -> None:
    """Grid, random and TPE on one collection."""
    index = ft.Index.build(folder / "corpus.jsonl", work / "methods", overwrite=True)
    topics, qrels = ft.read_topics(folder / "queries.jsonl"), ft.read_qrels(folder / "qrels/test.tsv")
    print(f"\n## {folder.name}: methods")
    for method, trials in (("grid", None), ("random", 100), ("tpe", 100)):
        found = ft.tune(index.bm25(), None, topics, qrels, MEASURE, method=method, trials=trials)
        print(
            f"{method:<7} {len(found.trials):>5} settings  {found.seconds:6.1f} s  held out {found.score:.4f}  {found.params}"
        )


def large(folder: Path, work: Path) -> None:
    """Seconds a setting on a larger index: each topic's first result stands for its judgment."""
    index = ft.Index.build(folder / "corpus.jsonl.gz", work / "large", overwrite=True)
    topics = ft.Topics(list(ft.read_topics(folder / "queries.jsonl").values())[:200])
    run = (index.bm25() % 1)(topics)
    qrels = {t: {ranking[0].id: 1} for t, ranking in run.items() if len(ranking)}
    start, cpu = time.perf_counter(), time.process_time()
    found = ft.tune(index.bm25(), {"k1": (0.5, 2.0, 0.5), "b": (0, 1, 0.25)}, topics, qrels, MEASURE)
    settings = len(found.trials) + 1
    seconds, cpu = (time.perf_counter() - start) / settings, (time.process_time() - cpu) / settings
    print(f"\n## {folder.name}: {len(index):,} documents, {len(qrels):,} topics: {seconds:.2f} s a setting, {cpu:.2f} s of CPU")


def main() -> None:
    parser = harness.options(__doc__)
    parser.add_argument("--plots", type=Path, help="a folder for the surfaces, as SVG")
    parts = [*(name for name, *_ in COLLECTIONS), "methods", "large"]
    parser.add_argument("--only", choices=parts, help="one part: a collection, methods or large (default: all)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        for name, analyzer, split, last in COLLECTIONS:
            if options.only in (None, name):
                tuned(options.data / name, analyzer, split, last, None, work, options.plots)
        if options.only in (None, "ctkfacts_cs"):
            tuned(options.data / "ctkfacts_cs", "czech", "test", None, "document", work, options.plots)
        if options.only in (None, "methods"):
            methods(options.data / "cranfield", work)
        if options.only in (None, "large"):
            large(options.data / "wikipedia_passages", work)


if __name__ == "__main__":
    main()
