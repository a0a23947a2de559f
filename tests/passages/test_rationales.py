"""From a document to the sentence: splitting, scoring, picking, and what is shown of it."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.word_encoder import Words
from typer.testing import CliRunner

import fontes as ft
from fontes.app.cli import app
from fontes.neural import Reranker
from fontes.passages import TextScorer, rationales_of, sentence_qrels, with_rationales

DOCS = [
    ft.Doc("spring", "A spark set the barn on fire. Rain put it out. The spark came from a wheel.", "Barn"),
    ft.Doc("fair", "The fair opened in spring. A spark lit the lamps! Was it fair?", "Fair"),
    ft.Doc("blank", "", "Only a title"),
]
TOPICS = {"q1": "the spark of the fire", "q2": "rain"}


@dataclass(frozen=True)
class Shared(Reranker):
    """The number of words that a sentence shares with the query."""

    fingerprint = "shared"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        def words(text: str) -> set[str]:
            return set(text.lower().strip(".!?").split())

        return np.array([len(words(query) & words(text)) for query, text in pairs], np.float32)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DOCS, tmp_path_factory.mktemp("rationales") / "barn.index", analyzer="english")


@pytest.fixture
def run(index: ft.Index) -> ft.Run:
    scores = {"q1": {"fair": 3.0, "spring": 2.0, "blank": 1.0}, "q2": {"spring": 5.0}}
    return ft.Run.of(scores, ft.Topics.of(TOPICS)).with_(documents=index)


def test_each_sentence_is_a_passage_without_its_documents_title() -> None:
    assert [(p.id, p.title, p.text) for p in ft.Sentences().of(DOCS[1])] == [
        ("fair#0", "", "The fair opened in spring."),
        ("fair#1", "", "A spark lit the lamps!"),
        ("fair#2", "", "Was it fair?"),
    ]
    assert [p.title for p in ft.Sentences(title=True).of(DOCS[0])] == ["Barn"] * 3
    assert ft.Sentences().of(DOCS[2]) == []
    assert ft.Sentences().of(ft.Doc("d", "  One.\n\n Two (so e.g. three).  ")) == [
        ft.Doc("d#0", "One."),
        ft.Doc("d#1", "Two (so e.g. three)."),
    ]


def test_rules_know_capitals_with_signs_and_other_alphabets() -> None:
    text = "Pršelo. Čápi odletěli. Řeka stoupla. „Ústup!“ volali. Дождь идёт. Ελλάδα."
    assert [p.text for p in ft.Sentences().of(ft.Doc("d", text))][:3] == ["Pršelo.", "Čápi odletěli.", "Řeka stoupla."]
    assert [p.text for p in ft.Sentences().of(ft.Doc("d", text))][-2:] == ["Дождь идёт.", "Ελλάδα."]


def test_a_run_of_sentences_has_its_documents_scores_and_goes_back_to_documents(run: ft.Run) -> None:
    sentences = ft.Sentences()(run)
    assert sentences["q2"].ids == ["spring#2", "spring#1", "spring#0"]
    assert set(sentences["q1"].scores.tolist()) == {3.0, 2.0}  # the blank document has no sentence
    assert ft.to_documents("max")(sentences)["q1"].ids == ["fair", "spring"]


def test_passages_take_whole_sentences_by_rules_too() -> None:
    passages = ft.Passages(sentences="rules", max_words=12).of(DOCS[0])
    assert [p.text for p in passages] == ["A spark set the barn on fire. Rain put it out.", "The spark came from a wheel."]


def test_the_best_passages_of_each_document_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    scores = {
        f"q{q}": {f"d{d}#{n}": float(rng.integers(0, 6)) for d in range(6) for n in range(int(rng.integers(0, 5)))}
        for q in range(8)
    }
    run = ft.Run.of(scores)
    for n, threshold in ((1, None), (2, 2.0), (None, 3.0), (None, None)):
        expected = {}
        for topic, ranking in run.items():
            taken: dict[str, int] = {}
            expected[topic] = []
            for hit in ranking:
                doc = hit.id.partition("#")[0]
                if (threshold is None or hit.score >= threshold) and (n is None or taken.get(doc, 0) < n):
                    taken[doc] = taken.get(doc, 0) + 1
                    expected[topic].append(hit.id)
        best = ft.BestPassages(n, threshold, separator="#")(run)
        assert {topic: ranking.ids for topic, ranking in best.items()} == expected


def test_an_encoder_reranks_by_its_inner_product_of_texts_that_no_index_holds(run: ft.Run) -> None:
    scored = (ft.Sentences() >> ft.EncoderReranker(Words()))(run)
    q1 = {hit.id: hit.score for hit in scored["q1"]}
    # The topic has one "spark"; so the score is how often a sentence has it.
    assert q1 == {"fair#0": 0.0, "fair#1": 1.0, "fair#2": 0.0, "spring#0": 1.0, "spring#1": 0.0, "spring#2": 1.0}
    windows = ft.EncoderReranker(ft.ChunkedEncoder(Words(), window=2, stride=2))
    text = "rain rain spark spark spark rain"  # windows: 2 of rain; 2 of spark; 1 of each
    assert windows.scores([("spark spark", text), ("rain", text), ("spark", "dry")]).tolist() == [4.0, 2.0, 0.0]
    assert len(windows.scores([])) == 0


@pytest.mark.parametrize("variant", ["lucene", "atire"])
def test_texts_are_scored_by_the_formula_of_bm25_with_the_indexes_idf_and_avgdl(index: ft.Index, variant: str) -> None:
    query, text = "spark of fire and spark", "A spark, a spark and more rain on the snow"
    df = {"spark": 2, "fire": 1}
    terms = index.analyzer(text)
    dl, avgdl, n = len(terms), index.tokens / 3, 3
    expected = 0.0
    for term in index.analyzer(query):  # a term that the query has twice counts twice
        tf = terms.count(term)
        part = tf / (tf + 1.2 * (1 - 0.5 + 0.5 * dl / avgdl)) if tf else 0.0
        idf = math.log(1 + (n - df[term] + 0.5) / (df[term] + 0.5)) if variant == "lucene" else math.log(n / df[term])
        expected += idf * part * (1 if variant == "lucene" else 2.2)
    scorer = TextScorer(index.bm25(variant=variant, k1=1.2, b=0.5))
    assert scorer.scores([(query, text), (query, "snow"), ("", "spark")]).tolist() == pytest.approx([expected, 0, 0])


def test_scoring_texts_leaves_the_statistics_of_the_index_as_they_were(index: ft.Index) -> None:
    before = index.bm25().search("spark fair")
    TextScorer(index.bm25(lengths="lucene")).scores([("spark", "spark")])
    after = index.bm25().search("spark fair")
    assert list(before) == list(after)


def test_rationales_keep_the_run_and_are_those_of_the_pipeline_of_sentences(run: ft.Run) -> None:
    picked = ft.Rationales(Shared(), n=1)(run)
    assert picked == run
    assert picked["q1"].docs() == run["q1"].docs()
    sentences = (ft.Sentences() >> Shared() >> ft.BestPassages(1))(run)
    for topic in run:
        for hit in run[topic]:
            own = [f"{hit.id}#{one.number}" for one in rationales_of(picked, topic, hit.id)]
            assert own == [i for i in sentences[topic].ids if i.startswith(f"{hit.id}#")]
    (best,) = rationales_of(picked, "q1", "spring")
    assert (best.number, best.score, best.text) == (0, 3.0, "A spark set the barn on fire.")  # "the" and "spark" and "fire"


def test_rationales_come_in_the_order_of_the_text_and_only_above_the_threshold(run: ft.Run) -> None:
    picked = ft.Rationales(Shared(), n=None, threshold=2)(run)
    assert [one.number for one in rationales_of(picked, "q1", "spring")] == [0, 2]
    assert rationales_of(picked, "q2", "spring") == []
    assert rationales_of(run, "q1", "spring") == []


def test_rationales_without_a_reranker_are_those_of_bm25(run: ft.Run, index: ft.Index) -> None:
    lexical, named = ft.Rationales(n=2)(run), ft.Rationales(TextScorer(index.bm25()), n=2, threshold=1e-9)(run)
    for doc in ("spring", "fair"):
        assert rationales_of(lexical, "q1", doc) == rationales_of(named, "q1", doc)
    (only,) = rationales_of(lexical, "q2", "spring")  # the two other sentences have no word of the topic
    assert only.text == "Rain put it out."


def test_a_cut_after_rationales_is_made_before_sentences_are_scored(index: ft.Index) -> None:
    assert repr((index.bm25(k=50) >> ft.Rationales()) % 3) == repr(index.bm25(k=3) >> ft.Rationales())
    three = (index.bm25() >> ft.Passages() >> ft.Rationales()) % 3
    assert repr(three) == repr(index.bm25() >> ft.Passages() >> ft.Rationales()).replace("passages()", "passages() % 3")


def test_the_text_of_rationales_makes_them_again(index: ft.Index) -> None:
    stage = index.bm25() % 5 >> ft.Rationales(TextScorer(index.bm25(b=0.75)), n=2, threshold=1.5, title=True)
    assert ft.pipeline(stage.text, index) == stage
    splitter, picker = ft.Sentences("nupunkt", title=True, separator="_"), ft.BestPassages(2, 0.5)
    steps = index.bm25() >> splitter >> ft.EncoderReranker("M") >> picker
    assert ft.pipeline(steps.text, index).text == steps.text


def test_sentences_read_from_a_file_are_joined_to_the_documents(run: ft.Run, tmp_path: Path) -> None:
    ft.write_run((ft.Sentences() >> Shared() >> ft.BestPassages(1))(run), tmp_path / "sentences.run")
    joined = with_rationales(run, ft.read_run(tmp_path / "sentences.run", run.topics))
    assert rationales_of(joined, "q1", "fair") == rationales_of(ft.Rationales(Shared(), n=1)(run), "q1", "fair")
    again = pickle.loads(pickle.dumps(joined.documents))
    assert again.rationales("q1", "fair") == joined.documents.rationales("q1", "fair")  # type: ignore[union-attr]


def test_an_explanation_has_all_sentences_and_says_which_are_picked(index: ft.Index) -> None:
    explained = (index.bm25() >> ft.Rationales(Shared(), n=1)).explain("the spark of the fire", "spring")
    assert explained.value == 1
    assert [part.label for part in explained.parts] == [
        "sentence 0, picked: A spark set the barn on fire.",
        "sentence 2: The spark came from a wheel.",
        "sentence 1: Rain put it out.",
    ]
    assert [part.value for part in explained.parts] == [3.0, 2.0, 0.0]


def test_a_stage_that_reads_documents_explains_those_of_the_run_before_it(index: ft.Index) -> None:
    explained = (index.bm25() >> ft.causal.CausalEvidence()).explain("spark", "spring")
    assert explained == ft.causal.CausalEvidence().explain("spark", index.doc("spring"))


def test_facets_of_rationales_are_those_of_the_documents(tmp_path: Path) -> None:
    dated = [ft.Doc(doc.id, doc.text, doc.title, {"year": 2000 + number}) for number, doc in enumerate(DOCS)]
    index = ft.Index.build(dated, tmp_path / "dated.index", analyzer="english")
    assert (index.bm25() >> ft.Rationales(n=1)).search("spark").facets("year") == {"year": {2000: 1, 2001: 1}}


def test_a_notebook_shows_the_sentences_in_place_of_a_snippet(run: ft.Run) -> None:
    shown = ft.Rationales(Shared(), n=1)(run)["q1"]._repr_html_()
    assert "<b>Barn</b><br>0: A spark set the barn on fire." in shown
    assert "Only a title" in shown


def test_rationales_are_not_lost_in_the_cache_of_runs(index: ft.Index, tmp_path: Path) -> None:
    stage = index.bm25() >> ft.Rationales(n=1)
    for _ in range(2):
        report = ft.compare({"a": stage}, TOPICS, {"q1": {"spring": 1}}, ["AP"], cache=tmp_path)
        assert rationales_of(report.systems["a"].run, "q1", "spring")


def test_search_shows_the_sentences_of_each_hit(index: ft.Index) -> None:
    asked = ["search", str(index.path), "spark", "--pipeline", "bm25() >> rationales(n=1)"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert any(line.endswith("1: A **spark** lit the lamps!") for line in lines)
    assert not any("opened" in line for line in lines)
    hits = json.loads(CliRunner().invoke(app, [*asked, "--json"]).output)["hits"]
    assert [one["text"] for hit in hits if hit["id"] == "fair" for one in hit["rationales"]] == ["A spark lit the lamps!"]
    plain = json.loads(CliRunner().invoke(app, [*asked[:3], "--json"]).output)["hits"]
    assert all("rationales" not in hit for hit in plain)


CLAIMS = [
    {
        "id": 7,
        "claim": "A spark lit the lamps.",
        "evidence": {"fair": [{"sentences": [1], "label": "SUPPORT"}], "spring": [{"sentences": [0, 2], "label": "SUPPORT"}]},
        "cited_doc_ids": ["fair"],
    },
    {"id": 8, "claim": "Nothing is known.", "evidence": {}, "cited_doc_ids": ["spring"]},
]


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    path = tmp_path / "claims.jsonl"
    path.write_text("".join(json.dumps(claim) + "\n" for claim in CLAIMS), encoding="utf-8")
    return path


def test_sentences_of_claims_are_judgments_with_a_group_for_each_evidence_set(claims: Path) -> None:
    qrels = sentence_qrels(claims)
    assert qrels.to_dict() == {"7": {"fair#1": 1, "spring#0": 1, "spring#2": 1}}
    assert sorted(map(sorted, qrels.groups("7"))) == [["fair#1"], ["spring#0", "spring#2"]]


def test_precision_recall_and_f1_of_sentences_are_counted_from_files(index: ft.Index, claims: Path, tmp_path: Path) -> None:
    qrels, output = str(tmp_path / "sentences.qrels"), str(tmp_path / "sentences.run")
    runner = CliRunner()
    assert runner.invoke(app, ["convert", "qrels", str(claims), qrels, "--sentences"]).exit_code == 0
    pipeline = "bm25() >> sentences() >> text_scorer(bm25()) >> best_passages(1, threshold=0.0001)"
    searched = ["search", str(index.path), "--topics", str(claims), "--pipeline", pipeline, "-o", output]
    assert runner.invoke(app, searched).exit_code == 0
    # One sentence of each document: fair#1, which is evidence, and spring#0 or spring#2, which both are; two of three found.
    values = json.loads(runner.invoke(app, ["eval", qrels, output, "SetP", "SetR", "SetF", "--json"]).output)["measures"]
    assert values == pytest.approx({"SetP": 1.0, "SetR": 2 / 3, "SetF": 0.8})
    refused = runner.invoke(app, ["convert", "topics", str(claims), qrels, "--sentences"])
    assert "--sentences applies to qrels, not to a topics" in refused.output


def test_rules_find_the_sentences_that_scifact_numbers() -> None:
    folder = Path(__file__).parents[2].parent / "shared" / "data" / "scifact"
    if not folder.is_dir():
        pytest.skip("SciFact is not here")
    docs = {doc.id: doc for doc in ft.read_corpus(folder / "corpus.jsonl")}
    judged: dict[str, set[int]] = {}
    for split in ("train", "validation"):
        for grades in sentence_qrels(folder / f"claims_{split}.csv").values():
            for sentence in grades:
                doc_id, _, number = sentence.partition("#")
                judged.setdefault(doc_id, set()).add(int(number))
    counts = {doc_id: len(ft.Sentences().of(docs[doc_id])) for doc_id in judged}
    beyond = [doc_id for doc_id, numbers in judged.items() if max(numbers) >= counts[doc_id]]
    assert len(judged) > 400
    assert len(beyond) / len(judged) < 0.015  # of the others each number that is judged exists
    # How many sentences SciFact's own lists have, of some abstracts.
    lists = {"13231899": 8, "1156322": 14, "4414547": 9, "13734012": 9, "33409100": 14, "42441846": 11, "86602746": 18}
    assert {doc_id: len(ft.Sentences().of(docs[doc_id])) for doc_id in lists} == lists
