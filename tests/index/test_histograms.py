"""Histograms of columns, and which columns are worth a facet."""

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from support.each import each

from fontes import Doc, Index
from fontes.index.columns import facet_columns


def built(folder: Path, rows: list[dict[str, Any]]) -> Index:
    docs = [Doc(f"d{number}", "water", "", row) for number, row in enumerate(rows)]
    index = Index.build(docs[: len(docs) // 2 + 1], folder / "columns.index", threads=1)
    index.add(docs[len(docs) // 2 + 1 :])
    return index


DATES = {
    "a day": (datetime(2020, 5, 17), timedelta(days=1)),
    "a week": (datetime(2019, 12, 29), timedelta(days=7)),
    "a year": (datetime(2019, 2, 3), timedelta(days=380)),
    "decades": (datetime(1969, 7, 20), timedelta(days=20_000)),
    "all": (datetime(1, 1, 1), timedelta(days=3_652_058)),
}


@each("name", list(DATES))
@each("times", [False, True])
def test_each_bin_of_dates_counts_the_documents_between_its_ends(tmp_path: Path, name: str, times: bool) -> None:
    start, span = DATES[name]
    draw = random.Random(name)
    moments = [start + timedelta(days=draw.randrange(span.days), hours=times * draw.randrange(24)) for _ in range(200)]
    texts = [(moment.isoformat() + "Z") if times else moment.date().isoformat() for moment in [*moments, start]]
    index = built(tmp_path, [{"date": text} for text in texts] + [{}])
    bins = index.facets("date", bins=20)["date"]
    assert 1 <= len(bins) <= 20
    assert sum(bins.values()) == 201
    assert list(bins) == sorted(bins)
    for low, high in bins:
        where = f"date >= '{low}' and date <= '{high}'"
        assert len(index.bm25(where=where).search("water", 300)) == bins[low, high]
    assert next(iter(bins))[0] <= min(texts)
    assert list(bins)[-1][1] >= max(texts)


def test_bins_of_dates_are_days_months_quarters_or_years(tmp_path: Path) -> None:
    index = built(tmp_path, [{"date": "2019-12-31"}, {"date": "2021-02-03"}, {"date": "2021-03-31"}])
    of = {bins: list(index.facets("date", bins=bins)["date"]) for bins in (500, 20, 6, 3, 1)}
    assert of[500][0] == ("2019-12-31", "2019-12-31")
    assert of[20][:2] == [("2019-12-01", "2019-12-31"), ("2020-01-01", "2020-01-31")]
    assert of[6][-1] == ("2021-01-01", "2021-03-31")
    assert of[3] == [("2019-01-01", "2019-12-31"), ("2020-01-01", "2020-12-31"), ("2021-01-01", "2021-12-31")]
    assert of[1] == [("2000-01-01", "2049-12-31")]


@each("seed", range(12))
def test_each_bin_of_numbers_counts_the_documents_between_its_ends(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    wide = 10 ** draw.randrange(1, 15)
    whole = [draw.randrange(-wide, wide) for _ in range(60)]
    real = [round(draw.uniform(-1, 1) * 10.0 ** draw.randrange(-4, 9), 3) for _ in range(60)]
    index = built(tmp_path, [{"whole": a, "real": b} for a, b in zip(whole, real, strict=True)] + [{"whole": 1}])
    bins = index.facets("whole", bins=10)["whole"]
    assert 0 < len(bins) <= 10
    assert bins == {(low, high): sum(low <= each <= high for each in [*whole, 1]) for low, high in bins}
    assert sum(bins.values()) == 61
    of_real = index.facets("real", bins=10)["real"]
    assert 0 < len(of_real) <= 10
    assert of_real == {(low, high): sum(low <= each < high for each in real) for low, high in of_real}
    assert sum(of_real.values()) == 60


def test_bins_have_round_ends_and_none_is_left_out(tmp_path: Path) -> None:
    index = built(tmp_path, [{"year": 1987, "price": 0.3}, {"year": 2024, "price": 0.1}, {"year": 2024, "price": 0.75}])
    assert index.facets("year", bins=5)["year"] == {
        (1980, 1989): 1, (1990, 1999): 0, (2000, 2009): 0, (2010, 2019): 0, (2020, 2029): 2
    }  # fmt: skip
    assert index.facets("price", bins=4)["price"] == {(0.0, 0.2): 1, (0.2, 0.4): 1, (0.4, 0.6): 0, (0.6, 0.8): 1}
    assert index.facets("year", bins=1)["year"] == {(0, 4999): 3}
    one = index.bm25(where="year == 1987").search("water")
    assert one.facets("year", "price", bins=5) == {"year": {(1987, 1987): 1}, "price": {(0.3, 0.3): 1}}
    none = index.bm25(where="year == 1").search("water")
    assert none.facets("year", bins=5) == {"year": {}}


def test_whole_numbers_at_the_ends_of_their_type_and_floats_without_an_end_have_bins(tmp_path: Path) -> None:
    ends = [-(2**63) + 1, 2**63 - 1, 0]
    index = built(tmp_path, [{"n": n, "x": x} for n, x in zip(ends, (float("inf"), 1e308, -1e308), strict=True)])
    bins = index.facets("n", bins=10)["n"]
    assert bins == {(low, high): sum(low <= n <= high for n in ends) for low, high in bins}
    assert sum(bins.values()) == 3
    assert sum(index.facets("x", bins=10)["x"].values()) == 2


def test_facets_omit_identifiers_and_begin_with_numbers_and_dates(tmp_path: Path) -> None:
    rows = [
        {
            "a_title": f"Title {n}", "author": f"author {n % 20}",
            "doi": f"https://doi.example/{n}", "home": f"HTTP://x/{n % 3}",
            "pmid": 30_000 + n, "tags": [f"t{n % 4}", "all"],
            "when": f"2020-01-{n % 28 + 1:02}", "x": n / 7, "year": 2000 + n % 9,
            "yes": True, "mixed": "https://x y" if n else "https://x", "photo": f"https://x/{n}.JPG?w=9",
            "imageUrl": f"https://x/image/{n}",
        }
        for n in range(60)
    ]  # fmt: skip
    index = built(tmp_path, rows)
    assert facet_columns(index.state) == (
        ["when", "x", "year", "author", "home", "mixed", "tags", "yes"],
        ["doi", "home", "imageUrl", "photo"],
        ["imageUrl", "photo"],
    )
    empty = Index.build([Doc("1", "x")], tmp_path / "empty.index", threads=1)
    assert facet_columns(empty.state) == ([], [], [])
