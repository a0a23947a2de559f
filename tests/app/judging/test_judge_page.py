"""The page of judging, clicked through in Chromium by two judges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.judging import judged
from support.model_server import KEY, model_server
from support.serving import springs

import fontes as ft
from fontes.app.judging.judging import judge_pool

TOPICS = {"1": "hot spring water", "2": "oasis in the <b>desert</b>"}
pages = pytest.importorskip("support.pages")


@pytest.fixture
def session(browser: Any, tmp_path: Path) -> Iterator[tuple[Any, Any, dict[str, str]]]:
    """Opens signed-in pages; the store; the judges' tokens."""
    with judged(springs(tmp_path), tmp_path / "j.sqlite", TOPICS) as running:
        tokens = {name: running.service.add_judge(name) for name in ("anna", "Bořek N")}
        opened = Judges(browser, running.address, tokens)
        yield opened, running.service, tokens
        opened.close()


class Judges(pages.Pages):  # type: ignore[name-defined,misc]
    """Pages of judges, each in a browser of their own."""

    def __init__(self, browser: Any, address: str, tokens: dict[str, str]) -> None:
        super().__init__(browser, address)
        self.tokens = tokens

    def judge(self, name: str, **options: Any) -> Any:
        page = self.watched(**{"viewport": {"width": 1280, "height": 900}, **options})
        page.goto(f"{self.address}/judge")
        page.fill("#token", self.tokens[name])
        page.press("#token", "Enter")
        page.wait_for_selector(".topics li")
        return page


def graded_by_keys(page: Any, grades: dict[str, str]) -> None:
    """Grades all documents of the topic that is shown, by their titles or ids."""
    while True:
        page.wait_for_selector("#document")
        title = page.locator("#document h2").text_content()
        if title not in grades:
            assert title == "This topic is finished"
            return
        page.keyboard.press(grades[title])
        page.wait_for_function("title => document.querySelector('#document h2').textContent !== title", arg=title)


FIRST = {"Geysers": "3", "Hot springs": "2", "Karst": "0", "<i>Oasis</i>": "1", "Déjà vu": "0"}
SECOND = {**FIRST, "Geysers": "1", "Karst": "1"}


def test_two_judges_judge_differ_settle_and_take_the_qrels_away(session: Any, tmp_path: Path) -> None:
    judges, store, _ = session
    anna, other = judges.judge("anna"), judges.judge("Bořek N")
    for page, grades in ((anna, FIRST), (other, SECOND)):
        for text in TOPICS.values():
            page.click(f"a:has(bdi:text-is({text!r}))")
            graded_by_keys(page, grades)
            page.keyboard.press("t")
            page.wait_for_selector(".topics li")
        assert page.locator("#status").text_content() == "2 of 2 topics finished"
    anna.click("nav >> text=Agreement")
    anna.wait_for_selector(".differing li.one")
    differing = anna.locator(".differing li.one").all()
    assert {one.get_attribute("data-document") for one in differing} == {"s1", "s3"}
    assert anna.locator(".pairs dd").first.text_content() == f"{len(store.judgments('anna'))} documents"
    beside = anna.locator("li.one[data-document=s1] .beside li").all_text_contents()
    assert beside == ["Bořek N: 1", "anna: 3"]
    anna.keyboard.press("j")
    anna.keyboard.press("2")
    anna.wait_for_selector("[aria-pressed=true]")
    anna.click("li.one:last-child [data-grade='3']")
    anna.wait_for_selector("li.one:last-child [aria-pressed=true]")
    assert anna.locator("#status").text_content() == "2 disagreements, 0 not settled"
    assert sorted(grade for grade, _ in store.settled().values()) == [2, 3]
    anna.keyboard.press("t")
    with anna.expect_download() as download:
        anna.click("text=settled (BEIR)")
    download.value.save_as(tmp_path / "settled.tsv")
    settled = ft.Qrels.of(tmp_path / "settled.tsv")
    expected = {"s2": 2, "a/b?c=1": 1, "ü 5": 0} | {doc: grade for (_, doc), (grade, _) in store.settled().items()}
    assert settled["1"] == expected


def test_undo_shows_the_document_again_and_later_leaves_it_for_the_end(session: Any) -> None:
    judges, store, _ = session
    page = judges.judge("anna")
    page.click("li[data-topic='1'] .title a")
    page.wait_for_selector("#document h2")
    titles = [page.locator("#document h2").text_content()]
    page.keyboard.press("2")
    page.wait_for_function("title => document.querySelector('#document h2').textContent !== title", arg=titles[0])
    assert [one.grade for one in store.judgments()] == [2]
    page.keyboard.press("u")
    page.wait_for_function("title => document.querySelector('#document h2').textContent === title", arg=titles[0])
    assert store.judgments() == []
    page.keyboard.press("l")
    page.wait_for_function("title => document.querySelector('#document h2').textContent !== title", arg=titles[0])
    while (title := page.locator("#document h2").text_content()) != titles[0]:
        titles.append(title)
        page.click("[data-grade='0']")
        page.wait_for_function("title => document.querySelector('#document h2').textContent !== title", arg=title)
    assert len(titles) == len(store.pool("1"))


def test_notes_evidence_and_another_grade(session: Any) -> None:
    judges, store, _ = session
    page = judges.judge("anna")
    page.click("li[data-topic='1'] .title a")
    page.wait_for_selector("#document h2")
    first = page.locator("#document h2").text_content()
    page.keyboard.press("n")
    page.keyboard.type("why <b>1</b> 2 3")
    page.keyboard.press("Escape")
    graded_by_keys(page, FIRST)
    assert list(store.notes().values()) == ["why <b>1</b> 2 3"]
    page.keyboard.press("e")
    page.wait_for_selector(".judged li")
    assert page.locator(".judged .notes").all_text_contents() == ["why <b>1</b> 2 3"]
    for title in ("Geysers", "Hot springs"):
        page.check(f"[aria-label='Check {title}']")
    page.click("#group")
    page.wait_for_selector(".groups li")
    assert store.evidence("anna", "1") == [["s1", "s2"]]
    page.click("text=Geysers >> nth=-1")
    page.wait_for_selector("#document [aria-pressed=true]")
    page.keyboard.press("1")
    page.wait_for_selector(".judged li")
    assert {one.document: one.grade for one in store.judgments()}["s1"] == 1
    page.click("text=Remove")
    page.wait_for_selector(".groups:not(:has(li))", state="attached")
    assert store.evidence("anna", "1") == []
    assert first in FIRST


def test_evidence_is_grouped_by_keys_and_that_of_two_judges_stands_side_by_side(session: Any) -> None:
    judges, store, _ = session
    anna, other = judges.judge("anna"), judges.judge("Bořek N")
    for page, pair in ((anna, ("Geysers", "Hot springs")), (other, ("Geysers", "Karst"))):
        page.locator("li[data-topic='1'] .title a").press("Enter")
        graded_by_keys(page, {**FIRST, "Karst": "1"})
        page.keyboard.press("e")
        page.wait_for_selector(".judged input")
        for _ in page.locator(".judged input").all():
            page.keyboard.press("j")
            if page.evaluate("document.activeElement.ariaLabel").removeprefix("Check ") in pair:
                page.keyboard.press("Space")
        page.keyboard.press("g")
        page.wait_for_selector(".groups li")
    named = {judge: store.evidence(judge, "1") for judge in ("anna", "Bořek N")}
    assert named == {"anna": [["s1", "s2"]], "Bořek N": [["s1", "s3"]]}
    store.set_evidence("Bořek N", "1", [*named["Bořek N"], *named["anna"]])
    anna.click("nav >> text=Agreement")
    anna.wait_for_selector("[data-evidence='1']")
    topic = anna.locator("[data-evidence='1']")
    assert topic.locator("p").nth(1).text_content() == "1 of 2 groups in common"
    columns = topic.locator(".beside > li").all()
    assert [column.locator("bdi").first.text_content() for column in columns] == ["Bořek N", "anna"]
    assert columns[1].locator(".groups > li > .notes").all_text_contents() == ["also named by Bořek N"]
    assert columns[0].locator(".groups > li > .notes").all_text_contents() == ["also named by anna", "only this judge"]
    assert columns[1].locator(".together .kind").all_text_contents() == ["s1", "s2"]
    anna.keyboard.press("j")
    anna.keyboard.press("2")  # settles no group
    assert store.settled() == {}


def test_a_finished_topic_leads_to_the_next_and_the_list_back_to_where_one_was(session: Any) -> None:
    judges, store, _ = session
    judges.expected.append("404")
    page = judges.judge("anna")
    for document in store.pool("1"):
        store.judge("anna", "1", document, 1)
    page.goto(f"{judges.address}/judge#/judge/1")
    page.wait_for_selector("#further:focus")
    assert page.title() == "Topic 1 · Judge · Fontes"
    page.keyboard.press("Enter")
    page.wait_for_selector("#document .grades")
    assert page.locator(".need h1").text_content() == TOPICS["2"]
    page.keyboard.press("t")
    page.wait_for_selector("li[data-topic='2'] a:focus")
    for _ in store.pool("2"):
        store.judge("anna", "2", _, 1)
    page.goto(f"{judges.address}/judge#/judge/2")
    page.wait_for_selector("text=All topics are finished.")
    page.goto(f"{judges.address}/judge#/evidence/nothing")
    page.wait_for_selector(".problem")
    assert page.locator(".problem").text_content() == "There is no topic 'nothing'."
    assert page.locator("#content").text_content() == "Topics"


def test_what_is_known_of_a_document_is_in_words_and_a_kept_note_is_said(session: Any) -> None:
    judges, store, _ = session
    page = judges.judge("anna")
    page.goto(f"{judges.address}/judge#/document/1/s1")
    page.wait_for_selector("#document .metadata")
    assert page.locator("#document .metadata dd").all_text_contents() == ["2019", "hot"]
    page.keyboard.press("n")
    page.keyboard.type("a note")
    page.keyboard.press("Escape")
    page.wait_for_selector("#status:text-is('The note is saved.')")
    assert list(store.notes().values()) == ["a note"]
    for document in store.pool("1")[1:]:
        store.judge("anna", "1", document, 0)
    page.goto(f"{judges.address}/judge#/judge/1")
    page.wait_for_selector("#document h2:text-is('<i>Oasis</i>')")
    page.keyboard.press("l")
    page.wait_for_selector("#status:has-text('This is the only document left.')")


@pytest.mark.slow
def test_what_is_long_stays_in_its_place(session: Any) -> None:
    judges, store, _ = session
    store.note("anna", "1", "s1", "W" * 10_000)
    store.add_topics(ft.Topics([ft.Topic("long", "W" * 2_000, "N" * 10_000)]))
    store.add_pools({"long": ["s1"]}, "an index", "bm25()", 1)
    page = judges.judge("anna")
    assert len(page.locator("li[data-topic=long] .title a").text_content()) == 300
    for view in ("document/1/s1", "judge/long"):
        page.goto("about:blank")  # else the view before is there until this one has come
        page.goto(f"{judges.address}/judge#/{view}")
        for part in ("#document h2", ".need", "#note"):
            page.wait_for_selector(part)
        panel, note = (page.locator(each).bounding_box() for each in (".need", "#note"))
        assert panel["width"] < 320
        assert note["width"] < panel["width"]
        assert note["height"] < 250
    page.locator(".need summary").press("Enter")
    assert len(page.locator(".need details p").text_content()) == 10_000


def test_a_file_that_cannot_be_written_is_said_where_it_is_seen(session: Any) -> None:
    judges, store, _ = session
    judges.expected.append("409")
    for document in store.pool("1"):
        store.judge("anna", "1", document, 1)
    page = judges.judge("anna", viewport={"width": 1280, "height": 400})
    page.locator("text=anna (TREC)").click()
    page.wait_for_selector(".problem")
    assert page.locator(".problem").text_content().startswith("The document id 'ü 5' has white space in it")
    assert page.locator(".problem").evaluate("p => p.getBoundingClientRect().bottom > 0")


def test_a_typed_topic_gets_a_pool(session: Any) -> None:
    judges, store, _ = session
    page = judges.judge("anna")
    page.fill("#text", "caves in limestone")
    page.fill("#narrative", "any cave")
    page.click("text=Add topic")
    page.wait_for_selector("#document h2")
    assert page.locator(".need h1").text_content() == "caves in limestone"
    assert page.locator("#document h2").text_content() == "Karst"
    assert store.topics()["3"].narrative == "any cave"


def test_a_wrong_token_is_said_and_signing_out_forgets_the_right_one(session: Any) -> None:
    judges, _, _ = session
    judges.expected.append("401")
    page = judges.judge("anna")
    page.reload()
    page.wait_for_selector(".topics li")
    page.click("text=Sign out")
    page.wait_for_selector("#token")
    page.reload()
    page.fill("#token", "no-such-token")
    page.press("#token", "Enter")
    page.wait_for_selector(".problem")
    assert page.locator(".problem").text_content() == "Unknown token."


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(390, "dark"), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1440, "light"), (1920, "dark")))],
)
def test_axe_finds_nothing_in_judging_and_nothing_scrolls_sideways(session: Any, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="accessibility is checked with axe-core").Axe()
    judges, store, tokens = session
    for number, judge in enumerate(tokens):
        for topic in TOPICS:
            for document in store.pool(topic):
                if judge != "anna" or topic == "1":
                    store.judge(judge, topic, document, number + 1)
    store.set_evidence("anna", "1", [["s1", "s2"]])
    page = judges.judge("anna", viewport={"width": width, "height": 900}, color_scheme=scheme)
    for view, selector in VIEWS.items():
        page.goto(f"{judges.address}/judge#/{view}")
        page.wait_for_selector(selector)
        assert axe.run(page).response["violations"] == [], view
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view


VIEWS = {
    "topics": ".topics li",
    "judge/2": "#document .grades",
    "judge/1": "text=This topic is finished",
    "evidence/1": ".groups li",
    "compare": ".differing li.one",
    "document/1/s1": "#document [aria-pressed=true]",
}


def test_a_language_model_is_one_more_judge_whose_agreement_is_shown(session: Any, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("openai")
    judges, store, _ = session
    monkeypatch.setenv("FONTES_CACHE", str(tmp_path / "cache"))
    with model_server(lambda request, before: "It names a spring.\n##final score: 1") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.address)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        index = ft.Index.open(springs(tmp_path / "again"))
        judge_pool(store, index, ft.llm.LlmJudge("m"))
    anna = judges.judge("anna")
    anna.click("li[data-topic='1'] .title a")
    graded_by_keys(anna, FIRST)
    own = [one for one in store.judgments("anna") if one.topic == "1"]
    same = sum(one.grade == 1 for one in own)
    anna.keyboard.press("t")
    anna.wait_for_selector(".topics li")
    anna.click("nav >> text=Agreement")
    anna.wait_for_selector(".differing li.one")
    assert anna.locator(".pairs h2").all_text_contents() == ["anna and llm m"]
    assert anna.locator(".pairs dd").first.text_content() == f"{len(own)} documents"
    grades = anna.get_by_label("Grades of anna in rows, of llm m in columns").locator("td.same").all_text_contents()
    assert grades == ["0", str(same), "0", "0"]
    anna.click(".pairs summary")
    by_topic = anna.get_by_label("Agreement of anna and llm m by topic").locator("tr").last
    assert by_topic.locator("td").all_text_contents() == [str(len(own)), str(same)]
    assert "llm m: 1" in anna.locator("li.one .beside li").all_text_contents()[-1]
    assert "It names a spring." in anna.locator("li.one").first.text_content()
