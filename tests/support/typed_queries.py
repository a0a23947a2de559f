"""Made-up texts in and near the query language."""

from hypothesis import strategies as st

from fontes.lexical.syntax import Names

NAMES = Names(
    ("title", "body"),
    (),
    {
        "year": "integer",
        "lang": "keyword",
        "date": "date",
        "tags": "keywords",
        "score": "float",
        "new": "boolean",
        "a b": "date",
    },
)
_WORDS = [*"hot spring the wi-fi C++ f(x) 12:30 http://a.cz/b don't čaj \\+a TO 温泉".split(), "a\\ b"]
_WORD = st.sampled_from(_WORDS)
_AFTER = st.sampled_from(["", "", "", "*", "~", "~1", "~2", "~9", "~0", "^2", "^0.5", "~1^3", "*^2", "^x", "~uw8", "^1e9"])
_PHRASE = st.tuples(
    st.lists(_WORD, max_size=3).map(" ".join), st.sampled_from(["", "~2", "~uw8", "~uw1", "~999", "^2", "~2^.5"])
).map(lambda pair: f'"{pair[0]}"{pair[1]}')
_VALUE = st.sampled_from(["2020", "2020-05", "2020-05-17", "cs", '"pt br"', "1.5", "true", "*", "-7", "x^2", "(", "9999"])
_CONDITION = st.one_of(
    st.tuples(st.sampled_from(["", "", ">=", "<", ">", "<=", "="]), _VALUE).map("".join),
    st.tuples(st.sampled_from("[{"), _VALUE, st.sampled_from([" TO ", " to ", " "]), _VALUE, st.sampled_from("]}")).map(
        "".join
    ),
)
_FIELD = st.sampled_from(
    ["title:", "year:", "lang:", "date:", "tags:", "score:", "new:", "a\\ b:", "tilte:", "title:body:", "7:"]
)
_ATOM = st.one_of(
    st.tuples(_WORD, _AFTER).map("".join), _PHRASE, st.tuples(_FIELD, st.one_of(_CONDITION, _WORD, _PHRASE)).map("".join)
)
_MARK = st.sampled_from(["", "", "", "+", "-", "!", "NOT ", "--", "+-"])
_JOIN = st.sampled_from([" ", " ", " ", " AND ", " OR ", " && ", " || ", " AND OR ", "  "])


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    clauses = st.lists(st.tuples(_MARK, inner, _JOIN).map("".join), min_size=1, max_size=4).map("".join)
    opening = st.sampled_from(["(", "(", "title:(", "lang:(", "year:(", "(("])
    closing = st.sampled_from([")", ")", ")", "", ")^2", "))"])
    return st.one_of(clauses, st.tuples(opening, clauses, closing).map("".join))


TYPED = st.one_of(
    st.recursive(_ATOM, _joined, max_leaves=10),
    st.text(st.sampled_from(list(' "()+-!*~^:\\[]{}<>=aAND OR“”„\n|&w1')), max_size=40),
    st.text(max_size=30),
)
"""Texts by the grammar, with errors, and texts of its characters."""
