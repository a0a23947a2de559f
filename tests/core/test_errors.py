"""What errors of the room say: which input is at fault, and what to do. And their messages, which may quote any file."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.errors import check_error
from support.toys import Ask, Find, Model, Read, Shelf, toys

import fontes as ft
from fontes.core import (
    Cut,
    Doc,
    FontesError,
    Hit,
    InputError,
    MissingExtraError,
    ParameterError,
    PipelineError,
    Qrels,
    Run,
    Topic,
    Topics,
)
from fontes.core.checks import check_whole
from fontes.core.expression import part, pipeline, tunable
from fontes.core.function import stage
from fontes.core.query import Group
from fontes.core.registry import Registry
from fontes.core.where import condition
from fontes.core.work import memory_size, work
from fontes.formats import read_corpus

SHELF = Shelf()
FIND, READ, TITLES = Find(SHELF), Read(Model("m")), Shelf("title", "1")
RUN = Run.of({"1": {"a": 2.0, "b": 1.0}, "2": {"a": 0.5}})
DATED = [Doc("a", "rain", "A", {"year": 2001}), Doc("b", "snow", "B", {"year": 2002})]
COLUMNS = {"year": "integer", "lang": "keyword", "open": "boolean", "tags": "keywords"}
COLUMNS |= {"born": "date", "score": "float", "abstract": "text", "nested": "mixed"}
Call = Callable[[], object]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with toys():
        yield


@each(
    ("call", "error", "names", "remedy"),
    [
        # topics, judgments, runs
        (lambda: Topics([Topic("1", "a"), Topic("1", "b")]), InputError, "topic '1' … twice", ""),
        (lambda: Topics.of(7), InputError, "int", "mapping"),
        (lambda: Topics.of([3]), InputError, "item 1 … int", ""),
        (lambda: Topics.of([("1", 2)]), InputError, "item 1", ""),
        (lambda: Topics.of({"qid": "1", "query": "a"}), InputError, "mapping of topics … 'qid' and 'query'", "a list of dicts"),
        (lambda: list(read_corpus({"_id": "a", "text": "b"})), InputError, "documents … '_id' and 'text'", "a list of dicts"),
        (lambda: Topics([Topic(7, "a")]), InputError, "Topic is 7", "Topic('7'"),
        (lambda: list(read_corpus([Doc(7, "a")])), InputError, "documents, item 1 … Doc is 7", ""),
        (lambda: Qrels([("1", "0", "a", 1), ("1", "0", "a", 2)]), InputError, "topic '1', document 'a' … 1 and 2", ""),
        (lambda: Qrels.of(5), InputError, "int", ""),
        (lambda: Run.of(5), InputError, "int", ""),
        (lambda: Run.of({"q": ["d1", "d2"]}), InputError, "topic 'q': 'd1' has no score", "pairs (document id, score)"),
        (lambda: Qrels.of([{"qid": "1", "docno": "a", "rel": "x"}]), InputError, "the qrels, item 1 … 'x' … 'rel'", ""),
        (lambda: Run.of({"q": {"b": float("nan")}}), InputError, "topic 'q', document 'b' … not a number", ""),
        (lambda: Run.of([("q", "b", 2.0), ("q", "b", 1.0)]), InputError, "topic 'q', document 'b' … twice", ""),
        (lambda: RUN.with_scores(np.array([1.0, 2.0, 1e39])), InputError, "topic '2', document 'a' … score", ""),
        (lambda: RUN.with_scores(np.array([1.0, 2.0, np.nan])), InputError, "topic '2', document 'a' … score", ""),
        (lambda: RUN.with_(topics=Topics.of({"3": "flu"})), InputError, "topics", "the ids of the run"),
        (lambda: RUN.with_(scores=[]), ParameterError, "scores", ""),
        (lambda: RUN.head(-1), ParameterError, "-1", ""),
        (lambda: RUN["1"].docs(), InputError, "no documents", "run.with_(documents=index)"),
        (lambda: RUN["1"][0].snippet, InputError, "hit 'a'", "run.with_(documents=index)"),
        (lambda: Hit("a", 1.0, 1).snippet, InputError, "hit 'a'", "run.with_(documents=index)"),
        (lambda: RUN.to_pandas(text=True), InputError, "documents", "run.with_(documents=index)"),
        (lambda: RUN["1"].to_pandas(text=True), InputError, "documents", "run.with_(documents=index)"),
        # stages
        (lambda: READ.search("flu"), PipelineError, "search", "from Topics to Run"),
        (lambda: READ.explain("x", "a"), PipelineError, "toy_read", ""),
        (lambda: (FIND >> READ).explain("x", "a"), PipelineError, "toy_read", ""),
        (lambda: (READ >> Cut(2)).explain("x", "a"), PipelineError, "explain", "from Topics to Run"),
        (lambda: (FIND >> READ).count("q"), PipelineError, "matches … toy_read", ""),
        (lambda: (FIND % 2).count("q"), PipelineError, "matches … toy_find", ""),
        (lambda: FIND.candidate_scores(RUN), PipelineError, "toy_find", ""),
        (lambda: Ask().candidate_scores(RUN), PipelineError, "toy_ask", ""),
        (lambda: FIND.with_(kk=1), ParameterError, "toy_find … 'kk'", "'k'"),
        (lambda: Ask().with_(k=3), ParameterError, "toy_ask … 'k'", "there is none"),
        (lambda: (Ask() >> FIND).with_(toy_fund__k1=1), ParameterError, "'toy_fund__k1'", "'toy_find__k1'"),
        (lambda: Registry[int]("fontes.nothing", "thing")["a"], ParameterError, "thing 'a'", "there is none"),
        (lambda: (FIND >> stage(takes=Run, gives=Run)(doubled)).text, PipelineError, "doubled", "Python function"),
        (lambda: stage(len, gives=int), PipelineError, "int", "Topics or Run"),
        (lambda: stage(3), PipelineError, "3", "a function"),
        # what fits
        (lambda: FIND >> FIND, PipelineError, "toy_find gives Run … toy_find takes Topics", ""),
        (lambda: Ask() >> Cut(5), PipelineError, "toy_ask gives Topics … cut takes Run", ""),
        (lambda: Ask() >> FIND >> Ask(), PipelineError, "toy_ask() >> toy_find() gives Run … toy_ask takes Topics", ""),
        (lambda: 2 * FIND >> FIND, PipelineError, "2 * toy_find() gives Run … toy_find takes Topics", ""),
        (lambda: Ask() >> READ + READ, PipelineError, "toy_ask gives Topics … + toy_read", "takes Run"),
        (lambda: FIND + Cut(3), PipelineError, "toy_find … Topics to Run … cut … Run to Run", ""),
        (lambda: Ask() % 5, PipelineError, "toy_ask gives Topics", "% k cuts a Run"),
        (lambda: 2 * Ask(), PipelineError, "toy_ask gives Topics", "* weights"),
        (lambda: FIND % 0, ParameterError, "not 0", "whole number from 1"),
        (lambda: FIND % -1, ParameterError, "not -1", "whole number from 1"),
        (lambda: FIND % 2.5, ParameterError, "not 2.5", "whole number from 1"),
        (lambda: FIND % "3", ParameterError, "not '3'", "whole number from 1"),
        # expressions with an index, indexes, systems
        (lambda: pipeline("toy_find()"), ParameterError, "column 1: toy_find", "index"),
        (lambda: pipeline('toy_find(index="titel")', indexes={"title": TITLES}), ParameterError, "'titel'", "'title'"),
        (lambda: pipeline("furst", SHELF, systems={"first": FIND}), ParameterError, "'furst'", "'first'"),
        (lambda: pipeline("TOY_FIND", SHELF), ParameterError, "'toy_find'", "toy_find()"),
        (lambda: part("toy_join(a, toy_find())", SHELF, systems={"a": RUN}), PipelineError, "toy_join … a run", ""),
        (lambda: tunable("toy_find(k1=tune())", SHELF)[0](k2=1), ParameterError, "'k2'", ""),
        (lambda: tunable("toy_find()", SHELF), ParameterError, "parameter", "tune"),
        (lambda: tunable("toy_find(k=tune())", SHELF), ParameterError, "column 12 … range … k", ""),
        (lambda: tunable("toy_find(k1=tune(3))", SHELF), ParameterError, "3", "as a list"),
        (lambda: tunable("toy_find(k1=tune(1, 2, 3, 4))", SHELF), ParameterError, "column 13", "tune()"),
        # numbers, and where work runs
        *((lambda n=n: check_whole("n", n, 2, 7), ParameterError, f"n … {n!r}", "2 to 7") for n in (True, 2.0, "2", 1, 8)),
        (lambda: check_whole("n", None, 2, 7), ParameterError, "n … None", "from 2 to 7"),
        (lambda: check_whole("n", np.float64(3), 2, 7), ParameterError, "n … 3.0", "from 2 to 7"),
        (lambda: work(threads=0).__enter__(), ParameterError, "threads … not 0", "at least 1"),
        (lambda: work(threads=1.5).__enter__(), ParameterError, "threads … 1.5", "from 1"),
        (lambda: work(threads=True).__enter__(), ParameterError, "threads … True", "from 1"),
        (lambda: work(memory="much").__enter__(), ParameterError, "memory … 'much'", "500M … 1024T"),
        (lambda: work(memory=0).__enter__(), ParameterError, "memory … 0", "2G"),
        (lambda: work(memory="2\u212a").__enter__(), ParameterError, "memory", "2G"),  # the sign for Kelvin
        (lambda: work(ray=3).__enter__(), ParameterError, "ray … 3", "address of a cluster"),
        (lambda: work(ray="").__enter__(), ParameterError, "ray … ''", "address of a cluster"),
        (lambda: work(progress=True).__enter__(), ParameterError, "progress … True", "ft.core.show"),
        (lambda: memory_size((1 << 50) + 1), ParameterError, "1125899906842625", "1024T"),
    ],
)
def test_an_error_names_its_input_and_the_remedy(call: Call, error: type[FontesError], names: str, remedy: str) -> None:
    check_error(call, error, names, remedy)


def doubled(run: Run) -> Run:
    return run


@each(
    ("text", "error", "names", "remedy"),
    [
        ("toy_fimd()", ParameterError, "column 1: … 'toy_fimd'", "'toy_find'"),
        ("toy_ask() >> toy_fimd()", ParameterError, "column 14: … 'toy_fimd'", "'toy_find'"),
        ("toy_find() >>\n  toy_fimd()", ParameterError, "column 17: … 'toy_fimd'", "'toy_find'"),
        ("toy_find(kk1=1)", ParameterError, "column 10: … toy_find … 'kk1'", "'k1'"),
        ("toy_find(k1='a')", ParameterError, "column 13: … toy_find … k1 … 'a'", "float"),
        ("toy_find(k1=True)", ParameterError, "k1 … True", "float"),
        ("toy_find(k=1.5)", ParameterError, "k … 1.5", "int"),
        ("toy_find(k1=-1)", ParameterError, "column 1: k1 … -1", "0 or more"),
        ("toy_find(1.0, k1=1.0)", ParameterError, "'k1' … twice", ""),
        ("toy_find(1.0, 3, 4, 5)", ParameterError, "toy_find", "3 arguments at most"),
        ("toy_read()", ParameterError, "column 1: toy_read … 'model'", ""),
        ("toy_find", ParameterError, "'toy_find' is a stage", "toy_find()"),
        ("toy_find() >> toy_ask()", PipelineError, "column 15: toy_find gives Run, but toy_ask takes Topics", ""),
        ("toy_find() % 0", ParameterError, "column 14: … not 0", "whole number from 1"),
        ("toy_find() * toy_find()", ParameterError, "* … (toy_find()) … (toy_find())", ""),
        ("toy_find() + 3", ParameterError, "+ … 3", ""),
        ("3 >> toy_find()", ParameterError, ">> … 3", ""),
        ("toy_find() - toy_find()", ParameterError, "column", ">>"),
        ("toy_find(k1=10**9)", ParameterError, "column", ">>"),
        ("toy_find() and toy_find()", ParameterError, "column 1", "names, calls, literals"),
        ("toy_find().k1", ParameterError, "column 1", "names, calls, literals"),
        ("toy_find(k1=f'{1}')", ParameterError, "column 13", "names, calls, literals"),
        ("toy_find(k1=1j)", ParameterError, "column 13", "names, calls, literals"),
        ("toy_find(k1=-(-1))", ParameterError, "column 13", "names, calls, literals"),
        ("toy_find()()", ParameterError, "column 1", "name of a stage"),
        ("(lambda: 1)()", ParameterError, "column", "name of a stage"),
        ("__import__('os').system('ls')", ParameterError, "column 1", "name of a stage"),
        ("__import__('os')", ParameterError, "'__import__'", ""),
        ("toy_find(**{})", ParameterError, "**", ""),
        ("toy_join(*x)", ParameterError, "* ", ""),
        ("toy_find(", ParameterError, "not an expression", ""),
        ("", ParameterError, "pipeline … empty", ""),
        ("1", ParameterError, "'1'", "a stage"),
        ("toy_model('m')", ParameterError, "toy_model", "a stage"),
        ("toy_find(k1=tune())", ParameterError, "tune()", "`tune`"),
        ("tune()", ParameterError, "tune()", "value of a parameter"),
        ("toy_find(index='other')", ParameterError, "'other'", "needs no name"),
        ("toy_find(k1=" + "9" * 5000 + ")", ParameterError, "pipeline", ""),
        ("(" * 300 + "1" + ")" * 300, ParameterError, "pipeline", ""),
        ("-" * 300 + "1", ParameterError, "pipeline", ""),
        ("toy_join(" * 150 + ")" * 150, ParameterError, "nested", ""),
        ("toy_find()" + " " * 30_000 + "% 3", ParameterError, "30,013", "20,000"),
        ("toy_find(k1=\0)", ParameterError, "pipeline", ""),
    ],
)
def test_a_pipeline_as_text_names_the_column_at_fault(text: str, error: type[FontesError], names: str, remedy: str) -> None:
    check_error(lambda: pipeline(text, SHELF), error, names, remedy)


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> ft.Index:
    return ft.Index.build(DATED, tmp_path_factory.mktemp("dated") / "x.index", separate=True)


@each(
    ("call", "names", "remedy"),
    [
        ("bm25(fields={title: 3})", "column 14", "strings … {'title': 3, 'text': 1}"),
        ("bm25(fields={**{}})", "mapping", "strings"),
        ("bm25(fields={'text': 3, 'text': 1})", "column 25 … 'text' … twice", ""),
        ("bm25(fields={'text'})", "column", "names, calls, literals"),
        ("bm25(fields=3)", "fields … 3", "{name: float}"),
        ("bm25(b='x')", "b … 'x'", "float or {name: float}"),
        ("bm25(fields={'text': 'x'})", "'text'", "0 or from"),
        ("bm25(fields={'text': {'title': 1}})", "'text'", "0 or from"),
        ("rm3(fb_docs={'text': 3})", "fb_docs … {'text': 3}", "int"),
        (lambda index: index.bm25().search(["red", "blue"]), "list", "many"),
        (lambda index: index.bm25().search(("red",)), "tuple", "many"),
        (lambda index: index.bm25().search(5), "int", "many"),
        (lambda index: index.bm25().search(None), "NoneType", "many"),
        (lambda index: index.bm25().search({"1": "red"}), "dict", "many"),
        (lambda index: index.search(["red"]), "list", "one query"),
        (lambda index: (index.bm25() >> index.rm3() >> index.bm25()).search(5), "int", "one query"),
        (lambda index: index.bm25()({"1": "rain"}).to_pandas(columns=["yaer"]), "'yaer'", "'year'"),
        (lambda index: index.bm25()({"1": "rain"})["1"].to_pandas(columns=["yaer"]), "'yaer'", "'year'"),
        (lambda index: index.bm25()({"1": "rain"}).to_pandas(columns=["score"]), "'score'", ""),
        (lambda index: index.bm25()({"1": "rain"}).to_pandas(columns="year"), "columns", "columns=['year']"),
    ],
)
def test_a_search_of_an_index_names_the_input_at_fault(dated: ft.Index, call: Any, names: str, remedy: str) -> None:
    check_error(lambda: pipeline(call, dated) if isinstance(call, str) else call(dated), ParameterError, names, remedy)


@each(
    ("text", "names", "remedy"),
    [
        ("yaer > 1", "character 1: … 'yaer'", "'year'"),
        ("year > 1 and text == 'a'", "character 14: … text", ""),
        ("abstract == 'a'", "character 1: 'abstract' … long texts", ""),
        ("nested == 'a'", "character 1: 'nested' … several types", "--columns nested=TYPE,year=integer,lang=keyword"),
        ("year == '2020'", "character 9: 'year' … integer … '2020'", "whole number"),
        ("year == True", "character 9: 'year' … integer", ""),
        ("year == -True", "character 9 … 'year'", "a whole number"),
        ("year", "character 1: 'year' … integer", "year == …".rstrip(" …")),
        ("year == None", "character 9: None", "year is None"),
        ("year is 3", "character 9: `is`", "None"),
        ("year < score", "character 8: two columns", ""),
        ("1 < 2", "character 1: no column", ""),
        ("year + 1 > 3", "character 1: no column", ""),
        ("year > 9223372036854775808", "character 8: … finite", "9,223,372,036,854,775,807"),
        ("score < 1e999", "character 9: … finite", ""),
        (f"year > {'9' * 5000}", "5000 digits", ""),
        ("born > '2020-13-01'", "character 8: 'born'", "a date"),
        ("tags == 'a'", "character 1: 'tags'", "'a' in tags"),
        ("tags in ('a', 'b')", "character 1: 'tags'", "'a' in tags or 'b' in tags"),
        ("'a' in lang", "character 8: 'lang' … keyword", ""),
        ("lang in 'cs'", "character 9:", "brackets"),
        ("lang in ('cs', 3)", "character 16: 'lang' … keyword", "a string"),
        ("lang > 2019", "'lang'", "--columns lang=integer"),
        ("lang == 5", "'lang'", "build the index with --columns lang=integer"),
        ("open > False", "character 1: 'open' … boolean", "equal or not"),
        ("year > > 3", "character 8: not an expression", ""),
        ("é and year == 'x'", "character 1: … 'é'", ""),
        ("lang == 'é' and yaer", "character 17: … 'yaer'", "'year'"),
        ("__import__('os').system('true')", "character 1:", "only columns, comparisons, in, is None, and, or, not"),
        ("[y for y in (1,)]", "character 1:", "only columns"),
        ("lang == f'{year}'", "character 9: 'lang' … keyword", "constant … a string"),
        ("", "filter … empty", ""),
        ("not " * 200 + "open", "nested more than 100 deep", ""),
        ("(" * 5000 + "open" + ")" * 5000, "where", ""),
        ("open or " * 20_000 + "open", "characters", ""),
    ],
)
def test_a_filter_as_text_names_the_character_at_fault(text: str, names: str, remedy: str) -> None:
    check_error(lambda: condition(text, COLUMNS), ParameterError, names, remedy)


def test_a_filter_of_an_index_without_columns_names_the_cause() -> None:
    check_error(lambda: condition("year > 3", {}), ParameterError, "the index has none", "metadata")


@each(
    ("values", "names", "remedy"),
    [
        ([], "query: … []", "object"),
        ({"must": {"term": "a"}}, "query.must: … {'term': 'a'}", "list of clauses"),
        ({"must": ["a"]}, "query.must[0]: … 'a'", "object"),
        ({"should": [{"term": 7}]}, "query.should[0].term: … 7", "string"),
        ({"should": [{"terms": "ab"}]}, "query.should[0].terms: … 'ab'", "list of strings"),
        ({"terms": ["a"], "phrases": ["b"]}, "query.phrases[0]: … 'b'", "object"),
        ({"terms": ["a"], "phrases": [{"term": "b"}]}, "query.phrases[0]: … {'term': 'b'}", "terms and offsets"),
        ({"terms": ["a"], "phrases": {}}, "query.phrases: … {}", "list of phrases"),
        ({"term": "a", "wieght": 2}, "query: … Term … 'wieght'", "'weight'"),
        ({"term": "a", "weight": -1}, "query.weight: … -1", "from 0 to 1,000,000"),
        ({"term": "a", "weight": float("nan")}, "query.weight: … nan", "from 0 to 1,000,000"),
        ({"term": "a", "weight": True}, "query.weight: … True", "from 0 to 1,000,000"),
        ({"terms": ["a", "b"], "offsets": [0]}, "query: … 2 terms and 1 offsets", ""),
        ({"terms": ["a"], "offsets": [-1]}, "query.offsets[0]: … -1", "from 0 to 1,000,000"),
        ({"terms": ["a"], "offsets": 0}, "query.offsets: … 0", "list of whole numbers"),
        ({"terms": ["a"], "width": 1.5}, "query.width: … 1.5", "from 0 to 1,000,000"),
        ({"musst": []}, "query: … Group … 'musst'", "'must'"),
    ],
)
def test_a_query_as_values_names_the_clause_at_fault(values: Any, names: str, remedy: str) -> None:
    check_error(lambda: Group.from_dict(values), InputError, names, remedy)


def of_frame(cls: Any, **columns: list[Any]) -> object:
    """Values of a class from a DataFrame."""
    value = cls(pytest.importorskip("pandas").DataFrame(columns))
    return list(value) if cls is read_corpus else value


@each(
    ("cls", "columns", "names", "remedy"),
    [
        (Topics.of, {"key": ["1"], "text": ["a"]}, "id of the topic … key, text", "call"),
        (read_corpus, {"paper": ["1"], "Intro": ["a"]}, "no id … 'paper', 'Intro'", "read_corpus"),
        (Run.of, {"qid": [1], "docno": [10.0], "score": [1.0]}, "row 1: … document id … 10.0", "astype(int)"),
        (Topics.of, {"qid": [1.5], "text": ["a"]}, "row 1: … topic id … 1.5", ""),
        (Topics.of, {"qid": [1], "text": [None]}, "row 1: … text of the topic … missing", ""),
        (Run.of, {"qid": [1], "paper": ["d"], "score": [1.0]}, "id of the document … qid, paper, score", ""),
        (Qrels.of, {"qid": [1], "paper": ["d"], "score": [1.0]}, "id of the document … qid, paper, score", ""),
        (Run.of, {"qid": [1], "docno": ["d"]}, "the score … qid, docno", ""),
        (Qrels.of, {"qid": [1], "docno": ["d"], "label": ["no"]}, "row 1: 'no' … 'label'", "grade"),
    ],
)
def test_a_data_frame_names_its_row_or_column_at_fault(
    cls: Any, columns: dict[str, list[Any]], names: str, remedy: str
) -> None:
    check_error(lambda: of_frame(cls, **columns), InputError, names, remedy)


def test_a_missing_value_of_a_data_frame_names_its_row() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"qid": [1, 2], "docno": [10, None], "score": [1.0, 2.0]}).convert_dtypes()
    check_error(lambda: Run.of(frame), InputError, "the DataFrame, row 2 … document id … missing")


@each("name", ["pandas", "polars"])
def test_a_library_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    check_error(getattr(RUN, f"to_{name}"), MissingExtraError, name, f"pip install 'fontes[{name}]'")


@each(
    ("content", "read"),
    [(content, read) for content in ("7.0", "7.5") for read in (lambda path: list(read_corpus(path)), Topics.read)],
)
def test_a_float_as_id_in_a_file_names_file_and_line(tmp_path: Path, content: str, read: Callable[[Path], object]) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"_id": {content}, "text": "a"}}')
    check_error(lambda: read(tmp_path / "x.jsonl"), InputError, f"x.jsonl, line 1 … id is {content}", "string … whole number")


def test_a_message_is_one_line_without_control_characters() -> None:
    assert str(FontesError("a\nb\x1b[0m\ud800")) == "a b\\x1b[0m\\ud800"
    assert str(FontesError("\n a \t\n \r\n b  c ")) == " a  b  c "
    assert str(FontesError.of_lines(["a\nb", "c"])) == "a b\nc"


def test_many_messages_are_the_first_the_last_and_a_number() -> None:
    assert str(FontesError.of_lines(map(str, range(50)))).split("\n") == [*map(str, range(50))]
    lines = str(FontesError.of_lines(map(str, range(300_000)))).split("\n")
    assert lines == [*map(str, range(48)), "… and 299,951 more", "299999"]


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    assert str(FontesError("a" * 2000)) == "a" * 2000
    message = str(FontesError("a" * 1500 + "b" * 1500))
    assert message == "a" * 1000 + " … " + "b" * 997
