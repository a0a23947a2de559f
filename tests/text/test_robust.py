"""Any text can be analysed; many texts, threads and orders change nothing."""

import threading
from itertools import pairwise

from hypothesis import example, given, settings, strategies as st
from support.examples import up_to

from fontes.text import Analyzer

PROPERTY = settings(deadline=None, max_examples=up_to(150), database=None)
ANY = st.text(st.characters(exclude_categories=()), max_size=60)  # lone surrogates too
TRICKY = st.text(
    st.sampled_from("aZé1٣.,:;'’\"_ \n\t\u0301\u200d\ufe0f\u20e3#*中あカー한กאߊ😀👩❤\U0001f3fd🇨🇿𝒜\u00ad\ufeff\ud800\udc00İẞſ"),
    max_size=40,
)
WORDS = st.lists(st.sampled_from(["the", "dog's", "Running", "東京タワー", "été", "x", "3.14", "ponies", "s"]), max_size=12)
COMPILED = ["english", "czech", "standard", "simple", "whitespace", "cjk", "cjk+chars:1-3", "english+words:1-3"]
ALL = {name: Analyzer.of(name) for name in COMPILED}


@PROPERTY
@given(st.one_of(ANY, TRICKY))
def test_any_text_gives_terms_without_an_error(text):
    for analyzer in ALL.values():
        terms = analyzer(text)
        assert all(term and isinstance(term, str) for term in terms)
        "".join(terms).encode()  # no surrogate is left


@PROPERTY
@given(st.one_of(ANY, TRICKY))
@example("\ud83d\ude00 hello")
@example("\ude00\ud83d hello")
def test_spans_lie_in_the_text_in_order_and_hold_the_terms_of_the_text(text):
    for name in ("english", "standard", "simple", "whitespace"):
        analyzer = ALL[name]
        places = analyzer.spans(text)
        assert all(0 <= start < end <= len(text) for start, end, _ in places)
        assert all(before[1] <= after[0] for before, after in pairwise(places))
        assert [term for _, _, terms in places for term in terms] == analyzer(text)


@PROPERTY
@given(st.one_of(ANY, TRICKY))
@example("\ud83d\ude00 hello")
def test_the_text_of_a_span_gives_the_terms_of_the_span(text):
    for name in ("simple", "whitespace", "standard"):
        for start, end, terms in ALL[name].spans(text):
            assert tuple(ALL[name](text[start:end])) == terms


@PROPERTY
@given(st.lists(st.one_of(ANY, TRICKY, WORDS.map(" ".join)), max_size=6))
def test_many_texts_give_what_each_gives_alone(texts):
    for analyzer in ALL.values():
        together = analyzer.many(texts)
        assert together == [analyzer(text) for text in texts]
        assert together == Analyzer.of(analyzer.to_dict()).many(texts)


@PROPERTY
@given(st.lists(WORDS.map(" ".join), max_size=6), st.randoms(use_true_random=False))
def test_the_terms_of_a_text_do_not_depend_on_what_was_analysed_before(texts, random):
    shuffled = texts[:]
    random.shuffle(shuffled)
    for name in ("english", "english+words:1-3", "cjk+chars:1-3"):
        fresh = Analyzer.of(name).to_dict()
        one, other = Analyzer.from_dict(fresh), Analyzer.from_dict(fresh)
        assert dict(zip(texts, one.many(texts), strict=True)) == dict(zip(shuffled, other.many(shuffled), strict=True))


@PROPERTY
@given(st.lists(WORDS.map(" ".join), max_size=6))
def test_a_vocabulary_numbers_terms_in_the_order_of_first_sight_whatever_the_batches(texts):
    analyzer = Analyzer.of("english")
    whole, piecemeal = analyzer.vocabulary(), analyzer.vocabulary()
    numbers, bounds = whole.encode(texts)
    found = [piecemeal.encode([text])[0].tolist() for text in texts]
    assert whole.terms == piecemeal.terms
    assert [numbers[a:b].tolist() for a, b in pairwise(bounds.tolist())] == found
    seen = [term for terms in analyzer.many(texts) for term in terms]
    assert whole.terms == list(dict.fromkeys(seen))


@PROPERTY
@given(WORDS, st.integers(1, 4), st.integers(0, 3))
def test_word_ngrams_are_the_neighbours_joined_by_a_space(words, least, more):
    most = least + more
    plain = Analyzer(stopwords="english")
    terms = plain(" ".join(words))
    expected = [" ".join(terms[at : at + n]) for n in range(least, most + 1) for at in range(len(terms) - n + 1)]
    assert Analyzer(stopwords="english", words=(least, most))(" ".join(words)) == expected


@PROPERTY
@given(st.lists(st.text("abé𝒜東", min_size=1, max_size=7), max_size=5), st.integers(1, 4), st.integers(0, 3))
def test_character_ngrams_are_cut_from_each_term_and_a_shorter_term_stays_whole(words, least, more):
    most = least + more
    expected = []
    for word in words:
        grams = [word[at : at + n] for n in range(least, most + 1) for at in range(len(word) - n + 1)]
        expected += grams if len(word) >= least else [word]
    assert Analyzer(tokenizer="whitespace", lowercase=False, chars=(least, most))(" ".join(words)) == expected


def test_word_ngrams_do_not_reach_from_one_text_into_the_next():
    assert Analyzer.of("standard+words:2-2").many(["a b", "c", "", "d e f"]) == [["a b"], [], [], ["d e", "e f"]]


def test_word_and_character_ngrams_go_together():
    assert Analyzer.of("standard+chars:2-2+words:1-2")("abc") == ["ab", "bc", "ab bc"]


def test_no_text_and_empty_texts_give_no_terms():
    for analyzer in ALL.values():
        assert analyzer("") == []
        assert analyzer.many([]) == []
        assert analyzer.many(["", "", "x"]) == [[], [], ["x"]]
        assert analyzer.spans("") == []


def test_a_token_of_100_kb_is_one_term_where_the_tokenizer_does_not_cut():
    word = "xy" * 50_000
    assert Analyzer.of("whitespace")(word) == [word]
    assert Analyzer.of("simple")(word) == [word]
    assert Analyzer.of(lambda text: [text])(word) == [word]
    assert len(Analyzer(tokenizer="whitespace", stemmer="porter")(word + "ing")[0]) == 100_000
    assert "".join(Analyzer.of("standard")(word)) == word


def test_long_texts_without_a_space_are_analysed():
    for unit in ["a", "1,", "'", "한", "中", "ก", "\u0301", "🇨", "👩\u200d", "a.", 'א"', "é"]:
        text = unit * (400_000 // len(unit.encode()))
        terms = Analyzer.of("standard")(text)
        assert len("".join(terms)) <= len(text)
        assert Analyzer.of("whitespace")(text) == [text]


def test_three_hundred_thousand_different_terms_keep_their_numbers():
    words = [f"w{n}" for n in range(300_000)]
    vocabulary = Analyzer.of("whitespace").vocabulary()
    numbers, _ = vocabulary.encode([" ".join(words)])
    assert numbers.tolist() == list(range(300_000))
    assert vocabulary.terms == words
    again, _ = vocabulary.encode([" ".join(reversed(words))])
    assert again.tolist() == list(range(299_999, -1, -1))


def test_threads_that_share_an_analyzer_get_the_terms_of_their_own_texts():
    shared = Analyzer.of("english+words:1-2")
    texts = [[f"running w{(thread * 7 + n) % 50} dogs w{n}" for n in range(60)] for thread in range(8)]
    expected = [Analyzer.of("english+words:1-2").many(own) for own in texts]
    found: list[list[list[str]]] = [[] for _ in texts]

    def work(thread: int) -> None:
        for text in texts[thread]:
            found[thread].append(shared(text))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
