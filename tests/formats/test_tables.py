"""Tables of topics, judgments and documents: columns go by their header."""

import csv
import io
from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core import Doc, InputError, Topic
from fontes.formats import read_corpus, read_qrels, read_topics

TWEETS = [
    ("t1", 'He said "covid, again" today', "abc1"),
    ("t2", "two\nlines; with a tab\there", "abc2"),
    ("t2", "two\nlines; with a tab\there", "abc3"),
]


def table(path: Path, header: str, rows: list[tuple[str, ...]], delimiter: str = "\t", end: str = "\n") -> Path:
    """The table as the csv module writes it."""
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if end == "\r" else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(header.split())
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode())
    return path


@each("end", ["\n", "\r\n", "\r"])
@each(("name", "delimiter"), [("t.tsv", "\t"), ("t.csv", ","), ("t.csv", ";"), ("t.csv", "\t"), ("t", ";")])
def test_one_table_gives_topics_and_judgments_by_its_header(tmp_path: Path, name: str, delimiter: str, end: str) -> None:
    path = table(tmp_path / name, "post_id tweet_text cord_uid", TWEETS, delimiter, end)
    assert list(read_topics(path).values()) == [Topic("t1", TWEETS[0][1]), Topic("t2", TWEETS[1][1])]
    assert read_qrels(path).to_dict() == {"t1": {"abc1": 1}, "t2": {"abc2": 1, "abc3": 1}}


@each(
    "header",
    ["qid query doc_id", "Query-ID Text PID", "_id question docno", "ID Title DocID", "topic text docno", "tweet_id claim pid"],
)
def test_names_of_columns_have_any_case(tmp_path: Path, header: str) -> None:
    path = table(tmp_path / "t.tsv", header, [("1", "one", "d1")])
    assert (dict(read_topics(path)), read_qrels(path).to_dict()) == ({"1": Topic("1", "one")}, {"1": {"d1": 1}})


@each("text", ["renew a national id", "topic", "passport-id"])
def test_a_first_row_that_begins_with_a_number_is_no_header(tmp_path: Path, text: str) -> None:
    path = tmp_path / "queries.tsv"
    path.write_text(f"7\t{text}\n8\train\n")
    assert [(topic.id, topic.text) for topic in read_topics(path).values()] == [("7", text), ("8", "rain")]
    assert [(doc.id, doc.text) for doc in read_corpus(path)] == [("7", text), ("8", "rain")]


def test_columns_stand_in_any_order_beside_others(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "lang narrative label docno query qid", [("en", "n", "2", "d", "q", "1")], ",")
    assert list(read_topics(path).values()) == [Topic("1", "q", "n")]
    assert read_qrels(path).to_dict() == {"1": {"d": 2}}


def test_beir_judgments_with_their_columns_in_another_order_are_read(tmp_path: Path) -> None:
    path = table(tmp_path / "q.tsv", "corpus-id score query-id", [("d", "0", "1"), ("e", "2", "1")])
    assert read_qrels(path).to_dict() == {"1": {"d": 0, "e": 2}}


def test_a_row_without_a_document_judges_nothing(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "id claim doc_id", [("1", "a", ""), ("2", "b", "d")], ",")
    assert (list(read_topics(path)), read_qrels(path).to_dict()) == (["1", "2"], {"2": {"d": 1}})


def test_between_tabs_a_quotation_mark_may_stand_anywhere_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('qid\tquery\n1\t"To be" or not\n2\t5" disks\n3\t"quoted ""word"""\n')
    assert [t.text for t in read_topics(tmp_path / "t.tsv").values()] == ['"To be" or not', '5" disks', 'quoted "word"']


@each("key", ["cord_uid", "doc_id", "docno", "pid", "DocNo", "Doc-ID", "ID", "_id"])
@each(("name", "delimiter"), [("c.csv", ","), ("c.csv", ";"), ("c.tsv", "\t"), ("c.txt", ";")])
def test_documents_have_their_id_under_the_usual_names(tmp_path: Path, key: str, name: str, delimiter: str) -> None:
    path = table(tmp_path / name, f"Year {key} TITLE Abstract", [("1999", "d 1", "t", "a, b; c")], delimiter)
    assert list(read_corpus(path)) == [Doc("d 1", "a, b; c", "t", {"Year": "1999"})]


def test_json_keys_have_any_case_too(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"DOCNO": 7, "Title": "t", "Text": "x", "Year": 1}\n')
    assert list(read_corpus(tmp_path / "c.jsonl")) == [Doc("7", "x", "t", {"Year": 1})]
    (tmp_path / "t.jsonl").write_text('{"QID": 7, "Query": "x"}\n')
    assert dict(read_topics(tmp_path / "t.jsonl")) == {"7": Topic("7", "x")}


PAPERS = "paper_id;Title;Abstract;Year\np1;Vitamin D;sun;2001\n"
OPTIONS = "--id paper_id --title Title --text Abstract"


@pytest.mark.parametrize(("name", "delimiter"), [("papers.csv", ";"), ("papers.csv", ","), ("papers.tsv", "\t")])
def test_the_error_of_unknown_columns_lists_them_and_its_line_works(tmp_path, monkeypatch, fontes, name, delimiter) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(PAPERS.replace(";", delimiter))
    code, _, error = fontes("index", name, "-o", "x.index")
    assert (code, "found 'paper_id', 'Title', 'Abstract', 'Year'" in error) == (1, True)
    line = f"fontes index {name} {OPTIONS} -o papers.index"
    assert line in error
    assert fontes(*line.split()[1:])[0] == 0
    assert ft.Index.open("papers.index").doc("p1") == Doc("p1", "sun", "Vitamin D", {"Year": "2001"})


def test_the_line_for_json_lines_works_too(tmp_path, monkeypatch, fontes) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my papers.jsonl").write_text('{"key": 5, "heading": "h", "kind": "k", "blurb": "the longest text"}\n')
    error = fontes("index", "my papers.jsonl", "-o", "x.index")[2]
    assert "fontes index 'my papers.jsonl' --id key --title heading --text blurb -o 'my papers.index'" in error
    arguments = ["--id", "key", "--title", "heading", "--text", "blurb", "-o", "my papers.index"]
    assert fontes("index", "my papers.jsonl", *arguments)[0] == 0
    assert ft.Index.open("my papers.index").doc("5").text == "the longest text"


def test_options_name_several_columns_and_the_same_is_said_in_python(tmp_path, fontes) -> None:
    path = table(tmp_path / "c.csv", "key intro body", [("1", "a", "b")], ",")
    arguments = ["--id", "key", "--text", "intro", "--text", "body"]
    assert fontes("index", path, *arguments, "-o", tmp_path / "c.index")[0] == 0
    expected = list(read_corpus(path, fields={"id": "key", "text": ["intro", "body"]}))
    assert [ft.Index.open(tmp_path / "c.index").doc("1")] == expected == [Doc("1", "a\nb")]


def test_fields_are_not_chosen_of_what_has_them_already(fontes, tmp_path) -> None:
    code, _, error = fontes("index", "sample:harbour", "--id", "x", "-o", tmp_path / "x")
    assert (code, "sample:harbour: fields are chosen for files" in error) == (1, True)
    corpus = read_corpus([("1", "a")])
    assert read_corpus(corpus) is corpus


def test_a_column_without_a_name_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(",id,text,\n0,a,x,\n,,,\n1,b,y,\n")
    assert list(read_corpus(tmp_path / "c.csv")) == [Doc("a", "x"), Doc("b", "y")]


def test_lines_that_end_in_cr_alone_are_lines_and_elsewhere_cr_is_a_character(tmp_path: Path) -> None:
    (tmp_path / "cr.csv").write_bytes(b'id,text\r1,"a\rb"\r\r2,c')
    assert list(read_corpus(tmp_path / "cr.csv")) == [Doc("1", "a\rb"), Doc("2", "c")]
    (tmp_path / "cr.tsv").write_bytes(b"1\tone\r2\ttwo\r")
    assert list(read_topics(tmp_path / "cr.tsv")) == ["1", "2"]
    (tmp_path / "lf.tsv").write_bytes(b"id\ttext\n1\ta\rb\n")
    assert list(read_corpus(tmp_path / "lf.tsv")) == [Doc("1", "a\rb")]
    (tmp_path / "bad.csv").write_bytes(b"id,text\r1,a\r2\r")


@each("content", ['id,"text\r\n', '"id,text\n1,x\n', '"""\n', "id,text\r1\r", '"a"b,c\n', "\ufeff,\n,\n"])
def test_a_header_of_csv_that_cannot_be_read_is_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.csv").write_bytes(content.encode())
    for reader in (read_corpus, read_topics, read_qrels):
        with pytest.raises(InputError) as caught:
            list(reader(tmp_path / "c.csv"))
        assert str(caught.value).startswith(str(tmp_path / "c.csv"))


@pytest.mark.parametrize("name", ["c.pkl", "c.pickle", "c.pkl.gz", "c.bin"])
def test_a_pickle_is_not_opened_and_the_advised_command_makes_json_lines(tmp_path, monkeypatch, name) -> None:
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"cord_uid": ["a"], "title": ["t"], "abstract": ["x"]})
    frame.to_pickle(name, compression="gzip" if name.endswith(".gz") else None)
    for reader in (read_corpus, read_topics, read_qrels, ft.read_run):
        with pytest.raises(InputError, match="a pickle, which Fontes does not open") as caught:
            reader(name)
    code = str(caught.value).partition('python -c "')[2].removesuffix('"')
    assert code.startswith("import pandas; pandas.read_pickle(")
    if not name.endswith("bin"):
        exec(code)
        assert list(read_corpus("c.jsonl")) == [Doc("a", "x", "t")]
