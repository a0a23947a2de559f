"""Compiled search: block bounds select the windows of documents that can hold a result, and only these are scored.

Each term with a long list has a row of bounds: the greatest weight in each block of 64 documents, in eight bits. Their weighted
sum bounds every score of a block (as in Ding and Suel, SIGIR 2011; summed for all blocks first, as in Mallia, Suel and
Tonellotto, SIGIR 2024). Windows of 4,096 documents are skipped if no block bound reaches the k-th best score so far; in the
others the postings are summed term by term. The k-th best weight of each term gives the first threshold. Sums that reach it are
collected, and after each window the k best give the next threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.compiled import inner, kernel

BLOCK = 64  # documents per bound, at most the bits of a mask
WINDOW = 4096  # documents scored at a time
BINS = 1024  # bins of the histogram for the k-th best weights
SORTED = 32  # greatest k sorted by the search itself; numpy's sort is faster beyond
TINY = 1e-20  # bounds are float32, in which products with smaller query weights may vanish
DEPTHS = (10, 100, 1000)  # the k whose k-th best weights are stored
SMALLEST = np.float32(1e-45)  # above 0: no block without a term of the topic reaches it
DEBRUIJN = np.uint64(0x022FDD63CC95386D)  # times a power of two: its six highest bits tell which
BIT = np.array([int(DEBRUIJN) << i >> 58 & 63 for i in range(64)]).argsort().astype(np.uint8)  # by these six bits


@kernel()
def summarize(
    first: int, last: int, bounds: Any, docs: Any, weights: Any, row_of: Any, best: Any, kth: Any, positive: Any, rows: Any
) -> None:
    """Compute the bounds of the terms from `first` to `last`.

    Args:
        first: The first term.
        last: The term after the last.
        bounds: Start of the postings of each term.
        docs: The documents of the postings.
        weights: Their weights, float32.
        row_of: The row of each term with a long list, -1 for others.
        best: Output: greatest weight of each term.
        kth: Output: a weight that at least 10, 100, 1000 postings reach, 0 where there are fewer.
        positive: Output: whether all weights are above 0.
        rows: Output: block bounds, ceilings of weight / best * 255.
    """
    histogram = np.zeros(BINS, dtype=np.int64)
    for term in range(first, last):
        greatest, least = np.float32(-np.inf), np.float32(np.inf)
        for at in range(bounds[term], bounds[term + 1]):
            greatest, least = max(greatest, weights[at]), min(least, weights[at])
        best[term] = greatest
        positive[term] = least > 0
        if not least > 0:
            continue
        if bounds[term + 1] - bounds[term] >= DEPTHS[0]:
            histogram[:] = 0
            scale = (BINS - 1) / np.float64(greatest)
            for at in range(bounds[term], bounds[term + 1]):
                histogram[int(weights[at] * scale)] += 1
            reached, depth = 0, 0
            for place in range(BINS - 1, -1, -1):
                reached += histogram[place]
                while depth < len(DEPTHS) and reached >= DEPTHS[depth]:
                    kth[term, depth] = place / scale * (1 - 1e-6)
                    depth += 1
        if row_of[term] >= 0:
            row = rows[row_of[term]]
            ceiling = 255 / np.float64(greatest)
            for at in range(bounds[term], bounds[term + 1]):
                bound = min(255, int(np.ceil(weights[at] * ceiling)))
                row[docs[at] // BLOCK] = max(row[docs[at] // BLOCK], bound)


@kernel()
def search(first: int, last: int, topics: Any, lists: Any, bounds_of: Any, ids: Any, k: int, depth: int, results: Any) -> None:
    """Find the best documents of the topics from `first` to `last`.

    A score is the float64 sum over the terms in order, rounded to float32. Score and position of the document's id form the
    sort key; see `fontes.core.ranking.order_keys`.

    Args:
        first: The first topic.
        last: The topic after the last.
        topics: (bounds, terms, weights): topic i has terms[bounds[i]:bounds[i+1]], ascending, with float64 weights.
        lists: (bounds, docs, places, weights) of the postings of all terms: documents, int32, their positions in their
            windows, uint16, and float32 weights.
        bounds_of: (best, kth, positive, row_of, rows, starts), as from `summarize`; starts[r, w] is the start of the postings
            of row r in window w, counted from its first posting.
        ids: (rank, order): positions of the document ids in ascending order, and the documents' numbers in the results, by
            position.
        k: Greatest number of documents per topic.
        depth: The column of kth to use, or -1.
        results: (counts, docs, scores, keys); topic i has row i - first. Counts are filled, and documents and scores if k is at
            most SORTED; else unordered keys, for `best_first`.
    """
    rank, order = ids
    counts, docs, scores, keys = results
    topic_bounds, terms, query_weights = topics
    positive = bounds_of[2]
    windows = (len(rank) + WINDOW - 1) // WINDOW
    block_bounds = np.empty(windows * (WINDOW // BLOCK), dtype=np.float32)
    sums = np.zeros(WINDOW, dtype=np.float64)
    hit = np.zeros(WINDOW, dtype=np.uint8)
    score = np.empty(1, dtype=np.float32)
    candidates = np.empty(k + k // 4 + 8 + WINDOW, dtype=np.uint64)
    for topic in range(first, last):
        own = slice(topic_bounds[topic], topic_bounds[topic + 1])
        cursors = lists[0][terms[own]]
        pruned = True
        for at in range(own.start, own.stop):
            pruned = pruned and query_weights[at] > TINY and positive[terms[at]]
        if pruned:
            least = _bound_blocks(terms[own], query_weights[own], lists, bounds_of, depth, block_bounds)
            size = _pruned(
                terms[own], query_weights[own], lists, bounds_of, rank, k, block_bounds, least, cursors, sums, score, candidates
            )
        else:
            size = _exhaustive(terms[own], query_weights[own], lists, rank, k, windows, cursors, sums, hit, score, candidates)
        counts[topic - first] = size = _select(candidates, size, k)
        if k <= SORTED:
            _sort(candidates, size)
            _decode_keys(candidates, size, order, docs[topic - first], scores[topic - first])
        else:
            keys[topic - first, :size] = candidates[:size]


@kernel()
def search_all(terms: Any, query_weights: Any, lists: Any, ids: Any, k: int, keys: Any, docs: Any, scores: Any) -> int:
    """Find the documents that have all of some terms.

    Args:
        terms: The terms, whose weights are added up in this order.
        query_weights: Their weights, float64.
        lists: As of `search`.
        ids: As of `search`.
        k: Number of documents to order; 0 leaves `docs` and `scores` empty.
        keys: Output: keys of all documents, in no order; there is room for the shortest list.
        docs: Output: the best `k`, best first.
        scores: Output: their scores.

    Returns:
        The number of documents.
    """
    bounds, of_lists, _, weights = lists
    rank, order = ids
    count, size = len(terms), 0
    at, shortest = np.empty(count, dtype=np.int64), 0
    for i in range(count):
        at[i] = bounds[terms[i]]
        if bounds[terms[i] + 1] - at[i] < bounds[terms[shortest] + 1] - at[shortest]:
            shortest = i
    score = np.empty(1, dtype=np.float32)
    bits = score.view(np.uint32)
    end = bounds[terms[shortest] + 1]
    doc = np.int64(-1)
    while at[shortest] < end:
        doc = np.int64(of_lists[at[shortest]])
        met, ended = True, False
        for i in range(count):
            last = bounds[terms[i] + 1]
            if at[i] < last and of_lists[at[i]] < doc:
                at[i] = _skip(of_lists, at[i], last, doc)
            if at[i] == last:
                ended = True
                break
            if of_lists[at[i]] != doc:
                met = False
                if of_lists[at[i]] > of_lists[at[shortest]]:
                    at[shortest] = _skip(of_lists, at[shortest], end, of_lists[at[i]])
                break
        if ended:
            break
        if not met:
            continue
        total = 0.0
        for i in range(count):
            total += query_weights[i] * weights[at[i]]
        score[0] = np.float32(total) + np.float32(0)  # -0.0 becomes 0.0
        ordered = ~bits[0] if bits[0] >> 31 else bits[0] | np.uint32(0x80000000)
        keys[size] = np.uint64(ordered) << np.uint64(32) | np.uint64(rank[doc])
        size += 1
        at[shortest] += 1
    if k:
        best = _select(keys, size, k)
        _sort(keys, best)
        _decode_keys(keys, best, order, docs, scores)
    return size


@kernel()
def unite(terms: Any, lists: Any, marks: Any, docs: Any) -> int:
    """Find the documents that have one of some terms.

    Args:
        terms: The terms.
        lists: Bounds and documents of the postings, as of `search`.
        marks: uint8, zeros: room for each document, and up to a multiple of 8.
        docs: Output: the documents, ascending; one more place than there are documents.

    Returns:
        The number of documents.
    """
    bounds, of_lists = lists
    for i in range(len(terms)):
        for at in range(bounds[terms[i]], bounds[terms[i] + 1]):
            marks[of_lists[at]] = 1
    words = marks.view(np.uint64)
    size = 0
    for word in range(len(words)):
        if words[word]:
            for doc in range(8 * word, 8 * word + 8):
                docs[size] = doc
                size += marks[doc]
    return size


@kernel()
def best_first(keys: Any, counts: Any, order: Any, docs: Any, scores: Any) -> None:
    """Decode sorted keys to documents and scores.

    Args:
        keys: Keys of each topic in a row, ascending, after zeros.
        counts: Number of keys of each topic.
        order: The documents in ascending order of their ids.
        docs: Output: concatenated documents of the topics, best first.
        scores: Output: their scores.
    """
    at = 0
    for topic in range(len(counts)):
        _decode_keys(keys[topic, ::-1], counts[topic], order, docs[at:], scores[at:])
        at += counts[topic]


@inner()
def _decode_keys(keys: Any, size: int, order: Any, docs: Any, scores: Any) -> None:
    bits = scores.view(np.uint32)
    for i in range(size):
        docs[i] = order[keys[i] & np.uint64(0xFFFFFFFF)]
        half = np.uint32(keys[i] >> np.uint64(32))
        bits[i] = half & np.uint32(0x7FFFFFFF) if half >> np.uint32(31) else ~half


@inner()
def _bound_blocks(terms: Any, query_weights: Any, lists: Any, bounds_of: Any, depth: int, block_bounds: Any) -> Any:
    """Fill `ceilings` with a bound for each block; return a score that at least k documents reach, or 0."""
    list_bounds, docs, _, weights = lists
    best, kth, _, row_of, rows, _ = bounds_of
    margin = 1 + 3e-7 * (len(terms) + 4)  # tolerance for rounding of float32 sums
    least = np.float32(0)
    block_bounds[:] = 0
    for i in range(len(terms)):
        term = terms[i]
        if depth >= 0:
            least = max(least, np.float32(query_weights[i] * kth[term, depth]))
        if row_of[term] >= 0:
            _add_row(block_bounds, rows[row_of[term]], np.float32(query_weights[i] * best[term] / 255 * margin))
            continue
        scale = np.float32(query_weights[i] * margin)
        block, greatest = -1, np.float32(0)
        for at in range(list_bounds[term], list_bounds[term + 1]):
            if docs[at] // BLOCK != block:
                if block >= 0:
                    block_bounds[block] += greatest * scale
                block, greatest = docs[at] // BLOCK, weights[at]
            else:
                greatest = max(greatest, weights[at])
        if block >= 0:
            block_bounds[block] += greatest * scale
    return least


@inner()
def _add_row(block_bounds: Any, row: Any, scale: Any) -> None:
    for i in range(len(block_bounds)):
        block_bounds[i] += scale * np.float32(row[i])


@inner()
def _pruned(
    terms: Any, query_weights: Any, lists: Any, bounds_of: Any, rank: Any, k: int,
    block_bounds: Any, least: Any, cursors: Any, sums: Any, score: Any, candidates: Any,
) -> int:  # fmt: skip
    """Score the windows that can hold a result; as all weights are above 0, a sum above 0 is a match.

    Fills `room` with the keys of the `k` best and of others, and returns their number.
    """
    blocks = WINDOW // BLOCK
    bits = score.view(np.uint32)
    size, most = 0, k - 1
    least = max(least, SMALLEST)
    for window in range(len(block_bounds) // blocks):
        own = block_bounds[window * blocks : (window + 1) * blocks]
        reaching = 0
        for block in range(blocks):
            reaching += own[block] >= least
        if reaching == 0:
            continue
        if reaching > blocks // 4:
            sums[:] = 0
        else:
            for block in range(blocks):
                if own[block] >= least:  # other blocks are skipped
                    sums[block * BLOCK : (block + 1) * BLOCK] = 0
        _sum_window(window, terms, query_weights, lists, bounds_of, cursors, sums)
        enough = np.float64(least) * (1 - 1e-7) if least > SMALLEST else 1e-300
        for block in range(blocks):
            if own[block] < least:
                continue
            first = block * BLOCK
            mask = np.uint64(0)  # documents that reach the threshold
            for at in range(BLOCK):
                mask |= np.uint64(sums[first + at] >= enough) << np.uint64(at)
            while mask:
                lowest = mask & (~mask + np.uint64(1))
                mask ^= lowest
                at = first + int(BIT[lowest * DEBRUIJN >> np.uint64(58)])
                score[0] = np.float32(sums[at])
                ordered = np.uint64(bits[0] | np.uint32(0x80000000))
                candidates[size] = ordered << np.uint64(32) | np.uint64(rank[window * WINDOW + at])
                size += 1
        if size > most:
            size, most = _select(candidates, size, k), len(candidates) - WINDOW
            bits[0] = np.uint32(candidates[k - 1] >> np.uint64(32)) & np.uint32(0x7FFFFFFF)
            least = max(least, score[0])
    return size


@inner()
def _sum_window(window: int, terms: Any, query_weights: Any, lists: Any, bounds_of: Any, cursors: Any, sums: Any) -> None:
    """Add the scores of one window to `sums`; `cursors` of terms without a row advance."""
    bounds, docs, places, weights = lists
    _, _, _, row_of, _, starts = bounds_of
    begin = window * WINDOW
    for i in range(len(terms)):
        term, query_weight, row = terms[i], query_weights[i], row_of[terms[i]]
        if row >= 0:
            first, last = bounds[term] + np.int64(starts[row, window]), bounds[term] + np.int64(starts[row, window + 1])
            own_places, own_weights = places[first:last], weights[first:last]
            for at in range(last - first):  # unsigned indexes need no check for negative values
                sums[np.uint64(own_places[at])] += query_weight * own_weights[at]
            continue
        at, end = cursors[i], bounds[term + 1]
        if at < end and docs[at] < begin:
            at = _skip(docs, at, end, begin)
        while at < end and docs[at] < begin + WINDOW:
            sums[np.uint64(docs[at]) - np.uint64(begin)] += query_weight * weights[at]
            at += 1
        cursors[i] = at


@inner()
def _skip(docs: Any, at: int, end: int, doc: Any) -> int:
    """First position after `at` with `doc` or a later document, by galloping."""
    step = 1
    while at + step < end and docs[at + step] < doc:
        at += step
        step *= 2
    while step > 0:
        if at + step < end and docs[at + step] < doc:
            at += step
        step //= 2
    return at + 1


@inner()
def _exhaustive(
    terms: Any, query_weights: Any, lists: Any, rank: Any, k: int, windows: int,
    cursors: Any, sums: Any, hit: Any, score: Any, candidates: Any,
) -> int:  # fmt: skip
    """Score every document that has a term, whatever its sign; fill `room` as `_pruned` does."""
    bounds, docs, _, weights = lists
    bits = score.view(np.uint32)
    size = 0
    for window in range(windows):
        begin = window * WINDOW
        for i in range(len(terms)):
            at, end = cursors[i], bounds[terms[i] + 1]
            while at < end and docs[at] < begin + WINDOW:
                doc = docs[at] - begin
                sums[doc] = query_weights[i] * weights[at] + (sums[doc] if hit[doc] else 0.0)
                hit[doc] = 1
                at += 1
            cursors[i] = at
        for doc in range(min(WINDOW, len(rank) - begin)):
            if hit[doc]:
                hit[doc] = 0
                score[0] = np.float32(sums[doc]) + np.float32(0)  # -0.0 becomes 0.0
                ordered = ~bits[0] if bits[0] >> 31 else bits[0] | np.uint32(0x80000000)
                candidates[size] = np.uint64(ordered) << np.uint64(32) | np.uint64(rank[begin + doc])
                size += 1
        if size > len(candidates) - WINDOW:
            size = _select(candidates, size, k)
    return size


@inner()
def _select(keys: Any, size: int, k: int) -> int:
    """Move the `k` greatest of the first `size` distinct keys to the front, the least of them last; return their number.

    C. A. R. Hoare, "Algorithm 65: Find", Communications of the ACM 4(7), 1961, with N. Lomuto's partition, whose loop has no
    branch that depends on a key.
    """
    low, high = np.uint64(0), np.uint64(size if size >= k else 0)
    one, target = np.uint64(1), np.uint64(k - 1)
    while low + one < high:
        last, middle = high - one, (low + high) >> one
        pivot, keys[middle] = keys[middle], keys[last]
        front = low
        for i in range(low, last):
            key = keys[i]
            keys[i] = keys[front]
            keys[front] = key
            front += np.uint64(key > pivot)
        keys[last], keys[front] = keys[front], pivot
        if front < target:
            low = front + one
        elif front > target:
            high = front
        else:
            break
    return min(size, k)


@inner()
def _sort(keys: Any, size: int) -> None:
    """Insertion sort of the first `size` keys, descending."""
    for i in range(1, size):
        key, at = keys[i], i
        while at > 0 and keys[at - 1] < key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key
