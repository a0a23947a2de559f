"""The filter of documents by the causes and effects that they state."""

import numpy as np
from support.each import each

import fontes as ft
from fontes import Doc, Index, Run, Topic, Topics
from fontes.causal import CausalFilter, CausalKeywords, TopicRank
from fontes.datasets.samples import harbour

PLAIN = TopicRank(tagger="stopwords")
DOCS = [
    Doc("cause", "The flood led to a dispute about pumps."),  # the title causes the keywords
    Doc("effect", "The pumps caused the flood."),  # the keywords cause the title
    Doc("denied", "The flood did not cause the trouble with the pumps."),
    Doc("silent", "The flood was high and the pumps were old."),
    Doc("title", "Nothing else is known.", title="Flood caused failure of pumps"),
]
DOC_IDS = [doc.id for doc in DOCS]
TOPIC = Topic("1", "the flood", narrative="Relevant documents tell of the pumps.")


class Shelf:
    def docs(self, ids):
        by_id = {doc.id: doc for doc in DOCS}
        return [by_id[doc_id] for doc_id in ids]


def run_of(topic=TOPIC, scores=None):
    scores = scores or {doc.id: 10.0 - i for i, doc in enumerate(DOCS)}
    return Run.of({topic.id: scores}).with_(topics=Topics([topic]), documents=Shelf())


def test_a_document_passes_by_its_cause_and_effect_in_the_roles_that_were_chosen():
    for roles, kept in [("published", ["cause", "title"]), ("swapped", ["effect"]), ("either", ["cause", "effect", "title"])]:
        found = CausalFilter(roles=roles, topicrank=PLAIN)(run_of())
        assert found["1"].ids == kept
        given = dict(zip(DOC_IDS, range(10, 5, -1), strict=True))
        assert found["1"].scores.tolist() == [given[doc_id] for doc_id in kept]


def test_documents_that_fail_may_be_put_below_the_others_in_their_order():
    found = CausalFilter(failing="below", topicrank=PLAIN)(run_of())
    assert found["1"].ids == ["cause", "title", "effect", "denied", "silent"]
    assert found["1"].scores.tolist() == [10, 6, 5, 4, 3]


def test_scores_far_from_zero_still_put_the_failing_documents_below():
    given = run_of(scores={"cause": 3e9, "silent": 3e9, "effect": 3.1e9})
    assert CausalFilter(failing="below", topicrank=PLAIN)(given)["1"].ids == ["cause", "effect", "silent"]


def test_nothing_changes_below_where_no_document_passes():
    given = run_of(scores={"silent": 2.0, "denied": 1.0})
    assert CausalFilter(failing="below", topicrank=PLAIN)(given) == given
    assert CausalFilter(topicrank=PLAIN)(given)["1"].ids == []


def test_a_rewritten_topic_is_judged_by_the_topic_that_it_came_from():
    keywords = CausalKeywords(PLAIN)
    rewritten = keywords([TOPIC])["1"]
    assert rewritten.text != TOPIC.text
    again = Topic("1", "other words", origin=rewritten)
    assert CausalFilter(topicrank=PLAIN)(run_of(again))["1"].ids == ["cause", "title"]


def test_without_a_narrative_the_title_stands_for_the_keyphrases():
    topic = Topic("1", "flood and pumps")
    assert CausalFilter(topicrank=PLAIN)(run_of(topic))["1"].ids == ["cause", "effect", "title"]


def test_more_overlap_keeps_fewer_documents():
    topic = Topic("1", "flood and pumps of a dispute")
    assert CausalFilter(overlap=2, topicrank=PLAIN)(run_of(topic))["1"].ids == []
    assert len(CausalFilter(overlap=1, topicrank=PLAIN)(run_of(topic))["1"]) == 3


def test_a_topic_without_documents_stays_empty():
    run = Run.of({"1": {}}).with_(topics=Topics([TOPIC]), documents=Shelf())
    for failing in ("drop", "below"):
        assert CausalFilter(failing=failing, topicrank=PLAIN)(run)["1"].ids == []


def test_the_filter_stands_in_a_pipeline_over_the_harbour(tmp_path):
    index = Index.build(harbour.corpus, tmp_path / "harbour")
    topics, qrels = harbour.causal.topics(), harbour.causal.qrels()
    stage = index.bm25(k=150) >> CausalFilter(topicrank=PLAIN, failing="below", roles="either", weak=True)
    found, plain = stage(topics), index.bm25(k=150)(topics)
    assert found.documents is index.state
    for topic_id in topics:
        assert sorted(found[topic_id].ids) == sorted(plain[topic_id].ids)
        assert np.all(np.diff(found[topic_id].scores) <= 0)
    assert stage.key() is not None
    assert set(found) == set(qrels)


@each(
    "stage_of",
    [
        lambda model: ft.HQE(Index.build([Doc("d", "flood")], model.parent / "index"), tagger=str(model)),
        lambda model: CausalFilter(sentences=f"spacy:{model}"),
        lambda model: CausalFilter(topicrank=TopicRank(tagger=str(model))),
        lambda model: CausalKeywords(sentences=f"spacy:{model}"),
        lambda model: ft.causal.CausalEvidence(sentences=f"spacy:{model}"),
        lambda model: ft.Passages(sentences=f"spacy:{model}"),
    ],
)
def test_the_key_of_a_stage_changes_with_the_folder_of_its_spacy_model(stage_of, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "meta.json").write_text("{}")
    stage = stage_of(tmp_path / "model")
    before = stage.key()
    assert before is not None
    assert stage.with_().key() == before
    (tmp_path / "model" / "meta.json").write_text('{"version": "2"}')
    assert stage.key() != before
