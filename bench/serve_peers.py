"""The peers of serve.py and quick.py behind HTTP, each in a process of its own: its index, a server, or one search.

    python serve_peers.py build ENGINE CORPUS FOLDER
    python serve_peers.py serve ENGINE FOLDER PORT
    python serve_peers.py search ENGINE FOLDER QUERY

bm25s and tantivy are behind FastAPI and uvicorn (uvloop, httptools) as one would write it in an afternoon, in one process. A
hit has the fields of a hit of Fontes' server: rank, id, score, title, and a snippet with its matches; an answer has the number
of matches. tantivy makes its own snippets; bm25s has none, and shows the beginning of a text; it does not count. Title and text
are one field, as in Fontes: tantivy's search of two takes twice as long. The search runs in the event loop: a request takes a
third more of the processor where FastAPI calls it in threads.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

K1, B = 0.9, 0.4
LENGTH = 240  # characters of a snippet
Answer = Callable[[str, int], dict[str, Any]]


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

    def answer(query: str, k: int) -> dict[str, Any]:
        tokens = tokenizer.tokenize([query], update_vocab=False, show_progress=False)
        numbers, scores = model.retrieve(tokens, k=k, n_threads=1, show_progress=False)
        found = [(docs[n], score) for n, score in zip(numbers[0].tolist(), scores[0].tolist(), strict=True) if score > 0]
        hits = [
            {"rank": rank, "id": doc_id, "score": score, "title": title, "snippet": {"text": text[:LENGTH], "matches": []}}
            for rank, ((doc_id, title, text), score) in enumerate(found, 1)
        ]
        return {"query": query, "hits": hits}

    return answer


def _schema() -> Any:
    import tantivy

    schema = tantivy.SchemaBuilder()
    for name in ("id", "title"):
        schema.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    return schema.add_text_field("text", stored=True, tokenizer_name="en_stem", index_option="freq").build()


def build_tantivy(corpus: Path, folder: Path) -> None:
    import tantivy

    folder.mkdir()
    writer = tantivy.Index(_schema(), path=str(folder)).writer(heap_size=500_000_000, num_threads=1)
    for doc in documents(corpus):
        writer.add_document(tantivy.Document(id=doc["_id"], title=doc["title"], text=f"{doc['title']} {doc['text']}"))
    writer.commit()
    writer.wait_merging_threads()


def tantivy(folder: Path) -> Answer:
    import tantivy

    schema = _schema()
    index = tantivy.Index(schema, path=str(folder))
    searcher = index.searcher()

    def answer(query: str, k: int) -> dict[str, Any]:
        parsed, _ = index.parse_query_lenient(query, ["text"])
        snippets = tantivy.SnippetGenerator.create(searcher, parsed, schema, "text")
        snippets.set_max_num_chars(LENGTH)
        found, hits = searcher.search(parsed, k), []
        for rank, (score, address) in enumerate(found.hits, 1):
            doc = searcher.doc(address)
            piece = snippets.snippet_from_doc(doc)
            snippet = {"text": piece.fragment(), "matches": [(match.start, match.end) for match in piece.highlighted()]}
            hits.append({"rank": rank, "id": doc["id"][0], "score": score, "title": doc["title"][0], "snippet": snippet})
        return {"query": query, "hits": hits, "total": found.count}

    return answer


def application(answer: Answer) -> Any:
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/search")
    async def search(q: str, k: int = 10) -> dict[str, Any]:
        return answer(q, k)

    return app


def serve(answer: Answer, port: int) -> None:
    import uvicorn

    app = application(answer)
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", log_level="error", access_log=False)


if __name__ == "__main__":
    verb, name, place, last = sys.argv[1:5]
    if verb == "build":
        {"bm25s": build_bm25s, "tantivy": build_tantivy}[name](Path(place), Path(last))
    else:
        peer = {"bm25s": bm25s, "tantivy": tantivy}[name](Path(place))
        if verb == "serve":
            serve(peer, int(last))
        else:
            print(json.dumps(peer(last, 10), indent=1))
