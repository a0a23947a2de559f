"""The peers of serve.py behind HTTP, each in a process of its own: a server, or its index.

    python serve_peers.py build ENGINE CORPUS FOLDER
    python serve_peers.py serve ENGINE FOLDER PORT

bm25s and tantivy are behind FastAPI and uvicorn (uvloop, httptools) as one would write it in an afternoon: an address, titles
and snippets. tantivy makes its own snippets; bm25s has none, and shows the beginning of a text. Pyserini has a server of its
own, which gives whole texts.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

K1, B = 0.9, 0.4
LENGTH = 240  # characters of a snippet
Answer = Callable[[str, int], list[dict[str, Any]]]


def documents(corpus: Path) -> Iterator[dict[str, str]]:
    with gzip.open(corpus, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def build_bm25s(corpus: Path, folder: Path) -> None:
    import bm25s
    import Stemmer

    docs = list(documents(corpus))
    tokenizer = bm25s.tokenization.Tokenizer(stemmer=Stemmer.Stemmer("english"), stopwords="en")
    tokens = tokenizer.tokenize([f"{doc['title']} {doc['text']}" for doc in docs], show_progress=False, return_as="tuple")
    model = bm25s.BM25(k1=K1, b=B, backend="numba")
    model.index(tokens, show_progress=False)
    model.save(folder)
    tokenizer.save_vocab(folder)
    with (folder / "docs.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps([doc["_id"], doc["title"], doc["text"]]) + "\n" for doc in docs)


def bm25s(folder: Path) -> Answer:
    import bm25s
    import Stemmer

    model = bm25s.BM25.load(folder, mmap=False)
    model.backend = "numba"
    model.activate_numba_scorer()
    tokenizer = bm25s.tokenization.Tokenizer(stemmer=Stemmer.Stemmer("english"), stopwords="en")
    tokenizer.load_vocab(folder)
    with (folder / "docs.jsonl").open(encoding="utf-8") as file:
        docs = [json.loads(line) for line in file]

    def answer(query: str, k: int) -> list[dict[str, Any]]:
        tokens = tokenizer.tokenize([query], update_vocab=False, show_progress=False)
        numbers, scores = model.retrieve(tokens, k=k, n_threads=1, show_progress=False)
        hits = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
        return [
            {"id": docs[n][0], "score": score, "title": docs[n][1], "snippet": docs[n][2][:LENGTH]}
            for n, score in hits
            if score > 0
        ]

    return answer


def _schema() -> Any:
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("title", "text"):
        schema = schema.add_text_field(name, stored=True, tokenizer_name="en_stem", index_option="freq")
    return schema.build()


def build_tantivy(corpus: Path, folder: Path) -> None:
    import tantivy

    folder.mkdir()
    writer = tantivy.Index(_schema(), path=str(folder)).writer(heap_size=500_000_000, num_threads=1)
    for doc in documents(corpus):
        writer.add_document(tantivy.Document(id=doc["_id"], title=doc["title"], text=doc["text"]))
    writer.commit()
    writer.wait_merging_threads()


def tantivy(folder: Path) -> Answer:
    import tantivy

    schema = _schema()
    index = tantivy.Index(schema, path=str(folder))
    searcher = index.searcher()

    def answer(query: str, k: int) -> list[dict[str, Any]]:
        parsed, _ = index.parse_query_lenient(query, ["title", "text"])
        snippets = tantivy.SnippetGenerator.create(searcher, parsed, schema, "text")
        snippets.set_max_num_chars(LENGTH)
        hits = []
        for score, address in searcher.search(parsed, k, count=False).hits:
            doc = searcher.doc(address)
            snippet = snippets.snippet_from_doc(doc).to_html()
            hits.append({"id": doc["id"][0], "score": score, "title": doc["title"][0], "snippet": snippet})
        return hits

    return answer


def build_pyserini(corpus: Path, folder: Path) -> None:
    source = folder.with_suffix(".input")
    source.mkdir(exist_ok=True)
    with (source / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for doc in documents(corpus):
            file.write(json.dumps({"id": doc["_id"], "contents": f"{doc['title']}\n{doc['text']}"}) + "\n")
    options = [
        "--collection",
        "JsonCollection",
        "--generator",
        "DefaultLuceneDocumentGenerator",
        "--threads",
        "1",
        "--storeRaw",
    ]
    command = [sys.executable, "-m", "pyserini.index.lucene", *options, "--input", str(source), "--index", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(source)


def pyserini(folder: Path) -> Any:
    from pyserini.search.lucene import LuceneSearcher
    from pyserini.server.models import IndexConfig
    from pyserini.server.rest.app import app
    from pyserini.server.search_controller import get_controller

    searcher = LuceneSearcher(str(folder))
    searcher.set_bm25(K1, B)
    config = IndexConfig(name="passages")
    config.searcher, config.base_index, config.index_type = searcher, "passages", "tf"
    get_controller().indexes["passages"] = config
    return app


def application(answer: Answer) -> Any:
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/search")
    async def search(q: str, k: int = 10) -> dict[str, Any]:
        return {"query": q, "hits": answer(q, k)}

    return app


def serve(engine: str, folder: Path, port: int) -> None:
    import uvicorn

    app = pyserini(folder) if engine == "pyserini" else application({"bm25s": bm25s, "tantivy": tantivy}[engine](folder))
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", log_level="error", access_log=False)


if __name__ == "__main__":
    verb, name = sys.argv[1:3]
    if verb == "build":
        {"bm25s": build_bm25s, "tantivy": build_tantivy, "pyserini": build_pyserini}[name](Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        serve(name, Path(sys.argv[3]), int(sys.argv[4]))
