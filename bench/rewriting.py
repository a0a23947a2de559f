"""Rewriters of conversations: how close to the manual rewrites, and what their queries find.

    FONTES_DATA=DIR python bench/rewriting.py [--quretec FOLDER] [--canard FOLDER] [--first N] [--only TEXT]

As text: each rewriter against the manual rewrites of TREC CAsT 2019 to 2022 and of CANARD's development set, the means with
bootstrapped intervals, and paired t-tests against the raw utterances with Holm's correction over the rewriters of a set.
As queries: BM25 on the canonical passages of CAsT 2021 (which passage was the answer?) and on the harbour.

Without the collections of CAsT, HQE looks its words up in what there is: 207,168 passages of Wikipedia, and for retrieval the
passages that are searched. --first takes so many conversations of each set, to try things out; --only takes the sets whose
name has the text in it, where "queries" stands for the second part.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from harness import data_option
from numpy.typing import NDArray

import fontes as ft
from fontes import Index, Stage, Topic, Topics
from fontes.comparison.statistics import bootstrap, corrected, t_test
from fontes.rewrite.terms import BLEU, ROUGE1_R, TERM_F1, TERM_P, TERM_R

SETS = {
    "CAsT 2019": "cast2019/turns.jsonl",
    "CAsT 2020": "cast2020/turns.jsonl",
    "CAsT 2021": "cast2021/turns.jsonl",
    "CAsT 2022": "cast2022/topics_tree.json",  # turns.jsonl does not say where a branch leaves the conversation
    "CANARD dev": "canard/dev.json",
}
MEASURES = (TERM_R, TERM_P, TERM_F1, ROUGE1_R, BLEU)
ALPHA = 0.05
Rewriter = Stage[Topics, Topics]


def rewriters(index: Index, models: Mapping[str, Rewriter]) -> dict[str, Rewriter]:
    return {
        "raw": ft.rewrite.Raw(),
        "first turn": ft.rewrite.LastTurns(k=0, first=True),
        "last turn": ft.rewrite.LastTurns(k=1),
        "last 3 turns": ft.rewrite.LastTurns(k=3),
        "hqe": ft.HQE(index),
        **models,
    }


def read(data: Path, name: str, first: int | None) -> Topics:
    path = data / SETS[name]
    topics = ft.read_topics(path)
    automatic = path.parent / "queries_automatic.jsonl"
    if automatic.exists():  # the tree of 2022 has none
        rewrites = ft.read_topics(automatic)
        topics = Topics(with_automatic(topic, rewrites[topic.id].text) for topic in topics.values())
    return topics if first is None else some(topics, first)


def with_automatic(topic: Topic, text: str) -> Topic:
    return replace(topic, turns=(*topic.turns[:-1], replace(topic.turns[-1], automatic=text)))


def some(topics: Topics, first: int) -> Topics:
    kept = list(dict.fromkeys(map(conversation_of, topics)))[:first]
    return Topics(topic for topic in topics.values() if conversation_of(topic.id) in kept)


def conversation_of(topic_id: str) -> str:
    return topic_id.rpartition("_")[0]


def as_text(name: str, topics: Topics, systems: Mapping[str, Rewriter]) -> None:
    """Prints a row for each rewriter: means, intervals, and whether the difference from raw is more than chance."""
    scores, seconds = {}, {}
    for system, stage in systems.items():
        start = time.perf_counter()
        rewritten = stage(topics)
        seconds[system] = time.perf_counter() - start
        scores[system] = ft.rewrite.rewriting_scores(rewritten)
    others = [system for system in systems if system != "raw"]
    marks, changed = {}, 0
    for measure in MEASURES:
        differences = np.stack([scores[o].array(measure) - scores["raw"].array(measure) for o in others], axis=1)
        p = corrected(t_test(differences)[1], "holm")
        by_conversation = corrected(t_test(conversation_means(differences, list(topics)))[1], "holm")
        changed += int(np.sum((p <= ALPHA) != (by_conversation <= ALPHA)))
        above = differences.mean(axis=0) > 0
        for other, low, up in zip(others, p <= ALPHA, above, strict=True):
            marks[other, measure] = (" ▲" if up else " ▼") if low else ""
    conversations = len({conversation_of(topic_id) for topic_id in topics})
    print(f"\n{name}: {len(topics)} turns of {conversations} conversations\n")
    print(f"| | {' | '.join(MEASURES)} | corpus BLEU |")
    print(f"|---|{'---|' * len(MEASURES)}---:|")
    for system, found in scores.items():
        low, high = bootstrap(np.stack([found.array(measure) for measure in MEASURES], axis=1))
        cells = [
            f"{shown(found[m], m)} ({shown(a, m)}–{shown(b, m)}){marks.get((system, m), '')}"
            for m, a, b in zip(MEASURES, low, high, strict=True)
        ]
        print(f"| {system} | {' | '.join(cells)} | {found.corpus_bleu:.1f} |")
    print(f"\nTerms that the utterances lack: {where_said(topics)}")
    print(
        f"\n{changed} of {len(others) * len(MEASURES)} tests come out otherwise with conversations in place of turns; ", end=""
    )
    print("seconds: " + ", ".join(f"{system} {spent:.2f}" for system, spent in seconds.items()))


def where_said(topics: Topics) -> str:
    """Where the content terms were first said that manual rewrites have and utterances lack."""
    terms = ft.Analyzer.of("english")
    counts = dict.fromkeys(("in an earlier question", "in an answer alone", "in the description alone", "nowhere"), 0)
    for topic in topics.values():
        before = topic.turns[:-1]
        lacking = set(terms(topic.turns[-1].manual)) - set(terms(topic.turns[-1].text))
        texts = ([turn.text for turn in before], [turn.answer for turn in before], [topic.description])
        for place, said in zip(counts, texts, strict=False):
            found = lacking & set(terms(" ".join(said)))
            counts[place] += len(found)
            lacking -= found
        counts["nowhere"] += len(lacking)
    return ", ".join(f"{count / max(1, sum(counts.values())):.1%} {place}" for place, count in counts.items())


def shown(value: float, measure: str) -> str:
    return f"{value:.1f}" if measure == BLEU else f"{value:.3f}"


def conversation_means(values: NDArray[Any], topic_ids: list[str]) -> NDArray[np.float64]:
    """The mean over the turns of each conversation: a row for each."""
    rows = sorted(range(len(topic_ids)), key=lambda row: conversation_of(topic_ids[row]))
    return np.array([values[list(own)].mean(axis=0) for _, own in groupby(rows, lambda row: conversation_of(topic_ids[row]))])


def as_queries(
    name: str, index: Index, topics: Topics, qrels: ft.Qrels, measures: list[str], systems: Mapping[str, Rewriter]
) -> None:
    bm25 = index.bm25()
    pipelines = {system: stage >> bm25 for system, stage in systems.items()}
    report = ft.compare(pipelines, topics, qrels, measures, baseline="raw", cache=False, allow_empty=True)
    print(
        f"\n{name}: {len(qrels)} turns, {len(index)} documents\n\n| | {' | '.join(measures)} |\n|---|{'---|' * len(measures)}"
    )
    for system in systems:
        cells = [
            f"{report.mean(system, m):.3f}" + ("" if system == "raw" else against_raw(report, system, m)) for m in measures
        ]
        print(f"| {system} | {' | '.join(cells)} |")


def against_raw(report: ft.comparison.Report, system: str, measure: str) -> str:
    """The difference from raw, its interval and p, and whether it is more than chance."""
    found = report.comparison(system, "raw", measure)
    p = "p < 0.0001" if found.corrected < 0.0001 else f"p = {found.corrected:.4f}"
    mark = (" ▲" if found.difference > 0 else " ▼") if found.significant else ""
    return f" ({found.difference:+.3f}: {found.low:+.3f} to {found.high:+.3f}, {p}){mark}"


def parameters_of_hqe(name: str, index: Index, topics: Topics, qrels: ft.Qrels) -> None:
    hqe, bm25 = ft.HQE(index), index.bm25()
    variants = {
        "as it is": hqe,
        **{f"thresholds x {x}": hqe.with_(r_topic=4.5 * x, r_sub=3.5 * x, eta=10 * x) for x in (0.8, 1.2, 1.5)},
        "thresholds as published": hqe.with_(scaled=False),
        "any word": hqe.with_(tagger="none"),
    }
    print(f"\nHQE on {name}\n\n| | RR | nDCG@10 | R@10 |\n|---|---:|---:|---:|")
    for variant, stage in variants.items():
        found = ft.evaluate((stage >> bm25)(topics), qrels, ["RR", "nDCG@10", "R@10"])
        print(f"| {variant} | {' | '.join(f'{value:.3f}' for value in found.values())} |")


def canonical(topics: Topics) -> ft.Qrels:
    return ft.Qrels.of({topic.id: {topic.turns[-1].answer_id: 1} for topic in topics.values()})


def with_manual(topic: Topic) -> bool:
    return bool(topic.turns[-1].manual.strip())


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--quretec", help="a term classifier, as `fontes train terms` writes it")
    parser.add_argument("--canard", help="a T5 trained on CANARD: a folder, or castorini/t5-base-canard")
    parser.add_argument("--first", type=int, help="so many conversations of each set")
    parser.add_argument("--only", default="", help="sets with this in their name, or queries")
    given = parser.parse_args()
    models: dict[str, Rewriter] = {}
    if given.canard:
        models["canard-t5"] = ft.CanardT5(given.canard)
    if given.quretec:
        models["quretec"] = ft.QuReTeC(given.quretec)
        models["quretec, last answer"] = ft.QuReTeC(given.quretec, answers=1)
    with tempfile.TemporaryDirectory() as folder:
        sets = [name for name in SETS if given.only in name]
        if sets:
            wikipedia = Index.build(given.data / "wikipedia_passages/corpus.jsonl.gz", Path(folder) / "wikipedia")
        print(
            "# As text\n\n▲ ▼: above or below raw, t-test over turns, Holm over the rewriters of a set and measure, p <= 0.05"
        )
        for name in sets:
            topics = read(given.data, name, given.first)
            judged = Topics(topic for topic in topics.values() if with_manual(topic))
            systems = rewriters(wikipedia, models)
            if all(topic.turns[-1].automatic for topic in judged.values()):
                systems["automatic"] = ft.rewrite.Automatic()
            as_text(name, judged, systems)
        harbour = ft.datasets.samples.harbour.conversations
        stories = Index.build(harbour.corpus, Path(folder) / "harbour")
        if given.only in "harbour":
            as_text("harbour", harbour.topics(), rewriters(stories, models))
        if given.only not in "queries":
            return
        print("\n# As queries, by BM25 (k1=0.9, b=0.4)")
        passages = Index.build(given.data / "cast2021/corpus.jsonl", Path(folder) / "cast2021")
        cast = read(given.data, "CAsT 2021", given.first)
        weighted = {"weighted turns": ft.rewrite.WeightedTurns(passages)}
        systems = {
            **rewriters(passages, models),
            **weighted,
            "automatic": ft.rewrite.Automatic(),
            "manual": ft.rewrite.Manual(),
        }
        as_queries("CAsT 2021, canonical passages", passages, cast, canonical(cast), ["RR", "nDCG@10", "R@10"], systems)
        weighted = {"weighted turns": ft.rewrite.WeightedTurns(stories)}
        systems = {**rewriters(stories, models), **weighted, "manual": ft.rewrite.Manual()}
        as_queries("harbour", stories, harbour.topics(), harbour.qrels(), ["nDCG@10", "AP", "R@10"], systems)
        parameters_of_hqe("CAsT 2021, canonical passages", passages, cast, canonical(cast))
        parameters_of_hqe("the harbour", stories, harbour.topics(), harbour.qrels())


if __name__ == "__main__":
    main()
