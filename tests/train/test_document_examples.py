"""Examples out of documents: titles, sentences and sections that ask, and what is left to answer them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

import fontes as ft
from fontes.core import Doc, InputError
from fontes.core.values import text_of
from fontes.train import Mining, document_examples

SENTENCES = ["The sea is deep and salty.", "Rivers carry the salt there.", "Rain falls upon the hills.", "So it goes."]
SEA = Doc("sea", " ".join(SENTENCES), "Why the sea is salty")
SECTIONS = ["The history of this town is long.", "Work\nPeople here make cloth\nand glass.", "A town has many things to see."]
TOWN = Doc("town", "\n\n".join(SECTIONS), "A town")


def many(count: int = 60) -> list[Doc]:
    letters = random.Random(0)
    words = ["".join(letters.choices("abcdefghiklmnoprstuv", k=7)) for _ in range(300)]

    def sentence(rng: random.Random) -> str:
        return " ".join(["The", *rng.sample(words, 8)]) + "."

    rngs = [random.Random(n) for n in range(count)]
    return [Doc(f"d{n:02}", " ".join(sentence(rng) for _ in range(6)), sentence(rng)) for n, rng in enumerate(rngs)]


def test_a_title_asks_and_the_text_alone_answers() -> None:
    result = document_examples([SEA, Doc("untitled", "Some text."), Doc("empty", " ", "A title")])
    (example,) = result.examples
    assert (example.topic, example.query) == ("sea", "Why the sea is salty")
    assert (example.positive.id, example.positive.text, example.negatives) == ("sea", SEA.text, ())
    assert result.left_out == {"no_title": 2}
    assert str(result).splitlines() == [
        "3 documents: 1 group of 1, 0 negatives (0.00 a group: 1 with 0)",
        "left out: 2 documents without title or text",
    ]


def test_a_text_that_begins_with_the_title_answers_without_it(tmp_path: Path) -> None:
    copies = [Doc("sea", f" why the SEA\nis salty {SEA.text}", SEA.title), Doc("alone", "A title", " A  title ")]
    other = Doc("salt", f"Why salt is salty. {SEA.text}", "Why salt is salty.")
    index = ft.Index.build([*copies, other], tmp_path / "i")
    result = document_examples(index, "title", index.bm25(), Mining(guard_duplicates=False))
    assert [example.positive.text for example in result.examples] == [SEA.text, SEA.text]
    assert {n.text for example in result.examples for n in example.negatives} == {SEA.text}
    assert result.left_out == {"no_title": 1}


def test_a_sentence_asks_and_the_document_without_it_answers() -> None:
    result = document_examples([SEA, Doc("short", "One sentence only is here.")], "cloze", keep=0, per_document=9)
    assert result.left_out == {"too_short": 1}
    # The last sentence has three words and asks nothing, but stays in the texts.
    assert {example.topic: example.query for example in result.examples} == {
        "sea#1": SENTENCES[0],
        "sea#2": SENTENCES[1],
        "sea#3": SENTENCES[2],
    }
    for n, example in enumerate(result.examples):
        rest = [sentence for m, sentence in enumerate(SENTENCES) if m != n]
        assert example.positive.text == " ".join([SEA.title, *rest])


def test_the_first_sentence_asks_and_the_rest_answers() -> None:
    result = document_examples([SEA, Doc("short", "One sentence only is here.")], "first", keep=0, per_document=9)
    (example,) = result.examples
    assert (example.topic, example.query) == ("sea#1", SENTENCES[0])
    assert example.positive.text == " ".join([SEA.title, *SENTENCES[1:]])
    # A first sentence of fewer than four words asks nothing, nor does the title.
    text = " ".join(["Oh no.", "All about the Sea.", *SENTENCES])
    (example,) = document_examples([Doc("sea", text, "All about\nthe sea.")], "first", keep=0).examples
    assert example.query == SENTENCES[0]


def test_another_finder_of_sentences_reads_texts_in_small_letters() -> None:
    pytest.importorskip("nupunkt")
    small = Doc("sea", SEA.text.lower(), SEA.title)
    with pytest.raises(InputError, match="1 document that is too short"):
        document_examples([small], "first")
    (example,) = document_examples([small], "first", sentences="nupunkt", keep=0).examples
    assert example.query == SENTENCES[0].lower()


class Writer:
    """Asks for the last word of a document, and for its first; nothing about a document without a title."""

    def questions(self, docs: Sequence[Doc], count: int) -> list[list[str]]:
        words = [doc.text.strip(".").split() for doc in docs]
        return [[f"{some[-1]}?", f"{some[0]}?"][:count] if doc.title else [] for doc, some in zip(docs, words, strict=True)]


def test_written_questions_ask_and_title_and_text_answer() -> None:
    result = document_examples([SEA, Doc("untitled", "Some text."), TOWN], Writer(), per_document=2)
    assert [(one.topic, one.query) for one in result.examples] == [
        ("sea#1", "goes?"),
        ("sea#2", "The?"),
        ("town#1", "see?"),
        ("town#2", "The?"),
    ]
    assert {one.positive.text for one in result.examples} == {text_of(SEA), text_of(TOWN)}
    assert str(result).splitlines()[1] == "left out: 1 document without a question"


def test_a_query_that_does_not_return_its_document_is_left_out(index: ft.Index) -> None:
    every = document_examples(index, "title").examples
    result = document_examples(index, "title", round_trip=index.bm25())
    # Twins have one title: the first hit of them stays.
    assert [one for one in every if one not in list(result.examples)] == [one for one in every if one.topic == "d07"]
    assert result.left_out == {"not_returned": 1}
    assert len(document_examples(index, "title", round_trip=index.bm25(), round_trip_rank=2).examples) == 61
    with pytest.raises(InputError, match="no example could be made of 1 document: 1 query whose document the round trip"):
        document_examples([SEA], "title", round_trip=index.bm25())


def test_examples_are_a_test_collection_of_their_documents(index: ft.Index) -> None:
    examples = document_examples(index, "title", limit=9).examples
    topics, qrels = examples.judged()
    assert {topic.id: topic.text for topic in topics.values()} == {one.topic: one.query for one in examples}
    assert ft.evaluate(index.bm25()(topics), qrels, ["RR@2"])["RR@2"] >= 0.5


def test_the_sentence_stays_in_one_text_of_ten() -> None:
    docs = many(400)
    examples = document_examples(docs, "cloze").examples
    texts = {doc.id: f"{doc.title} {doc.text}" for doc in docs}
    kept = [example for example in examples if example.positive.text == texts[example.positive.id]]
    # 40 of 400 on average, with a standard deviation of 6.
    assert len(examples) == 400
    assert 20 < len(kept) < 60
    assert all(example.query in example.positive.text for example in kept)
    assert not any(example.query in example.positive.text for example in examples if example not in kept)
    assert len({example.topic.partition("#")[2] for example in examples}) == 6
    whole = document_examples(docs, "cloze", keep=1).examples
    assert all(example.positive.text == texts[example.positive.id] for example in whole)


def test_a_section_between_blank_lines_asks_and_the_article_without_it_answers() -> None:
    result = document_examples([TOWN], "section", keep=0, per_document=3)
    assert [example.query for example in result.examples] == [" ".join(section.split()) for section in SECTIONS]
    assert [example.positive.text for example in result.examples] == [
        f"A town {SECTIONS[1]}\n\n{SECTIONS[2]}",
        f"A town {SECTIONS[0]}\n\n{SECTIONS[2]}",
        f"A town {SECTIONS[0]}\n\n{SECTIONS[1]}",
    ]
    spaced = Doc("town", f"\n \n{SECTIONS[0]}\n  \n\n{SECTIONS[1]}\r\n\r\n{SECTIONS[2]}\n\n", "A town")
    queries = [example.query for example in document_examples([spaced], "section", per_document=3).examples]
    assert queries == [example.query for example in result.examples]


@pytest.mark.parametrize("form", ["cloze", "section"])
def test_the_examples_of_a_document_depend_on_seed_and_document_alone(form: str, tmp_path: Path) -> None:
    docs = [Doc(doc.id, doc.text.replace(". ", ".\n\n"), doc.title) for doc in many()]
    first = document_examples(docs, form, per_document=2)
    again = document_examples(docs[::-1], form, per_document=2)
    assert sorted(map(repr, first.examples)) == sorted(map(repr, again.examples))
    assert list(first.examples)[8:10] == list(document_examples(docs[4:5], form, per_document=2).examples)
    assert document_examples(docs, form, per_document=2).examples.hash == first.examples.hash
    assert document_examples(docs, form, per_document=2, seed=1).examples.hash != first.examples.hash
    assert len(first.examples) == 120


def test_a_limit_draws_documents_by_seed_and_keeps_their_order() -> None:
    docs = many()
    some = document_examples(docs, limit=10).examples
    assert len(some) == 10
    assert [example.topic for example in some] == sorted(example.topic for example in some)
    assert {example.topic for example in some} == {
        example.topic for example in document_examples(docs[::-1], limit=10).examples
    }
    assert {example.topic for example in some} != {
        example.topic for example in document_examples(docs, limit=10, seed=1).examples
    }
    assert len(document_examples(docs, limit=1000).examples) == 60


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    docs = [*many(), Doc("twin", many()[7].text, many()[7].title)]
    return ft.Index.build(docs, tmp_path_factory.mktemp("index") / "i.index")


def test_negatives_come_from_a_stage_and_are_never_the_document_or_its_twin(index: ft.Index) -> None:
    mining = Mining(per_positive=3, ranks=(1, 20))
    result = document_examples(index, "cloze", index.bm25(), mining)
    assert len(result.examples) == 61
    for example in result.examples:
        ranking = index.bm25().search(ft.Topic("1", example.query), 20)
        texts = {doc.id: doc.text for doc in index.docs([example.positive.id, *(hit.id for hit in ranking)])}
        others = {texts[hit.id]: hit.id for hit in reversed(ranking) if texts[hit.id] != texts[example.positive.id]}
        expected = [hit.id for hit in ranking if hit.id in others.values()][:3]
        assert [n.id for n in example.negatives] == expected
        assert [n.text for n in example.negatives] == [
            f"{doc.title} {doc.text}" for doc in index.docs(n.id for n in example.negatives)
        ]
    assert {(pair.id, pair.of) for pair in result.duplicates} == {("d07", "twin"), ("twin", "d07")}
    assert result.to_dict()["settings"]["per_positive"] == 3


def test_negatives_of_titles_are_texts_without_titles_as_the_document_is(index: ft.Index) -> None:
    result = document_examples(index, "title", index.bm25(), limit=5)
    for example in result.examples:
        assert example.positive.text == index.doc(example.positive.id).text
        assert [n.text for n in example.negatives] == [doc.text for doc in index.docs(n.id for n in example.negatives)]
        assert len(example.negatives) == 4


def test_a_corpus_file_and_an_index_of_it_give_the_same(tmp_path: Path, index: ft.Index) -> None:
    ft.write_corpus(index.docs(index.ids), tmp_path / "c.jsonl")
    assert document_examples(tmp_path / "c.jsonl", "cloze").examples == document_examples(index, "cloze").examples
