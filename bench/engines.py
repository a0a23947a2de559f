"""Builds an index with one engine, in a process of its own, and reports the seconds as JSON.

    python engines.py build ENGINE CORPUS.jsonl FOLDER [--threads 2] [--text]

The same program runs in Fontes' environment and in the peers' environment, so it imports nothing of either before it must.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STOPS = (  # Lucene's
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was "
    "will with"
)


class Clock:
    """Seconds between calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def __call__(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


def contents(corpus: Path) -> tuple[list[str], list[str]]:
    """Ids, and title and text of each document in one string."""
    ids, texts = [], []
    with corpus.open(encoding="utf-8") as file:
        for line in file:
            doc = json.loads(line)
            ids.append(doc["_id"])
            texts.append(f"{doc['title']} {doc['text']}" if doc.get("title") else doc["text"])
    return ids, texts


def build_fontes(clock: Clock, corpus: Path, folder: Path, threads: int, text: bool) -> None:
    """The text is always stored."""
    from fontes import Index

    clock("import")
    ids, texts = contents(corpus)
    clock("load")
    Index.build(list(zip(ids, texts, strict=True)), folder, threads=threads)
    clock("build")


def build_fontes_file(clock: Clock, corpus: Path, folder: Path, threads: int, text: bool) -> None:
    from fontes import Index

    clock("import")
    Index.build(corpus, folder, threads=threads)
    clock("build")


def build_bm25s(clock: Clock, corpus: Path, folder: Path, threads: int, text: bool) -> None:
    """In memory; the time to save is apart."""
    import bm25s
    import Stemmer

    clock("import")
    _, texts = contents(corpus)
    clock("load")
    tokens = bm25s.tokenize(texts, stopwords=STOPS.split(), stemmer=Stemmer.Stemmer("porter"), show_progress=False)
    clock("tokenize")
    retriever = bm25s.BM25(k1=0.9, b=0.4, backend="numba")
    retriever.index(tokens, show_progress=False)
    clock("build")
    clock.seconds["build"] += clock.seconds["tokenize"]
    retriever.save(folder, corpus=texts if text else None)
    clock("save")


def build_tantivy(clock: Clock, corpus: Path, folder: Path, threads: int, text: bool) -> None:
    """English stems; stop words are kept; frequencies without positions, as in the other engines."""
    import tantivy

    clock("import")
    ids, texts = contents(corpus)
    clock("load")
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    schema.add_text_field("text", stored=text, tokenizer_name="en_stem", index_option="freq")
    folder.mkdir(parents=True)
    writer = tantivy.Index(schema.build(), path=str(folder)).writer(heap_size=1_000_000_000, num_threads=threads)
    for doc_id, content in zip(ids, texts, strict=True):
        writer.add_document(tantivy.Document(id=doc_id, text=content))
    writer.commit()
    writer.wait_merging_threads()
    clock("build")


def build_pisa(clock: Clock, corpus: Path, folder: Path, threads: int, text: bool) -> None:
    """The inverted lists; what the first search adds (block maxima, compression) is apart. Stop words are for queries only."""
    from pyterrier_pisa import PisaIndex

    clock("import")
    ids, texts = contents(corpus)
    clock("load")
    index = PisaIndex(str(folder), text_field="text", stemmer="porter2", stops="lucene", threads=threads)
    index.index({"docno": doc_id, "text": content} for doc_id, content in zip(ids, texts, strict=True))
    clock("build")
    index.bm25(k1=0.9, b=0.4, query_algorithm="maxscore")
    clock("prepare")


def build_pyserini(clock: Clock, corpus: Path, folder: Path, threads: int, text: bool) -> None:
    """Reads Anserini's own form of the corpus, which is written before the clock starts."""
    source = folder.parent / "contents"
    if not source.exists():
        source.mkdir()
        lines = (json.dumps({"id": i, "contents": t}) for i, t in zip(*contents(corpus), strict=True))
        (source / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
        clock("write")
    from pyserini.pyclass import autoclass

    clock("import")
    arguments = ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-threads", str(threads)]
    arguments += ["-input", str(source), "-index", str(folder), *(["-storeContents"] if text else [])]
    autoclass("io.anserini.index.IndexCollection").main(arguments)
    clock("build")


BUILDERS: dict[str, Callable[[Clock, Path, Path, int, bool], None]] = {
    "fontes": build_fontes,
    "fontes-file": build_fontes_file,
    "bm25s": build_bm25s,
    "tantivy": build_tantivy,
    "pisa": build_pisa,
    "pyserini": build_pyserini,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    build = verbs.add_parser("build")
    build.add_argument("engine", choices=BUILDERS)
    build.add_argument("corpus", type=Path)
    build.add_argument("folder", type=Path)
    build.add_argument("--threads", type=int, default=1)
    build.add_argument("--text", action="store_true", help="store the text")
    given = parser.parse_args()
    clock = Clock()
    if given.folder.exists():
        shutil.rmtree(given.folder)
    BUILDERS[given.engine](clock, given.corpus, given.folder, given.threads, given.text)
    report: dict[str, Any] = {"seconds": clock.seconds}
    sys.stdout.write("\n" + json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
