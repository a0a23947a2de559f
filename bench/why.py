"""How true the causes are that `fontes why` prints, by judgments made by reading, for 62 events over two collections.

FONTES_DATA=DIR python bench/why.py

The first set of each collection was looked at while the rules against effects and figures of speech were written, the second
was chosen and judged after that. `why.tsv` has the judgments: for the document that states a cause, and the cue, whether it is
one of the event. The harbour comes along; the sentences of the Causal News Corpus v2 are those for training. Leads are measured
by the harbour's own judgments of the 12 topics.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections import Counter
from pathlib import Path

from harness import data_option

import fontes as ft
from fontes.causal import Cause, causes

JUDGMENTS = Path(__file__).with_name("why.tsv")


def main() -> None:
    arguments = data_option(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        indexes = {
            "harbour": ft.Index.build(ft.dataset("harbour/causal").corpus, f"{folder}/harbour"),
            "news": ft.Index.build(news(arguments.data / "causality" / "cnc_v2_train.jsonl"), f"{folder}/news"),
        }
        stated(indexes)
        leads(indexes["harbour"])


def news(path: Path) -> list[ft.Doc]:
    return [ft.Doc(row["id"], row["text"]) for row in map(json.loads, path.read_text("utf-8").splitlines())]


def stated(indexes: dict[str, ft.Index]) -> None:
    """Counts the stated causes of each set that were judged true, false, or not at all."""
    rows = list(csv.DictReader(JUDGMENTS.read_text("utf-8").splitlines(), delimiter="\t"))
    judged = {(row["event"], row["document"], row["cue"]): row["true"] for row in rows if row["document"]}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for set_, collection, event in dict.fromkeys((row["set"], row["collection"], row["event"]) for row in rows):
        count = counts.setdefault((set_, collection), Counter())
        answers = causes(indexes[collection], event, depth=1, weak=True).causes
        count["events"] += 1
        count["with a cause"] += bool(answers)
        for cause in answers:
            source = cause.sources[0]
            truth = judged.get((event, source.doc_id, source.cue), "?")
            count[truth] += 1
            if truth == "?":
                key = (set_, collection, event, source.doc_id, source.cue)
                print("not judged:", *key, cause.text, source.sentence, sep="\t")
    print("set     collection  events  with a cause  causes  true  false  not judged")
    for (set_, collection), c in counts.items():
        total = c["1"] + c["0"] + c["?"]
        print(f"{set_:8}{collection:12}{c['events']:6}{c['with a cause']:14}{total:8}{c['1']:6}{c['0']:7}{c['?']:12}")


def leads(index: ft.Index) -> None:
    """Counts the leads of the harbour's topics that are judged relevant."""
    qrels = ft.dataset("harbour/causal").qrels()
    count: Counter[bool] = Counter()
    for topic in ft.dataset("harbour/causal").topics().values():
        answers: list[Cause] = [c for c in causes(index, topic.text, depth=1, weak=True, leads=3).causes if c.lead]
        count.update(qrels[topic.id].get(cause.sources[0].doc_id, 0) > 0 for cause in answers)
    print(f"leads of the harbour's topics: {count.total()}, relevant {count[True]}")


if __name__ == "__main__":
    main()
