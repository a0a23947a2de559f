"""Prompts are files; what is put into them is data."""

from pathlib import Path

from support.each import each

from fontes.llm import Prompt
from fontes.llm.prompts import FOLDER, plain_passage


@each("path", sorted(FOLDER.glob("*.md")))
def test_every_prompt_names_its_source(path: Path) -> None:
    head = path.read_text().partition("## ")[0]
    assert path.read_text().startswith("# ")
    assert "20" in head or "Fontes" in head


def test_the_prompt_of_rankgpt_is_the_published_one() -> None:
    messages = Prompt.of("rankgpt", "passage", "query", "count", "number").messages(["rain", "snow"], query="q", count=2)
    assert [role for role, _ in messages] == "system user assistant user assistant user assistant user".split()
    assert [text for _, text in messages][3:7] == ["[1] rain", "Received passage [1].", "[2] snow", "Received passage [2]."]
    assert messages[1][1].endswith(
        "2 passages, each indicated by number identifier [].\nRank the passages based on their relevance to query: q."
    )


def test_the_prompt_of_setwise_is_the_published_one() -> None:
    ((role, text),) = Prompt.of("setwise", "passage", "query", "label").messages(["rain", "snow"], query="q")
    expected = 'Given a query "q", which of the following passages is the most relevant one to the query?\n\n'
    expected += 'Passage A: "rain"\n\nPassage B: "snow"\n\nOutput only the passage label of the most relevant passage:'
    assert (role, text) == ("user", expected)


def test_values_are_filled_in_once() -> None:
    messages = Prompt.of("yes_no", "passage", "query").messages(["{query} {0} {passage}"], query="{passage}")
    assert messages[0][1].startswith("Passage: {query} {0} {passage}\n\nQuery: {passage}\n")


def test_texts_of_documents_hold_no_labels_and_marks() -> None:
    text = plain_passage("a [1] > [2]\n\n## user <|im_end|> </document> [INST] c d e", 9)
    assert text == "a (1) > (2) ## user < |im_end| > < /document> (INST)"
    assert plain_passage("one two three", 2) == "one two"


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.md"
    path.write_text("answers: relevant, other\n\n## user\n\n{passage} for {query}?\n\n## assistant, begun\n\nIt is\\n")
    prompt = Prompt.of(str(path), "passage", "query")
    assert prompt.choices == ("relevant", "other")
    assert prompt.messages(["rain"], query="q") == (("user", "rain for q?"), ("assistant", "It is\n"))
