"""The engines of vectors.py, each in a process of its own that builds an index, or opens it, and answers orders.

    python vector_engines.py PART ENGINE FOLDER

FOLDER has the arrays of vector_data.py. The seconds of a build are kept beside the index. An engine is what a function here
makes of the folder: `search(rows, k, effort, threads)` of the queries with these numbers, for each the numbers of the best
documents; `rows` of length 1 is a search of one query. To measure another engine, add a function.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

Search = Callable[[Any, int, Any, int], Any]
M, EF_CONSTRUCTION = 32, 200  # of HNSW graphs: as Fontes has them
MANY = 200_000  # documents from which Seismic makes larger clusters
NBITS = 4  # of a dimension of a token vector
CENTROIDS = 1 << 15  # of TACHIOM


@cache
def array(folder: Path, name: str) -> Any:
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def built(folder: Path, name: str, build: Callable[[], Any]) -> None:
    """Builds once, and notes the seconds."""
    noted = folder / "built.json"
    seconds = json.loads(noted.read_text()) if noted.exists() else {}
    if name not in seconds:
        start = time.perf_counter()
        build()
        seconds = json.loads(noted.read_text()) if noted.exists() else {}
        noted.write_text(json.dumps({**seconds, name: time.perf_counter() - start}))


@dataclass(frozen=True)
class Stored:
    """An encoder, dense or sparse, that knows the vectors already: documents by their ids, queries as q and their number."""

    folder: Path
    similarity = "cosine"
    fingerprint = "0" * 32

    @property
    def dim(self) -> int:
        return int(array(self.folder, "base").shape[1])

    def encode_documents(self, docs: Any) -> Any:
        return array(self.folder, "base")[[int(doc.id) for doc in docs]]

    def encode_queries(self, texts: Any) -> Any:
        base, queries = array(self.folder, "base"), array(self.folder, "queries")
        return np.stack([queries[int(t[1:])] if t[0] == "q" else base[int(t)] for t in texts])


@dataclass(frozen=True)
class StoredTerms:
    """A learned sparse encoder that knows the weights already."""

    folder: Path
    fingerprint = "1" * 32

    @property
    def vocabulary(self) -> list[str]:
        return _vocabulary(self.folder)

    def encode_documents(self, docs: Any) -> Any:
        return self._rows("", [int(doc.id) for doc in docs])

    def encode_queries(self, texts: Any) -> Any:
        return self._rows("queries.", [int(text[1:]) for text in texts])

    def _rows(self, which: str, rows: list[int]) -> Any:
        from fontes.index.embeddings.weights import TermVectors

        bounds, terms, weights = (array(self.folder, which + name) for name in ("bounds", "terms", "weights"))
        slices = [slice(int(bounds[row]), int(bounds[row + 1])) for row in rows]
        edges = np.cumsum([0, *(s.stop - s.start for s in slices)])
        return TermVectors(self.vocabulary, edges, *(np.concatenate([a[s] for s in slices]) for a in (terms, weights)))


@cache
def _vocabulary(folder: Path) -> list[str]:
    return (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")


def fontes_index(folder: Path, name: str, count: int, encode: Callable[[Any], Any]) -> Any:
    """A Fontes index of documents that are called by their numbers; `encode` gives them their vectors, which alone is timed."""
    import fontes as ft

    path = folder / f"{name}.index"
    if not path.exists():
        ft.Index.build([(str(i), str(i)) for i in range(count)], path)
    index = ft.Index.open(path)
    built(folder, name, lambda: encode(index))
    return index


def fontes_search(stage: Callable[[Any, int, int], Any]) -> Search:
    """`stage` makes the stage for an effort, k and threads."""
    stages: dict[Any, Any] = {}

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        key = (repr(effort), k, threads)
        if key not in stages:
            stages[key] = stage(effort, k, threads)
        if len(rows) == 1:
            return [stages[key].search(f"q{rows[0]}", k).ids]
        run = stages[key]({str(row): f"q{row}" for row in rows})
        return run if len(rows) > 1000 else [run[str(row)].ids for row in rows]

    return search


def dense_fontes(folder: Path, dtype: str) -> Search:
    base, encoder = array(folder, "base"), Stored(folder)
    index = fontes_index(folder, f"fontes-{dtype}", len(base), lambda i: i.encode(encoder, dtype=dtype))
    return fontes_search(lambda effort, k, threads: index.dense(encoder, dtype=dtype, k=k, threads=threads))


def dense_faiss(folder: Path, dtype: str) -> Search:
    import faiss

    kinds = {"float16": faiss.ScalarQuantizer.QT_fp16, "int8": faiss.ScalarQuantizer.QT_8bit}
    base, path = array(folder, "base"), folder / f"faiss-{dtype}"

    def build() -> None:
        if dtype == "float32":
            index = faiss.IndexFlatIP(base.shape[1])
        elif dtype == "binary":
            index = faiss.IndexBinaryFlat(base.shape[1])
            index.add(np.packbits(np.array(base) > 0, axis=1))
            faiss.write_index_binary(index, str(path))
            return
        elif dtype.startswith("rabitq"):
            rotation = faiss.RandomRotationMatrix(base.shape[1], base.shape[1])
            codes = faiss.IndexRaBitQ(base.shape[1], faiss.METRIC_INNER_PRODUCT, int(dtype[-1]))
            index = faiss.IndexPreTransform(rotation, codes)
        else:
            index = faiss.IndexScalarQuantizer(base.shape[1], kinds[dtype], faiss.METRIC_INNER_PRODUCT)
        index.train(np.array(base))
        index.add(np.array(base))
        faiss.write_index(index, str(path))

    built(folder, f"faiss-{dtype}", build)
    return _faiss(path, folder) if dtype != "binary" else _faiss_binary(path, folder)


def _faiss_binary(path: Path, folder: Path) -> Search:
    """The nearest sign vectors by Hamming distance, as many as the effort says, rescored by the float32 vectors."""
    import faiss

    index, base, queries = (
        faiss.read_index_binary(str(path)),
        np.array(array(folder, "base")),
        np.array(array(folder, "queries")),
    )
    signs = np.packbits(queries > 0, axis=1)

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        faiss.omp_set_num_threads(threads)
        near = index.search(signs[rows[0] : rows[-1] + 1], effort)[1]
        products = [base[found] @ queries[row] for row, found in zip(rows, near, strict=True)]
        return [found[np.argsort(-one)[:k]] for one, found in zip(products, near, strict=True)]

    return search


def _faiss(path: Path, folder: Path, effort_of: Callable[[Any, int], None] | None = None) -> Search:
    import faiss

    index, queries = faiss.read_index(str(path)), np.array(array(folder, "queries"))

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        faiss.omp_set_num_threads(threads)
        if effort_of:
            effort_of(index, effort)
        return index.search(queries[rows[0] : rows[-1] + 1], k)[1]

    return search


def dense_usearch(folder: Path, dtype: str) -> Search:
    from usearch.index import MetricKind, search as nearest

    kind = {"float32": np.float32, "float16": np.float16}[dtype]
    base, queries = np.array(array(folder, "base")).astype(kind), np.array(array(folder, "queries")).astype(kind)

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        asked = queries[rows[0]] if len(rows) == 1 else queries[rows[0] : rows[-1] + 1]
        return np.atleast_2d(nearest(base, asked, k, MetricKind.IP, exact=True, threads=threads).keys)

    return search


def dense_numpy(folder: Path, dtype: str) -> Search:
    from threadpoolctl import threadpool_limits

    base, queries = np.array(array(folder, "base")), np.array(array(folder, "queries"))

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        out = []
        with threadpool_limits(threads):
            for first in range(rows[0], rows[-1] + 1, 100):
                scores = queries[first : min(first + 100, rows[-1] + 1)] @ base.T
                best = np.argpartition(-scores, k, axis=1)[:, :k]
                out.append(np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1))
        return np.concatenate(out)

    return search


def hnsw_fontes(folder: Path, _: str) -> Search:
    base, encoder = array(folder, "base"), Stored(folder)

    def encode(index: Any) -> None:
        index.encode(encoder)
        index.dense(encoder, algorithm="hnsw", threads=1).prepare()

    index = fontes_index(folder, "fontes", len(base), encode)
    return fontes_search(
        lambda effort, k, threads: index.dense(encoder, algorithm="hnsw", k=k, ef_search=effort, threads=threads)
    )


def hnsw_faiss(folder: Path, _: str) -> Search:
    import faiss

    def build() -> None:
        base = np.array(array(folder, "base"))
        faiss.omp_set_num_threads(1)
        index = faiss.IndexHNSWFlat(base.shape[1], M, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = EF_CONSTRUCTION
        index.add(base)
        faiss.write_index(index, str(folder / "faiss"))

    def effort_of(index: Any, effort: int) -> None:
        index.hnsw.efSearch = effort

    built(folder, "faiss", build)
    return _faiss(folder / "faiss", folder, effort_of)


def hnsw_hnswlib(folder: Path, _: str) -> Search:
    import hnswlib

    base, queries = np.array(array(folder, "base")), np.array(array(folder, "queries"))

    def build() -> None:
        index = hnswlib.Index("ip", base.shape[1])
        index.init_index(len(base), M=M, ef_construction=EF_CONSTRUCTION, random_seed=7)
        index.add_items(base, num_threads=1)
        index.save_index(str(folder / "hnswlib"))

    built(folder, "hnswlib", build)
    index = hnswlib.Index("ip", base.shape[1])
    index.load_index(str(folder / "hnswlib"))

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        index.set_ef(max(effort, k))
        return index.knn_query(queries[rows[0] : rows[-1] + 1], k, num_threads=threads)[0]

    return search


def hnsw_usearch(folder: Path, _: str) -> Search:
    from usearch.index import Index

    base, queries = np.array(array(folder, "base")), np.array(array(folder, "queries"))
    settings = {"metric": "ip", "dtype": "f32", "connectivity": M, "expansion_add": EF_CONSTRUCTION}

    def build() -> None:
        index = Index(ndim=base.shape[1], **settings)
        index.add(np.arange(len(base)), base, threads=1)
        index.save(str(folder / "usearch"))

    built(folder, "usearch", build)
    index = Index(ndim=base.shape[1], **settings)
    index.load(str(folder / "usearch"))

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        index.expansion_search = effort
        asked = queries[rows[0]] if len(rows) == 1 else queries[rows[0] : rows[-1] + 1]
        return np.atleast_2d(index.search(asked, k, threads=threads).keys)

    return search


def token_queries(folder: Path) -> list[Any]:
    vectors, bounds = np.array(array(folder, "queries")), array(folder, "queries.bounds").tolist()
    return [vectors[a:b] for a, b in pairwise(bounds)]


def late_fontes(folder: Path, algorithm: str) -> Search:
    import fontes as ft
    from fontes.neural.late.encode import encode_late

    bounds, tokens, queries = array(folder, "bounds"), array(folder, "tokens"), token_queries(folder)

    @dataclass(frozen=True)
    class Known(ft.ColBERT):
        fingerprint = "2" * 32
        width = 128
        chosen_precision = "float32"

        def encode_documents(self, docs: Any) -> Any:
            slices = [slice(int(bounds[int(doc.id)]), int(bounds[int(doc.id) + 1])) for doc in docs]
            edges = np.cumsum([0, *(s.stop - s.start for s in slices)])
            return np.concatenate([tokens[s] for s in slices]).astype(np.float32), edges

        def encode_queries(self, texts: Any) -> Any:
            return [queries[int(text.lstrip("q")) % len(queries)] for text in texts]

    colbert, whole = Known("none", precision="float32"), algorithm == "exhaustive"
    nbits = 16 if whole else NBITS
    name = "fontes-exhaustive" if whole else "fontes"
    index = fontes_index(folder, name, len(bounds) - 1, lambda i: encode_late(i, colbert, nbits=nbits))
    return fontes_search(
        lambda effort, k, threads: index.late(colbert, algorithm=algorithm, nbits=nbits, k=k, threads=threads, **(effort or {}))
    )


def late_numpy(folder: Path, _: str) -> Search:
    """Every document, by one matrix product for each query and the greatest of each document's rows."""
    from threadpoolctl import threadpool_limits

    tokens, starts = np.array(array(folder, "tokens")).astype(np.float32), array(folder, "bounds")[:-1]
    queries = token_queries(folder)

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        with threadpool_limits(threads):
            scores = [np.maximum.reduceat(tokens @ queries[row].T, starts, axis=0).sum(axis=1) for row in rows]
        return [np.argsort(-one)[:k] for one in scores]

    return search


def late_plaid(folder: Path, _: str) -> Search:
    import torch
    from fast_plaid.search import FastPlaid

    queries = [torch.from_numpy(query) for query in token_queries(folder)]

    def build() -> None:
        tokens, bounds = (
            torch.from_numpy(np.array(array(folder, "tokens")).astype(np.float32)),
            array(folder, "bounds").tolist(),
        )
        docs = [tokens[a:b] for a, b in pairwise(bounds)]
        FastPlaid(str(folder / "plaid"), device="cpu").create(docs, nbits=NBITS)

    built(folder, "plaid", build)
    index = FastPlaid(str(folder / "plaid"), device="cpu")

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        torch.set_num_threads(threads)
        lists = index.search([queries[row] for row in rows], top_k=k, show_progress=False, **(effort or {}))
        return [[doc for doc, _ in one] for one in lists]

    return search


def late_tachiom(folder: Path, _: str) -> Search:
    import tachiom

    queries = [np.ascontiguousarray(query) for query in token_queries(folder)]

    def build() -> None:
        np.save(folder / "lengths.npy", np.diff(array(folder, "bounds")).astype(np.int64))
        files = [str(folder / f"{name}.npy") for name in ("tokens", "ids", "lengths")]
        tachiom.Tachiom.build(*files, total_centroids=CENTROIDS).save(str(folder / "tachiom"))

    built(folder, "tachiom", build)
    index = tachiom.Tachiom.load(str(folder / "tachiom"))

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        if len(rows) == 1:
            return [index.search(queries[rows[0]], k=k, **effort)[1]]
        some = [queries[row] for row in rows]
        bounds = np.cumsum([0, *map(len, some)]).astype(np.uint64)
        return index.batch_search(np.concatenate(some), len(some), k, offsets=bounds, num_threads=threads, **effort)[1]

    return search


def sparse_fontes(folder: Path, _: str) -> Search:
    encoder, count = StoredTerms(folder), len(array(folder, "bounds")) - 1
    index = fontes_index(folder, "fontes", count, lambda i: i.encode(encoder))
    return fontes_search(lambda effort, k, threads: index.splade(encoder, k=k, threads=threads))


def sparse_scipy(folder: Path, _: str) -> Search:
    """Rows of queries by columns of documents."""
    from scipy.sparse import csr_array

    size = len(_vocabulary(folder))
    docs, queries = (
        csr_array(tuple(array(folder, which + name) for name in ("weights", "terms", "bounds")), shape=(count, size))
        for which in ("", "queries.")
        for count in [len(array(folder, f"{which}bounds")) - 1]
    )
    columns = csr_array(docs.T)

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        out = []
        for first in range(rows[0], rows[-1] + 1, 100):
            scores = (queries[first : min(first + 100, rows[-1] + 1)] @ columns).toarray()
            best = np.argpartition(-scores, k, axis=1)[:, :k]
            out.append(np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1))
        return np.concatenate(out)

    return search


def sparse_pisa(folder: Path, algorithm: str) -> Search:
    """Weights times 100 as whole numbers, of documents and of queries; called without pandas."""
    from pyterrier_pisa import PisaIndex, _pisathon

    words, path, scale = _vocabulary(folder), folder / "pisa", 100.0

    def vectors(which: str) -> Iterator[dict[str, float]]:
        bounds, terms, weights = (np.array(array(folder, which + name)) for name in ("bounds", "terms", "weights"))
        return (
            dict(zip([words[t] for t in terms[a:b].tolist()], weights[a:b].tolist(), strict=True))
            for a, b in pairwise(bounds.tolist())
        )

    def build() -> None:
        index = PisaIndex(str(path), stemmer="none", stops="none", threads=1, batch_size=50_000)
        index.toks_indexer(scale=scale).index({"docno": str(i), "toks": toks} for i, toks in enumerate(vectors("")))
        index.quantized()  # block maxima and compression

    built(folder, "pisa", build)
    stage = PisaIndex(str(path), stemmer="none", stops="none", threads=1).quantized()
    queries = [{term: weight * scale for term, weight in vector.items()} for vector in vectors("queries.")]

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        out = np.empty(len(rows) * k, dtype=np.int32), np.empty(len(rows) * k, dtype=object)
        names = ("result_qidxs", "result_docnos", "result_ranks", "result_scores")
        arrays = (*out, np.empty_like(out[0]), np.empty(len(rows) * k, dtype=np.float32))
        asked = [(i, queries[row]) for i, row in enumerate(rows)]
        settings = {"k": k, "threads": threads, "query_weighted": 1, "pretokenised": 1}
        size = _pisathon.retrieve(stage._ctxt, algorithm, asked, **settings, **dict(zip(names, arrays, strict=True)))
        return [out[1][:size][out[0][:size] == i] for i in range(len(rows))]

    return search


def sparse_seismic(folder: Path, _: str) -> Search:
    import seismic

    words, path = np.array(_vocabulary(folder)), folder / "seismic"
    kind = seismic.get_seismic_string()

    def vectors(which: str) -> Iterator[tuple[Any, Any]]:
        bounds, terms, weights = (np.array(array(folder, which + name)) for name in ("bounds", "terms", "weights"))
        return ((words[terms[a:b]].astype(kind), weights[a:b]) for a, b in pairwise(bounds.tolist()))

    def build() -> None:
        dataset, many = seismic.SeismicDataset(), len(array(folder, "bounds")) > MANY
        for number, (tokens, values) in enumerate(vectors("")):
            dataset.add_document(str(number), tokens, values)
        settings = {"centroid_fraction": 0.02} if many else {}  # .1 takes five times as long
        seismic.SeismicIndex.build_from_dataset(dataset, num_threads=1, **settings).save(str(path))

    built(folder, "seismic", build)
    index, queries = seismic.SeismicIndex.load(f"{path}.index.seismic"), list(vectors("queries."))

    def search(rows: Any, k: int, effort: Any, threads: int) -> Any:
        cut, factor = effort
        if len(rows) == 1:
            lists = [index.search("q", *queries[rows[0]], k, cut, factor)]
        else:
            names = np.array([str(row) for row in rows], dtype=kind)
            some = [queries[row] for row in rows]
            lists = index.batch_search(names, [q for q, _ in some], [v for _, v in some], k, cut, factor, num_threads=threads)
            lists = sorted(lists, key=lambda one: int(one[0][0]) if one else -1)
        return [[int(doc) for _, _, doc in one] for one in lists]

    return search


def serve(part: str, name: str, folder: Path) -> None:
    """Builds or opens, says so, and answers orders: {first, last, k, effort, threads, processor, way: hits, one or batch}."""
    engine, _, kind = name.partition(" ")
    search = globals()[f"{part}_{engine}"](folder, kind)
    noted = folder / "built.json"
    say(json.loads(noted.read_text()) if noted.exists() else {})
    for line in sys.stdin:
        order = json.loads(line)
        rows, rest = range(order["first"], order["last"]), (order["k"], order["effort"], order["threads"])
        if order["way"] == "hits":
            say([[int(doc) for doc in one] for one in search(rows, *rest)])
            continue
        clock = time.process_time if order["processor"] else time.perf_counter
        start = clock()
        if order["way"] == "one":
            for row in rows:
                search(range(row, row + 1), *rest)
        else:
            search(rows, *rest)
        say(1000 * (clock() - start) / len(rows))


def say(value: Any) -> None:
    sys.stdout.write("\n=" + json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
