"""Terms by their beginning and by edit distance, against plain loops over all of them."""

from hypothesis import given, strategies as st

from fontes.core.strings import Strings
from fontes.suggest.edits import near, prefixed

LETTERS = "abcé語😀"
WORDS = st.lists(st.text(LETTERS, min_size=0, max_size=7), max_size=40).map(lambda words: sorted(set(words)))
TERMS = sorted(["desert", "dessert", "geyser", "karst", "limestone", "spin", "spring", "springs", "sprint", "sprite"])


def distance(one: str, other: str) -> int:
    """Optimal string alignment, as its definition says."""
    table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            changed = table[i - 1, j - 1] + (one[i - 1] != other[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, changed)
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(one), len(other)]


def found(terms: list[str], word: str, edits: int, **options: object) -> dict[str, int]:
    places, distances = near(Strings.of(terms), word, edits, **options)  # type: ignore[arg-type]
    return {terms[place]: d for place, d in zip(places.tolist(), distances.tolist(), strict=True)}


@given(WORDS, st.text(LETTERS, max_size=7), st.integers(0, 2))
def test_near_terms_are_those_of_a_loop_over_all(terms: list[str], word: str, edits: int) -> None:
    expected = {term: d for term in terms if (d := distance(term, word)) <= edits}
    assert found(terms, word, edits) == expected


@given(WORDS, st.text(LETTERS, max_size=6), st.integers(0, 2))
def test_near_beginnings_are_those_of_a_loop_over_all(terms: list[str], word: str, edits: int) -> None:
    nearest = {term: min(distance(term[:size], word) for size in range(len(term) + 1)) for term in terms}
    assert found(terms, word, edits, complete=True) == {term: d for term, d in nearest.items() if d <= edits}


@given(WORDS, st.text(LETTERS, min_size=1, max_size=7), st.integers(1, 2))
def test_the_first_letters_can_be_fixed(terms: list[str], word: str, prefix: int) -> None:
    expected = {term: d for term in terms if term.startswith(word[:prefix]) and (d := distance(term, word)) <= 2}
    assert found(terms, word, 2, prefix=prefix) == expected


@given(WORDS, st.text(LETTERS, max_size=3))
def test_terms_with_a_prefix_are_one_range(terms: list[str], prefix: str) -> None:
    first, last = prefixed(Strings.of(terms), prefix)
    assert terms[first:last] == [term for term in terms if term.startswith(prefix)]


def test_a_swap_of_neighbours_is_one_edit() -> None:
    assert found(TERMS, "geyesr", 1) == {"geyser": 1}


def test_an_edit_more_reaches_more_terms() -> None:
    assert found(TERMS, "sprin", 1) == {"spin": 1, "spring": 1, "sprint": 1}
    assert found(TERMS, "sprin", 2) == {"spin": 1, "spring": 1, "springs": 2, "sprint": 1, "sprite": 2}
