"""Documents with metadata of every type, some of it missing, and filters of them with what they say in plain Python."""

import operator
import random
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from fontes.core import Doc, Run
from fontes.index import Index
from fontes.index.columns import filter_of

Truth = bool | None  # None where a value is missing
Said = tuple[str, Callable[[Mapping[str, Any]], Truth]]

LANGUAGES = ["cs", "de", "en", "é", "zu"]
TAGS = ["a", "b", "c", "long tag"]
DATES = [f"20{year:02d}-0{1 + year % 9}-1{year % 10}" for year in range(25)]
SIGNS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
TYPES = {"born": "date", "lang": "keyword", "open": "boolean", "score": "float", "tags": "keywords", "year": "integer"}


def described(count: int, seed: int = 1, words: int = 40) -> list[Doc]:
    """Documents of numbered words whose metadata lack a value now and then."""
    draw = random.Random(seed)
    docs = []
    for number in range(count):
        metadata = {
            "born": draw.choice(DATES),
            "lang": draw.choice(LANGUAGES),
            "open": draw.random() < 0.5,
            "score": round(draw.uniform(-3, 3), 2),
            "tags": draw.sample(TAGS, draw.randrange(4)),
            "year": draw.randrange(1990, 2030),
        }
        kept = {name: value for name, value in metadata.items() if draw.random() < 0.85}
        text = " ".join(f"w{int(draw.paretovariate(0.6)) % 200}" for _ in range(draw.randrange(words)))
        docs.append(Doc(f"d{number}", text, metadata=kept))
    return docs


def _value(column: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda metadata: metadata.get(column) or None if column == "tags" else metadata.get(column)


def _compared(column: str, sign: str, constant: Any) -> Said:
    value = _value(column)
    function = SIGNS[sign]
    return f"{column} {sign} {constant!r}", lambda m: None if value(m) is None else function(value(m), constant)


def _mirrored(column: str, sign: str, constant: Any) -> Said:
    value = _value(column)
    function = SIGNS[sign]
    return f"{constant!r} {sign} {column}", lambda m: None if value(m) is None else function(constant, value(m))


def _among(column: str, constants: list[Any], positive: bool) -> Said:
    value = _value(column)
    text = f"{column} {'' if positive else 'not '}in ({''.join(f'{c!r}, ' for c in constants)})"
    return text, lambda m: None if value(m) is None else (value(m) in constants) == positive


def _tagged(tag: str, positive: bool) -> Said:
    value = _value("tags")
    return f"{tag!r} {'' if positive else 'not '}in tags", lambda m: None if value(m) is None else (tag in value(m)) == positive


def _absent(column: str, absent: bool) -> Said:
    value = _value(column)
    return f"{column} is {'' if absent else 'not '}None", lambda m: (value(m) is None) == absent


def _not(inner: Said) -> Said:
    return f"not ({inner[0]})", lambda m: None if (truth := inner[1](m)) is None else not truth


def _and(a: Said, b: Said) -> Said:
    def both(m: Mapping[str, Any]) -> Truth:
        truths = a[1](m), b[1](m)
        return False if False in truths else None if None in truths else True

    return f"({a[0]}) and ({b[0]})", both


def _or(a: Said, b: Said) -> Said:
    inner = _not(_and(_not(a), _not(b)))
    return f"({a[0]}) or ({b[0]})", inner[1]


_CONSTANTS = {
    "year": st.one_of(st.integers(1988, 2031), st.floats(1988, 2031, width=32)),
    "score": st.one_of(st.integers(-4, 4), st.integers(-300, 300).map(lambda n: n / 100)),
    "lang": st.sampled_from([*LANGUAGES, "", "d", "xx"]),
    "born": st.sampled_from([*DATES, "1999-12-31"]),
}
_LEAVES = st.one_of(
    st.sampled_from(list(_CONSTANTS)).flatmap(
        lambda column: st.builds(
            lambda make, sign, constant: make(column, sign, constant),
            st.sampled_from([_compared, _mirrored]),
            st.sampled_from(list(SIGNS)),
            _CONSTANTS[column],
        )
    ),
    st.sampled_from(list(_CONSTANTS)).flatmap(
        lambda column: st.builds(
            lambda constants, positive: _among(column, constants, positive),
            st.lists(_CONSTANTS[column], max_size=4),
            st.booleans(),
        )
    ),
    st.builds(_tagged, st.sampled_from([*TAGS, "none"]), st.booleans()),
    st.builds(_absent, st.sampled_from(list(TYPES)), st.booleans()),
    st.just(("open", lambda m: m.get("open"))),
)
_JOINED = lambda inner: st.one_of(st.builds(_not, inner), st.builds(_and, inner, inner), st.builds(_or, inner, inner))  # noqa: E731
FILTERS: st.SearchStrategy[Said] = st.recursive(_LEAVES, _JOINED, max_leaves=6)
"""Texts of filters, each with the function that says of some metadata whether it holds: True, False or None."""


def same(searched: Run, every: Run, index: Index, where: str, k: int) -> bool:
    """Whether a run is, to the last bit, the best k of what is left of a run of all documents."""
    passed = filter_of(index.state, where)
    assert passed is not None
    expected = every.keep(passed.mask[every.codes]).top(k)
    arrays = [(run.bounds.tobytes(), run.codes.tobytes(), run.scores.tobytes()) for run in (searched, expected)]
    return arrays[0] == arrays[1]


def passing(index: Index, where: str) -> list[str]:
    """The ids of the documents that pass a filter."""
    passed = filter_of(index.state, where)
    assert passed is not None
    return [index.ids[place] for place in passed.docs.tolist()]
