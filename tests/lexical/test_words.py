"""The terms of a topic, word by word, against the analyzer on whole texts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st
from support.examples import up_to

from fontes import Index
from fontes.lexical import retriever

TEXTS = ["The cats' nap in Zürich", "running runs ran; the state-of-the-art", "a cat and a dog", "IT'S 3.14 o'clock"]
SOME = st.lists(
    st.sampled_from(["cat", "The", "the", "RUNS", "dog", "unknown", "Zürich", "it's", "3.14", "state-of", " ", ","])
)
ANALYZERS = ["english", "whitespace", "simple", "standard+words:1-2", "czech+chars:2-3"]


@pytest.fixture(scope="module", params=ANALYZERS)
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    docs = [(str(i), text) for i, text in enumerate(TEXTS)]
    return Index.build(docs, tmp_path_factory.mktemp("words") / "w.index", analyzer=request.param)


def whole(index: Index, text: str) -> dict[str, float]:
    """The same of a text as a whole."""
    return dict(Counter(index.analyzer.many([text])[0]))


@settings(max_examples=up_to(40), deadline=None)
@given(texts=st.lists(SOME.map(" ".join), max_size=5))
def test_a_topics_terms_are_those_of_its_whole_text_be_its_words_new_or_known(index: Index, texts: list[str]) -> None:
    known = retriever.Words(index.analyzer)
    for _ in range(2):
        assert known.counts(texts) == [whole(index, text) for text in texts]
        assert [known.counts([text])[0] for text in reversed(texts)] == [whole(index, text) for text in reversed(texts)]


def test_words_beyond_the_limit_are_not_kept(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retriever, "MAX_CACHED_WORDS", 2)
    analysed: list[list[str]] = []

    class Counting:
        plain_words = staticmethod(index.analyzer.plain_words)

        def many(self, texts: list[str]) -> list[list[str]]:
            analysed.append(texts)
            return index.analyzer.many(texts)

    known = retriever.Words(Counting())  # type: ignore[arg-type]
    texts = ["the cat and the dog", "dog", "RUNS the", "cat dog RUNS"]
    for text in texts:
        assert known.counts([text]) == [whole(index, text)]
    by_words = [["the", "cat", "and", "dog"], ["RUNS", "the"], ["cat", "dog"]]
    assert analysed == (by_words if index.analyzer.words == (1, 1) else [[text] for text in texts])
