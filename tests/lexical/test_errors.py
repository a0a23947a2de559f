"""What errors of lexical models say: the parameter, field, term or clause at fault, and what can be given."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.each import each
from support.errors import check_error

from fontes import Index, Run, Topic
from fontes.core import FontesError, InputError, ParameterError, PipelineError
from fontes.core.expression import pipeline
from fontes.core.query import Condition, Group, Phrase, Term
from fontes.lexical.retriever import plan_of

Of = Callable[[Index], object]
DOCS = [{"id": f"d{n}", "title": "desert", "text": f"w1 w{n} spring", "year": 2000 + n, "lang": "cs"} for n in range(4)]
FIELDS = "fields={'title': 3, 'text': 1}"
PHRASE = Topic("1", "", query=Group(should=(Phrase(("desert", "spring"), (0, 1)),)))
NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """An index with fields and columns, without positions."""
    return Index.build(DOCS, tmp_path_factory.mktemp("errors") / "x.index", separate=True)


def queried(*clauses: Any, must: tuple[Any, ...] = ()) -> Of:
    """A search by a query of these clauses."""
    return lambda index: index.bm25().search(Topic("1", "", query=Group(must=must, should=clauses)))


def weighted(weight: Any) -> Of:
    """Searches of two topics, of which the second has a term of this weight."""
    topics = [Topic("t1", "w1"), Topic("t2", "", weights={"w1": 1.0, "w2": weight})]
    return lambda index: (index.bm25()(topics), index.tfidf()(topics))


def nested(depth: int) -> Group:
    group = Group(should=(Term("a"),))
    for _ in range(depth):
        group = Group(must=(group,))
    return group


@each(
    ("call", "names", "remedy"),
    [
        # parameters of models
        (lambda index: index.bm25(k=0)("w1"), "k … 0", "from 1"),
        (lambda index: index.bm25(k=-1)("w1"), "k … -1", "from 1"),
        (lambda index: index.bm25(k=2.5)("w1"), "k … 2.5", "whole number"),
        (lambda index: index.bm25(k1="1.2"), "bm25: k1 … '1.2'", "float"),
        (lambda index: index.rm3(fb_docs="3"), "rm3: fb_docs … '3'", "int"),
        (lambda index: index.bm25(k=1.2), "k … 1.2", "k1=1.2"),
        (lambda index: index.bm25(k_1=1.2), "bm25 … 'k_1'", "'k1'"),
        (lambda index: index.bm25().with_(kk=1), "bm25 … 'kk'", "'k'"),
        (lambda index: index.tfidf().with_(kk=1), "tfidf … 'kk'", "'k'"),
        (lambda index: index.bm25(variant="lucine"), "'lucine'", "'lucene'"),
        (lambda index: pipeline('bm25(variant="lucen")', index), "'lucen'", "'lucene'"),
        (lambda index: pipeline("bm25(b=2)", index), "column 1: … b … 2", "between 0 and 1"),
        (lambda index: pipeline("bm25(k1='high')", index), "k1 … 'high'", "float or None"),
        (lambda index: pipeline("rm3() >> bm25(k=0)", index), "column 10: k … 0", "whole number"),
        (lambda index: pipeline("learned_sparse()", index), "holds texts", "vectors"),
        (lambda index: index.learned_sparse().search("cat"), "holds texts", "vectors"),
        *(
            (lambda index, c=changes, use=use: use(index.bm25(), c), names, remedy)
            for changes, names, remedy in [
                ({"variant": "bm26"}, "'bm26'", "there are lucene"),
                ({"b": 1.01}, "b … 1.01", "between 0 and 1"),
                ({"b": -0.1}, "b … -0.1", "between 0 and 1"),
                ({"b": NAN}, "b … nan", "between 0 and 1"),
                ({"k1": -0.5}, "k1 … -0.5", "0 or more"),
                ({"k1": INF}, "k1 … inf", "0 or more"),
                ({"k1": NAN}, "k1 … nan", "0 or more"),
                ({"k3": -1}, "k3 … -1", "0 or more, or None"),
                ({"k3": NAN}, "k3 … nan", "0 or more, or None"),
                ({"lengths": "bytes"}, "lengths … 'bytes'", "'exact' or 'lucene'"),
                ({"delta": 1.0}, "lucene … delta", "plus and l"),
                ({"variant": "plus", "delta": NAN}, "delta … nan", ""),
                ({"variant": "plus", "delta": -1.0}, "delta … -1", ""),
                ({"variant": "l", "delta": INF}, "delta … inf", ""),
                ({"variant": "okapi", "epsilon": NAN}, "epsilon … nan", ""),
            ]
            for use in (
                lambda stage, changes: stage.with_(**changes)("w1"),
                lambda stage, changes: stage.with_(**changes).explain("w1", "d1"),
                lambda stage, changes: stage.with_(**changes).check(),
            )
        ),
        (lambda index: index.tfidf().with_(norm="l1")("w1"), "norm … 'l1'", "'l2' or None"),
        (lambda index: index.tfidf(sublinear_tf=True, relative_tf=True), "sublinear_tf … relative_tf", ""),
        (lambda index: index.ql(smoothing="laplace"), "smoothing … 'laplace'", "'dirichlet' or 'jelinek-mercer'"),
        (lambda index: index.ql(mu=0), "mu … 0", "above 0"),
        (lambda index: index.ql(mu=-1), "mu … -1", "above 0"),
        (lambda index: index.ql(mu=INF), "mu … inf", "above 0"),
        (lambda index: index.ql(lambda_=0.0), "lambda_ … 0.0", "between 0 and 1"),
        (lambda index: index.ql(lambda_=1.0), "lambda_ … 1.0", "between 0 and 1"),
        (lambda index: index.ql(lengths="bytes"), "lengths … 'bytes'", "'exact' or 'lucene'"),
        (lambda index: index.ql(k=0), "k … 0", "whole number"),
        (lambda index: index.ql(threads=-1), "threads … -1", "at least 1"),
        (lambda index: index.rm3(fb_docs=0), "fb_docs … 0", "1 or more"),
        (lambda index: index.rm3(fb_terms=0), "fb_terms … 0", "1 or more"),
        (lambda index: index.rm3(original_weight=1.1), "original_weight … 1.1", "0 and 1"),
        (lambda index: index.rm3(original_weight=-0.1), "original_weight … -0.1", "0 and 1"),
        (lambda index: index.bm25(phrase_idf="all"), "phrase_idf … 'all'", "'own' or 'sum'"),
        (lambda index: index.sdm(weights=(1, 2)), "weights", "three numbers"),
        (lambda index: index.sdm(window=1), "window … 1", "from 2 up"),
        (lambda index: index.tolerance("on"), "tolerance: … 'on'", "auto, typing"),
        (lambda index: index.tolerance(weight=2), "weight … 2", "from 0 to 1"),
        (lambda index: index.query(operator="nad"), "'nad'", "'and'"),
        (lambda index: index.query(max_expansions=0), "max_expansions … 0", "from 1 up"),
        (lambda index: index.query(fixed=-1), "fixed … -1", "from 0 up"),
        (lambda index: index.query(strict="yes"), "strict … 'yes'", "True or False"),
        # fields
        (lambda index: index.bm25(fields={"titel": 3}), "'titel'", "'title'"),
        (lambda index: index.tfidf(fields={"title": 3, "body": 1}), "'body'", "'text'"),
        (lambda index: index.bm25(fields={"title": -1}), "'title' … -1", "0 or from 1e-06"),
        (lambda index: index.ql(fields={"title": NAN}), "'title' … nan", "0 or from 1e-06"),
        (lambda index: index.ql(fields={"title": INF}), "'title' … inf", "0 or from 1e-06"),
        (lambda index: index.bm25(fields={"title": "3"}), "'title' … '3'", "0 or from 1e-06"),
        (lambda index: index.bm25(fields={"title": True}), "'title' … True", "0 or from 1e-06"),
        (lambda index: index.bm25(fields={"title": 0, "text": 0}), "all fields … 0", "fields="),
        (lambda index: index.bm25(fields={}), "fields … {}", FIELDS),
        (lambda index: index.bm25(fields="title"), "fields … 'title'", FIELDS),
        (lambda index: index.bm25(b={"title": 0.5}), "b by field", "fields="),
        (lambda index: index.bm25(fields={"title": 1}, b={"titel": 0.5}), "'titel'", "'title'"),
        (lambda index: index.bm25(fields={"title": 1}, b={"title": 1.5}), "b … 1.5", "between 0 and 1"),
        (lambda index: index.bm25(fields={"title": 1}, b={"title": "x"}), "'title' … 'x'", "from 0 to 1"),
        (lambda index: index.bm25(combine="sum"), "combine='sum'", "fields="),
        (lambda index: index.bm25(fields={"title": 1}, combine="max"), "combine … 'max'", "'frequencies' or 'sum'"),
        (lambda index: index.tfidf(fields={"title": 0.5}, sublinear_tf=True), "sublinear_tf", "from 1 up, or 0"),
        (
            lambda index: pipeline("bm25() % 5 >> text_scorer(bm25(fields={'title': 1}))", index),
            "text_scorer",
            "bm25 without fields",
        ),
        # filters and positions
        (lambda index: pipeline("bm25(where=\"lung == 'cs'\")", index), "column 1: where, character 1: … 'lung'", "'lang'"),
        (lambda index: index.tfidf(where="year=='x'").search("w1"), "character 7: 'year' … integer", ""),
        (lambda index: pipeline("bm25(where=3)", index), "where … 3", "str or None"),
        (lambda index: index.sdm(), "no positions", "fontes merge … --positions"),
        (lambda index: index.bm25().search(PHRASE), "no positions", "fontes merge … --positions"),
        (lambda index: index.query(strict=True).parse('"w1 spring"'), '"w1 spring" … no positions', "--positions"),
        (lambda index: index.query(strict=True)({"a": "w1", "b": 'w1 "w2'}), "topic 'b': query, character 4", "not closed"),
        (lambda index: index.query(strict=True)([Topic("a", "yaer:2020")]), "character 1: … 'yaer'", "'year'"),
        (queried(must=(Condition("yaer > 3"),)), "'yaer'", "'year'"),
    ],
)
def test_a_parameter_or_field_at_fault_is_named(index: Index, call: Of, names: str, remedy: str) -> None:
    check_error(lambda: call(index), ParameterError, names, remedy)


@each(
    ("call", "error", "names", "remedy"),
    [
        (lambda index: index.bm25().explain("w1", "nobody"), InputError, "'nobody'", ""),
        (lambda index: Run.of({"q": {"d1": 1.0}}).facets("lang"), InputError, "the run has no documents", ""),
        (lambda index: plan_of(index.mmr(), "w1"), PipelineError, "lexical retrievers", "bm25"),
        *((weighted(w), InputError, "topic 't2', term 'w2'", "") for w in (NAN, INF, -INF, np.float32("nan"), "a", None)),
        (lambda index: index.bm25()(Topic("t", "", weights={"w1": 1e308, "w2": -1e308})), FontesError, "topic 't'", ""),
        (queried(Term("a", weight=NAN)), InputError, "topic '1': the weight nan", "finite"),
        (queried(Term("a", weight=1e31)), InputError, "topic '1': the weight of 'a'", "1e+30"),
        (queried("a"), InputError, "topic '1': 'a'", "clause"),
        (queried(must=(nested(150),)), InputError, "topic '1': … nested", "100"),
        (lambda index: index.synonyms("nothing.txt")(["tv"]), InputError, "nothing.txt", ""),
    ],
)
def test_a_topic_or_document_at_fault_is_named(
    index: Index, call: Of, error: type[FontesError], names: str, remedy: str
) -> None:
    check_error(lambda: call(index), error, names, remedy)


@each("weight", [-1, math.nan, "1", True, 1e9])
def test_the_weight_of_synonyms_is_named(index: Index, tmp_path: Path, weight: Any) -> None:
    (tmp_path / "s.txt").write_text("tv, television\n")
    stage = lambda: index.synonyms(tmp_path / "s.txt", weight=weight)(["tv"])  # noqa: E731
    check_error(stage, ParameterError, "weight", "from 0 to 1,000,000")


@each("model", ["bm25", "tfidf", "ql"])
def test_an_index_that_joined_its_fields_says_how_to_keep_them_apart(tmp_path: Path, model: str) -> None:
    joined = Index.build(DOCS, tmp_path / "x")
    make = lambda: getattr(joined, model)(fields={"title": 3, "text": 1})  # noqa: E731
    check_error(make, ParameterError, "no separate fields", "separate=True (--separate)")


@each("vector", [None, ["cat"], {"cat": -1}, {"cat": "many"}, {"cat": 1e300}, {"cat": NAN}])
def test_a_vector_that_cannot_be_used_names_the_document(tmp_path: Path, vector: Any) -> None:
    docs = [{"_id": "x", "text": "", "vector": vector}]
    check_error(lambda: Index.build(docs, tmp_path / "v.index", vectors="vector"), InputError, "document 'x'")
