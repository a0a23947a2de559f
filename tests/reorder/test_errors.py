"""What errors of stages that reorder say: the column, document or parameter at fault, and what to write."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ciff import ciff
from support.each import each
from support.errors import check_error
from support.hashed_encoder import Hashed
from support.reordered import candidates

from fontes.core import FontesError, InputError, ParameterError, PipelineError
from fontes.core.expression import pipeline
from fontes.index import Index

Of = Callable[[Index], object]


@each(
    ("call", "names", "remedy"),
    [
        (lambda shop: shop.boost(), "boost", "a column or a condition"),
        (lambda shop: shop.boost(column="date", where="lang == 'cs'"), "boost", "a column or a condition"),
        (lambda shop: shop.boost(column="dat", half_life="1d"), "'dat'", "'date'"),
        (lambda shop: shop.boost(column="lang"), "'lang' holds text", "dates or numbers"),
        (lambda shop: shop.boost(column="date"), "dates", "half_life"),
        (lambda shop: shop.boost(column="date", half_life="3 months"), "half_life", '"180d" (h, d, w or y)'),
        (lambda shop: shop.boost(column="sold", half_life="3d"), "half_life … '3d'", "number above 0"),
        (lambda shop: shop.boost(column="date", half_life=0), "not 0", "above 0"),
        (lambda shop: shop.boost(column="date", half_life=1, origin="today"), "origin", "a date such as"),
        (lambda shop: shop.boost(column="sold", origin=3), "origin", "half_life"),
        (lambda shop: shop.boost(column="sold", half_life=3, log=True), "half_life and log", ""),
        (lambda shop: shop.boost(where="lang == 'cs'", log=True), "where", "a column"),
        (lambda shop: shop.boost(where="langs == 'cs'"), "'langs'", "'lang'"),
        (lambda shop: shop.boost(column="sold", by=math.inf), "by … inf", "number"),
        (lambda shop: shop.boost(column="sold", by=-1, multiply=True), "by … -1", "from 0 up"),
        (lambda shop: shop.mmr(lambda_=1.5), "mmr: lambda_ … 1.5", "from 0 to 1"),
        (lambda shop: shop.mmr(k=0), "k … 0", ""),
        (lambda shop: shop.mmr(encoder=Hashed())(candidates(shop)), "no vectors", ""),
        *(
            (lambda shop, w=w: shop.companions(weight=w), "companions: weight", "0 to 100")
            for w in (-1, 101, True, "1", math.nan)
        ),
        (lambda shop: shop.sort(column="maker"), "sort: … 'maker' holds text", "dates or numbers"),
        (lambda shop: shop.sort(column="dates"), "sort: … 'dates'", "'date'"),
        (lambda shop: shop.collapse(column="makers"), "collapse: … 'makers'", "'maker'"),
        (lambda shop: shop.collapse(column="maker", keep=0), "collapse: keep … 0", "from 1 up"),
        *((lambda shop, o=o: shop.bm25().search("tea", offset=o), "offset", "from 0 up") for o in (-1, 1.5, "2", None, True)),
        (lambda shop: (shop.bm25() >> shop.mmr()).search("tea", offset=-1), "offset … -1", "from 0 up"),
    ],
)
def test_a_parameter_at_fault_is_named(shop: Index, call: Of, names: str, remedy: str) -> None:
    check_error(lambda: call(shop), ParameterError, names, remedy)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda shop: shop.boost("date", half_life="10d")({"q": {"no": 1.0}}), InputError, "document 'no' … index", ""),
        (lambda shop: shop.boost("sold", multiply=True)({"q": {"a": -1.0}}), InputError, "document 'a': … -1", "multiply"),
        (
            lambda shop: shop.boost("balance", log=True)({"q": {"a": 1.0}}),
            InputError,
            "document 'a': its balance is -1.5",
            "log=True",
        ),
        (lambda shop: shop.sort("sold").count("mint"), PipelineError, "takes Run", ""),
        *(
            (lambda shop, s=stage: pipeline(f"bm25() >> {s}", shop).explain("tea", "nowhere"), FontesError, "nowhere", "")
            for stage in ('boost("sold")', 'sort("sold")', 'collapse("maker")', "mmr()")
        ),
    ],
)
def test_a_document_or_stage_at_fault_is_named(shop: Index, call: Of, error: Any, names: str, remedy: str) -> None:
    check_error(lambda: call(shop), error, names, remedy)


@pytest.fixture(scope="module")
def popular(tmp_path_factory: pytest.TempPathFactory) -> Index:
    rows = [{"id": "a", "text": "tea", "pop": 0.5, "price": 1.5}, {"id": "b", "text": "tea", "pop": 1e300, "price": math.inf}]
    return Index.build(rows, tmp_path_factory.mktemp("popular") / "x")


@each(
    ("parameters", "names", "remedy"),
    [
        ({"column": "pop"}, "its pop makes the score 1e+300, beyond 3.40282e+38", "log=True or a smaller by"),
        ({"column": "pop", "by": -1e300}, "its pop makes the score -inf", "log=True or a smaller by"),
        ({"column": "pop", "multiply": True}, "its pop makes the score 2e+300", ""),
        ({"where": "pop > 1", "by": 1e300}, "by=1e+300 makes the score 1e+300", "a smaller by"),
        ({"column": "pop", "half_life": 1.0, "by": 1e39}, "its pop makes the score 1e+39", "a smaller by"),
        ({"column": "price"}, "its price is inf", "finite values"),
    ],
)
def test_a_score_beyond_float32_names_document_and_column(
    popular: Index, parameters: dict[str, Any], names: str, remedy: str
) -> None:
    boost = popular.boost(**parameters)
    check_error(lambda: boost({"q": {"a": 1.0, "b": 2.0}}), InputError, f"topic 'q', document 'b': … {names}", remedy)


def test_an_index_that_lacks_columns_or_texts_says_so(tmp_path: Path) -> None:
    index = Index.build([("a", "tea")], tmp_path / "x.index")
    check_error(lambda: index.sort("date"), ParameterError, "'date'", "no columns")
    (tmp_path / "x.ciff").write_bytes(ciff([Counter(storm=2, sea=1), Counter(sea=1)], names=["one", "two"]))
    without_texts = Index.build(tmp_path / "x.ciff", tmp_path / "s.index")
    check_error(without_texts.mmr, ParameterError, "no texts", "encoder")
    both = index.bm25() + without_texts.bm25()
    check_error(lambda: both.count("mint"), PipelineError, "several indexes")
