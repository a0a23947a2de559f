"""Columns of tables: their types are guessed from all cells."""

from pathlib import Path

import pytest
from support.each import each

import fontes as ft
from fontes.core import Doc, InputError, ParameterError
from fontes.core.table import Cell
from fontes.index.columns.schema import CELLS, date_of_cell, joined_schema, kind_of_cells, widest

TABLE = (
    "id,text,year,price,day,us,ok,zip,few\n"
    "1,fox,2019,1.5,17.05.2019,05/06/2021,true,007,NA\n"
    "2,dog,2021,3,1.1.2020,05/07/2021,FALSE,110,4\n"
    "3,cat,,-2e3,,,,,\n"
)
TYPES = {"day": "date", "few": "integer", "ok": "boolean", "price": "float", "us": "keyword", "year": "integer"}
TYPES |= {"zip": "keyword"}


def ids(index: ft.Index, where: str) -> list[str]:
    return sorted(index.bm25(where=where).search("fox dog cat cow", k=9).ids)


@each(
    ("cells", "kind"),
    [
        (["1", "-20", "0"], "integer"),
        (["1", "2.5"], "float"),
        (["1", "1e3", "-0.5"], "float"),
        (["007", "110"], "keyword"),
        (["1,000", "2"], "keyword"),
        (["1_0"], "keyword"),
        (["٣"], "keyword"),
        (["9" * 19], "float"),
        (["9" * 40], "keyword"),
        (["1e999"], "keyword"),
        (["true", "False"], "boolean"),
        (["true", "1"], "keyword"),
        (["NA", "12", "n/a", "nan", "None"], "integer"),
        (["NA", "null"], "keyword"),
        (["NA", "x"], "keyword"),
        (["2020-05-17", "17. 5. 2020"], "date"),
        (["2020-05-17", "2020"], "keyword"),
        (["05/06/2021"], "keyword"),
        (["31.02.2020"], "keyword"),
        ([], "keyword"),
    ],
)
def test_the_type_of_a_column_is_one_that_all_cells_have(cells: list[str], kind: str) -> None:
    guessed = kind_of_cells(map(Cell, cells))
    assert CELLS.get(guessed, guessed) == kind


@each(
    "written",
    ["2020-05-17", "2020/5/17", "17.05.2020", "17.5.2020", "17. 5. 2020", "17 May 2020", "May 17, 2020", "17-May-2020"],
)
def test_dates_have_several_forms(written: str) -> None:
    assert date_of_cell(written) == 1_589_673_600_000_000


@each("written", ["17/05/2020", "05/17/2020", "17.13.2020", "5 2020", "May 2020", "17 Mai 2020", "20200517", ""])
def test_other_forms_are_no_dates(written: str) -> None:
    assert date_of_cell(written) is None


def test_columns_of_a_table_are_compared_as_what_their_cells_say(tmp_path: Path, fontes) -> None:
    (tmp_path / "c.csv").write_text(TABLE)
    code, out, _ = fontes("index", tmp_path / "c.csv", "-o", tmp_path / "c.index")
    types = ",".join(f"{name}={kind}" for name, kind in sorted(TYPES.items()))
    offer = "'us' looks like dates of the form %d/%m/%Y or %m/%d/%Y: --columns "
    assert (code, f"; columns {types} (--columns names others); {offer}" in out) == (0, True)
    index = ft.Index.open(tmp_path / "c.index")
    assert index.info()["columns"] == TYPES
    assert index.doc("1").metadata["year"] == "2019"  # as it is written
    assert ids(index, "year > 2019") == ["2"]
    assert ids(index, "price < 2") == ["1", "3"]
    assert ids(index, "day > '2019-12-31'") == ["2"]
    assert ids(index, "ok") == ["1"]
    assert ids(index, "few is None") == ["1", "3"]
    assert ids(index, "zip == '007'") == ["1"]
    types = "zip=integer,day=date,few=integer,ok=boolean,price=float,us=keyword,year=integer"
    with pytest.raises(ParameterError, match=f"not with 7; build the index with --columns {types} to compare numbers"):
        ids(index, "zip > 7")
    index.check(deep=True)


def test_what_is_added_has_the_types_of_the_columns(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(TABLE)
    index = ft.Index.build(tmp_path / "c.csv", tmp_path / "i")
    (tmp_path / "d.csv").write_text('id,text,year,day\n4,cow,2022,"May 3, 2022"\n5,cow,NA,\n')
    index.add(tmp_path / "d.csv")
    index.add([{"id": "6", "text": "cow", "year": 2023}])
    assert ids(index, "year > 2021 and year < 2023 and day == '2022-05-03'") == ["4"]
    index.merge()
    assert (ids(index, "year > 2021"), ids(index, "year is None")) == (["4", "6"], ["3", "5"])
    (tmp_path / "d.csv").write_text("id,text,year\n7,cow,unknown\n")
    with pytest.raises(InputError, match="document '7': its metadata 'year' is 'unknown', but the column is of type integer"):
        index.add(tmp_path / "d.csv")
    with pytest.raises(InputError, match="document '8': its metadata 'year' is '2020', but the column is of type integer"):
        index.add([Doc("8", "cow", "", {"year": "2020"})])  # a string that its author wrote


def test_strings_of_json_stay_strings(tmp_path: Path) -> None:
    docs = [Doc("1", "fox", "", {"year": "2019"}), Doc("2", "fox", "", {"year": "2020"})]
    assert ft.Index.build(docs, tmp_path / "i").info()["columns"] == {"year": "keyword"}
    mixed = [Doc("1", "fox", "", {"year": Cell("2019")}), Doc("2", "fox", "", {"year": "2020"})]
    assert ft.Index.build(mixed, tmp_path / "j").info()["columns"] == {"year": "keyword"}


def test_a_declared_date_takes_the_forms_too(tmp_path: Path) -> None:
    docs = [Doc("1", "fox", "", {"day": "17.05.2020"}), Doc("2", "fox", "", {"day": "N/A"})]
    index = ft.Index.build(docs, tmp_path / "i", columns={"day": "date"})
    assert ids(index, "day == '2020-05-17'") == ["1"]


@each(
    ("kinds", "kind"),
    [
        ({"integer cells", "float cells", "absent cells"}, "float cells"),
        ({"integer cells", "keyword"}, "keyword"),
        ({"integer cells", "boolean cells"}, "keyword"),
        ({"date cells", "absent cells"}, "date cells"),
        ({"date", "integer cells"}, "keyword"),
        ({"integer", "integer cells"}, "mixed"),
        ({"keywords", "boolean cells"}, "keywords"),
    ],
)
def test_parts_of_a_build_agree_about_a_type(kinds: set[str], kind: str) -> None:
    assert widest(kinds) == kind
    stored = {} if kind == "" else {"x": CELLS.get(kind, kind)}
    assert dict(joined_schema([[("x", one)] for one in sorted(kinds)]).types) == stored
