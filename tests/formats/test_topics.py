import json
from pathlib import Path

import pytest

from fontes.core import InputError, Topic, Topics, Turn
from fontes.core.query import Group, Phrase, Term
from fontes.formats import read_topics, write_topics


def read(tmp_path: Path, content: str, name: str = "topics", format: str | None = None) -> list[Topic]:
    (tmp_path / name).write_text(content)
    return list(read_topics(tmp_path / name, format).values())


def test_beir_queries(tmp_path: Path) -> None:
    content = '{"_id": 1, "text": "one", "metadata": {}}\n\n{"_id": "b", "text": "two"}\n'
    assert read(tmp_path, content) == [Topic("1", "one"), Topic("b", "two")]
    assert read(tmp_path, '{"_id": "1", "text": "one"}') == [Topic("1", "one")]
    assert read(tmp_path, '{"qid": "1", "query": "one"}', "q.jsonl") == [Topic("1", "one")]


def test_tsv_with_and_without_a_header(tmp_path: Path) -> None:
    assert read(tmp_path, "1\tone two\r\n2\tthree, four\n") == [Topic("1", "one two"), Topic("2", "three, four")]
    assert read(tmp_path, "qid\tquery\n1\tone\n") == [Topic("1", "one")]


SGML = """
<top>
<head> Tipster Topic Description
<num> Number: 051
<title> Topic: Airbus &amp; subsidies

<desc> Description:
How are they
paid?

<narr> Narrative:
A relevant document
says so.
</top>
<top><num>C-2</num><desc>Only a description</desc></top>
"""


def test_trec_sgml_with_and_without_closing_tags(tmp_path: Path) -> None:
    assert read(tmp_path, SGML) == [
        Topic("51", "Airbus & subsidies", "A relevant document says so.", "How are they paid?"),
        Topic("C-2", "Only a description", "", "Only a description"),
    ]


def test_trec_xml(tmp_path: Path) -> None:
    content = """<?xml version="1.0"?><topics task="x">
    <topic number="1"><query>covid  origin</query><question>where from?</question><narrative>n</narrative></topic>
    <topic number="2">A patient of 40.</topic>
    <topic><number>3</number><title>t</title><description>d</description></topic></topics>"""
    assert read(tmp_path, content) == [
        Topic("1", "covid origin", "n", "where from?"),
        Topic("2", "A patient of 40."),
        Topic("3", "t", "", "d"),
    ]


def test_json_objects_and_lists(tmp_path: Path) -> None:
    assert read(tmp_path, '{"1": "one",\n "2": "two"}') == [Topic("1", "one"), Topic("2", "two")]
    assert read(tmp_path, '{"1": "one"}') == [Topic("1", "one")]
    assert read(tmp_path, '[{"id": 1,\n "title": "one"}]') == [Topic("1", "one")]
    assert read(tmp_path, '{"id": 1, "title": "one"}') == [Topic("1", "one")]
    assert read(tmp_path, '{"id": 1,\n "title": "one"}') == [Topic("1", "one")]


def test_a_format_can_be_given(tmp_path: Path) -> None:
    assert read(tmp_path, "{\tbrace", format="tsv") == [Topic("{", "brace")]


@pytest.mark.parametrize("name", ["q.jsonl", "q.jsonl.gz"])
def test_written_topics_read_back_the_same(tmp_path: Path, name: str) -> None:
    given = [
        Topic("1", "žluť"),
        Topic("2", "b", "n", "d"),
        Topic("3_2", "it?", turns=(Turn("What is x?", "m", "a", "An answer.", "d1"), Turn("it?"))),
        Topic("4", "w", weights={"x": 0.1, "y": 2.0}),
        Topic("5", "hot springs", query=Group(must=(Term("hot"),), should=(Phrase(("hot", "spring"), (0, 1), 2),))),
    ]
    write_topics(Topics(given), tmp_path / name)
    assert list(read_topics(tmp_path / name).values()) == given


def test_flat_cast_topics_carry_the_conversation_so_far(tmp_path: Path) -> None:
    content = """[{"number": 31, "title": "t", "description": "about", "turn": [
      {"number": 1, "raw_utterance": "What is x?", "manual_rewritten_utterance": "m1", "automatic_rewritten_utterance": "a1",
       "passage": "X is y.", "canonical_result_id": "D5", "passage_id": 0},
      {"number": 2, "raw_utterance": "And z?", "manual_canonical_result_id": "M2", "automatic_canonical_result_id": "A2"}]}]"""
    first, second = Turn("What is x?", "m1", "a1", "X is y.", "D5-0"), Turn("And z?", "", "", "", "M2")
    assert read(tmp_path, content) == [
        Topic("31_1", "What is x?", description="about", turns=(first,)),
        Topic("31_2", "And z?", description="about", turns=(first, second)),
    ]


IKAT_2023 = """[{"number": "9-1", "title": "Diet", "ptkb": {"1": "I am vegan.", "2": "I like tea."}, "turns": [
  {"turn_id": 1, "utterance": "Find a diet", "resolved_utterance": "Find a vegan diet", "response": "Sure.",
   "ptkb_provenance": [1], "response_provenance": ["c-1:2", "c-2:1"]},
  {"turn_id": 2, "utterance": "And tea?", "resolved_utterance": "Is tea vegan?", "response": "Yes.",
   "response_provenance": []}]}]"""
IKAT_2025 = """[{"number": "1-1", "title": "Acid reflux", "ptkb": ["I eat late."], "responses": [
  {"turn_id": 1, "user_utterance": "What is good for it?", "resolved_utterance": "What is good for reflux?",
   "response": "Bananas.", "relevant_ptkbs": [], "citations": ["c-3:1"]},
  {"turn_id": 2, "user_utterance": "And drinks?", "resolved_utterance": "Which drinks?", "response": "Water."}]}]"""


@pytest.mark.parametrize("lines", [False, True])
def test_ikat_topics_carry_conversation_statements_and_rewrites(tmp_path: Path, lines: bool) -> None:
    def read_year(content: str) -> list[Topic]:
        rows = json.loads(content)
        return read(tmp_path, "".join(f"{json.dumps(row)}\n" for row in rows) if lines else content)

    diet = Turn("Find a diet", "Find a vegan diet", "", "Sure.", "c-1:2"), Turn("And tea?", "Is tea vegan?", "", "Yes.")
    statements = {"ptkb": ["I am vegan.", "I like tea."]}
    assert read_year(IKAT_2023) == [
        Topic("9-1_1", "Find a diet", turns=diet[:1], metadata={**statements, "relevant_ptkb": ["I am vegan."]}),
        Topic("9-1_2", "And tea?", turns=diet, metadata=statements),
    ]
    reflux = Turn("What is good for it?", "What is good for reflux?", "", "Bananas.", "c-3:1")
    assert [(topic.id, topic.turns, topic.metadata) for topic in read_year(IKAT_2025)] == [
        ("1-1_1", (reflux,), {"ptkb": ["I eat late."], "relevant_ptkb": []}),
        ("1-1_2", (reflux, Turn("And drinks?", "Which drinks?", "", "Water.")), {"ptkb": ["I eat late."]}),
    ]


def test_relevant_statements_are_numbers_texts_or_objects(tmp_path: Path) -> None:
    """Numbers as in 2023 and 2024, texts as in 2025, objects as in the guidelines of 2023, and an id as in those of 2026."""

    def relevant(named: str) -> list[str]:
        content = IKAT_2023.replace('"ptkb_provenance": [1]', f'"ptkb_provenance": {named}').replace('"number"', '"conv_id"')
        topics = read(tmp_path, content)
        assert [topic.id for topic in topics] == ["9-1_1", "9-1_2"]
        texts: list[str] = topics[0].metadata["relevant_ptkb"]
        return texts

    assert relevant("[2, 1]") == relevant('["2", "1"]') == ["I like tea.", "I am vegan."]
    assert relevant('["I like tea.", "I met a bear."]') == ["I like tea.", "I met a bear."]  # the second is new in this turn
    assert relevant('[{"id": "2", "text": "I like tea.", "score": 0.9}, {"id": 1}]') == ["I like tea.", "I am vegan."]
    assert relevant("[7, null]") == []


def test_a_written_conversation_keeps_its_statements(tmp_path: Path) -> None:
    for content in (IKAT_2023, IKAT_2025):
        topics = read(tmp_path, content)
        write_topics(topics, tmp_path / "written.json", format="cast")
        again = list(read_topics(tmp_path / "written.json").values())
        assert [(topic.id, topic.turns, topic.metadata) for topic in again] == [
            (topic.id, topic.turns, topic.metadata) for topic in topics
        ]


def test_an_unknown_key_of_a_topic_with_turns_is_named(tmp_path: Path) -> None:
    assert read(tmp_path, '[{"id": 1, "text": "a", "turns": [{"text": "a"}]}]') == [Topic("1", "a", turns=(Turn("a"),))]


def test_fields_of_a_single_object_name_its_keys(tmp_path: Path) -> None:
    for content in ('{"nr": 1, "words": "a pier"}', '{"nr": 1,\n"words": "a pier"}'):
        (tmp_path / "topics").write_text(content)
        assert list(read_topics(tmp_path / "topics", fields={"id": "nr", "text": "words"}).values()) == [Topic("1", "a pier")]


def test_an_object_without_a_known_text_is_an_error_whose_options_read_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no text \(.*\); found 'qid', 'words'; say which is which: --id qid --text words"):
        read(tmp_path, '{"qid": 1, "words": "a pier"}\n{"qid": 2, "words": "a ferry"}')
    assert read_topics(tmp_path / "topics", fields={"id": "qid", "text": "words"})["2"].text == "a ferry"


TREE = """[{"number": 132, "turn": [
  {"number": "1-1", "participant": "User", "utterance": "u1", "manual_rewritten_utterance": "m1"},
  {"number": "1-2", "parent": "1-1", "participant": "System", "response": "s2", "provenance": ["P1", "P2"]},
  {"number": "1-3", "parent": "1-2", "participant": "User", "utterance": "u3"},
  {"number": "2-1", "parent": "1-1", "participant": "System", "response": "What do you mean?", "provenance": []},
  {"number": "2-2", "parent": "2-1", "participant": "User", "utterance": "u22"},
  {"number": "2-3", "parent": "2-2", "participant": "System", "response": "s23", "provenance": ["P3"]}]}]"""


def test_in_a_cast_tree_the_conversation_is_the_path_from_the_root(tmp_path: Path) -> None:
    answered = Turn("u1", "m1", "", "s2", "P1")
    assert {t.id: t.turns for t in read(tmp_path, TREE)} == {
        "132_1-1": (answered,),
        "132_1-3": (answered, Turn("u3")),
        "132_2-2": (Turn("u1", "m1", "", "What do you mean?"), Turn("u22", "", "", "s23", "P3")),
    }


def test_provenance_that_is_no_list_names_no_answer(tmp_path: Path) -> None:
    row = '{"number": 1, "raw_utterance": "a", "provenance": 7}'
    assert read(tmp_path, f'[{{"number": 1, "turn": [{row}]}}]') == [Topic("1_1", "a", turns=(Turn("a"),))]


def test_paths_of_a_flattened_cast_tree_share_their_turns(tmp_path: Path) -> None:
    content = """[{"number": 1, "turn": [{"number": "1-1", "utterance": "a"}, {"number": "1-3", "utterance": "b"}]},
                  {"number": 1, "turn": [{"number": "1-1", "utterance": "a"}, {"number": "2-1", "utterance": "c"}]}]"""
    assert [(t.id, [u.text for u in t.turns]) for t in read(tmp_path, content)] == [
        ("1_1-1", ["a"]),
        ("1_1-3", ["a", "b"]),
        ("1_2-1", ["a", "c"]),
    ]


def test_one_turn_a_line_is_grouped_by_conversation_and_branch(tmp_path: Path) -> None:
    content = """{"_id": "5_1", "topic": 5, "turn": 1, "raw": "a", "manual": "A", "canonical_id": "D", "passage_id": 3}
{"_id": "6_1-1", "topic": 6, "turn": "1-1", "raw": "b", "response": "r", "provenance": ["P"]}
{"_id": "5_2", "topic": 5, "turn": 2, "raw": "c"}
{"_id": "6_2-1", "topic": 6, "turn": "2-1", "raw": "d"}
"""
    assert read(tmp_path, content, "turns.jsonl") == [
        Topic("5_1", "a", turns=(Turn("a", "A", "", "", "D-3"),)),
        Topic("6_1-1", "b", turns=(Turn("b", "", "", "r", "P"),)),
        Topic("5_2", "c", turns=(Turn("a", "A", "", "", "D-3"), Turn("c"))),
        Topic("6_2-1", "d", turns=(Turn("d"),)),
    ]
