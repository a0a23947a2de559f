"""Walks over an HNSW graph give what the algorithm gives in plain Python, with a filter and without."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from support.each import each
from support.hashed_encoder import Hashed, Parts, made_docs, queries

from fontes.core.work import work
from fontes.index import Index
from fontes.neural.dense import graph
from fontes.neural.dense.ann import Hnsw
from fontes.neural.dense.graph import Graph, WalkLimits
from fontes.neural.dense.vectors import StoredVectors, all_rescored


def linked(folder, count=700, encoder=None):
    index = Index.build(made_docs(count), folder, analyzer="whitespace")
    index.encode(encoder or Hashed())
    embeddings = index.embeddings(encoder or Hashed())
    searcher = Hnsw("HNSW4")
    searcher.build(embeddings)
    return embeddings, searcher


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return linked(tmp_path_factory.mktemp("graph") / "x")


def vectors_of(count: int) -> np.ndarray:
    return Hashed().encode_queries([f"w{n % 40} w{n % 7} w{n % 11}" for n in range(count)])


def walked(graph: Graph, query: np.ndarray, visits: int, allowed: np.ndarray) -> list[int]:
    """Algorithms 2 and 5 of Malkov and Yashunin, by products of whole numbers; of equal products the greater row is nearer."""
    codes, scales, neighbors, offsets, starts = (array for array, _ in graph._arrays)
    _, entry, top = graph._graph
    whole = np.rint(query * (graph._levels / np.float64(np.abs(query).max()))).astype(np.int64)

    def key(row):
        return np.float32(codes[row].astype(np.int64) @ whole) * scales[row], row

    def near(row, level):
        rows = neighbors[offsets[row] + starts[level] : offsets[row] + starts[level + 1]]
        return [int(other) for other in rows if other >= 0]

    for level in range(top, 0, -1):
        while True:
            nearest = max([(entry, key(entry)[0]), *((row, key(row)[0]) for row in near(entry, level))], key=lambda one: one[1])
            if nearest[1] <= key(entry)[0]:
                break
            entry = nearest[0]
    met, heap, best = {entry}, [(-key(entry)[0], -entry)], [key(entry)] if allowed[entry] else []
    while heap:
        product, row = heapq.heappop(heap)
        if len(best) == visits and (-product, -row) < best[0]:
            break
        for other in near(-row, 0):
            if other not in met:
                met.add(other)
                if len(best) < visits or key(other) > best[0]:
                    heapq.heappush(heap, (-key(other)[0], -other))
                    if allowed[other]:
                        heapq.heappush(best, key(other))
                        best = best if len(best) <= visits else [*best[1:]]
                        heapq.heapify(best)
    return [row for _, row in sorted(best, reverse=True)]


@each("share", [1.0, 0.5, 0.1])
@each("visits", [3, 20, 700])
def test_a_walk_returns_what_the_algorithm_does_in_plain_python(built, share, visits):
    embeddings, searcher = built
    allowed = np.random.default_rng(5).random(len(embeddings)) < share
    vectors = vectors_of(6)
    rows = searcher.graph.nearest(vectors, WalkLimits(visits, visits, visits, None if share == 1 else allowed))
    for query, nearest in zip(vectors, rows, strict=True):
        assert nearest[nearest >= 0].tolist() == walked(searcher.graph, query, visits, allowed)


def test_one_call_walks_and_scores_as_two_calls_do(tmp_path):
    index = Index.build(made_docs(300), tmp_path / "x", analyzer="whitespace")
    vectors, ids = vectors_of(40), index.ids  # more than a thread takes at a time
    some = np.random.default_rng(5).random(len(index)) < 0.1
    for dtype in ("float32", "float16", "int8"):
        index.encode(Hashed(), dtype=dtype)
        embeddings, searcher = index.embeddings(Hashed(), dtype), Hnsw("HNSW4")
        searcher.build(embeddings)
        for allowed in (None, some):
            how = WalkLimits(20, 60, 80, allowed)
            rankings, all_there = searcher.best(vectors, how, StoredVectors.of(embeddings, ids), 7)
            products, rows = searcher.candidates(vectors, how)
            expected = all_rescored(embeddings, vectors, rows, 7, ids, products)
            assert all_there == (rows[:, -1] >= 0).tolist()
            for (docs, scores), (other_docs, other_scores) in zip(rankings, expected, strict=True):
                assert len(docs) == 7
                np.testing.assert_array_equal(docs, other_docs)
                np.testing.assert_array_equal(scores, other_scores)


def test_a_walk_is_the_same_alone_and_in_a_batch_however_many_came_before(built):
    graph, vectors = built[1].graph, vectors_of(40)
    batch = graph.nearest(vectors, WalkLimits(10, 10, 16))
    for _ in range(8):  # more walks than marks
        for query, rows in zip(vectors, batch, strict=True):
            assert graph.nearest(query[None], WalkLimits(10, 10, 16)).tolist() == [rows.tolist()]


def test_rows_that_are_hardly_among_the_nearest_are_not_returned(built):
    embeddings, searcher = built
    vectors = vectors_of(40)
    rows, reached = (searcher.graph.nearest(vectors, WalkLimits(least, 700, 700)) for least in (10, 700))
    products = vectors.astype(np.float64) @ embeddings.decoded(slice(0, 700)).T.astype(np.float64)
    assert 10 <= (rows >= 0).sum(axis=1).mean() < 100
    for own, nearest, all_rows in zip(products, rows, reached, strict=True):
        every = all_rows[all_rows >= 0]
        assert set(every[np.argsort(-own[every])[:10]].tolist()) <= set(nearest.tolist())


def test_a_stored_graph_is_the_same_one(tmp_path):
    embeddings, searcher = linked(tmp_path / "x", 100)
    rows = searcher.graph.nearest(vectors_of(5), WalkLimits(10, 10, 50))
    searcher.save(tmp_path / "graph")
    again = Hnsw("HNSW4")
    again.load(tmp_path / "graph", embeddings)
    assert again.shape == searcher.shape == (100, 32)
    assert again.graph.neighbors.tolist() == searcher.graph.neighbors.tolist()
    assert again.graph.nearest(vectors_of(5), WalkLimits(10, 10, 50)).tolist() == rows.tolist()


@pytest.mark.parametrize("content", [b"", b"no graph", bytes(4 * 700), b"\xff" * 2800])
def test_a_damaged_file_of_a_graph_is_refused(tmp_path, built, content):
    (tmp_path / "graph").write_bytes(content)
    with pytest.raises(OSError, match="graph is not a graph of 700 rows"):
        Hnsw("HNSW4").load(tmp_path / "graph", built[0])


def inserted(graph: Graph, visits: int) -> list[list[int]]:
    """Algorithms 1, 2 and 4 of Malkov and Yashunin, row by row in plain Python: the neighbors of each row on level 0."""
    codes, scales = graph._arrays[0][0].astype(np.int64), graph._arrays[1][0]
    top, width = {int(graph.order[0]): int(graph.levels[graph.order[0]])}, graph.width
    links = {(row, level): [] for row in graph.order.tolist() for level in range(graph.levels[row] + 1)}

    def key(row, other):
        return np.float32(codes[row] @ codes[other]) * scales[other], other

    def choose(row, rows, most):
        chosen: list[int] = []
        for product, other in sorted({key(row, one) for one in rows}, reverse=True):
            nearer = all(key(other, one)[0] * scales[other] <= product * scales[row] for one in chosen)
            if nearer and len(chosen) < most:
                chosen.append(other)
        return chosen

    def search(row, entry, level, most):
        met, heap, best = {entry}, [tuple(-x for x in key(row, entry))], [key(row, entry)]
        while heap:
            product, other = heapq.heappop(heap)
            if len(best) == most and (-product, -other) < best[0]:
                break
            for one in links[-other, level]:
                if one not in met:
                    met.add(one)
                    if len(best) < most or key(row, one) > best[0]:
                        heapq.heappush(heap, tuple(-x for x in key(row, one)))
                        best = sorted([*best, key(row, one)])[-most:]
        return [other for _, other in reversed(best)]

    for row in graph.order[1:].tolist():
        ((entry, highest),) = top.items()
        for level in range(highest, graph.levels[row], -1):
            while (nearest := max([entry, *links[entry, level]], key=lambda one: key(row, one)[0])) != entry:
                entry = nearest
        for level in range(graph.levels[row], -1, -1):
            found, most = search(row, entry, level, visits), 2 * width if level == 0 else width
            links[row, level], entry = choose(row, found, most), found[0]
            for other in links[row, level]:
                links[other, level].append(row)
                if len(links[other, level]) > most:
                    links[other, level] = choose(other, links[other, level], most)
    return [links.get((row, 0), []) for row in range(len(scales))]


def test_a_graph_of_batches_of_one_row_is_that_of_the_algorithm_in_plain_python(tmp_path, monkeypatch):
    monkeypatch.setattr(graph, "BATCH_ROWS", 1)
    _, searcher = linked(tmp_path / "x", 160)
    made = searcher.graph
    assert made.levels.max() > 1
    own = [made.neighbors[a : a + 2 * made.width] for a in made.offsets[:-1]]
    assert [sorted(row[row >= 0].tolist()) for row in own] == [sorted(row) for row in inserted(made, 200)]


def test_a_graph_is_the_same_whatever_the_number_of_threads(tmp_path, built):
    with work(threads=3):
        _, searcher = linked(tmp_path / "x")
    assert searcher.graph.neighbors.tolist() == built[1].graph.neighbors.tolist()


def test_every_row_is_reached(built):
    embeddings, searcher = built
    rows = searcher.graph.nearest(embeddings.decoded(slice(0, 700)), WalkLimits(1, 1, 64))
    products = np.sum(embeddings.decoded(rows[:, 0]) * embeddings.decoded(slice(0, 700)), axis=1)
    assert (products > 0.99).mean() > 0.99


def test_vectors_of_zeros_lead_on_and_are_not_returned(tmp_path):
    class Half(Hashed):
        def encode_documents(self, docs):
            vectors = -np.abs(self.encode_queries([doc.text for doc in docs]))
            vectors[::2] = 0
            return vectors

    index = Index.build(made_docs(200), tmp_path / "x")
    index.encode(Half())
    encoder = Half()
    expected = index.dense(encoder, k=20)(queries())
    assert index.dense(encoder, algorithm="hnsw", k=20)(queries()) == expected


def filters_of_walks(monkeypatch) -> list:
    """The `allowed` of each call that walks, from now on."""
    walks = []

    def watched(walk):
        return lambda self, *arguments: walks.append(arguments[1].allowed) or walk(self, *arguments)

    for name in ("nearest", "best"):
        monkeypatch.setattr(Graph, name, watched(getattr(Graph, name)))
    return walks


@pytest.fixture(scope="module")
def of_columns(tmp_path_factory) -> Index:
    """Vectors of documents of which every third is open, and every 18th of one part."""
    docs = [{"id": id_, "text": text, "open": n % 3 == 0, "part": n % 18} for n, (id_, text) in enumerate(made_docs(1080))]
    index = Index.build(docs, tmp_path_factory.mktemp("columns") / "x", columns={"open": "boolean", "part": "integer"})
    index.encode(Hashed())
    index.encode(Parts(dim=24))
    return index


@pytest.mark.parametrize("encoder", [Hashed(), Parts(dim=24)])
def test_a_filter_applies_on_the_way(of_columns, encoder, monkeypatch):
    index, walks = of_columns, filters_of_walks(monkeypatch)
    dense = index.dense(encoder, algorithm="hnsw", k=20, where="open")
    dense.search("w1")
    walks.clear()
    run, exact = dense(queries()), index.dense(encoder, k=20, where="open")(queries())
    assert len(walks) == 1
    assert walks[0].sum() == sum(np.diff(index.embeddings(encoder).bounds)[::3] if isinstance(encoder, Parts) else [360])
    assert np.mean([len(set(run[t].ids) & set(exact[t].ids)) / 20 for t in exact]) > 0.97


def test_a_search_with_a_filter_uses_the_loops_that_one_without_has_compiled(of_columns):
    dense = of_columns.dense(Hashed(), algorithm="hnsw", k=20)
    dense(queries())
    dense.with_(where="open")(queries())
    of_masks = [str(types[1]) for types in graph._best.signatures]
    assert len(set(of_masks)) == 1, of_masks


def test_a_filter_that_few_documents_pass_is_searched_exactly(of_columns, monkeypatch):
    index = of_columns
    dense = index.dense(Hashed(), algorithm="hnsw", k=20)
    dense.search("w1")
    walks = filters_of_walks(monkeypatch)
    few, more = "part == 1", "part < 9"
    assert dense.with_(where=few)(queries()) == index.dense(Hashed(), k=20, where=few)(queries())
    assert not walks
    dense.with_(where=more).search("w1")
    assert len(walks) == 1
