"""The compiled way from tokens to terms: the terms are those of `Analyzer.terms`, which says what they are."""

import pytest
from hypothesis import given, settings, strategies as st

from fontes.core import Strings
from fontes.text import Analyzer
from fontes.text.folding import fold

TOKEN = st.text(st.sampled_from(list("abeginsyADINSTZ'’9é東\n\0")), min_size=1, max_size=9)
WORDS = st.sampled_from(["the", "The", "THE'S", "running", "Ponies", "skies", "dog's", "'s", "s", "it", "ITS", "relational"])


@pytest.mark.parametrize("stemmer", ["", "porter"])
@pytest.mark.parametrize("possessive", [False, True])
@pytest.mark.parametrize("lowercase", [False, True])
@settings(deadline=None)  # the first call compiles
@given(st.lists(TOKEN | WORDS, max_size=12))
def test_tokens_become_the_terms_that_the_analyzer_makes_of_them(stemmer, possessive, lowercase, tokens):
    analyzer = Analyzer(possessive=possessive, lowercase=lowercase, stopwords=("the", "it", "é", "dog's"), stemmer=stemmer)
    terms, others = fold(Strings.of(tokens), possessive, lowercase, Strings.of(analyzer.stopwords), stemmer)
    expected = [
        "" if "\n" in token or not token.isascii() else term
        for token, term in zip(tokens, analyzer.terms(list(tokens)), strict=True)
    ]
    assert terms.tolist() == expected
    assert others.tolist() == ["\n" in token or not token.isascii() for token in tokens]
