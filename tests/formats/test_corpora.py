import gzip
from pathlib import Path

import pytest
from support.each import each
from support.standard_input import give_input

from fontes.core import Doc, InputError
from fontes.formats import read_corpus, write_corpus


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


BEIR = '{"_id": "1", "title": "A title", "text": "Some text.", "year": 1999}\n{"_id": "2", "title": "", "text": "More."}\n'
TWO = [Doc("1", "Some text.", "A title", {"year": 1999}), Doc("2", "More.")]


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "corpus.unknown"])
def test_beir_lines_become_documents_whose_other_keys_are_metadata(tmp_path: Path, name: str) -> None:
    assert list(read_corpus(put(tmp_path / name, BEIR))) == TWO


def test_an_object_under_metadata_is_spread_out(tmp_path: Path) -> None:
    path = put(tmp_path / "c.jsonl", '{"_id": "1", "text": "t", "metadata": {"url": "u"}}')
    assert list(read_corpus(path)) == [Doc("1", "t", "", {"url": "u"})]


@pytest.mark.parametrize("key", ["id", "docno", "doc_id"])
def test_pyserini_lines_have_contents_and_perhaps_a_title(tmp_path: Path, key: str) -> None:
    path = put(tmp_path / "c.json", f'{{"{key}": "d 1", "contents": "x"}}\n{{"{key}": 7, "title": "t", "contents": "y"}}')
    assert list(read_corpus(path)) == [Doc("d 1", "x"), Doc("7", "y", "t")]


def test_byte_order_mark_windows_line_ends_and_blank_lines_do_not_matter(tmp_path: Path) -> None:
    path = put(tmp_path / "c.jsonl", b"\xef\xbb\xbf" + BEIR.replace("\n", "\r\n\r\n  \r\n").encode())
    assert list(read_corpus(path)) == TWO


def test_null_title_and_text_become_empty(tmp_path: Path) -> None:
    assert list(read_corpus(put(tmp_path / "c.jsonl", '{"_id": "1", "title": null, "text": null}'))) == [Doc("1", "")]


def test_a_corpus_can_be_iterated_again_and_tells_how_far_it_has_read(tmp_path: Path) -> None:
    path = put(tmp_path / "c.jsonl.gz", "".join(f'{{"_id": "{i}", "text": "{i * i}"}}\n' for i in range(50_000)))
    corpus = read_corpus(path)
    assert (corpus.size, corpus.position) == (path.stat().st_size, 0)
    places = [corpus.position for _ in corpus]
    assert places == sorted(places)
    assert 0 < places[0] < places[-1] <= corpus.size
    assert corpus.position == corpus.size
    assert len(list(corpus)) == 50_000


def test_standard_input_is_jsonl_and_can_be_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    give_input(monkeypatch, BEIR.encode())
    corpus = read_corpus("-")
    assert (list(corpus), corpus.size, corpus.position) == (TWO, 0, 0)
    with pytest.raises(InputError, match="only once"):
        list(corpus)


def test_a_folder_of_jsonl_files_is_one_corpus_in_order_of_names(tmp_path: Path) -> None:
    put(tmp_path / "b.jsonl", '{"id": "3", "contents": "c"}')
    put(tmp_path / "a" / "part.jsonl.gz", BEIR)
    put(tmp_path / ".hidden.jsonl", "no JSON")
    put(tmp_path / "README", "about")
    corpus = read_corpus(tmp_path)
    assert [d.id for d in corpus] == ["1", "2", "3"]
    assert corpus.position == corpus.size


def test_a_beir_folder_gives_its_corpus(tmp_path: Path) -> None:
    put(tmp_path / "corpus.jsonl", BEIR)
    put(tmp_path / "queries.jsonl", '{"_id": "q", "text": "no document"}')
    assert list(read_corpus(tmp_path)) == TWO


@pytest.mark.parametrize("name", ["collection.tsv", "collection.tsv.gz", "collection.txt"])
def test_ms_marco_tsv_has_no_header_and_no_quotes(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / name, '0\tThe "first passage.\n1\tSecond\r\n')
    assert list(read_corpus(path)) == [Doc("0", 'The "first passage.'), Doc("1", "Second")]


def test_ms_marco_documents_have_url_title_and_body(tmp_path: Path) -> None:
    path = put(tmp_path / "docs.tsv", "D1\thttp://x\tA title\tA body\n")
    assert list(read_corpus(path)) == [Doc("D1", "A body", "A title", {"url": "http://x"})]


def test_a_table_with_a_header_may_have_commas_and_line_ends_in_quotes(tmp_path: Path) -> None:
    path = put(tmp_path / "c.csv", 'doc_id,title,abstract,year\n1,"A, b","two\nlines",1999\n2,,x,\n')
    assert list(read_corpus(path)) == [Doc("1", "two\nlines", "A, b", {"year": "1999"}), Doc("2", "x", "", {"year": ""})]
    path = put(tmp_path / "c.tsv", '\nid\ttext\n1\t"quoted ""word"""\n')
    assert list(read_corpus(path)) == [Doc("1", 'quoted "word"')]


def test_a_table_cell_may_be_longer_than_the_csv_module_allows_by_itself(tmp_path: Path) -> None:
    path = put(tmp_path / "c.csv", "id,text\n1," + "x" * 200_000)
    assert len(next(iter(read_corpus(path))).text) == 200_000


def test_fields_say_where_a_document_is_and_join_several(tmp_path: Path) -> None:
    path = put(tmp_path / "c.jsonl", '{"pmid": 5, "name": "n", "abstract": "a", "body": "b", "text": "other"}')
    corpus = read_corpus(path, fields={"id": "pmid", "title": "name", "text": ["abstract", "body"]})
    assert list(corpus) == [Doc("5", "a\nb", "n", {"text": "other"})]


TREC = """<?xml version="1.0"?>
<DOC>
<DOCNO> FT911-1 </DOCNO>
<HEADLINE>FT 14 MAY / A
headline</HEADLINE>
<DATE>1991</DATE>
<TEXT>
<P>First &amp; best.</P>

Second   line.
</TEXT>
</DOC>
<doc><docno>2</docno><title>T</title><text>One</text><text>Two</text></doc><DOC><DOCNO>3</DOCNO><DOCHDR>http
</DOCHDR><html><title>Page</title><script>var x</script><!-- note --><body>Body <b>bold</b></body></html></DOC>
"""


def test_trec_sgml_gives_headline_as_title_and_text_without_tags(tmp_path: Path) -> None:
    expected = [
        Doc("FT911-1", "First & best.\nSecond line.", "FT 14 MAY / A headline"),
        Doc("2", "One\nTwo", "T"),
        Doc("3", "Body bold", "Page"),
    ]
    assert list(read_corpus(put(tmp_path / "ft.sgml", TREC))) == expected
    assert list(read_corpus(put(tmp_path / "folder" / "ft1.gz", TREC.replace('<?xml version="1.0"?>', "")).parent)) == expected


WEB = """<DOC><DOCNO>1</DOCNO><DOCHDR>http://example.org/</DOCHDR>
<html><head><meta name="x"><title>Ferry &amp; times</title>
<SCRIPT language="JavaScript">function scroll(){ if (a<b) window.status="<title>loading</title>"; }</SCRIPT>
<style>body {margin:0}</style><!-- <title>old</title> --></head>
<body>The ferry <script/>leaves <!-- <script> -->at noon.<script>var y;</script> Late.</body></html></DOC>
<DOC><DOCNO>2</DOCNO><html><head><script>var margin=1;</script></head><body>No ferry.</body></html></DOC>
<DOC><DOCNO>3</DOCNO><HEAD>A headline</HEAD><TEXT>News. <style>p {}</style></TEXT></DOC>
<DOC><DOCNO>4</DOCNO><html><head><title>Open</title><body>A <script> without an end.</body></html></DOC>
"""


def test_the_title_of_a_web_page_is_its_title_and_scripts_and_styles_are_no_text(tmp_path: Path) -> None:
    assert list(read_corpus(put(tmp_path / "w.trec", WEB))) == [
        Doc("1", "The ferry leaves at noon. Late.", "Ferry & times"),
        Doc("2", "No ferry."),
        Doc("3", "News.", "A headline"),
        Doc("4", "A without an end.", "Open"),
    ]


@each("pump", ["<script>", "<!--", "-->", "<style>x", "</script>", "<title>"])
def test_a_web_page_is_read_in_linear_time(tmp_path: Path, pump: str) -> None:
    page = f"<DOC><DOCNO>1</DOCNO><html>{pump * (100_000 // len(pump))}</html></DOC>"
    assert [doc.id for doc in read_corpus(put(tmp_path / "w.trec", page))] == ["1"]


def test_trec_fields_choose_the_tags(tmp_path: Path) -> None:
    corpus = read_corpus(put(tmp_path / "a.sgml", TREC), fields={"title": "DATE", "text": ["HEADLINE", "TEXT"]})
    assert next(iter(corpus)) == Doc("FT911-1", "FT 14 MAY / A\nheadline\nFirst & best.\nSecond line.", "1991")


def test_a_folder_of_text_files_has_relative_paths_as_ids(tmp_path: Path) -> None:
    put(tmp_path / "b.txt", "Bee\n")
    put(tmp_path / "a" / "x y.txt", "Ex")
    put(tmp_path / "c.txt.gz", "Sea")
    assert list(read_corpus(tmp_path)) == [Doc("a/x y.txt", "Ex"), Doc("b.txt", "Bee\n"), Doc("c.txt.gz", "Sea")]
    assert list(read_corpus(tmp_path / "b.txt", format="text")) == [Doc("b.txt", "Bee\n")]


def test_any_iterable_becomes_documents() -> None:
    given = [Doc("1", "a"), {"_id": 2, "text": "b", "k": 0}, {"docno": "3", "contents": "c"}, ("4", "d"), (5, "T", "e")]
    expected = [Doc("1", "a"), Doc("2", "b", "", {"k": 0}), Doc("3", "c"), Doc("4", "d"), Doc("5", "e", "T")]
    assert list(read_corpus(given)) == expected
    assert given[1] == {"_id": 2, "text": "b", "k": 0}


def test_a_mapping_goes_from_id_to_text_or_as_beirs_to_title_and_text() -> None:
    assert list(read_corpus({"a": "rain", 2: "snow"})) == [Doc("a", "rain"), Doc("2", "snow")]
    beir = {"a": {"title": "T", "text": "rain"}, "b": {"text": "snow", "year": 2001}}
    assert list(read_corpus(beir)) == [Doc("a", "rain", "T"), Doc("b", "snow", "", {"year": 2001})]


def test_a_data_frame_becomes_documents() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"docno": ["1", "2"], "text": ["a", None], "year": [1, 2]})
    assert list(read_corpus(frame)) == [Doc("1", "a", "", {"year": 1}), Doc("2", "", "", {"year": 2})]


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_a_written_corpus_reads_back_the_same(tmp_path: Path, name: str) -> None:
    given = [*TWO, Doc("ž\u2028 3", 'tab\t "quote"\nline \ud800', "")]
    write_corpus(given, tmp_path / name)
    assert list(read_corpus(tmp_path / name)) == given


def test_a_key_chosen_for_one_part_is_no_other_part(tmp_path: Path) -> None:
    path = put(tmp_path / "c.jsonl", '{"_id": "1", "title": "a title", "headline": "a headline", "text": "a text"}\n')
    assert list(read_corpus(path, fields={"text": "title"})) == [
        Doc("1", "a title", "", {"headline": "a headline", "text": "a text"})
    ]
    both = [Doc("1", "a title", "a title", {"headline": "a headline", "text": "a text"})]
    assert list(read_corpus(path, fields={"text": "title", "title": "title"})) == both
