"""The stage that links an event to the documents of its chains of causes."""

from pathlib import Path

import pytest

import fontes as ft
from fontes import Doc, Index, Topic, Topics
from fontes.causal import CausalChains, causes

DOCS = [
    Doc("pump", "The old harbour flooded because the pump failed.", "", {"date": "2001-05-02"}),
    Doc("bolts", "The pump failed due to rusty bolts.", "", {"date": "2001-06-01"}),
    Doc("vote", "Councillors cut money for pumps of the old harbour, they say.", "Money", {"date": "2000-01-01"}),
    Doc("later", "A poem on the old harbour that flooded.", "Poem", {"date": "2002-01-01"}),
    *(Doc(f"other{n}", "Nothing happened at the mill.") for n in range(9)),
]
EVENT = "the old harbour flooded"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return Index.build(DOCS, tmp_path_factory.mktemp("linking") / "index")


def test_a_document_has_the_score_of_its_cause_less_for_each_link(index: Index) -> None:
    topics = Topics([Topic("1", EVENT), Topic("2", "a whale in the library")])
    run = CausalChains(index.bm25(), leads=0, decay=0.25)(topics)
    assert run.to_dict() == {"1": {"pump": 1.0, "bolts": 0.25}, "2": {}}
    assert run.documents is index.state
    chain = causes(index, EVENT, weak=True)
    assert [cause.sources[0].doc_id for cause in chain.all()] == ["pump", "bolts"]
    assert CausalChains(index.bm25(), leads=0, depth=1)(topics)["1"].ids == ["pump"]


def test_a_topic_without_words_has_no_documents(index: Index) -> None:
    topics = Topics([Topic("1", "?!"), Topic("2", EVENT), Topic("3", "")])
    assert CausalChains(index.bm25(), leads=0, depth=1)(topics).to_dict() == {"1": {}, "2": {"pump": 1.0}, "3": {}}


def test_the_day_of_the_event_may_have_a_key_with_hyphens(index: Index) -> None:
    topic = Topic("1", EVENT, metadata={"event-date": "2001-05-01"})
    assert set(CausalChains(index.bm25(), depth=1, before="event-date")(topic)["1"].ids) == {"pump", "vote"}


def test_chains_end_before_the_day_that_an_event_states(index: Index) -> None:
    topic = Topic("1", EVENT, metadata={"date": "2001-05-01"})
    assert CausalChains(index.bm25(), depth=1, leads=0, before="stated")(topic)["1"].ids == ["pump"]


def test_texts_are_analyzed_at_once_and_not_again_for_the_next_topic(tmp_path: Path) -> None:
    calls: list[str] = []

    def words(text: str) -> list[str]:
        calls.append(text)
        return text.lower().split()

    index = Index.build(DOCS, tmp_path / "index", analyzer=words)
    chains = CausalChains(index.bm25())
    calls.clear()
    alone = chains(Topics([Topic("1", EVENT)]))
    texts = set(calls)
    calls.clear()
    run = chains(Topics([Topic("1", EVENT), Topic("2", EVENT), Topic("3", EVENT)]))
    assert run.to_dict() == dict.fromkeys("123", alone.to_dict()["1"])
    assert set(calls) == texts
    documents = {text for text in texts if text.strip() in {doc.text for doc in DOCS}}
    assert len(documents) > 3
    assert {calls.count(text) for text in documents} == {1}


def test_leads_fill_up_and_are_earlier_than_the_event(index: Index) -> None:
    topic = Topic("1", EVENT, metadata={"date": "2001-05-01"})
    assert set(CausalChains(index.bm25(), depth=1)(topic)["1"].ids) == {"pump", "vote", "later"}
    assert set(CausalChains(index.bm25(), depth=1, before="date")(topic)["1"].ids) == {"pump", "vote"}


def test_the_topic_before_rewriting_is_the_event(index: Index) -> None:
    rewritten = Topic("1", "mill", origin=Topic("1", EVENT))
    assert CausalChains(index.bm25(), leads=0)(rewritten)["1"].ids == ["pump", "bolts"]


def test_the_stage_is_written_and_read_as_text(index: Index) -> None:
    stage = ft.core.pipeline('fuse(bm25(), causal_chains(bm25(k1=1.2) % 5, depth=2, before="date"))', index)
    assert repr(ft.core.pipeline(repr(stage), index)) == repr(stage)
    assert set(stage(Topic("1", EVENT))["1"].ids) >= {"pump", "bolts"}
    assert stage.key() is not None
