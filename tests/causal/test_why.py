"""Chains of causes, and the command that prints them."""

import json
import math
from itertools import pairwise

import pytest
from support.each import each
from typer.testing import CliRunner

from fontes import Doc, Index, Run, stage
from fontes.app.cli import app
from fontes.causal import Cause, Chain, Source, causes
from fontes.causal.cues import FIGURES, literal
from fontes.core import InputError, ParameterError, reporter
from fontes.datasets.samples import harbour

DOCS = [
    Doc(
        "pump",
        "The old harbour flooded because the pump house failed. Nobody was hurt.",
        "Water in the streets",
        {"date": "2001-05-02"},
    ),
    Doc("again", "The flooded harbour was blamed on the failed pump house.", "Letters", {"date": "2001-05-09"}),
    Doc("rust", "The pump house failed due to rusty bolts.", "Report on the pumps", {"date": "2001-06-01"}),
    Doc("paint", "Rusty bolts stem from a cheap paint.", "A painter writes", {"date": "2000-03-03"}),
    Doc("circle", "A cheap paint was bought because the old harbour flooded.", "Accounts", {"date": "2002-01-01"}),
    Doc("denied", "The old harbour did not flood because of the moon. The old harbour flooded, not because of sin.", "Sermon"),
    Doc("storm", "The old harbour flooded after heavy storms came.", "Weather", {"date": "2001-05-01"}),
    Doc("vote", "Councillors cut money for pumps of the old harbour.", "Money cut", {"date": "1999-01-01"}),
]
EVENT = "the old harbour flooded"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return Index.build(DOCS, tmp_path_factory.mktemp("why") / "index")


def texts(chain):
    return [cause.text for cause in chain.causes]


def test_a_cause_becomes_the_next_question(index):
    chain = causes(index, EVENT)
    [pump] = chain.causes
    assert pump.text == "the pump house failed"
    [rust] = pump.causes
    assert rust.text == "rusty bolts"
    [paint] = rust.causes
    assert paint.text == "a cheap paint"
    assert paint.causes == ()
    assert len(chain) == 3
    assert [cause.text for cause in chain.all()] == ["the pump house failed", "rusty bolts", "a cheap paint"]


def test_a_cause_that_repeats_what_is_above_it_is_not_followed(index):
    chain = causes(index, EVENT, depth=9)
    assert "the old harbour flooded" not in [cause.text for cause in chain.all()]
    assert len(chain) == 3


def test_the_same_cause_said_by_several_documents_is_one_with_several_sources(index):
    [pump] = causes(index, EVENT).causes
    first, second = pump.sources
    assert (first.doc_id, second.doc_id) == ("pump", "again")
    assert first.sentence == "The old harbour flooded because the pump house failed."
    assert (first.title, first.date, first.cue) == ("Water in the streets", "2001-05-02", "because")
    assert first.score == 1
    assert 0 < second.score <= 1
    assert pump.score == pytest.approx(1 - (1 - first.score) * (1 - second.score))


def over(*documents):
    """Gives these documents for every topic; their words are of equal weight."""
    by_id = {doc.id: doc for doc in documents}

    class Documents:
        def docs(self, ids):
            return [by_id[doc_id] for doc_id in ids]

    @stage
    def these(topics):
        run = Run.of({topic_id: dict.fromkeys(by_id, 1.0) for topic_id in topics}, topics=topics)
        return run.with_(documents=Documents())

    return these


def test_the_score_of_a_cause_is_a_noisy_or_of_its_sources():
    """Each source has two of the event's three words."""
    for sources in [1, 2, 3]:
        docs = [Doc(str(n), f"{'Well, ' * n}the old harbour flooded because the pump failed.") for n in range(sources)]
        [cause] = causes(over(*docs), "harbour flooded storm", depth=1).causes
        assert [source.score for source in cause.sources] == pytest.approx([2 / 3] * sources)
        assert cause.score == pytest.approx(1 - (1 / 3) ** sources)


def test_a_document_that_states_a_cause_twice_is_one_source():
    twice = Doc("twice", "The old harbour flooded because the pump failed. The harbour flooded because the pump failed.")
    once = Doc("once", "The old harbour flooded because the pump failed.")
    [cause] = causes(over(twice, once), "harbour flooded storm", depth=1).causes
    assert sorted(source.doc_id for source in cause.sources) == ["once", "twice"]


def test_a_cause_that_says_more_than_another_is_not_the_same():
    """Half of the words of each must be in the other: of the longer one a third is in the shorter."""
    short = Doc("short", "The harbour flooded because of rusty bolts.")
    long = Doc("long", "The harbour flooded because of rusty bolts inside wooden pumps built by soldiers.")
    found = causes(over(short, long), "harbour flooded", depth=1).causes
    assert sorted(cause.text for cause in found) == ["rusty bolts", "rusty bolts inside wooden pumps built by soldiers"]
    half = Doc("half", "The harbour flooded because of rusty bolts inside pumps.")
    assert len(causes(over(short, half), "harbour flooded", depth=1).causes) == 1


def test_the_words_of_a_cause_are_not_those_around_its_effect():
    """Of the event two words are needed around it, and one of those here is the cause."""
    assert not causes(over(Doc("pump", "The pump failed because of bolts.")), "pump bolts valves pipes", depth=1)


def test_a_lead_has_the_asked_share_of_the_event():
    docs = [Doc("half", "The harbour flooded."), Doc("quarter", "A storm."), Doc("none", "Nothing.")]
    found = causes(over(*docs), "harbour flooded storm gale", depth=1, leads=9, breadth=9, overlap=0.5)
    assert [(cause.sources[0].doc_id, cause.score) for cause in found.causes] == [("half", 0.5)]
    found = causes(over(*docs), "harbour flooded storm gale", depth=1, leads=9, breadth=9, overlap=0.25)
    assert sorted((cause.sources[0].doc_id, cause.score) for cause in found.causes) == [("half", 0.5), ("quarter", 0.25)]


def test_a_cause_counts_where_the_effect_has_the_asked_share_of_the_event():
    """Of words of equal weight: the effect "the old harbour flooded" has three of them."""
    for event, share in [("harbour flooded old", 1.0), ("harbour flooded storm", 2 / 3), ("harbour flooded storm gale", 1 / 2)]:
        one = over(Doc("pump", "The old harbour flooded because the pump failed."))
        for overlap, expected in ((share, ["the pump failed"]), (share + 1e-9, [])):
            if overlap <= 1:
                chain = causes(one, event, overlap=overlap)
                assert texts(chain) == expected
                assert [cause.score for cause in chain.causes] == pytest.approx([share] * len(expected))


def test_the_share_of_the_event_is_weighted_by_idf(tmp_path):
    docs = [
        Doc("1", "The bridge collapsed because the cable snapped."),
        *(Doc(str(n), "A bridge, a bridge.") for n in range(2, 9)),
        Doc("9", "A storm collapsed."),
        Doc("10", "A storm."),
    ]
    index = Index.build(docs, tmp_path / "index")
    df = {"bridge": 8, "collapsed": 2, "storm": 2}
    idf = {word: math.log(1 + (10 - n + 0.5) / (n + 0.5)) for word, n in df.items()}
    share = (idf["bridge"] + idf["collapsed"]) / sum(idf.values())
    [cause] = causes(index, "storm collapsed bridge", depth=1, overlap=share - 1e-9).causes
    assert cause.text == "the cable snapped"
    assert cause.score == pytest.approx(share)
    assert not causes(index, "storm collapsed bridge", depth=1, overlap=share + 1e-9)


def test_denied_causes_are_left_out(index):
    assert not any("moon" in cause.text or "sin" in cause.text for cause in causes(index, EVENT, weak=True).all())


def test_weak_cues_are_read_where_wanted_and_count_half(index):
    found = {cause.text: cause.score for cause in causes(index, EVENT, weak=True).causes}
    assert found["heavy storms came"] == 0.5
    assert next(iter(found)) == "the pump house failed"


def test_depth_and_breadth_bound_the_tree(index):
    assert len(causes(index, EVENT, depth=1)) == 1
    assert len(causes(index, EVENT, depth=1, breadth=1, weak=True)) == 1
    assert len(causes(index, EVENT, depth=1, breadth=2, weak=True)) == 2


def test_leads_are_documents_that_nobody_calls_a_cause(index):
    chain = causes(index, EVENT, depth=1, breadth=9, leads=9, before="2001-05-01")
    stated, lead = [cause for cause in chain.causes if not cause.lead], [cause for cause in chain.causes if cause.lead]
    assert [cause.text for cause in stated] == ["the pump house failed"]
    assert [cause.text for cause in lead] == ["Money cut"]
    [source] = lead[0].sources
    assert (source.doc_id, source.cue, source.sentence) == ("vote", "", "Councillors cut money for pumps of the old harbour.")


def test_leads_below_a_document_are_earlier_than_it(tmp_path):
    docs = [
        Doc("why", "The mill closed because the wheel of the mill broke.", "", {"date": "2001-01-01"}),
        Doc("later", "The wheel broke the bank, they say.", "A wheel", {"date": "2002-01-01"}),
        Doc("earlier", "Nobody greased the wheel, and one day it broke.", "Grease", {"date": "2000-01-01"}),
        Doc("undated", "A wheel that broke is no wheel.", "Proverbs"),
        *(Doc(f"other{i}", "Nothing happened at the mill.") for i in range(20)),
    ]
    index = Index.build(docs, tmp_path / "index")
    [broke] = causes(index, "the mill closed", leads=3, before="2003-01-01", breadth=1).causes
    assert [(cause.text, cause.lead) for cause in broke.causes] == [("Grease", True)]
    broke = causes(index, "the mill closed", leads=3, breadth=3).causes[0]
    assert sorted(cause.text for cause in broke.causes) == ["A wheel", "Grease", "Proverbs"]


def test_a_stated_cause_whose_words_state_a_later_date_is_left_out(tmp_path):
    docs = [
        Doc("report", "The old harbour flooded because the pumps had been sold in 2016.", "", {"date": "2018-01-01"}),
        Doc("other", "The old harbour flooded because of the gale of 3 February 2017.", "", {"date": "2017-02-05"}),
        Doc("sold", "The pumps had been sold because of a debt of 2 May 2017.", "", {"date": "2017-06-01"}),
        Doc("owed", "The pumps had been sold because nobody had paid the founders.", "", {"date": "2015-06-01"}),
    ]
    index = Index.build(docs, tmp_path / "index")
    assert {source.doc_id for cause in causes(index, "the old harbour flooded").all() for source in cause.sources} == {
        *("report", "other", "sold", "owed")
    }
    chain = causes(index, "the old harbour flooded", before="2017-01-13")
    assert [source.doc_id for cause in chain.all() for source in cause.sources] == ["report", "owed"]


@pytest.mark.parametrize(("date", "sources"), [("2 May 2016", ["sold"]), ("May 2016", ["sold", "owed"])])
def test_the_causes_of_a_cause_are_earlier_than_the_day_that_its_words_state(tmp_path, date, sources):
    docs = [
        Doc("sold", f"The old harbour flooded because the pumps had been sold on {date}."),
        Doc("owed", "The pumps had been sold because of a fire on 2 May 2016."),
        *(Doc(f"other{n}", "Nothing happened at the mill.") for n in range(5)),
    ]
    chain = causes(Index.build(docs, tmp_path / "index"), "the old harbour flooded", before="2017-01-13")
    assert [source.doc_id for cause in chain.all() for source in cause.sources] == sources


def test_below_a_lead_only_stated_causes_follow(index):
    chain = causes(index, EVENT, depth=4, breadth=9, leads=9, weak=True)
    leads = [cause for cause in chain.all() if cause.lead]
    assert leads
    assert not any(below.lead for cause in leads for below in cause.causes)


def test_without_a_date_before_leads_are_of_any_date(index):
    chain = causes(index, EVENT, depth=1, breadth=9, leads=9)
    assert "Sermon" in texts(chain)


def test_an_event_that_no_document_explains_has_an_empty_chain(index):
    chain = causes(index, "a whale in the library")
    assert not chain
    assert chain.to_dict() == {"event": "a whale in the library", "causes": []}


def test_a_retriever_may_stand_for_the_index(index):
    assert causes(index.bm25(k1=1.2) % 5, EVENT) == causes(index.bm25(k1=1.2), EVENT, k=5)
    assert texts(causes(index.tfidf(), EVENT)) == ["the pump house failed"]


def fixed(documents):
    """Gives the same documents for every topic, from a shelf that is no index."""

    @stage
    def fixed(topics):
        run = Run.of({topic_id: {doc.id: 1.0 for doc in DOCS} for topic_id in topics}, topics=topics)
        return run.with_(documents=documents)

    return fixed


class Shelf:
    def docs(self, ids):
        by_id = {doc.id: doc for doc in DOCS}
        return [by_id[doc_id] for doc_id in ids]


def test_documents_outside_of_an_index_are_read_with_words_of_equal_weight():
    assert [cause.text for cause in causes(fixed(Shelf()), EVENT).all()][:2] == ["the pump house failed", "rusty bolts"]


def test_a_stage_without_documents_is_refused():
    with pytest.raises(InputError, match="run has no documents"):
        causes(fixed(None), EVENT)


def test_every_cause_is_in_the_sentence_of_its_source_or_the_one_before(tmp_path):
    index = Index.build(harbour.corpus, tmp_path / "harbour")
    for topic in harbour.causal.topics().values():
        chain = causes(index, topic.text, weak=True)
        for cause in chain.all():
            text = index.doc(cause.sources[0].doc_id).text
            assert cause.text in text
            assert cause.sources[0].sentence in " ".join(text.split()) + index.doc(cause.sources[0].doc_id).title
            assert 0 < cause.score <= 1


def test_a_document_of_many_causes_in_one_sentence_is_read(tmp_path):
    text = " ".join(f"the mill number{i} closed because of reason{i}, and" for i in range(300))
    index = Index.build([Doc("long", text)], tmp_path / "index")
    chain = causes(index, "the mill number77 closed", depth=1)
    assert chain.causes[0].text == "reason77"


# Causes, effects and figures of speech


@each("figure", FIGURES)
def test_a_figure_of_speech_is_blanked_and_the_word_in_its_own_sense_is_not(figure):
    blanked = literal(figure.example)
    assert blanked != figure.example
    assert all(new in (old, " ") for new, old in zip(blanked, figure.example, strict=True))
    assert literal(figure.literal) == figure.literal


def test_a_flood_of_applications_is_no_flood():
    notice = Doc("notice", "There has been a flood of applications for plots on the marsh.", "Plots")
    water = Doc("water", "The marsh lay under a flood of sea water.", "Sea")
    leads = causes(over(notice, water), "flood on the marsh", depth=1, leads=9).causes
    assert [(cause.sources[0].doc_id, cause.score) for cause in leads] == [("water", 1.0), ("notice", 0.5)]
    stated = Doc("stated", "There has been a flood of applications on the marsh because of the low rent.")
    assert not causes(over(stated), "flood on the marsh", depth=1).causes
    assert texts(causes(over(stated), "a flood of applications for plots on the marsh", depth=1)) == ["the low rent"]


def test_what_the_event_led_to_is_no_cause_of_it():
    """The event is on the side of the cause, of which only the end is found: "to 6.30 p.m."."""
    blocked = Doc("1", "The protesters blocked the road from 11 a.m. to 6.30 p.m. causing trouble for all.")
    assert not causes(over(blocked), "road blocked by protesters", depth=1).causes
    because = Doc("2", "The protesters blocked the road because the bridge was shut.")
    assert texts(causes(over(blocked, because), "road blocked by protesters", depth=1)) == ["the bridge was shut"]


def test_a_document_in_which_the_event_is_the_cause_is_no_lead():
    loss = Doc("loss", "The flood on the marsh caused losses of sheep.")
    ditch = Doc("ditch", "Nobody cleared the ditch against a flood on the marsh.")
    chain = causes(over(loss, ditch), "flood on the marsh", depth=1, leads=9)
    assert [(cause.sources[0].doc_id, cause.lead) for cause in chain.causes] == [("ditch", True)]


def test_an_effect_that_only_tells_when_or_about_what_it_was_does_not_match():
    during = Doc("1", "The witness lied about the deaths during the strike at the mine because he was paid.")
    assert not causes(over(during), "strike at the mine", depth=1).causes
    after = Doc("2", "Strike pickets stood at the mine because pay was cut.")
    assert texts(causes(over(during, after), "strike at the mine", depth=1)) == ["pay was cut"]


def test_a_document_speaks_of_what_happened_or_states_no_cause_of_it():
    for event, text, expected in [
        ("fire at the old cannery", "The old cannery sent all packers home because it had no tins.", []),
        ("fire at the old cannery", "A blaze gutted the old cannery because it had no hydrants.", ["it had no hydrants"]),
        ("old herring season closed", "The old herring season was poor because of seals.", []),
        ("old herring season closed", "The old herring season was shut because of seals.", ["seals"]),
        ("a march against rape", "They march against a tax because it is high.", []),
    ]:
        assert texts(causes(over(Doc("1", text)), event, depth=1)) == expected


def test_the_flood_of_the_harbour_has_no_lead_by_a_figure_of_speech(tmp_path):
    index = Index.build(harbour.corpus, tmp_path / "harbour")
    chain = causes(index, "Flood at Marram Flats", weak=True, leads=1)
    stated = [cause.sources[0].doc_id for cause in chain.causes if not cause.lead]
    assert stated == ["h092", "h114"]
    assert all(cause.score < 1 and "flood of applications" not in cause.sources[0].sentence for cause in chain.causes)


def run(*arguments):
    return CliRunner().invoke(app, ["why", *map(str, arguments)])


def test_the_command_prints_a_tree_with_sources(index):
    shown = run(index.path, EVENT)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0] == EVENT
    assert lines[1].endswith("the pump house failed")
    assert "1.00  pump  2001-05-02  Water in the streets" in shown.stdout
    assert "The pump house failed due to rusty bolts." in shown.stdout


def test_the_command_prints_json(index):
    shown = run(index.path, EVENT, "--json", "--depth", 1)
    assert json.loads(shown.stdout) == causes(index, EVENT, depth=1).to_dict()


def test_the_command_says_in_a_sentence_that_nothing_was_found(index):
    shown = run(index.path, "a whale in the library")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("No document states a cause of 'a whale in the library'")
    assert json.loads(run(index.path, "a whale in the library", "--json").stdout)["causes"] == []


def test_the_command_marks_leads(index):
    shown = run(index.path, EVENT, "--leads", 3, "--before", "2001-05-01", "--depth", 1)
    assert "Money cut  (a lead, not stated)" in shown.stdout


def test_the_command_refuses_an_unknown_model(index):
    assert isinstance(run(index.path, EVENT, "--model", "guess").exception, ParameterError)


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--encoder", "m"), "--encoder is of dense and hybrid"), (("--before", "May"), "before is a date such as '2017-01-13'")],
)
def test_the_command_refuses_options_that_would_do_nothing_or_are_no_date(index, options, message):
    error = run(index.path, EVENT, *options).exception
    assert isinstance(error, ParameterError)
    assert message in str(error)


def test_a_chain_as_deep_as_it_may_be_is_printed(tmp_path):
    ends = ("arun", "elop", "idas", "osek", "umit", "ynor", "ager", "etil", "ibod", "ofup")
    names = [f"{a}{end} {end}{a}o" for a in "bcdfghjklm" for end in ends]
    texts = (f"The {effect} broke because the {cause} failed." for effect, cause in pairwise([*names, "last end"]))
    index = Index.build([Doc(str(n), text) for n, text in enumerate(texts)], tmp_path / "deep")
    chain = causes(index, f"{names[0]} broke", depth=100, breadth=1)
    assert len(chain) == 100
    shown = CliRunner().invoke(app, ["why", str(index.path), f"{names[0]} broke", "--depth", "100", "--breadth", "1"])
    assert shown.exit_code == 0
    given = CliRunner().invoke(app, ["why", str(index.path), f"{names[0]} broke", "--depth", "100", "--breadth", "1", "--json"])
    assert json.loads(given.stdout) == chain.to_dict()


def test_a_chain_in_a_notebook_is_a_tree_that_folds_with_all_text_escaped():
    below = Cause("nobody <oiled> it", 0.25, (Source("d2", "", "", "Nobody <oiled> it.", "", 0.25),), lead=True)
    source = Source("d&1", "The <pump>", "1912-03-01", "It failed because the pump stood.", "because", 0.5)
    html = Chain("a flood & a fire", (Cause("the pump stood", 0.5, (source,), (below,)),))._repr_html_()
    assert html.startswith("<details open><summary><b>a flood &amp; a fire</b></summary>")
    assert "<summary><b>0.500</b> the pump stood</summary>" in html
    assert "<code>d&amp;1</code> The &lt;pump&gt; (1912-03-01): <i>It failed because the pump stood.</i> [because]" in html
    assert "<b>0.250</b> nobody &lt;oiled&gt; it (a lead, not a stated cause)" in html
    assert html.count("<details") == html.count("</details>") == 3
    assert html.index("the pump stood</summary>") < html.index("nobody &lt;oiled&gt;")
    assert Chain("a <b>", ())._repr_html_() == "<div><b>a &lt;b&gt;</b>: no causes</div>"


def test_progress_reaches_the_retriever(index):
    seen = []

    @stage
    def first(topics):
        return index.bm25()(topics)

    class Telling(type(first)):
        def apply(self, topics, /):
            reporter()("asked")
            return self.function(topics)

    causes(Telling(first.function), EVENT, progress=seen.append)
    assert set(seen) == {"asked"}
