"""A first line that looks like names of columns is never a document or a topic in silence."""

import shlex
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core import Doc, InputError, Topic
from fontes.formats import read_corpus, read_topics

CLAIMS = "Nr\tClaim\tHeadline\n1\tThe moon is made of cheese and rocks.\tMoon\n2\tWater is wet in winter too.\tWater\n"
TWEETS = 'Nr,Tweet\n1,"cheese, and the moon"\n2,"wet, water"\n'
NAMES = [
    CLAIMS,
    "Nr\tTweet\n1\tshort\n2\tlonger one\n",
    "name\tdescription\nfox\tA fox is a small animal of the woods.\n",
    "#\tStatement\n1\tfox\n",
    "Nr.\tFrage\n1\tWas ist das?\n",
    "\tStatement\tSource\n0\tThe moon is cheese said he.\tTwitter\n",
    "číslo\ttvrzení\n1\tPraha leží na Vltavě.\n",
    "url\theading\tpassage\nhttp://x/1\tFox\tThe fox is red and small.\n",
    'key\tblurb\r\nx\t"the longest" text of them all here\r\n',
]
RECORDS = [
    "d1\tfox\nd2\tdog\n",
    "a\tfox\nb\tdog\n",
    "0\tThe first.\n1\tSecond\n",
    "D1\thttp://x\tA title\tA body\nD2\thttp://y\tB\tC\n",
    "alpha\tFox\nbeta\tDog\n",
    "doc-a\tFox\ndoc-b\tA very long text about many things here.\n",
    "Albert_Einstein\tAlbert Einstein was a physicist born in Ulm.\nMarie_Curie\tMarie Curie was one.\n",
    "x\tfox\n",
    "MARCO_D1\tfox\nMARCO_D2\tdog\n",
    "fox\tsupports\n1\tsupports\n2\trefutes\n",
    "Fox\tfox\n1\tdog\n",
    "A fox!\tDog\n1\tdog\n",
]


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@each("text", NAMES)
def test_names_of_columns_are_no_document(tmp_path: Path, text: str) -> None:
    path = put(tmp_path / "c.tsv", text)
    with pytest.raises(InputError, match=r"c\.tsv, line 1: .* look like names of columns, and not enough of them are known"):
        list(read_corpus(path))
    with pytest.raises(InputError, match=r"c\.tsv, line 1: .* look like names of columns"):
        read_topics(path)


@each("text", RECORDS)
def test_documents_without_a_header_are_read_as_before(tmp_path: Path, text: str) -> None:
    path = put(tmp_path / "c.tsv", text)
    assert len(list(read_corpus(path))) == text.count("\n")


def test_the_lines_of_the_error_work(tmp_path, monkeypatch, fontes) -> None:
    monkeypatch.chdir(tmp_path)
    put(Path("claims.tsv"), CLAIMS)
    code, _, error = fontes("index", "claims.tsv", "-o", "x.index")
    line = "fontes index claims.tsv --id Nr --title Headline --text Claim -o claims.index"
    assert (code, line in error, Path("x.index").exists()) == (1, True, False)
    assert fontes(*shlex.split(line)[1:])[0] == 0
    assert ft.Index.open("claims.index").doc("2") == Doc("2", "Water is wet in winter too.", "Water")
    put(Path("tweets.csv"), TWEETS)
    code, _, error = fontes("search", "claims.index", "--topics", "tweets.csv")
    assert (code, "'Nr', 'Tweet' look like names of columns" in error, "--id Nr --text Tweet" in error) == (1, True, True)
    code, out, _ = fontes("search", "claims.index", "--topics", "tweets.csv", "--id", "Nr", "--text", "Tweet")
    assert (code, [line.split()[:3] for line in out.splitlines()]) == (0, [["1", "Q0", "1"], ["2", "Q0", "2"]])


def test_columns_of_a_table_without_a_header_go_by_number(tmp_path: Path, fontes) -> None:
    path = put(tmp_path / "c.tsv", 'fox\tThe "fox" is small.\t7\ndog\tThe dog is not.\t8\n')
    expected = [Doc("7", 'The "fox" is small.'), Doc("8", "The dog is not.")]
    assert list(read_corpus(path, fields={"id": "3", "text": "2"})) == expected
    quoted = put(tmp_path / "c.csv", '7,"a, b"\n8,c\n')
    assert list(read_corpus(quoted, fields={"id": "1", "text": "2"})) == [Doc("7", "a, b"), Doc("8", "c")]
    assert list(read_topics(quoted, fields={"id": "1", "text": "2"}).values()) == [Topic("7", "a, b"), Topic("8", "c")]
    assert fontes("convert", "topics", path, tmp_path / "t.jsonl", "--id", "1", "--text", "2")[0] == 0
    assert [topic.text for topic in read_topics(tmp_path / "t.jsonl").values()] == ['The "fox" is small.', "The dog is not."]


def test_a_number_that_is_the_name_of_a_column_is_that_column(tmp_path: Path) -> None:
    path = put(tmp_path / "c.tsv", "2\t1\na\tb\n")
    assert list(read_corpus(path, fields={"id": "1", "text": "2"})) == [Doc("b", "a")]


def test_columns_of_topics_may_have_any_names(tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", "Nr;Tweet;cord_uid\n1;moon;d1\n1;moon;d2\n")
    fields = {"id": "Nr", "text": "Tweet"}
    assert read_topics(table, fields=fields) == {"1": Topic("1", "moon")}
    lines = put(tmp_path / "t.jsonl", '{"Nr": 1, "Tweet": "moon"}\n')
    assert read_topics(lines, fields=fields) == {"1": Topic("1", "moon")}
    whole = put(tmp_path / "t.json", '[{"Nr": 1,\n "Tweet": "moon"}]\n')
    assert read_topics(whole, fields=fields) == {"1": Topic("1", "moon")}


def test_one_table_is_topics_and_judgments_under_the_names_that_are_chosen(tmp_path: Path, fontes) -> None:
    table = put(tmp_path / "t.csv", "Nr;Tweet;cord_uid\n1;moon;d1\n")
    run = put(tmp_path / "x.run", "1 Q0 d1 1 1.0 x\n")
    code, out, _ = fontes("eval", table, run, "RR@5", "--id", "Nr")
    assert (code, "1.0000" in out) == (0, True)


def test_bars_divide_columns(tmp_path: Path) -> None:
    path = put(tmp_path / "c.txt", "docno|title|text|year\nd1|Fox, red|A fox; small|2019\n")
    assert list(read_corpus(path)) == [Doc("d1", "A fox; small", "Fox, red", {"year": "2019"})]
