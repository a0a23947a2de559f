"""Statements about the user: which are chosen, what they add to queries and to the input of models, and how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fontes as ft
from fontes import Doc, Index, Topic, Topics, Turn
from fontes.core import expression
from fontes.passages.rationales import TextScorer
from fontes.rerank.reranker import Reranker
from fontes.rewrite import ManualStatements, Statements, statement_scores, statements_of
from fontes.rewrite.canardt5 import context_parts
from fontes.train.rewriter import rewrite_pairs

DOCS = [
    Doc("d1", "The launch crosses the river to the hospital."),
    Doc("d2", "Midwives at the hospital work by night."),
    Doc("d3", "My boat lies in the dock, and I fish for herring."),
    Doc("d4", "Beans grow on the plot by the river."),
]
PTKB = ["I am a midwife at the hospital.", "My boat is in the dock.", "I grow beans by the river.", "I like tea."]
TURN = Turn("And my work at the hospital?", "What of my work at the hospital by the river?")
TOPIC = Topic("1-1_1", "the hospital by the river", turns=(TURN,), metadata={"ptkb": PTKB, "relevant_ptkb": PTKB[:1]})
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "ikat"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("statements") / "index", analyzer="english")


@dataclass(frozen=True)
class Shortest(Reranker):
    """Scores a text by its length, with a minus."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return np.array([-len(text) for _, text in pairs], dtype=np.float32)

    @property
    def fingerprint(self) -> str:
        return "shortest"


def one(stage: Any, topic: Topic = TOPIC) -> Topic:
    return stage(Topics([topic]))[topic.id]  # type: ignore[no-any-return]


def test_the_statements_of_highest_bm25_by_content_words_are_appended(index: Index) -> None:
    found = one(Statements(index, k=2))
    content = ["midwife hospital", "boat dock", "grow beans river", "tea"]
    scores = TextScorer(index.bm25()).scores([("hospital river", text) for text in content])
    assert scores[0] > 0
    assert scores[2] > 0
    assert scores[1] == scores[3] == 0
    first, second = (0, 2) if scores[0] >= scores[2] else (2, 0)
    assert found.metadata["statements"] == [PTKB[first], PTKB[second]]
    assert found.text == f"the hospital by the river {content[first]} {content[second]}"
    assert (found.origin, found.weights, found.turns) == (TOPIC, None, TOPIC.turns)
    assert statements_of(found) == (PTKB[first], PTKB[second])
    assert statements_of(TOPIC) == tuple(PTKB)
    assert one(Statements(index, k=4)).metadata["statements"] == found.metadata["statements"]  # others share no word
    assert one(Statements(index, k=1)).metadata["statements"] == [PTKB[first]]


def test_whole_statements_are_scored_and_appended_on_request(index: Index) -> None:
    topic = Topic("1-1_1", "my plot", metadata={"ptkb": PTKB})
    assert one(Statements(index), topic).metadata["statements"] == []  # "my" does not count
    found = one(Statements(index, words="all"), topic)
    assert found.text == "my plot My boat is in the dock."


def test_a_reranker_and_a_threshold_choose(index: Index) -> None:
    found = one(Statements(index, k=2, reranker=Shortest(), words="all"))
    assert found.metadata["statements"] == ["I like tea.", "My boat is in the dock."]
    assert one(Statements(index, k=9, reranker=Shortest(), threshold=-15)).metadata["statements"] == ["I like tea."]
    assert one(Statements(index, threshold=99.0)).text == TOPIC.text
    stage = expression.pipeline("manual() >> statements(k=1, reranker=text_scorer(bm25()), threshold=0.1) >> bm25()", index)
    assert ft.pipeline(stage.text, index) == stage
    scores = TextScorer(index.bm25()).scores([(TURN.manual, statement) for statement in PTKB])  # of whole statements
    assert stage(Topics([TOPIC])).topics["1-1_1"].metadata["statements"] == [PTKB[int(np.argmax(scores))]]


def test_a_weight_makes_weights_of_terms_and_keeps_those_of_earlier_stages(index: Index) -> None:
    found = one(Statements(index, k=1, weight=0.25))
    chosen = index.analyzer(found.metadata["statements"][0].replace("I am a", ""))
    terms = index.analyzer(TOPIC.text)
    expected = {term: float(terms.count(term)) for term in terms}
    for term in chosen:
        expected[term] = expected.get(term, 0.0) + 0.25
    assert found.weights == expected
    weighted = one(ft.rewrite.WeightedTurns(index) >> Statements(index, k=1, weight=0.5))
    assert weighted.weights is not None
    assert weighted.weights[index.analyzer("midwife")[0]] == 0.5
    assert weighted.weights[index.analyzer("work")[0]] == 1.0
    assert one(Statements(index, append=False)).text == TOPIC.text
    assert one(Statements(index, append=False)).metadata["statements"]


def test_topics_without_statements_stay_as_they_are(index: Index) -> None:
    for topic in (Topic("1", "river"), Topic("1", "river", metadata={"ptkb": []}), Topic("1", " ", metadata={"ptkb": PTKB})):
        assert one(Statements(index), topic) is topic
    assert len(Statements(index)(Topics())) == 0


def test_statements_that_the_file_names_are_appended() -> None:
    found = one(ft.rewrite.Manual() >> ManualStatements())
    assert found.text == f"{TURN.manual} midwife hospital"
    assert one(ManualStatements(words="all")).text == f"{TOPIC.text} {PTKB[0]}"
    assert one(ManualStatements(append=False)).text == TOPIC.text


def test_choices_are_measured_against_the_file(index: Index) -> None:
    topics = Topics(
        [
            TOPIC,
            Topic("1-1_2", "beans and boat", metadata={"ptkb": PTKB, "relevant_ptkb": [PTKB[2], PTKB[3]]}),
            Topic("1-1_3", "tea", metadata={"ptkb": PTKB}),
        ]
    )
    found = statement_scores(Statements(index, k=2)(topics))
    assert (found.topics, found.relevant, found.predicted, found.correct) == (2, 3, 4, 2)
    assert str(found) == "P 0.500  R 0.667  F1 0.571  (2 topics, 3 statements)"
    assert statement_scores(ManualStatements()(Topics([TOPIC]))).f1 == 1
    judged = {"1-1_1": {"1": 1, "2": 0, "3": 1, "4": 0}, "1-1_3": {"4": 1}, "9-1_1": {"1": 1}}
    by_number = statement_scores(Statements(index, k=2)(topics), judged)
    assert (by_number.topics, by_number.relevant, by_number.predicted, by_number.correct) == (
        2,
        3,
        2,
        2,
    )  # no document has "tea"


def test_a_t5_and_a_language_model_read_the_chosen_statements_or_all(index: Index) -> None:
    chosen, two = (one(Statements(index, k=k, append=False)) for k in (1, 2))
    assert context_parts(TOPIC, 3, statements=True) == (*reversed(PTKB), TURN.text)
    best, second = two.metadata["statements"]
    assert context_parts(two, 3, statements=True) == (second, best, TURN.text)  # a long context loses its first parts
    assert context_parts(chosen, 3, statements=True) == (*chosen.metadata["statements"], TURN.text)
    assert context_parts(chosen, 3) == (TURN.text,)
    assert ft.CanardT5("m", statements=True).context(chosen) == f"{chosen.metadata['statements'][0]} ||| {TURN.text}"
    (pair,) = rewrite_pairs(Topics([TOPIC]), 3, statements=True)
    assert pair.context == (*reversed(PTKB), TURN.text)
    read, without = (ft.llm.LlmRewrite("gpt-4o-mini", statements=known).requests(chosen) for known in (True, False))
    line = f"Context:\nKnown about the user: {chosen.metadata['statements'][0]}\n\nQuestion: {TURN.text}"
    assert line in read[0].messages[0][1]
    assert without == ft.llm.LlmRewrite("gpt-4o-mini").requests(TOPIC)
    assert "Known about" not in without[0].messages[0][1]


def test_a_conversation_has_statements(index: Index) -> None:
    conversation = ft.rewrite.Conversation(Statements(index, k=1) >> index.bm25(), ptkb=PTKB)
    hits = conversation.ask("Who works at the hospital?")
    assert hits.topic.metadata["statements"] == [PTKB[0]]
    assert conversation.topics()["1_1"].metadata == {"ptkb": PTKB}


def test_statements_bring_more_of_the_documents_of_the_example(tmp_path: Path) -> None:
    """The figures of the page on iKAT."""
    harbour = Index.build(ft.dataset("harbour").corpus, tmp_path / "harbour", analyzer="english")
    topics, qrels = Topics.read(EXAMPLE / "topics.json"), ft.read_qrels(EXAMPLE / "qrels.txt")
    recall = {}
    for name, stage in (("none", None), ("chosen", Statements(harbour)), ("named", ManualStatements())):
        queries = ft.rewrite.Manual()(topics)
        run = harbour.bm25()(queries if stage is None else stage(queries))
        recall[name] = round(float(ft.evaluate(run, qrels, "R(rel=2)@10")["R(rel=2)@10"]), 4)
    assert recall == {"none": 0.5, "chosen": 0.5909, "named": 0.9545}
