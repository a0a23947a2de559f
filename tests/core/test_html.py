"""Values in notebooks: tables, trees and boxes, in which all text is escaped."""

from __future__ import annotations

from html.parser import HTMLParser

from support.toys import Ask, Find, Join, Model, Read, Shelf

from fontes.core import Doc, Explanation, Run, Topics
from fontes.core.html import table

EVIL = "<script>alert('x')</script>"


class Balanced(HTMLParser):
    """Fails on tags that are not closed in their order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class Library:
    fingerprint = "1"

    def docs(self, ids: object) -> list[Doc]:
        return [Doc(str(i), EVIL, "Title") for i in ids]  # type: ignore[attr-defined]


def run() -> Run:
    topics = Topics.of({f"t{n}{EVIL}": f"query {EVIL}" for n in range(30)})
    return Run.of({t: {f"d{EVIL}": 1.0, "e": 0.5} for t in topics}, topics)


def test_a_run_shows_its_topics_with_their_first_hits() -> None:
    html = run()._repr_html_()
    assert "<script>" not in html
    assert html.count("<details") == 20
    assert "10 more topics" in html
    assert Balanced(html).seen.count("table") == 20


def test_a_ranking_shows_titles_where_the_documents_are_known() -> None:
    plain = run()["t0" + EVIL]._repr_html_()
    known = run().with_(documents=Library())["t0" + EVIL]._repr_html_()
    assert "<script>" not in plain + known
    assert "Title &lt;script&gt;" in known
    assert "0.5000" in plain
    assert Balanced(plain).seen.count("tr") == Balanced(known).seen.count("tr") == 3


def test_columns_of_text_are_aligned_left_and_those_of_numbers_not() -> None:
    rows = [(1, "-0.5000", "1 spring & 2 wells", "3"), (2, "1,200.5", "2 springs", "none")]
    html = table(["rank", "score", "text", "value"], rows)
    assert '<th>rank</th><th>score</th><th style="text-align:left">text</th>' in html
    assert '<td>-0.5000</td><td style="text-align:left">1 spring &amp; 2 wells</td>' in html
    assert '<td style="text-align:left">none</td>' in html
    assert Balanced(table(["a"], [])).seen.count("td") == 0


def test_an_explanation_is_a_tree_that_folds() -> None:
    html = Explanation(1.5, EVIL, (Explanation(1.0, "a", (Explanation(0.5, "b"),)), Explanation(0.5, "c")))._repr_html_()
    assert "<script>" not in html
    assert Balanced(html).seen.count("details") == 2


def test_a_pipeline_is_drawn_as_boxes_one_inside_the_other() -> None:
    shelf = Shelf()
    html = (Ask() >> Join((0.5 * Find(shelf) + Find(shelf), Find(shelf))) >> Read(Model(EVIL)))._repr_html_()
    assert "<script>" not in html
    assert html.count("→") == 2
    assert Balanced(html).seen.count("span") == 2 + 8


def test_a_ranking_of_documents_without_texts_shows_ids_alone() -> None:
    class Statistics(Library):
        has_texts = False

    html = run().with_(documents=Statistics())["t0" + EVIL]._repr_html_()
    assert html == run()["t0" + EVIL]._repr_html_()
