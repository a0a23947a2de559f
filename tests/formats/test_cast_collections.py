"""The collections of TREC CAsT 2021: KILT's Wikipedia, The Washington Post, and several of them as one, with prefixes."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fontes import Doc, Index
from fontes.app.cli import app
from fontes.core import ParameterError
from fontes.formats import read_corpus, with_prefix

# After the structure of a record in KILT's README.
PAGE: dict[str, Any] = {
    "_id": "1101759",
    "wikipedia_id": "1101759",
    "wikipedia_title": "Email marketing",
    "text": [
        "Email marketing\n",
        "Email marketing is the act of sending a message.\n",
        "Section::::Types.\n",
        "Section::::Types.:By aim.\n",
        "BULLET::::- News\n",
        "BULLET::::2. Offers at 10:30, not a BULLET::::- of its own\n",
    ],
    "anchors": [{"text": "message", "href": "Message", "paragraph_id": 1, "start": 40, "end": 47}],
    "categories": "Marketing,Email",
    "history": {"revid": 906910893, "url": "https://en.wikipedia.org/w/index.php?title=Email%20marketing"},
    "wikidata_info": {"wikidata_id": "Q1136706"},
}
# After the structure that NIST describes, of versions 2 to 4.
ARTICLE: dict[str, Any] = {
    "id": "b2e89334-33f9-11e1-825f-dabc29fd7071",
    "article_url": "/sports/colleges/a-tale/2012/01/01/story.html",
    "title": "Danny Coale:  a tale",
    "author": "Mark Giannotto",
    "published_date": 1325376562000,
    "contents": [
        {"type": "kicker", "content": "Colleges", "mime": "text/plain"},
        {"type": "title", "content": "Danny Coale: a tale", "mime": "text/plain"},
        {"type": "byline", "content": "By Mark Giannotto", "mime": "text/plain"},
        {"type": "date", "content": 1325376562000, "mime": "text/plain"},
        {
            "type": "sanitized_html",
            "subtype": "paragraph",
            "mime": "text/html",
            "content": "NEW ORLEANS &mdash; Danny <i>Coale</i>s",
        },
        None,
        {
            "type": "image",
            "fullcaption": "A caption.",
            "imageURL": "https://img.washingtonpost.com/a.jpg",
            "mime": "image/jpeg",
        },
        {"type": "sanitized_html", "subtype": "pullquote", "mime": "text/html", "content": "A quote."},
        {"type": "sanitized_html", "subtype": "paragraph", "mime": "text/html", "content": 'He <a href="x">smiled</a>.\n'},
        {"type": "author_info", "name": "Mark Giannotto", "bio": "A reporter."},
    ],
    "type": "article",
    "source": "The Washington Post",
}


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def kilt(tmp_path: Path) -> Path:
    return lines(
        tmp_path / "kilt_knowledgesource.json", PAGE, {**PAGE, "wikipedia_id": 7, "wikipedia_title": None, "history": None}
    )


@pytest.fixture
def wapo(tmp_path: Path) -> Path:
    older = {**ARTICLE, "id": "old", "title": None, "author": "", "published_date": None, "article_url": None, "contents": None}
    return lines(tmp_path / "TREC_Washington_Post_collection.v4.jl", ARTICLE, older)


@pytest.fixture
def marco(tmp_path: Path) -> Path:
    path = tmp_path / "msmarco-docs.tsv"
    path.write_text("D59865\thttps://a.example/b\tA harbour\tThe harbour flooded.\n", encoding="utf-8")
    return path


def test_a_kilt_page_is_its_paragraphs_without_markup(kilt: Path) -> None:
    corpus = read_corpus(kilt)
    assert corpus.format == "kilt"  # type: ignore[union-attr]
    first, second = corpus
    text = (
        "Email marketing Email marketing is the act of sending a message. Types. Types. By aim. News "
        "2. Offers at 10:30, not a BULLET::::- of its own"
    )
    assert first == Doc("1101759", text, "Email marketing", {"url": PAGE["history"]["url"]})
    assert second == Doc("7", text, "", {})


def test_an_article_of_the_washington_post_is_its_paragraphs_without_tags(wapo: Path) -> None:
    corpus = read_corpus(wapo)
    assert corpus.format == "wapo"  # type: ignore[union-attr]
    first, second = corpus
    assert first == Doc(
        "b2e89334-33f9-11e1-825f-dabc29fd7071",
        "NEW ORLEANS — Danny Coales He smiled.",
        "Danny Coale: a tale",
        {
            "url": "https://www.washingtonpost.com/sports/colleges/a-tale/2012/01/01/story.html",
            "author": "Mark Giannotto",
            "section": "Colleges",
            "date": "2012-01-01",
        },
    )
    assert second == Doc("old", "", "", {})


def test_other_json_lines_are_read_as_before(tmp_path: Path) -> None:
    assert read_corpus(lines(tmp_path / "a.jsonl", {"id": "1", "contents": "a text"})).format == "jsonl"  # type: ignore[union-attr]


def test_such_files_are_cut_where_lines_end(kilt: Path) -> None:
    corpus: Any = read_corpus(kilt)
    parts = corpus.cut(100)
    assert len(parts) == 2
    assert [doc for part in parts for doc in part] == list(corpus)


# Prefixes


def test_a_prefix_stands_before_each_id_and_survives_cutting_and_other_processes(kilt: Path) -> None:
    corpus: Any = with_prefix(read_corpus(kilt), "KILT_")
    assert [doc.id for doc in corpus] == ["KILT_1101759", "KILT_7"]
    assert [doc.text for doc in corpus] == [doc.text for doc in read_corpus(kilt)]
    assert [doc.id for part in pickle.loads(pickle.dumps(corpus.cut(100))) for doc in part] == ["KILT_1101759", "KILT_7"]
    assert {form.name for _, form in corpus.pieces} == {"kilt as KILT_…"}
    assert [doc.id for doc in with_prefix([Doc("1", "a")], "X_")] == ["X_1"]


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_three_collections_become_one_index_with_the_ids_of_cast(kilt: Path, wapo: Path, marco: Path, tmp_path: Path) -> None:
    prefixes = [word for prefix in ("MARCO_", "KILT_", "WAPO_") for word in ("--id-prefix", prefix)]
    made = run("index", marco, kilt, wapo, *prefixes, "-o", tmp_path / "cast.index")
    assert made.exit_code == 0, made.exception
    index = Index.open(tmp_path / "cast.index")
    assert sorted(index.ids) == ["KILT_1101759", "KILT_7", "MARCO_D59865", f"WAPO_{ARTICLE['id']}", "WAPO_old"]
    assert index.doc("MARCO_D59865").title == "A harbour"
    one = run("index", kilt, "--id-prefix", "KILT_", "-o", tmp_path / "one.index")
    assert one.exit_code == 0, one.exception
    assert sorted(Index.open(tmp_path / "one.index").ids) == ["KILT_1101759", "KILT_7"]
    more = run("add", tmp_path / "one.index", marco, wapo, "--id-prefix", "M_", "--id-prefix", "W_")
    assert more.exit_code == 0, more.exception
    assert sorted(Index.open(tmp_path / "one.index").ids) == [
        "KILT_1101759",
        "KILT_7",
        "M_D59865",
        f"W_{ARTICLE['id']}",
        "W_old",
    ]
    packed = run("index", marco, "--id-prefix", "M_", "-o", tmp_path / "packed.index")
    assert packed.exit_code == 0, packed.exception
    assert list(Index.open(tmp_path / "packed.index").ids) == ["M_D59865"]


def test_another_number_of_prefixes_is_refused(kilt: Path, wapo: Path, marco: Path, tmp_path: Path) -> None:
    made = run("index", marco, kilt, wapo, "--id-prefix", "A_", "--id-prefix", "B_", "-o", tmp_path / "x.index")
    assert isinstance(made.exception, ParameterError)
    assert str(made.exception) == "there are 2 prefixes of ids for 3 parts; give one for all, or one for each"


def test_a_recipe_searches_several_collections(kilt: Path, wapo: Path, marco: Path, tmp_path: Path) -> None:
    topics = lines(tmp_path / "topics.jsonl", {"_id": "1_1", "text": "harbour flooded", "turns": [{"text": "harbour flooded"}]})
    command = ["recipe", "run", "cast2021", "--topics", topics, "-s", "automatic=raw()", "-s", "manual=None"]
    command += ["-s", "reranker=None", "-s", 'passages=passages(words=150, separator="-")', "-o", tmp_path / "out"]
    for path, prefix in ((marco, "MARCO_"), (kilt, "KILT_"), (wapo, "WAPO_")):
        command += ["--collection", path, "--id-prefix", prefix]
    made = run(*command)
    assert made.exit_code == 0, made.exception
    run_file = (tmp_path / "out/runs/document_runs/org_automatic_results_1000.v1.0.run").read_text()
    assert run_file.split()[2] == "MARCO_D59865"
    again = run(*command)
    assert again.exit_code == 0
    assert "an existing index is used" in again.stderr


def test_an_article_without_blocks_may_be_the_first_one(tmp_path: Path) -> None:
    corpus: Any = read_corpus(lines(tmp_path / "a.jl", {**ARTICLE, "contents": None}, ARTICLE))
    assert corpus.format == "wapo"
    assert [doc.title for doc in corpus] == ["Danny Coale: a tale"] * 2
    assert read_corpus(lines(tmp_path / "b.jl", {"id": "1", "text": "a page"})).format == "jsonl"  # type: ignore[union-attr]


def test_a_recipe_reads_files_of_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "docs.tsv").write_bytes("D1\tkrásný přístav\nD2\tpole\n".encode("cp1250"))
    topics = lines(tmp_path / "topics.jsonl", {"_id": "1_1", "text": "přístav", "turns": [{"text": "přístav"}]})
    command = [
        "recipe",
        "run",
        "cast2021",
        "--topics",
        topics,
        "-s",
        "automatic=raw()",
        "-s",
        "manual=None",
        "-s",
        "reranker=None",
    ]
    command += ["-s", "passages=passages(words=150)", "-o", tmp_path / "out", "--collection", tmp_path / "docs.tsv"]
    right, wrong = run(*command, "--encoding", "cp1250"), run(*command, "--encoding", "cp1252")
    assert right.exit_code == wrong.exit_code == 0, (right.exception, wrong.exception)
    indexes = sorted((tmp_path / "out").rglob("*.index"))
    texts = {Index.open(path).doc("D1").text for path in indexes if "D1" in Index.open(path).ids}
    assert texts == {"krásný přístav", "krásný přístav".encode("cp1250").decode("cp1252")}
