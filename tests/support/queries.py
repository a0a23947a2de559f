"""Made-up structured queries."""

from hypothesis import strategies as st

from fontes.core.query import AnyOf, Clause, Condition, Group, Phrase, Term, Window

TERM = st.sampled_from(["hot", "spring", "water", "desert", "čaj", "a b", ""])
FIELD = st.sampled_from(["", "title", "text"])
WEIGHT = st.sampled_from([1.0, 0.0, 0.5, 2.0, 1e6])
TERMS = st.lists(TERM, max_size=4).map(tuple)
PHRASE = st.lists(st.tuples(TERM, st.integers(0, 9)), max_size=4).flatmap(
    lambda pairs: st.builds(
        Phrase, st.just(tuple(t for t, _ in pairs)), st.just(tuple(o for _, o in pairs)), st.integers(0, 9), FIELD, WEIGHT
    )
)
LEAF: st.SearchStrategy[Clause] = st.one_of(
    st.builds(Term, TERM, FIELD, WEIGHT),
    st.builds(AnyOf, TERMS, FIELD, WEIGHT, st.lists(PHRASE, max_size=2).map(tuple)),
    PHRASE,
    st.builds(Window, TERMS, st.integers(0, 99), FIELD, WEIGHT),
    st.builds(Condition, st.sampled_from(["year >= 2020", "lang == 'cs'"])),
)


def _groups(inner: st.SearchStrategy[Clause]) -> st.SearchStrategy[Clause]:
    clauses = st.lists(inner, max_size=3).map(tuple)
    return st.builds(Group, clauses, clauses, clauses, WEIGHT)


CLAUSE = st.recursive(LEAF, _groups, max_leaves=12)
QUERY = _groups(CLAUSE)

_ODD = st.sampled_from(
    [None, True, -1, 0, 2, 1e400, float("nan"), 10**30, "hot", "", [], {}, [["hot"]], "year > 'x'", "(" * 5000]
)
_KEYS = st.sampled_from(
    ["must", "should", "must_not", "term", "terms", "offsets", "slop", "width", "field", "weight", "where", "phrases", "x", 7]
)
_VALUES = st.one_of(_ODD, TERM, TERMS.map(list), st.lists(st.integers(-1, 9), max_size=3))


def _damaged(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.dictionaries(_KEYS, st.one_of(_VALUES, inner, st.lists(inner, max_size=3)), max_size=4)


QUERY_JSON = st.one_of(QUERY.map(Group.to_dict), st.recursive(_VALUES, _damaged, max_leaves=8))
"""Values of JSON like those of structured queries."""
