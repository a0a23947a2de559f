"""`fontes mine`: what it writes, what it prints, and which options go together."""

import gzip
import json
from pathlib import Path

import pytest
from conftest import Fontes

import fontes as ft
from fontes.train import Examples

WORDS = ["river", "stone", "bridge", "forest", "market"]
CORPUS = [
    {
        "_id": f"d{n:02}",
        "title": f"Title {n}",
        "text": f"The {WORDS[n % 5]} lies here and there. Then {WORDS[(n + 1) % 5]} number {n} follows it.",
    }
    for n in range(12)
]


@pytest.fixture
def place(tmp_path: Path, fontes: Fontes) -> Path:
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in CORPUS))
    (tmp_path / "queries.tsv").write_text("q1\triver stone\nq2\tbridge forest\nq3\tunjudged\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d00 1\nq2 0 d02 1\n")
    assert fontes("index", tmp_path / "corpus.jsonl", "-o", tmp_path / "c.index")[0] == 0
    return tmp_path


def judged(place: Path) -> list[object]:
    return [place / "c.index", "--topics", place / "queries.tsv", "--qrels", place / "qrels.txt"]


def test_a_run_and_the_pipeline_that_made_it_give_the_same_examples_as_python(place: Path, fontes: Fontes) -> None:
    arguments = judged(place)
    searched = fontes("search", place / "c.index", "--topics", place / "queries.tsv", "-k", 20, "-o", place / "bm25.run")
    assert searched == (0, "", searched[2])
    code, printed, _ = fontes("mine", *arguments, "--run", place / "bm25.run", "--ranks", "1-3", "-o", place / "a.jsonl")
    assert code == 0
    assert printed.splitlines()[:2] == [
        "3 topics: 2 groups of 2, 4 negatives (2.00 a group: 2 with 2)",
        "left out: 1 topic without a relevant document",
    ]
    assert fontes("mine", *arguments, "--pipeline", "bm25()", "--ranks", "1-3", "-o", place / "b.jsonl")[0] == 0
    assert (place / "a.jsonl").read_bytes() == (place / "b.jsonl").read_bytes()
    index = ft.Index.open(place / "c.index")
    topics, qrels = ft.read_topics(place / "queries.tsv"), ft.read_qrels(place / "qrels.txt")
    result = ft.mine_negatives(index.bm25(), topics, qrels, ranks=(1, 3))
    assert Examples.read(place / "a.jsonl") == result.examples
    hits = [hit.id for hit in index.bm25().search("river stone", 3)]
    assert [negative.id for negative in result.examples[0].negatives] == [hit for hit in hits if hit != "d00"]


def test_every_option_reaches_the_mining(place: Path, fontes: Fontes) -> None:
    options = ["--per-positive", 2, "--ranks", "2-9", "--margin", 0.01, "--sampling", "random", "--no-guard", "--seed", 7]
    code, printed, _ = fontes("mine", *judged(place), *options, "--pipeline", "bm25()", "-o", place / "m.jsonl", "--json")
    facts = json.loads(printed)
    assert code == 0
    assert facts["settings"] == {
        "per_positive": 2,
        "ranks": [2, 9],
        "margin": 0.01,
        "sampling": "random",
        "guard_duplicates": False,
        "seed": 7,
        "gold_last": False,
        "relative_margin": None,
    }
    assert (facts["total"], facts["groups"], facts["left_out"]) == (3, 2, {"no_gold": 1})
    assert facts["hash"] == Examples.read(place / "m.jsonl").hash
    code, printed, _ = fontes(
        "mine", *judged(place), "--pipeline", "bm25()", "--preset", "air2025", "-o", place / "p", "--json"
    )
    settings = json.loads(printed)["settings"]
    assert (settings["ranks"], settings["guard_duplicates"], settings["gold_last"]) == ([1, 5], False, True)


def test_examples_go_to_standard_output_and_the_statistics_to_standard_error(place: Path, fontes: Fontes) -> None:
    code, printed, errors = fontes("mine", *judged(place), "--pipeline", "bm25()", "-o", "-")
    assert code == 0
    assert [json.loads(line)["topic"] for line in printed.splitlines()] == ["q1", "q2"]
    assert "3 topics: 2 groups of 2" in errors


def test_examples_are_made_of_the_documents(place: Path, fontes: Fontes) -> None:
    index = place / "c.index"
    code, printed, _ = fontes("mine", index, "--from", "title", "-o", place / "t.jsonl.gz")
    assert code == 0
    assert printed.startswith("12 documents: 12 groups of 12, 0 negatives")
    first = json.loads(gzip.decompress((place / "t.jsonl.gz").read_bytes()).splitlines()[0])
    assert first == {
        "topic": "d00",
        "query": "Title 0",
        "positive": {"id": "d00", "text": "The river lies here and there. Then stone number 0 follows it."},
        "negatives": [],
    }
    own = ["--from", "cloze", "--per-document", 2, "--keep", 0, "--limit", 5, "--seed", 3]
    code, printed, _ = fontes("mine", index, *own, "--pipeline", "bm25()", "-o", place / "c.jsonl", "--json")
    facts = json.loads(printed)
    assert (facts["total"], facts["groups"], facts["negatives"]) == (5, 10, 40)
    wanted = {"form": "cloze", "per_document": 2, "keep": 0, "limit": 5, "document_seed": 3, "seed": 3}
    assert wanted.items() <= facts["settings"].items()


def test_queries_that_do_not_return_their_document_are_left_out(place: Path, fontes: Fontes) -> None:
    index, options = place / "c.index", ["--from", "first", "--keep", 0, "--json"]
    code, printed, _ = fontes("mine", index, *options, "-o", place / "all.jsonl")
    assert (code, json.loads(printed)["groups"]) == (0, 12)
    # Several documents have equal first sentences, and one of them is the first hit.
    trip = ["--round-trip", "bm25()"]
    code, printed, _ = fontes("mine", index, *options, *trip, "-o", place / "one.jsonl", "--judged", place / "own")
    facts = json.loads(printed)
    kept = Examples.read(place / "one.jsonl")
    opened = ft.Index.open(index)
    best = {one.topic: opened.bm25().search(one.query, 1)[0].id for one in Examples.read(place / "all.jsonl")}
    assert [one.topic for one in kept] == [topic for topic, doc in best.items() if topic == f"{doc}#1"]
    assert 0 < len(kept) < 12
    assert facts["left_out"] == {"not_returned": 12 - len(kept)}
    assert (facts["settings"]["round_trip"], facts["settings"]["round_trip_rank"]) == ("bm25(k1=0.9, b=0.4)", 1)
    topics, qrels = ft.read_topics(place / "own" / "topics.jsonl"), ft.read_qrels(place / "own" / "topics.qrels")
    assert {topic.id: topic.text for topic in topics.values()} == {one.topic: one.query for one in kept}
    assert list(qrels.rows()) == [(one.topic, "0", one.positive.id, 1) for one in kept]
    assert fontes("mine", index, *options, *trip, "--round-trip-rank", 12, "-o", place / "most.jsonl")[0] == 0
    assert len(Examples.read(place / "most.jsonl")) == 12


def test_a_teacher_scores_what_was_mined(place: Path, fontes: Fontes) -> None:
    from support.tiny_cross_encoder import save_cross_encoder

    model = save_cross_encoder(place / "model")
    teacher = f"cross_encoder({str(model)!r}, precision='float32')"
    arguments = [*judged(place), "--pipeline", "bm25()"]
    assert fontes("mine", *arguments, "--teacher", teacher, "-o", place / "t.jsonl")[0] == 0
    scorer = ft.CrossEncoder(str(model), precision="float32")
    for example in Examples.read(place / "t.jsonl"):
        passages = [example.positive, *example.negatives]
        expected = scorer.scores([(example.query, passage.text) for passage in passages])
        assert [passage.score for passage in passages] == pytest.approx(expected.tolist(), abs=1e-5)
    assert fontes("mine", *arguments, "--teacher", teacher, "--relative-margin", 0.99, "-o", place / "r.jsonl")[0] == 0
    for example in Examples.read(place / "r.jsonl"):
        assert all(negative.score <= 0.99 * example.positive.score for negative in example.negatives)
    from_titles = [place / "c.index", "--from", "title", "--pipeline", "bm25()", "-o", place / "f.jsonl"]
    assert fontes("mine", *from_titles, "--teacher", teacher, "--relative-margin", 0.99)[0] == 0
    assert all(n.score <= 0.99 * one.positive.score for one in Examples.read(place / "f.jsonl") for n in one.negatives)
    code, _, errors = fontes("mine", *arguments, "--relative-margin", 0.95, "-o", place / "u.jsonl")
    assert (code, "a relative margin needs a teacher" in errors) == (1, True)
    code, _, errors = fontes("mine", *arguments, "--teacher", "cut(3)", "-o", place / "u.jsonl")
    assert code == 1
    assert "a teacher must be a reranker" in errors


def test_options_that_do_not_go_together_are_refused(place: Path, fontes: Fontes) -> None:
    index, out = place / "c.index", ["-o", place / "x.jsonl"]
    both = [*judged(place), "--pipeline", "bm25()"]
    for arguments, problem in (
        ([*judged(place), *out], "say where negatives come from"),
        ([*both, "--run", "x.run", *out], "give either --run or --pipeline"),
        ([index, "--pipeline", "bm25()", *out], "--topics and --qrels missing"),
        ([*both, "--from", "title", *out], "leave --topics and --qrels out"),
        ([*both, "--keep", "0.5", *out], "--keep goes with --from"),
        ([index, "--from", "title", "--keep", "0.5", *out], "--keep goes with --from first or cloze or section"),
        ([index, "--from", "section", "--sentences", "nupunkt", *out], "--sentences goes with --from first or cloze"),
        ([*both, "--round-trip", "bm25()", *out], "--round-trip goes with --from"),
        ([index, "--from", "title", "--round-trip-rank", "2", *out], "--round-trip-rank goes with --round-trip"),
        ([*both, "--json", "-o", "-"], "--json goes with -o FILE"),
        ([*both, "--ranks", "5", *out], "--ranks is the first and the last rank, such as 1-100, not '5'"),
        ([index, "--topics", "-", "--qrels", "-", "--pipeline", "bm25()", *out], "only one of topics, qrels and run can be -"),
    ):
        code, _, errors = fontes("mine", *arguments)
        assert code == 2
        assert problem in " ".join(errors.replace("│", " ").split())
    for arguments, problem in (
        ([*both, "--preset", "air2025", "--per-positive", "9", *out], "the preset air2025 sets per_positive; leave"),
        ([*both, "--preset", "air2026", *out], "there is no preset 'air2026'"),
        ([*judged(place), "--pipeline", "cut(3)", *out], "--pipeline needs a stage from Topics to Run"),
        ([index, "--from", "abstract", *out], "there is no form 'abstract'"),
        ([index, "--from", "bm25()", *out], "queries are made by title, first, cloze, section, or llm_questions("),
        ([index, "--from", "title", "--round-trip", "cut(3)", *out], "a round trip needs a stage from Topics to Run"),
    ):
        code, _, errors = fontes("mine", *arguments)
        assert code == 1
        assert problem in errors
    assert not (place / "x.jsonl").exists()
