"""Compares Fontes with Lucene, rank_bm25, bm25s and scikit-learn: tokens, terms, scores, rankings, measures.

    FONTES_DATA=DIR python bench/agreement.py [--collections scifact,cranfield]

Prints Markdown tables. Lucene's side is Pyserini 1.6 (Anserini 1.7.1) in the peers' environment.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import peers
from harness import options, table
from numpy.typing import NDArray

from fontes import Analyzer, Index, Run, Topics, evaluate, read_qrels, read_run, read_topics
from fontes.lexical.bm25 import VARIANTS

COLLECTIONS = "scifact cranfield med cisi npl checkthat20_task2 xquad_en ctkfacts_cs wikipedia_passages"
CZECH = "ctkfacts_cs"
MEASURES = ["nDCG@10", "AP", "R@100", "RR@10", "P@5"]
BOUND = 0.002
PARAMETERS = {"k1": 0.9, "b": 0.4}
TOPICS = 100  # of a collection, for the comparison with engines that score every document
Scores = Mapping[str, Mapping[str, float]]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--collections", default=COLLECTIONS.replace(" ", ","), help="names, separated by commas")
    given = parser.parse_args()
    names = given.collections.split(",")
    compare_tokens(given.peers, [given.data / name for name in names])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        cases = [(name, "english") for name in names] + [(name, "czech") for name in names if name == CZECH]
        found = [compare_lucene(given.peers, given.data / name, kind, work / name / kind) for name, kind in cases]
        alike = [f[0] for f, (_, kind) in zip(found, cases, strict=True) if kind != "czech"]  # there the stemmers differ
        table('Statistics and scores, Fontes with lengths="lucene" against Lucene', STATISTICS, alike)
        table("Measures in trec_eval's order: Lucene's exact scores / Fontes", QUALITY, [r for f in found for r in f[1]])
        table("Measures after Anserini's adjustment of ties: Anserini / Fontes", QUALITY, [r for f in found for r in f[2]])
        for name in ("scifact", "cranfield"):
            if name in names:
                compare_variants(given.peers, given.data / name, work)


STATISTICS = [
    "collection, analyzer",
    "documents",
    "terms",
    "terms that differ",
    "df or cf that differ",
    "topics",
    "results",
    "largest difference of a score",
    "rankings with another order",
    "of them by more than 1e-5",
]
QUALITY = [
    "collection, analyzer, topics",
    "judged",
    *MEASURES,
    "largest difference with Lucene's lengths",
    "with exact lengths",
    f"within {BOUND}",
]


def compare_lucene(peer: Path, source: Path, analyzer: str, work: Path) -> tuple[list[Any], list[Any], list[Any]]:
    """Rows for the three tables about one collection."""
    corpus, queries = unpacked(source, work), source / "queries.jsonl"
    peers.call(peer, "lucene.py", "collection", analyzer, corpus, queries, work)
    index = Index.build(corpus, work / "fontes", analyzer=analyzer)
    topics = read_topics(queries)
    runs = {lengths: index.bm25(**PARAMETERS, lengths=lengths)(topics) for lengths in ("lucene", "exact")}
    raw = {
        topic: {doc: float(score) for _, doc, score in rows}
        for topic, rows in groupby((line.split("\t") for line in lines(work / "raw.tsv")), key=lambda row: row[0])
    }
    label = f"{source.name}, {analyzer}"
    statistics = [label, f"{len(index):,}", *compare_terms(index, work / "terms.tsv"), *compare_scores(runs["lucene"], raw)]
    adjusted_raw = adjusted(raw) if analyzer != "english" else read_run(work / "adjusted.run")
    plain, after = [], []
    for qrels in sorted(source.glob("qrels/*.tsv")):
        case = f"{label}, {qrels.stem}"
        plain.append(compare_measures(case, qrels, Run.of(raw), runs))
        after.append(compare_measures(case, qrels, adjusted_raw, {name: adjusted(run.to_dict()) for name, run in runs.items()}))
    shutil.rmtree(work)
    return statistics, plain, after


def compare_terms(index: Index, path: Path) -> list[str]:
    """How many terms there are, how many only one side has, and for how many df or cf differ."""
    theirs = {term: (int(df), int(cf)) for term, df, cf in (line.split("\t") for line in lines(path))}
    ours = dict(zip(index.terms.tolist(), zip(index.df.tolist(), index.cf.tolist(), strict=True), strict=True))
    common = ours.keys() & theirs.keys()
    return [f"{len(ours):,}", f"{len(ours.keys() ^ theirs.keys())}", f"{sum(ours[t] != theirs[t] for t in common)}"]


def compare_scores(run: Run, raw: Scores) -> list[str]:
    """Topics, results, the largest difference of a score, and the topics whose documents come in another order.

    The last count leaves out rankings that are the same but for documents whose scores in Lucene are within 1e-5.
    """
    largest, other, serious, results = 0.0, 0, 0, 0
    for topic, ranking in run.to_dict().items():
        theirs = raw.get(topic, {})
        results += len(theirs)
        largest = max([largest, *(abs(score - theirs[doc]) for doc, score in ranking.items() if doc in theirs)])
        other += list(ranking) != list(theirs)
        pairs = zip(ranking.values(), theirs.values(), strict=False)
        serious += len(ranking) != len(theirs) or any(abs(ours - score) > 1e-5 for ours, score in pairs)
    return [f"{len(run)}", f"{results:,}", f"{largest:.1e}", f"{other}", f"{serious}"]


def compare_measures(case: str, qrels: Path, theirs: Run, ours: Mapping[str, Run]) -> list[str]:
    """Their measures beside ours with exact lengths, and the largest differences."""
    judged = read_qrels(qrels)
    expected = evaluate(theirs, judged, MEASURES)
    found = {name: evaluate(run, judged, MEASURES) for name, run in ours.items()}
    largest = {name: max(abs(e[m] - expected[m]) for m in MEASURES) for name, e in found.items()}
    cells = [f"{expected[m]:.4f} / {found['exact'][m]:.4f}" for m in MEASURES]
    verdict = "yes" if max(largest.values()) <= BOUND else "no"
    return [case, f"{len(judged)}", *cells, f"{largest['lucene']:.5f}", f"{largest['exact']:.5f}", verdict]


def adjusted(scores: Scores) -> Run:
    """A run as Anserini writes it.

    Equal scores come in ascending order of ids; each score is rounded to four decimals, less 0.000001 for each equal one before
    it, in float32, and written with six decimals.
    """
    changed: dict[str, dict[str, float]] = {}
    for topic, docs in scores.items():
        run = changed[topic] = {}
        before, equal = None, 0
        for doc in sorted(docs, key=lambda doc: (-docs[doc], doc)):
            score = np.float32(math.floor(docs[doc] * 10_000 + 0.5)) / np.float32(10_000)
            equal = equal + 1 if score == before else 0
            before = score
            run[doc] = float(f"{score - np.float32(0.000001) * np.float32(equal):.6f}")
    return Run.of(changed)


def compare_variants(peer: Path, source: Path, work: Path) -> None:
    """Prints how far the scores of BM25's variants and of TF-IDF are from those of other libraries."""
    index = Index.build(source / "corpus.jsonl", work / "variants", overwrite=True)
    topics = Topics(list(read_topics(source / "queries.jsonl").values())[:TOPICS])
    texts = [" ".join(filter(None, (doc.title, doc.text))) for doc in index.docs(index.ids.tolist())]
    docs, words = index.analyzer.many(texts), index.analyzer.many([topic.text for topic in topics.values()])
    given = {"docs": docs, "topics": words, **PARAMETERS}
    peers.call(peer, "variants.py", work / "scores.npz", stdin=json.dumps(given))
    theirs = np.load(work / "scores.npz")
    rows = [
        variant_row(index, topics, words, name, theirs[name]) for name in theirs.files if not name.startswith("scikit-learn")
    ] + [
        tfidf_row(index, topics, name, theirs[name], sublinear, norm)
        for name, (sublinear, norm) in zip(
            (n for n in theirs.files if n.startswith("scikit-learn")),
            ((s, n) for s in (False, True) for n in ("l2", None)),
            strict=True,
        )
    ]
    table(
        f"Other libraries, {source.name}: {len(topics)} topics, every document",
        ["", "their scores become ours by", "largest relative difference", "documents with a result on one side only"],
        rows,
    )


def variant_row(index: Index, topics: Topics, words: list[list[str]], name: str, theirs: NDArray[Any]) -> list[str]:
    variant = name.split()[1]
    ours = dense(index.bm25(variant=variant, **PARAMETERS, k=len(index))(topics), index)
    how = "nothing"
    if name == "bm25s robertson":
        theirs, how = theirs * (PARAMETERS["k1"] + 1), "times k1 + 1 (topics with a term in half of the documents left out)"
        often = {str(term) for term, df in zip(index.terms.tolist(), index.df.tolist(), strict=True) if 2 * df >= len(index)}
        rare = [often.isdisjoint(topic) for topic in words]
        ours, theirs = ours[rare], theirs[rare]  # an idf below 0 is 0 there
    if variant in ("plus", "l"):
        delta = 1.0 if variant == "plus" else 0.5
        absent = delta if variant == "plus" else (PARAMETERS["k1"] + 1) * delta / (PARAMETERS["k1"] + delta)
        theirs = theirs - of_absent_terms(index, words, VARIANTS[variant].idf, absent)
        how = "less delta's part for terms that the document lacks"
    return [name, how, *difference(ours, theirs)]


def tfidf_row(index: Index, topics: Topics, name: str, theirs: NDArray[Any], sublinear: bool, norm: str | None) -> list[str]:
    stage = index.tfidf(smooth_idf=True, sublinear_tf=sublinear, norm=norm, k=len(index))
    return [name, "nothing (smooth_idf=True, no idf in the topic)", *difference(dense(stage(topics), index), theirs)]


def difference(ours: NDArray[Any], theirs: NDArray[Any]) -> list[str]:
    """The largest difference relative to the larger score, and how many documents only one side gives a score."""
    both = ~np.isnan(ours)
    theirs = np.where(np.abs(theirs) < 1e-9, 0.0, theirs)
    apart = np.abs(ours - theirs)[both] / np.maximum(np.abs(theirs[both]), 1e-3)
    return [f"{apart.max():.1e}", f"{np.count_nonzero(~both & (theirs != 0))}"]


def dense(run: Run, index: Index) -> NDArray[np.float64]:
    """Scores as a matrix (topics, documents), NaN where a document is not in the ranking."""
    matrix = np.full((len(run), len(index)), np.nan)
    rows = np.repeat(np.arange(len(run)), np.diff(run.bounds))
    matrix[rows, run.codes] = run.scores
    return matrix


def of_absent_terms(index: Index, words: list[list[str]], idf: Any, weight: float) -> NDArray[np.float64]:
    """For each topic and document the sum of idf times `weight` over the topic's terms that the document lacks."""
    matrix = np.zeros((len(words), len(index)))
    for row, topic in zip(matrix, words, strict=True):
        for term, count in Counter(topic).items():
            place = index.terms.find(term)
            if place >= 0:
                part = count * weight * idf(len(index), int(index.df[place]))
                row += part
                row[index.postings(np.array([place]))[0]] -= part
    return matrix


def compare_tokens(peer: Path, sources: list[Path]) -> None:
    """Prints on how many texts Fontes and Lucene find other tokens."""
    texts = {"collections": natural(sources), "characters at random": drawn()}
    rows = []
    for name in ("english", "standard", "cjk"):
        for kind, some in texts.items():
            theirs = peers.call(peer, "lucene.py", "tokens", stdin=json.dumps({name: some}))[name]
            ours = Analyzer.of(name).many(some)
            wrong = [t for t, a, b in zip(some, ours, theirs, strict=True) if a != b]
            rows.append([f"{name}, {kind}", f"{len(some):,}", f"{sum(map(len, theirs)):,}", len(wrong)])
            if wrong:
                print(f"{name}: {wrong[0][:80]!r}: {ours[some.index(wrong[0])][:8]} {theirs[some.index(wrong[0])][:8]}")
    table("Tokens, Fontes against Lucene", ["analyzer, texts", "texts", "tokens", "texts with other tokens"], rows)


def natural(sources: list[Path]) -> list[str]:
    """200 documents of each collection, and as many queries, drawn at random."""
    found: list[str] = []
    for source in sources:
        for path in (source / "corpus.jsonl", source / "corpus.jsonl.gz", source / "queries.jsonl"):
            if path.exists():
                some = [json.loads(line) for line in lines(path)]
                picked = random.Random(1).sample(some, min(200, len(some)))
                found += [" ".join(filter(None, (doc.get("title"), doc["text"]))) for doc in picked]
    return found


BLOCKS = (  # first and last character of some scripts and signs
    "09 AZ az AZ az !/ :@ [` {~ \xa1\xff Āſ ƀɏ \u0300\u036f Ͱϯ Ѐӿ Աև את \u05b0\u05c7 ءي \u064b\u0669 अह \u093e\u094d ०९ กฮ "
    "ะ\u0e4e ກຮ \u1100\u1112 Ḁỿ ἀῼ \u2010\u2027 \u200b\u200f ⁰₉ ℀ⅿ ①⓿ ☀➿ 、〿 ぁゖ ァヺ 一龥 가힣 ！～ ｦﾟ 𝐀𝟿 😀🙏 🇦🇿 🏻🏿 𠀀𠀿"
)


def drawn(count: int = 5000) -> list[str]:
    """Strings of characters of many scripts and signs, drawn at random, always the same ones."""
    source = random.Random(20240229)
    blocks = BLOCKS.split()
    texts = []
    for _ in range(count):
        some = source.choices(blocks, k=source.randint(1, 4))
        characters = [source.choice([*some, *some, "  ", "''", ".."]) for _ in range(source.randint(1, 40))]
        texts.append("".join(chr(source.randint(ord(a), ord(b))) for a, b in characters))
    return texts


def unpacked(source: Path, work: Path) -> Path:
    """The corpus as a plain file."""
    if (source / "corpus.jsonl").exists():
        return source / "corpus.jsonl"
    work.mkdir(parents=True)
    with gzip.open(source / "corpus.jsonl.gz", "rb") as packed, (work / "corpus.jsonl").open("wb") as to:
        shutil.copyfileobj(packed, to)
    return work / "corpus.jsonl"


def lines(path: Path) -> list[str]:
    """The lines of a file, split at line feeds alone."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("utf-8").rstrip("\n").split("\n")


if __name__ == "__main__":
    main()
