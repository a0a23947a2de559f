"""Topics in SGML and XML of TREC, CLEF, FIRE, NTCIR and INEX, well-formed or not."""

import re
import shlex
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core import InputError, Topic
from fontes.formats import read_topics
from fontes.formats.markup import Document


def read(tmp_path: Path, content: str, fields: dict[str, str] | None = None, name: str = "topics.txt") -> list[Topic]:
    (tmp_path / name).write_text(content)
    return list(read_topics(tmp_path / name, fields=fields).values())


SHAPES = {
    "TREC Microblog": (
        "<top>\n<num> Number: MB900 </num>\n<query> bridge closures </query>\n<querytime> Tue Feb 08 </querytime>\n"
        "<querytweettime> 35124912 </querytweettime>\n</top>\n",
        [Topic("MB900", "bridge closures")],
    ),
    "TREC Microblog without closing tags": (
        "<top>\n<num> Number: MB1\n<query> a ferry\n<querytime> Tue\n</top>\n<top>\n<num> Number: MB2\n<query> a pier\n</top>",
        [Topic("MB1", "a ferry"), Topic("MB2", "a pier")],
    ),
    "TREC 4, whose topics have a description alone": (
        "<top>\n<num> Number: 202\n<desc> Description:\nStatus of\nferries.\n</top>",
        [Topic("202", "Status of ferries.", "", "Status of ferries.")],
    ),
    "TREC without any closing tag": (
        "<top>\n<num> Number: 1\n<title> one\n\n<top>\n<num> Number: 2\n<title> two\n<narr> Narrative: n\n",
        [Topic("1", "one"), Topic("2", "two", "n")],
    ),
    "FIRE": (
        "<topics>\n<top lang='en'>\n<num>26</num>\n<title>Mill & dam dispute</title>\n<desc>Find it.</desc>\n"
        "<narr>A & B < C</narr>\n</top>\n</topics>",
        [Topic("26", "Mill & dam dispute", "A & B < C", "Find it.")],
    ),
    "FIRE without a root": (
        "<top lang='en'>\n<num>26</num>\n<title>Mill</title>\n</top>\n\n"
        "<top lang='en'>\n<num>27</num>\n<title>Dam</title>\n</top>",
        [Topic("26", "Mill"), Topic("27", "Dam")],
    ),
    "CLEF with a language in the names": (
        "<top>\n<num> C041 </num>\n<EN-title> Pesticides in food </EN-title>\n"
        "<EN-desc> Find. </EN-desc>\n<EN-narr> N. </EN-narr>\n</top>",
        [Topic("C041", "Pesticides in food", "N.", "Find.")],
    ),
    "CLEF": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<topics>\n<topic lang="en">\n<identifier>10.2452/401-AH</identifier>\n'
        "<title>Prices</title>\n<description>Find.</description>\n<narrative>Any.</narrative>\n</topic>\n</topics>",
        [Topic("10.2452/401-AH", "Prices", "Any.", "Find.")],
    ),
    "CLEF eHealth, not well-formed": (
        "<queries>\n<query>\n<id>101001</id>\n<title>aches & pains</title>\n</query>\n</queries>",
        [Topic("101001", "aches & pains")],
    ),
    "CLEF eHealth 2015": (
        "<topics><top>\n<num>clef2015.test.1</num>\n<query>many red marks</query>\n</top></topics>",
        [Topic("clef2015.test.1", "many red marks")],
    ),
    "NTCIR with several roots": (
        "<TOPIC>\n<NUM>013</NUM>\n<SLANG>CH</SLANG>\n<TITLE>labor dispute</TITLE>\n<DESC>D.</DESC>\n<NARR>\n"
        "<BACK>b</BACK><REL>r</REL></NARR>\n<CONC>c</CONC>\n</TOPIC>\n<TOPIC>\n<NUM>014</NUM>\n<TITLE>Second</TITLE>\n</TOPIC>",
        [Topic("013", "labor dispute", "b r", "D."), Topic("014", "Second")],
    ),
    "NTCIR 1, whose number has no quotation marks": (
        "<TOPIC q=0101>\n<TITLE>\nrobots\n</TITLE>\n<DESCRIPTION>\nD\n</DESCRIPTION>\n</TOPIC>",
        [Topic("0101", "robots", "", "D")],
    ),
    "NTCIR WWW": (
        "<queries>\n<query>\n<qid>0001</qid>\n<content>ascii code</content>\n"
        "<description>What?</description>\n</query>\n</queries>",
        [Topic("0001", "ascii code", "", "What?")],
    ),
    "TREC Genomics 2004": (
        "<TOPICS><TOPIC><ID>1</ID><TITLE>Ferroportin</TITLE><NEED>Find it</NEED><CONTEXT>C</CONTEXT></TOPIC></TOPICS>",
        [Topic("1", "Ferroportin")],
    ),
    "TREC Web": (
        '<webtrack2009><topic number="1" type="faceted"><query> family tree </query><description>D</description>'
        '<subtopic number="1" type="nav">S</subtopic></topic></webtrack2009>',
        [Topic("1", "family tree", "", "D")],
    ),
    "TREC Precision Medicine": (
        '<topics task="x"><topic number="1"><disease>Melanoma</disease><gene>BRAF (V600E)</gene>'
        "<demographic>64-year-old male</demographic><other>None</other></topic></topics>",
        [Topic("1", "Melanoma BRAF (V600E) 64-year-old male")],
    ),
    "TREC Clinical Trials 2021": (
        '<topics><topic number="-1">\n A patient &lt; 3 with fever &amp; rash.\n 2.1 g/dL.\n</topic></topics>',
        [Topic("-1", "A patient < 3 with fever & rash. 2.1 g/dL.")],
    ),
    "TREC Clinical Trials 2023": (
        '<topics><topic number="1" template="glaucoma"><field name="diagnosis">open angle</field>'
        '<field name="pressure">22</field></topic></topics>',
        [Topic("1", "diagnosis open angle pressure 22")],
    ),
    "TREC Clinical Decision Support": (
        '<topics><topic number="1" type="diagnosis"><note>n</note><description>d</description>'
        "<summary>s</summary></topic></topics>",
        [Topic("1", "s", "", "d")],
    ),
    "TREC Session": (
        '<sessiontrack><session num="7"><topic num="3"><title>t</title></topic><interaction num="1">'
        "<query>old</query></interaction>"
        "<currentquery><query>new pier</query></currentquery></session></sessiontrack>",
        [Topic("7", "new pier")],
    ),
    "INEX": (
        '<inex_topic topic_id="202" query_type="CO"><title>ferries</title><castitle>//a[about(., x)]</castitle></inex_topic>',
        [Topic("202", "ferries")],
    ),
    "a topic with text beside its number": ("<topic><num>5</num> a ferry</topic>", [Topic("5", "a ferry")]),
    "a namespace, a comment, a declaration and CDATA": (
        '<?xml version="1.0"?><!DOCTYPE topics SYSTEM "t.dtd"><t:topics xmlns:t="x"><!-- <topic id="0"/> -->'
        '<t:topic t:id="1"><t:title><![CDATA[a <b> & c]]></t:title></t:topic></t:topics>',
        [Topic("1", "a <b> & c")],
    ),
}


@each("shape", SHAPES)
def test_topics_of_the_campaigns_are_read(tmp_path: Path, shape: str) -> None:
    content, expected = SHAPES[shape]
    assert read(tmp_path, content) == expected


@each(
    ("title", "text"),
    [
        ("the <i>E. coli</i> outbreak", "the E. coli outbreak"),
        ("H<sub>2</sub>O and<br/>ice", "H2O and ice"),
        ("<p>one</p><p>two</p>", "one two"),
        ("see <foreign>raison</foreign> d'être", "see raison d'être"),
        ("x<y", "x<y"),
        ("x < y > z & w", "x < y > z & w"),
        ("a<b and c>d", "a<b and c>d"),
        ("R&amp;D &lt;b&gt; &eacute;", "R&D <b> é"),
        ("a <!-- note --> b", "a b"),
        ("a <!-- b", "a <!-- b"),
    ],
)
def test_markup_inside_a_text_goes_and_other_angle_brackets_stay(tmp_path: Path, title: str, text: str) -> None:
    assert read(tmp_path, f"<top><num>1</num><title>{title}</title></top>") == [Topic("1", text)]
    if "<foreign>" not in title:
        assert read(tmp_path, f"<top>\n<num> Number: 1\n<title> {title}\n<desc> d\n</top>") == [Topic("1", text, "", "d")]


NEWS = "<top>\n<num> Number: 321 </num>\n<docid>9171debc</docid>\n<url>https://example.org/a pier<url>\n</top>\n"
UNKNOWN = {
    "TREC News": (NEWS, "'num', 'docid', 'url'", Topic("321", "https://example.org/a pier")),
    "an element of its own": (
        '<topics><topic id="4"><lang>en</lang><words>a pier</words></topic></topics>',
        "'id', 'lang', 'words'",
        Topic("4", "a pier"),
    ),
}


@pytest.mark.parametrize("shape", UNKNOWN)
def test_the_options_that_an_error_advises_read_topics_of_another_shape(tmp_path: Path, fontes, shape: str) -> None:
    content, elements, topic = UNKNOWN[shape]
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert f"topic 1: no text (an element query, title, content, question or summary); found {elements}; say" in str(
        caught.value
    )
    options = shlex.split(re.search(r"say which is which: (.*) \(in Python", str(caught.value))[1])
    ft.Index.build([("d1", "the pier")], tmp_path / "i")
    code, run, _ = fontes("search", tmp_path / "i", "--topics", tmp_path / "topics.txt", *options)
    assert (code, run.split()[:3]) == (0, [topic.id, "Q0", "d1"])
    fields = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}
    assert read(tmp_path, content, fields) == [topic]


def test_the_elements_of_id_and_text_are_chosen_by_name_in_any_file(tmp_path: Path) -> None:
    content = "<Requests><Request><RequestNumber>7</RequestNumber><RequestText>piers</RequestText></Request></Requests>"
    assert read(tmp_path, content, {"id": "RequestNumber", "text": "RequestText"}) == [Topic("7", "piers")]


def test_of_several_languages_one_is_chosen_as_the_error_says(tmp_path: Path) -> None:
    for content in (
        "<top><num>1</num><EN-title>pier</EN-title><FR-title>jetée</FR-title></top>",
        '<topics><topic id="1"><title xml:lang="fr">jetée</title><title xml:lang="en">pier</title></topic></topics>',
    ):
        with pytest.raises(InputError, match=r"the title is in several languages \(EN, FR\); --text EN-title chooses one"):
            read(tmp_path, content)
        assert read(tmp_path, content, {"text": "EN-title"}) == [Topic("1", "pier")]


def test_markup_is_read_in_linear_time() -> None:
    for pump in ["<", "<a", "<a ", "<a b=", "<!--", "<!a", "<num>", "<num> <title>", "</num>", "<i>", "&#1;", "<top>"]:
        document = Document(f"<top><num>1</num>{pump * (100_000 // len(pump))}</top>", "t")
        assert document.elements


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<top><num>1</num><title></title></top>", "topic '1': Their texts are empty."),
        ("<top><num>1</num><title>heron</title></top>", "topic '1': No document holds any of these words."),
    ],
)
def test_a_run_without_any_result_is_not_written(tmp_path: Path, fontes, content: str, reason: str) -> None:
    ft.Index.build([("d1", "the pier")], tmp_path / "i")
    (tmp_path / "t.txt").write_text(content)
    code, out, error = fontes("search", tmp_path / "i", "--topics", tmp_path / "t.txt", "-o", tmp_path / "t.run")
    assert (code, out) == (1, "")
    assert error == f"fontes: {tmp_path / 't.txt'}: no topic has a result, so no run is written; {reason}\n"
    assert not (tmp_path / "t.run").exists()
