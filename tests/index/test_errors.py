"""What errors of an index say: the document, column or parameter at fault, and what to do. A refused build leaves nothing."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.ciff import ciff
from support.each import each
from support.errors import check_error

import fontes as ft
from fontes.core import Doc, FontesError, InputError, ParameterError
from fontes.formats import read_corpus
from fontes.index import Index
from fontes.index.columns.filters import filter_of

DOCS = [Doc("d1", "a geyser", "Springs", {"year": 2020, "lang": "en"}), Doc("d2", "a spring", "", {"place": "Iceland"})]
NAMED = [{"id": "d1", "text": "a geyser", "title": "Springs"}]


def of_column(value: object, declared: str) -> tuple[Any, dict[str, Any]]:
    """A document with a value, and the declared type of its column."""
    return [Doc("d0", "x", "", {"key": value})], {"columns": {"key": declared}}


@each(
    ("docs", "options", "error", "names", "remedy"),
    [
        *((DOCS, {"memory": m}, ParameterError, "memory", "500M or 2G") for m in ("lots", "0", 0, -5, "2X", "", "-1G")),
        *((DOCS, {"shards": s}, ParameterError, f"shards … {s}", "from 1 up") for s in (0, -1, 1.5)),
        *((DOCS, {"fields": f}, ParameterError, "fields", "a list of field names") for f in ("text", [], ())),
        (DOCS, {"fields": ["title", "abstract"]}, InputError, "'abstract'", "title, text, year, lang, place; choose"),
        ([("d1", "a geyser")], {"fields": ["title"]}, InputError, "no document has a text in title", "text; choose"),
        (lambda: read_corpus(NAMED, fields={"title": "headline"}), {}, InputError, "title in 'headline'", "text, title"),
        (DOCS, {"fields": ["text", "text"], "separate": True}, ParameterError, "fields", "differ from each other"),
        (DOCS, {"fields": [f"f{n}" for n in range(101)], "separate": True}, ParameterError, "separate fields", "100 at most"),
        (DOCS, {"positions": True, "analyzer": "english+words:1-2"}, ParameterError, "positions", "leave out its n-grams"),
        (DOCS, {"positions": True, "analyzer": "english+chars:3-5"}, ParameterError, "positions", "leave out its n-grams"),
        (DOCS, {"components": ["vectors"]}, ParameterError, "'vectors'", "built with the documents"),
        (DOCS, {"components": ["field"]}, ParameterError, "component 'field'", "'fields'"),
        (
            [{"_id": "a", "text": "x", "v": {"x": 1.0}}],
            {"vectors": "v", "separate": True},
            ParameterError,
            "(vectors)",
            "fields",
        ),
        ([("a", "x"), ("b", "x"), ("c", "x"), ("b", "y")], {}, InputError, "'b' … documents 2 and 4", ""),
        ([("\ud800", "x"), ("\udbff", "y")], {}, InputError, "documents 1 and 2", ""),
        ([Doc("d1", "x"), Doc("", "nobody")], {}, InputError, "document 2 … empty id", ""),
        ([Doc("d1", "x"), Doc("d2", "x", "", {"key": object()})], {}, InputError, "item 2, document 'd2': 'key'", "JSON"),
        ([Doc(5, "x")], {}, InputError, "5", "string"),
        ([Doc("d", None)], {}, InputError, "'d'", ""),
        ([Doc("d", "x", None)], {}, InputError, "'d'", ""),
        ([Doc(None, "x")], {}, InputError, "None", ""),
        ([Doc("d", b"x")], {}, InputError, "'d'", ""),
        ("nowhere.jsonl", {}, InputError, "nowhere.jsonl", "no such file"),
        ("sample:harbor", {}, InputError, "'harbor'", "harbour"),
        # columns
        (*of_column(1, "int"), ParameterError, "'key' … 'int'", "'integer'"),
        *(
            (*of_column("1/2/2020", f"date:{form}"), ParameterError, f"'key': '{form}'", "Python's codes")
            for form in ("", "%d", "%d/%m", "%q", "d/m/Y", "%")
        ),
        (*of_column("1/2/2020", "keyword:%Y"), ParameterError, "'keyword:%Y'", ""),
        *(
            (*of_column(value, declared), InputError, "document 'd0': … 'key'", f"of type {declared}")
            for declared, value in [
                *(("integer", value) for value in ("x", 1.5, 2**63, "\u0663")),
                *(("float", value) for value in ("\u0663.5", "1_000", "x")),
                ("date", "2020"),
                ("boolean", 1),
                ("keywords", [["a"]]),
                *(("date:%d/%m/%Y", value) for value in ("2021/13/45", "17.5.2021", "2020/12/25", "31/02/2020", "tomorrow")),
            ]
        ),
    ],
)
def test_a_refused_build_names_its_input_and_leaves_nothing(
    tmp_path: Path, docs: Any, options: dict[str, Any], error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: Index.build(docs() if callable(docs) else docs, tmp_path / "x", **options), error, names, remedy)
    assert list(tmp_path.iterdir()) == []


@each(
    ("use", "error", "names", "remedy"),
    [
        (lambda index: index.ordinal("d9"), InputError, "'d9' … x.index", ""),
        (lambda index: index.doc("d9"), InputError, "'d9' … x.index", ""),
        (lambda index: index.doc(7), ParameterError, "string, not 7", "write '7'"),
        (lambda index: index.bm25().explain("w1", 7), ParameterError, "string, not 7", "write '7'"),
        (lambda index: Index.build([], duplicates="replace"), ParameterError, "duplicates … 'replace'", "error or skip"),
        (lambda index: Index.build([], stemmer="porter"), ParameterError, "build … 'stemmer'", "'analyzer'"),
        (lambda index: index.docs(["d1", "d9"]), InputError, "'d9' … x.index", ""),
        (lambda index: index.analyzed(["d9"]), InputError, "'d9'", ""),
        (lambda index: index.facets("langs"), ParameterError, "'langs'", "'lang'"),
        (lambda index: index.facets("year", bins=0), ParameterError, "bins … 0", ""),
        (lambda index: index.delete("d1", where="year > 1"), ParameterError, "ids", "or a filter"),
        (lambda index: index.delete(where="yaer > 1"), ParameterError, "'yaer'", "'year'"),
        (lambda index: index.update({"d1": {}, "z": {}}), InputError, "'z'", ""),
        (lambda index: index.update({"d1": {"txt": "x"}}), InputError, "document 'd1' … 'txt'", "title, text, metadata"),
        (lambda index: index.update({"d1": {"text": None}}), InputError, "document 'd1' … text", "string"),
        (lambda index: index.update({"d1": {"metadata": [1]}}), InputError, "document 'd1' … metadata", "object"),
        (lambda index: index.update({"d1": {"metadata": {"year": "soon"}}}), InputError, "year", ""),
        (lambda index: index.update({"d1": "x"}), InputError, "document 'd1' … str", "title, text, metadata"),
        (
            lambda index: index.add([Doc("n", "x", "", {"year": "2020"})]),
            InputError,
            "document 'n': … 'year' … '2020'",
            "integer",
        ),
        (lambda index: index.state.require_positions(), ParameterError, "no positions", "fontes merge … --positions"),
        (lambda index: index.state.require_fields(), ParameterError, "no separate fields", "separate=True (--separate)"),
        (lambda index: filter_of(index.state, "lang > '2020-12-25'"), ParameterError, "lang", "--columns lang=date"),
        (lambda index: Index.open(index.path, analyzer="german"), ParameterError, "x.index … another analyzer", ""),
        (lambda index: Index.open(index.path, analyzer=str.split), ParameterError, "x.index … another analyzer", ""),
        (
            lambda index: Index.build(DOCS, index.path),
            InputError,
            "x.index is an index already",
            "overwrite=True (--overwrite)",
        ),
        (lambda index: ft.Index.build(DOCS, ray=True), FontesError, "path", "all its machines reach"),
    ],
)
def test_a_refused_use_of_an_index_names_its_input_and_changes_nothing(
    tmp_path: Path, use: Callable[[Index], object], error: type[FontesError], names: str, remedy: str
) -> None:
    index = Index.build(DOCS, tmp_path / "x.index")
    fingerprint = index.fingerprint
    check_error(lambda: use(index), error, names, remedy)
    assert Index.open(index.path).fingerprint == index.fingerprint == fingerprint


@each(
    ("use", "error", "names", "remedy"),
    [
        (lambda file: Index.build(file.parent, file.parent / "y"), InputError, "a folder", "name the file"),
        (lambda file: Index.build(file.parent / "none.ciff", file.parent / "y"), InputError, "none.ciff", "no such file"),
        (lambda file: Index.build(file, file.parent / "y", columns={"year": "integer"}), ParameterError, "no metadata", ""),
        (lambda file: Index.build(file, file.parent / "y", vectors="weights"), ParameterError, "no metadata", ""),
        (lambda file: Index.build(file, file.parent / "y", separate=True), ParameterError, "x.ciff … fields", "the documents"),
        (
            lambda file: Index.build(file, file.parent / "y", positions=True),
            ParameterError,
            "x.ciff … positions",
            "the documents",
        ),
        (lambda file: list(read_corpus(file)), InputError, "an inverted index in CIFF", ""),
    ],
)
def test_an_index_in_ciff_says_what_it_does_not_hold(
    tmp_path: Path, use: Callable[[Path], object], error: type[FontesError], names: str, remedy: str
) -> None:
    (tmp_path / "x.ciff").write_bytes(ciff([Counter(storm=2, sea=1)], names=["one"]))
    check_error(lambda: use(tmp_path / "x.ciff"), error, names, remedy)
    assert [path.name for path in tmp_path.iterdir()] == ["x.ciff"]
