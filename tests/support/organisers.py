"""What organisers of shared tasks would give, made of the harbour's posts."""

import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fontes as ft

POSTS = ft.datasets.samples.harbour.posts
HALVES = {"dev": slice(0, 20), "test": slice(20, 40)}


def relevant(split: str) -> list[tuple[str, str, str]]:
    """Topic, text and one relevant document of each post of a half."""
    topics, qrels = POSTS.topics(), POSTS.qrels()
    ids = list(topics)[HALVES[split]]
    return [(i, topics[i].text, max(qrels[i], key=lambda doc: (qrels[i][doc], doc))) for i in ids]


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def checkthat2025(folder: Path) -> Path:
    """A zip: papers, dev posts with their paper, test posts without."""
    path = folder / "subtask_4b.zip"
    with zipfile.ZipFile(path, "w") as target:
        papers = ({"cord_uid": doc.id, "title": doc.title, "abstract": doc.text} for doc in POSTS.corpus)
        target.writestr("4b/subtask4b_collection_data.jsonl", lines(papers))
        for split, header in (("dev", "post_id\ttweet_text\tcord_uid"), ("test", "post_id\ttweet_text")):
            rows = [(i, text, *([doc] if split == "dev" else [])) for i, text, doc in relevant(split)]
            target.writestr(f"4b/subtask4b_query_tweets_{split}.tsv", "\n".join([header, *("\t".join(r) for r in rows)]) + "\n")
    return path


def checkthat2026(folder: Path) -> Path:
    """Folders as on the hub: collection, a folder for each language, test."""
    given = folder / "hub"
    papers = ({"pubkey": doc.id, "title": doc.title, "abstract": doc.text, "venue": ""} for doc in POSTS.corpus)
    put(given / "collection" / "collection-00000-of-00001.jsonl", lines(papers))
    for number, language in enumerate(("en", "de")):
        for split, place in (("dev", f"{language}/dev"), ("test", f"test/{language}")):
            half = relevant(split)[number::2]
            rows = [
                {"index": n, "text": text, **({"pubkey": doc} if split == "dev" else {})}
                for n, (_, text, doc) in enumerate(half)
            ]
            put(given / f"{place}-00000-of-00001.jsonl", lines(rows))
    return given


def scifact(folder: Path) -> Path:
    """A tar.gz like that of AI2: abstracts as lists of sentences, claims with cited documents and evidence."""
    path = folder / "data.tar.gz"
    docs = ({"doc_id": doc.id, "title": doc.title, "abstract": doc.text.split(". ")} for doc in POSTS.corpus)
    files = {"data/corpus.jsonl": lines(docs)}
    for split in HALVES:
        rows = []
        for i, text, doc in relevant(split):
            evidence = {doc: [{"sentences": [0], "label": "SUPPORT"}]}
            rows.append({"id": i, "claim": text, **({"evidence": evidence, "cited_doc_ids": [doc]} if split == "dev" else {})})
        files[f"data/claims_{split}.jsonl"] = lines(rows)
    with tarfile.open(path, "w:gz") as target:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            target.addfile(info, io.BytesIO(text.encode()))
    return path


def fever(folder: Path) -> Path:
    """Pages, and claims with sets of evidence."""
    given = folder / "fever"
    docs = list(POSTS.corpus)
    put(
        given / "wiki-pages" / "wiki-001.jsonl",
        lines([{"id": "", "text": "", "lines": ""}, *({"id": d.id, "text": d.text} for d in docs)]),
    )
    dev = ({"id": i, "claim": text, "label": "SUPPORTS", "evidence": [[[1, 1, doc, 0]]]} for i, text, doc in relevant("dev"))
    put(given / "shared_task_dev.jsonl", lines(dev))
    put(given / "shared_task_test.jsonl", lines({"id": i, "claim": text} for i, text, _ in relevant("test")))
    return given


def touche(folder: Path) -> Path:
    """Topics of two years, judgments of the first."""
    given = folder / "touche"
    for year, split in (("2020", "dev"), ("2021", "test")):
        topics = "".join(f"<topic><number>{i}</number><title>{text}</title></topic>" for i, text, _ in relevant(split))
        put(given / f"topics-{year}.xml", f"<topics>{topics.replace('&', '&amp;')}</topics>")
    put(given / "touche-2020.qrels", "".join(f"{i} 0 {doc} 2\n" for i, _, doc in relevant("dev")))
    put(given / "args.jsonl", lines({"id": doc.id, "contents": f"{doc.title} {doc.text}"} for doc in POSTS.corpus))
    return given


def longeval(folder: Path) -> Path:
    """Two snapshots like those of LongEval's scientific retrieval: the second lacks some documents."""
    given = folder / "longeval"
    docs = [{"id": doc.id, "title": doc.title, "abstract": doc.text} for doc in POSTS.corpus]
    for root, split, name, kept in (("training", "dev", "", docs), ("testing", "test", "_2025-01_test", docs[5:])):
        put(given / root / "documents" / "documents_000001.jsonl", lines(kept))
        put(given / root / f"queries{name}.txt", "".join(f"{i}\t{text}\n" for i, text, _ in relevant(split)))
    put(given / "training" / "qrels.txt", "".join(f"{i} 2024-11 {doc} 1\n" for i, _, doc in relevant("dev")))
    put(given / "qrels" / "qrels-longeval-sci-2025-01", "".join(f"{i} 0 {doc} 1\n" for i, _, doc in relevant("test")))
    return given


GIVEN = {
    "checkthat2025-4b": checkthat2025,
    "checkthat2026-1": checkthat2026,
    "fever": fever,
    "longeval": longeval,
    "scifact": scifact,
    "touche": touche,
}


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
