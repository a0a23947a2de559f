"""Dates that texts state, and causes before their effects: by the filter and in chains."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from support.each import each

from fontes import Doc, Index, Run, Topic, Topics
from fontes.causal import CausalFilter, TopicRank
from fontes.causal.dates import limit_of, period_of, stated_periods

PLAIN = TopicRank(tagger="stopwords")
DOCS = {
    "early": Doc("early", "The pumps caused the flood.", "", {"date": "2016-12-24"}),
    "eve": Doc("eve", "The pumps caused the flood.", "", {"date": "2017-01-12"}),
    "same": Doc("same", "The pumps caused the flood.", "", {"date": "13 January 2017"}),
    "month": Doc("month", "The flood was high.", "", {"date": "2017-01-31T10:00:00Z"}),
    "late": Doc("late", "The pumps caused the flood.", "", {"date": "2017-02-01", "note": "by boat"}),
    "undated": Doc("undated", "The pumps caused the flood."),
}


class Shelf:
    def docs(self, ids: list[str]) -> list[Doc]:
        return [DOCS[doc_id] for doc_id in ids]


def passing(topic: Topic, **parameters: Any) -> list[str]:
    run = Run.of({topic.id: {doc_id: 10.0 - n for n, doc_id in enumerate(DOCS)}}, Topics([topic])).with_(documents=Shelf())
    return list(CausalFilter(topicrank=PLAIN, **parameters)(run)[topic.id].ids)


@each(
    ("text", "periods"),
    [
        ("On 13 January 2017 it broke", [("2017-01-13", "2017-01-14")]),
        ("January 13 , 2017", [("2017-01-13", "2017-01-14")]),
        ("2017-01-13 and the 1st of Feb. 2018", [("2017-01-13", "2017-01-14"), ("2018-02-01", "2018-02-02")]),
        ("in December 2016, after May of 2015", [("2016-12-01", "2017-01-01"), ("2015-05-01", "2015-06-01")]),
        ("since 1998, in 2016", [("1998-01-01", "1999-01-01"), ("2016-01-01", "2017-01-01")]),
        ("2000 men in April, room 1999, in 12 days, on 3 May, may 5", []),
    ],
)
def test_days_months_and_years_are_read(text: str, periods: list[tuple[str, str]]) -> None:
    assert [(str(period.first), str(period.after)) for period in stated_periods(text)] == periods


def test_dates_of_metadata_are_days_months_or_years() -> None:
    day = date(2017, 1, 31), date(2017, 2, 1)
    assert period_of("2017-01-31T23:00:00Z") == period_of("31 January 2017") == day
    assert period_of("2016-12") == (date(2016, 12, 1), date(2017, 1, 1))
    assert period_of(2016) == period_of(" 2016 ") == (date(2016, 1, 1), date(2017, 1, 1))
    for value in ("soon", None, "05/06/2017", 20170131, "2017-13", 2016.5, True, "0017"):
        assert period_of(value) is None, value
    assert period_of("9999-12-31") is not None  # the last day there is


def test_the_date_of_an_event_is_given_or_of_its_topic_or_of_its_text() -> None:
    topic = Topic("1", "Flood of 2 May 2016", "Before 2014", "Why the flood in January 2017?", metadata={"date": "2017-01-13"})
    assert limit_of(topic, "2015-03-04") == date(2015, 3, 4)
    assert limit_of(topic, "date") == date(2017, 1, 13)
    assert limit_of(topic, "day") == date(2017, 2, 1)
    assert limit_of(topic, "2015") == date(2016, 1, 1)
    assert limit_of(Topic("1", "Flood of 2 May 2016", "Before 2014"), "day") == date(2016, 5, 2)
    assert limit_of(Topic("1", "A flood", "It came in 2014."), "day") == date(2015, 1, 1)
    assert limit_of(Topic("1", "A flood"), "day") is None


def test_documents_pass_that_are_dated_before_the_event_and_have_a_pair() -> None:
    topic = Topic("1", "the flood", "Relevant documents tell of the pumps.", metadata={"date": "2017-01-13"})
    assert passing(topic, roles="swapped") == ["early", "eve", "same", "late", "undated"]
    assert passing(topic, roles="swapped", before="date") == ["early", "eve"]
    assert passing(topic, roles="swapped", before="2017-01-01") == ["early"]
    assert passing(topic, roles="any", before="2017-02-01") == ["early", "eve", "same", "month"]
    assert passing(topic, roles="any", before="date", failing="below") == list(DOCS)


def test_a_document_of_a_month_or_year_passes_if_all_of_it_is_before_the_event(monkeypatch: Any) -> None:
    for name, value in (("early", 2016), ("eve", "2016-12"), ("same", "2017"), ("month", "2017-01"), ("late", 2017)):
        monkeypatch.setitem(DOCS, name, Doc(name, "The pumps caused the flood.", "", {"date": value}))
    topic = Topic("1", "the flood", metadata={"date": "2017-01-13"})
    assert passing(topic, roles="any", before="date") == ["early", "eve"]
    assert passing(topic, roles="any", before="2016") == ["early", "eve"]
    assert passing(topic, roles="any", before="2016-12-01") == []


def test_all_documents_of_a_topic_without_a_date_pass() -> None:
    assert passing(Topic("1", "the flood"), roles="any", before="date") == list(DOCS)
    assert passing(Topic("1", "the flood"), roles="any", before="date", column="published") == list(DOCS)
    assert passing(Topic("1", "the flood of January 2017"), roles="any", before="date") == ["early", "eve", "same", "month"]


def test_the_first_date_that_a_topic_states_is_its_day() -> None:
    topic = Topic("1", "the flood of January 2017", metadata={"date": "2017-01-13", "label": "x"})
    assert passing(topic, roles="any", before="stated") == ["early", "eve", "same", "month"]


def test_a_key_that_some_topics_or_some_documents_have_is_none_to_complain_about(tmp_path: Path) -> None:
    topics = Topics([Topic("1", "flood", metadata={"date": "2017-01-13"}), Topic("2", "flood", metadata={"label": "x"})])
    few = [Doc("a", "flood", metadata={"note": "x"}), Doc("b", "gale", metadata={"published": "2017-01-01"})]
    index = Index.build(few, tmp_path / "index")
    filtered = index.bm25() >> CausalFilter("any", before="date", column="published")
    assert {topic: ranking.ids for topic, ranking in filtered(topics).items()} == {"1": [], "2": ["a"]}
