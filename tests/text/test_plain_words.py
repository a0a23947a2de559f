"""Words that are cut without the tokenizer give the terms that the tokenizer makes of the whole text."""

import random

from fontes import Analyzer

PLAIN = "aBz09 '.,:;-#*\"?!/&\t\n éčŘßΩωЖяễ"
OTHERS = "_÷×ª\u0301\u200d\u00a0\x1c’東ก"


def test_plain_words_have_the_terms_of_the_whole_text() -> None:
    for tokenizer in ["standard", "letters", "whitespace"]:
        draws, analyzer = random.Random(5), Analyzer(tokenizer=tokenizer, lowercase=False)
        letters = [PLAIN] * 9 + [PLAIN + OTHERS]
        texts = ["".join(draws.choices(draws.choice(letters), k=draws.randrange(15))) for _ in range(20_000)]
        cut = [analyzer.plain_words(text) for text in texts]
        assert sum(words is not None for words in cut) > 18_000
        for text, words, terms in zip(texts, cut, analyzer.many(texts), strict=True):
            assert words is None or [*map(analyzer.composed, words)] == terms, text


def test_no_character_is_taken_for_plain_that_the_tokenizer_treats_otherwise() -> None:
    for tokenizer in ["standard", "letters", "whitespace"]:
        analyzer = Analyzer(tokenizer=tokenizer, lowercase=False)
        characters = [chr(code) for code in range(0x3100)]
        texts = [f"{around}{c}{around}" for c in characters for around in ("a", "1", "č")] + characters
        for text, terms in zip(texts, analyzer.many(texts), strict=True):
            words = analyzer.plain_words(text)
            assert words is None or [*map(analyzer.composed, words)] == terms, repr(text)


def test_common_questions_are_plain() -> None:
    for text in [
        "What is the origin of SARS-CoV-2, really?",
        "Které město je na soutoku Labe a Vltavy?",
        "Tom's dogs e.g. 3,5 km or 2.5:1",
        "Où est l'été?",
    ]:
        analyzer = Analyzer.of("english")
        words = analyzer.plain_words(text)
        assert words is not None
        assert [term for terms in analyzer.many(words) for term in terms] == analyzer.many([text])[0]


def test_words_that_a_tokenizer_cuts_and_long_texts_are_left_to_it() -> None:
    analyzer = Analyzer.of("english")
    assert analyzer.plain_words("a" * 255) == ["a" * 255]
    assert analyzer.plain_words("a" * 256) is None
    assert analyzer.plain_words("ab " * 300) is not None
    assert analyzer.plain_words("ab " * 400) is None
