"""Rewrites of people and programs, replayed as if a language model had given them.

    FONTES_DATA=DIR python bench/replay.py [--quretec FOLDER] [--first N] [--only TEXT]

The manual and automatic rewrites of TREC CAsT and of CANARD, and those of QuReTeC (a folder that `fontes train terms` writes),
become answers to the requests of `llm_rewrite`: a pack that is imported into an empty cache, and replayed. Prints how many
queries of the replay are those of the rewriter itself, and their term F1 against the manual rewrites; on CAsT 2021 also what
BM25 finds with both. No language model is asked, and no figure is of one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness import data_option, table
from rewriting import SETS, Rewriter, canonical, read, with_manual

import fontes as ft
from fontes import Index, Topics
from fontes.llm import AnswerFile, LlmRewrite, StoredAnswer, read_pack, write_pack
from fontes.rewrite.terms import TERM_F1

MEASURES = ["RR", "nDCG@10", "R@10"]


def replayed(topics: Topics, rewritten: Topics, folder: Path, model: str) -> Topics:
    """Replay the texts of rewritten topics as the answers of a model."""
    stage = LlmRewrite(model)
    answers = [
        StoredAnswer(
            service="openai",
            model=model,
            parameters=stage.llm.parameters_of(request),
            sample=request.sample,
            messages=request.messages,
            text=rewritten[topic.id].text,
        )
        for topic in topics.values()
        for request in stage.requests(topic)
    ]
    os.environ["FONTES_CACHE"] = str(folder / model)
    pack = folder / f"{model}.jsonl.gz"
    write_pack(answers, pack)
    read_pack(pack, AnswerFile())
    with ft.work(replay=True):
        return stage(topics)


def rewriters(topics: Topics, models: Mapping[str, Rewriter]) -> dict[str, Rewriter]:
    known: dict[str, Rewriter] = {"manual": ft.rewrite.Manual()}
    if all(topic.turns[-1].automatic for topic in topics.values()):
        known["automatic"] = ft.rewrite.Automatic()
    return known | models


def found(index: Index, topics: Topics, qrels: ft.Qrels) -> list[float]:
    values = ft.evaluate(index.bm25()(topics), qrels, MEASURES)
    return [values[measure] for measure in MEASURES]


def main() -> None:
    parser = data_option(__doc__)
    parser.add_argument("--quretec", help="a term classifier, as `fontes train terms` writes it")
    parser.add_argument("--first", type=int, help="so many conversations of each set")
    parser.add_argument("--only", default="", help="sets with this in their name")
    given = parser.parse_args()
    models: dict[str, Rewriter] = {"quretec": ft.QuReTeC(given.quretec)} if given.quretec else {}
    rows, queries = [], []
    for name in (name for name in SETS if given.only in name):
        topics = Topics(topic for topic in read(given.data, name, given.first).values() if with_manual(topic))
        with tempfile.TemporaryDirectory() as work:
            index = Index.build(given.data / "cast2021/corpus.jsonl", Path(work) / "index") if name == "CAsT 2021" else None
            for system, stage in rewriters(topics, models).items():
                direct = stage(topics)
                again = replayed(topics, direct, Path(work), system)
                same = sum(again[one].text.split() == direct[one].text.split() for one in topics)
                f1 = ft.rewrite.rewriting_scores(again, bleu=False)[TERM_F1]
                rows.append([name, system, len(topics), same, f"{f1:.3f}"])
                if index is not None:
                    values = [found(index, one, canonical(topics)) for one in (direct, again)]
                    queries.append([system, *(f"{value:.3f}" for both in values for value in both)])
    table("Replayed", ["set", "rewriter", "turns", "same queries", "term F1 of the replay"], rows)
    if queries:
        header = ["rewriter", *MEASURES, *(f"{measure}, replayed" for measure in MEASURES)]
        table("BM25 on the canonical passages of CAsT 2021", header, queries)


if __name__ == "__main__":
    main()
