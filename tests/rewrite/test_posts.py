"""Posts as plain sentences: handles, hashtags, addresses, emoji, signatures."""

from pathlib import Path

import fontes as ft
from fontes.core import Topics
from fontes.core.expression import pipeline
from fontes.rewrite import AsTyped, PlainPosts
from fontes.text.posts import parts_of

POST = "Hey @IlhanMN: no #PizzaVendingMachine 😂👍🏽 https://t.co/zBhFpic.twitter.com/z3 — Jim McGrath (@jgm41) July 12, 2016"


def test_each_part_of_a_post_is_treated_as_it_is_said() -> None:
    for settings, expected in [
        ({}, "Hey Ilhan MN: no Pizza Vending Machine Jim McGrath"),
        ({"handles": "drop", "hashtags": "drop"}, "Hey : no Jim McGrath"),
        ({"signature": "drop"}, "Hey Ilhan MN: no Pizza Vending Machine"),
        ({"signature": "keep"}, "Hey Ilhan MN: no Pizza Vending Machine — Jim McGrath (jgm 41) July 12, 2016"),
        ({"emoji": "names"}, "Hey Ilhan MN: no Pizza Vending Machine face with tears of joy thumbs up sign Jim McGrath"),
        ({"handles": "keep", "hashtags": "keep", "emoji": "keep", "urls": "keep", "signature": "keep"}, POST),
    ]:
        assert PlainPosts(**settings).plain(POST) == expected


def test_a_name_is_divided_where_its_parts_begin() -> None:
    for name, parts in [
        ("PizzaVendingMachine", "Pizza Vending Machine"),
        ("IlhanMN", "Ilhan MN"),
        ("FOX26Houston", "FOX 26 Houston"),
        ("GregAbbott_TX", "Greg Abbott TX"),
        ("USArmy", "US Army"),
        ("realDonaldTrump", "real Donald Trump"),
        ("ČeskáTelevize24", "Česká Televize 24"),
        ("covid", "covid"),
        ("_x_", "x"),
    ]:
        assert parts_of(name) == parts


def test_an_address_of_mail_and_a_dash_in_a_sentence_stay() -> None:
    for text in ("write to ann@example.org - now", "a — b (c) 2016", "it costs 5# or 3 @ 2", "Masks — yes (2020)"):
        assert PlainPosts().plain(text) == text


def test_a_signature_is_the_end_of_a_post_from_its_last_dash() -> None:
    for post, author in [
        ("Quote (@a) — B C (@d) January 6, 2020 ", "Quote (a) B C"),
        ("Quote — a-b — B-C (@d) 6 Jan. 2020", "Quote — a-b B-C"),
        ("Quote - B (@d)", "Quote B"),
        ("Quote — B (@d) said so", "Quote — B (d) said so"),
        ("Quote — B (@d) January 6, 2020   .", "Quote — B (d) January 6, 2020 ."),
    ]:
        assert PlainPosts().plain(post) == author


def test_a_post_that_would_be_empty_stays_and_the_first_text_is_kept_as_the_origin() -> None:
    topics = PlainPosts()(Topics.of({"1": "https://t.co/x", "2": "#MeToo now"}))
    assert [topic.text for topic in topics.values()] == ["https://t.co/x", "Me Too now"]
    assert topics["2"].origin is not None
    assert topics["2"].origin.text == "#MeToo now"


def test_it_is_a_stage_of_texts() -> None:
    stage = pipeline('plain_posts(emoji="names")', None)
    assert stage(Topics.of({"1": "#MeToo"}))["1"].text == "Me Too"
    assert stage.text == 'plain_posts(emoji="names")'


def test_a_run_of_plain_posts_gets_the_texts_as_typed_back(tmp_path: Path) -> None:
    index = ft.Index.build([ft.Doc("a", "me too"), ft.Doc("b", "other")], tmp_path / "i")
    run = (PlainPosts() >> index.bm25())(Topics.of({"1": "#MeToo", "2": "other"}))
    again = AsTyped()(run)
    assert [topic.text for topic in run.topics.values()] == ["Me Too", "other"]
    assert [topic.text for topic in again.topics.values()] == ["#MeToo", "other"]
    assert (again["1"].ids, again["1"].scores.tolist()) == (run["1"].ids, run["1"].scores.tolist())
    assert pipeline("plain_posts() >> bm25() >> as_typed()", index).text == "plain_posts() >> bm25(k1=0.9, b=0.4) >> as_typed()"
