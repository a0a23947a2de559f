"""TopicRank: candidates, topics, graph, walk; on small texts, on pages written by hand, and on Inspec."""

import json
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fontes.app.cli import app
from fontes.causal import TopicRank
from fontes.causal.topicrank import CandidatePhrase
from fontes.core import InputError

STORY = (
    "The storm of March broke the harbour wall. Without the harbour wall, the ferry to the islands stopped, and the ferry "
    "company lost its contract. Dock workers went on strike."
)


def tagger(text: str) -> list[tuple[str, str, int]]:
    """Words of which those with a capital are verbs and all others nouns; a full stop ends a sentence."""
    tokens, sentence = [], 0
    for word in text.split():
        tokens.append((word, "PUNCT" if word == "." else "VERB" if word[0].isupper() else "NOUN", sentence))
        sentence += word == "."
    return tokens


HAND = TopicRank(tagger, stopwords=())


def test_candidates_are_longest_runs_that_end_with_the_sentence() -> None:
    found = HAND.candidates(tagger("harbour wall BROKE ferry . harbour wall"))
    assert [(c.words, c.offsets) for c in found] == [(("ferry",), (3,)), (("harbour", "wall"), (0, 5))]


def test_words_of_two_sentences_are_never_one_candidate() -> None:
    tokens = [("ferry", "NOUN", 0), ("dock", "NOUN", 1)]
    assert [c.words for c in HAND.candidates(tokens)] == [("dock",), ("ferry",)]


def test_the_filter_of_pke_leaves_out() -> None:
    for phrase in ["it", "a ferry", "fer/ry dock", "one two three four five six", "-- dock"]:
        assert HAND.candidates(tagger(phrase)) == []


def test_a_candidate_with_a_stop_word_is_left_out() -> None:
    found = TopicRank(tagger, stopwords=("Other",)).candidates(tagger("other ferry RUNS ferry"))
    assert [c.words for c in found] == [("ferry",)]


def candidate(phrase: str, *offsets: int) -> CandidatePhrase:
    words = tuple(phrase.split())
    return CandidatePhrase(words, words, offsets)


def test_candidates_are_one_topic_if_they_share_a_quarter_of_their_stems() -> None:
    quarter = [candidate("a b c", 0), candidate("a x", 9)]  # 1 of 4
    fifth = [candidate("a b c", 0), candidate("a x y", 9)]  # 1 of 5
    assert len(HAND.topics(quarter)) == 1
    assert len(HAND.topics(fifth)) == 2
    assert len(TopicRank(tagger, similarity=0.26).topics(quarter)) == 2


def test_average_linkage_takes_the_mean_over_all_pairs() -> None:
    # "a" and "b" have nothing in common; "a b" joins one of them at 1/2, then the other at the mean of 1/2 and 0, which is 1/4.
    three = [candidate("a", 0), candidate("a b", 4), candidate("b", 9)]
    assert len(HAND.topics(three)) == 1
    assert len(TopicRank(tagger, similarity=0.26).topics(three)) == 2
    assert len(TopicRank(tagger, linkage="complete").topics(three)) == 2


@pytest.mark.parametrize("gap", ["pke", "paper"])
def test_edges_are_sums_of_reciprocal_gaps_as_a_plain_loop_finds_them(gap: str) -> None:
    rng = np.random.default_rng(3)
    starts = np.cumsum(rng.integers(3, 6, 1500)).tolist()  # more than one block of occurrences
    owners = [0, 1, 2, 3, 4, 5, *rng.integers(0, 6, 1494).tolist()]
    phrases = ["a", "b c", "d e f", "g", "h i", "j k"]
    topics = [[0, 1], [2], [3, 4, 5]]
    offsets = [[s for s, o in zip(starts, owners, strict=True) if o == i] for i in range(6)]
    made = [[candidate(phrases[i], *offsets[i]) for i in topic] for topic in topics]
    expected = np.zeros((3, 3))
    for x, y in product(range(3), repeat=2):
        for a, b in product(made[x], made[y]) if x != y else ():
            for p, q in product(a.offsets, b.offsets):
                first = len(a.stems) if p < q else len(b.stems)
                expected[x, y] += 1 / (abs(p - q) - (first - 1 if gap == "pke" else 0))
    np.testing.assert_allclose(TopicRank(tagger, gap=gap).graph(made), expected, rtol=1e-10)


def test_the_walk_gives_the_solution_of_its_equations() -> None:
    weights = np.array([[0, 2, 1, 0.5], [2, 0, 0, 1], [1, 0, 0, 3], [0.5, 1, 3, 0]])
    moves = weights / weights.sum(axis=1, keepdims=True)
    exact = np.linalg.solve(np.eye(4) - 0.85 * moves.T, np.full(4, 0.15 / 4))
    np.testing.assert_allclose(TopicRank(tolerance=1e-12).walk(weights), exact, atol=1e-10)
    assert exact.sum() == pytest.approx(1)


def test_the_candidate_that_occurs_first_or_most_stands_for_its_topic() -> None:
    text = "harbour wall BROKE . wall FELL . wall ROSE"
    assert [phrase for phrase, _ in HAND.keyphrases(text)] == ["harbour wall"]
    assert [phrase for phrase, _ in TopicRank(tagger, stopwords=(), represent="frequent").keyphrases(text)] == ["wall"]


def test_of_equal_scores_the_first_in_the_text_comes_first() -> None:
    assert [phrase for phrase, _ in HAND.keyphrases("zebra RUNS apple")] == ["zebra", "apple"]


def test_a_text_without_candidates_has_no_keyphrases() -> None:
    for text in ["", "   \n", "WAS .", "?!"]:
        assert HAND.keyphrases(text) == TopicRank("stopwords").keyphrases(text) == []


def test_without_a_tagger_a_possessive_ends_a_run_and_a_contraction_is_no_word() -> None:
    found = TopicRank("stopwords").keyphrases("The yard's debts. They didn't pay; the yard’s debts")
    assert {phrase for phrase, _ in found} == {"yard", "debts", "pay"}


def test_one_candidate_has_the_whole_score() -> None:
    assert HAND.keyphrases("ferry") == [("ferry", 1.0)]


def test_german_stems_join_german_words() -> None:
    text = "häuser BRENNEN . hauses FALLEN"
    assert len(TopicRank(tagger, stopwords=(), stemmer="german").keyphrases(text)) == 1
    assert len(TopicRank(tagger, stopwords=(), stemmer=None).keyphrases(text)) == 2


def test_spacy_finds_the_same_noun_phrases_in_a_batch_and_in_a_single_text() -> None:
    spacy = TopicRank("en_core_web_sm")
    alone = spacy.keyphrases(STORY)
    assert {"harbour wall", "ferry", "dock workers"} <= {phrase for phrase, _ in alone}
    assert sum(score for _, score in alone) == pytest.approx(1)
    assert list(spacy.batch([STORY, "", STORY], n=3)) == [alone[:3], [], alone[:3]]
    assert "state-of-the-art ferry" in dict(spacy.keyphrases("They built a state-of-the-art ferry, and sold it.\ud800"))


def test_a_text_of_ten_thousand_words_is_ranked() -> None:
    words = [f"w{i * i % 997}x{'' if i % 3 else ' The'}" for i in range(10_000)]
    found = TopicRank("stopwords").keyphrases(" ".join(words), n=20)
    assert len(found) == 20
    assert found == sorted(found, key=lambda each: -each[1])


def test_the_command_prints_lines_or_json(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(STORY, encoding="utf-8")
    expected = TopicRank("stopwords").keyphrases(STORY, 3)
    options = ["--model", "stopwords", "--top", "3"]
    lines = CliRunner().invoke(app, ["keyphrases", str(path), *options]).stdout.splitlines()
    assert lines == [f"{score:.4f}  {phrase}" for phrase, score in expected]
    given = CliRunner().invoke(app, ["keyphrases", "-", "--json", *options], input=STORY).stdout
    assert [(each["keyphrase"], each["score"]) for each in json.loads(given)] == expected


def test_the_command_names_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_bytes(b"caf\xe9")
    error = CliRunner().invoke(app, ["keyphrases", str(path)]).exception
    assert isinstance(error, InputError)
    assert str(error) == f"{path}, line 1: not UTF-8 (byte 4 of the line); convert the file first"


def test_a_byte_order_mark_is_no_part_of_a_keyphrase(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_bytes(b"\xef\xbb\xbfBridge")
    done = CliRunner().invoke(app, ["keyphrases", str(tmp_path / "story.txt"), "--model", "stopwords"])
    assert done.stdout == "1.0000  bridge\n"


@pytest.mark.slow
def test_keyphrases_of_inspec_are_as_good_as_those_of_pke_published(shared: Path) -> None:
    """pke's results.md has F@10 28.35 on the 500 test abstracts, of candidates by a grammar: half a point away at most."""
    import Stemmer

    stem = Stemmer.Stemmer("porter").stemWords
    docs = [json.loads(line) for line in (shared / "keyphrase/Inspec_hulth2003_test.jsonl").open(encoding="utf-8")]
    values = []
    for doc, found in zip(docs, TopicRank().batch([f"{d['title']}. {d['text']}" for d in docs], 10), strict=True):
        gold = {" ".join(stem(phrase.lower().split())) for phrase in doc["uncontr"]}
        hits = len(gold & {" ".join(stem(phrase.split())) for phrase, _ in found})
        values.append(2 * hits / (len(found) + len(gold)))
    assert len(values) == 500
    assert 100 * np.mean(values) == pytest.approx(28.35, abs=0.5)


def ranked(text: str, gap: str, threshold: float = 0.25, damping: float = 0.85) -> list[tuple[str, float]]:
    """TopicRank in plain Python, by the steps of Bougouin, Boudin and Daille (2013), sections 3.1 to 3.4."""
    import Stemmer

    stem = Stemmer.Stemmer("porter").stemWord
    occurrences: dict[tuple[str, ...], list[tuple[int, list[str]]]] = {}
    position, run = 0, []
    for number, word in enumerate([*text.split(), "."]):
        if word == "." or word[0].isupper():
            if run:
                occurrences.setdefault(tuple(map(stem, run)), []).append((position, run))
            run = []
        else:
            position, run = (number if not run else position), [*run, word]

    def similarity(a: tuple[str, ...], b: tuple[str, ...]) -> float:
        return len(set(a) & set(b)) / len(set(a) | set(b))

    def linked(x: list[Any], y: list[Any]) -> float:
        return float(np.mean([similarity(a, b) for a in x for b in y]))

    clusters = [[stems] for stems in occurrences]
    while True:  # the two most similar are joined, as long as they are similar enough
        best = max(((linked(x, y), i, j) for (i, x), (j, y) in combinations(enumerate(clusters), 2)), default=(0.0, 0, 0))
        if best[0] < threshold - 1e-12:
            break
        clusters[best[1]] += clusters.pop(best[2])

    def weight(x: list[Any], y: list[Any]) -> float:
        total = 0.0
        for a, b in product(x, y):
            for (p, _), (q, _) in product(occurrences[a], occurrences[b]):
                total += 1 / (abs(p - q) - ((len(a if p < q else b) - 1) if gap == "pke" else 0))
        return total

    count = len(clusters)
    edges = np.array([[weight(x, y) if x is not y else 0.0 for y in clusters] for x in clusters])
    scores = np.ones(count)
    for _ in range(500):  # equation 3
        given = [sum(edges[j, i] / edges[j].sum() * scores[j] for j in range(count)) for i in range(count)]
        scores = 1 - damping + damping * np.array(given)
    firsts = [min((occurrences[stems][0] for stems in cluster), key=lambda each: each[0]) for cluster in clusters]
    order = sorted(range(count), key=lambda i: -scores[i])
    return [(" ".join(firsts[i][1]), scores[i] / count) for i in order]


@pytest.mark.parametrize("gap", ["pke", "paper"])
def test_keyphrases_are_those_of_the_papers_steps_in_plain_python(gap: str) -> None:
    text = (
        "storms BROKE harbour walls . WITHOUT wall THE ferry company STOPPED island ferry companies AND ferries LOST contracts "
        ". dock workers STRUCK FOR wages . winter storm damage AT harbour wall COST THE island AND wages . contracts ENDED"
    )
    expected = ranked(text, gap)
    found = TopicRank(tagger, stopwords=(), gap=gap, tolerance=1e-12).keyphrases(text)
    assert [phrase for phrase, _ in found] == [phrase for phrase, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-9)
    assert len(found) == 7  # three candidates speak of the ferry and two of the wall; the island is none of these
    assert len({round(score, 6) for _, score in found}) == len(found)
