"""Mining: which hits become negatives, what is left out, and that the same seed gives the same bytes."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each import each

import fontes as ft
from fontes.core import Doc, InputError, Qrels, Run, Stage, Topics
from fontes.core.work import Progress, reporter
from fontes.neural.rerank import Reranker
from fontes.train import Examples, Mined, mine_negatives
from fontes.train.mining import PRESETS


class Shelf:
    """Documents by id; each has the words of its id for a text, unless another is given."""

    def __init__(self, ids: Iterable[str], **texts: str) -> None:
        self.texts = {doc_id: f"the document {doc_id} about {doc_id * 3}" for doc_id in ids} | texts

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        try:
            return [Doc(doc_id, self.texts[doc_id], "A title") for doc_id in ids]
        except KeyError as error:
            raise InputError(f"no document {error}") from None


def ids(count: int) -> list[str]:
    return [f"d{n:02}" for n in range(1, count + 1)]


def run(hits: dict[str, list[str]], documents: object = None) -> Run:
    """Runs whose scores go down by one half a rank, from 100."""
    rows = {topic: [(doc_id, 100 - n / 2) for n, doc_id in enumerate(ranking)] for topic, ranking in hits.items()}
    topics = Topics.of({topic: f"what about {topic}" for topic in hits})
    return Run.of(rows, topics).with_(documents=documents or Shelf({d for ranking in hits.values() for d in ranking}))


TOPICS = {"q1": "one", "q2": "two"}


def mined(ranking: list[str], gold: dict[str, int], shelf: object = None, **settings: object) -> Mined:
    one = run({"q1": ranking}, shelf)
    return mine_negatives(one, one.topics, {"q1": gold}, **settings)  # type: ignore[arg-type]


def negatives(result: Mined) -> list[list[str]]:
    return [[negative.id for negative in example.negatives] for example in result.examples]


def test_the_best_hits_that_are_not_relevant_are_the_negatives() -> None:
    result = mined(ids(8), {"d02": 1, "d03": 0, "d04": -1})
    (example,) = result.examples
    assert (example.topic, example.query, example.positive.id) == ("q1", "what about q1", "d02")
    assert [(one.id, one.score, one.rank) for one in example.negatives] == [
        ("d01", 100, 1),
        ("d03", 99, 3),
        ("d04", 98.5, 4),
        ("d05", 98, 5),
    ]
    assert example.positive.text == "A title the document d02 about d02d02d02"
    assert (example.positive.score, example.positive.rank) == (None, None)


def test_the_window_of_ranks_has_both_ends_and_counts_relevant_documents_too() -> None:
    assert negatives(mined(ids(12), {"d04": 1}, ranks=(3, 6))) == [["d03", "d05", "d06"]]
    assert negatives(mined(ids(12), {"d04": 1}, ranks=(2, 2))) == [["d02"]]
    assert negatives(mined(ids(3), {"d01": 1}, ranks=(4, 9))) == [[]]


def test_each_relevant_document_makes_a_group_in_which_the_others_are_no_negatives() -> None:
    result = mined(ids(6), {"d05": 2, "d01": 1, "d03": 1}, per_positive=2)
    assert [example.positive.id for example in result.examples] == ["d01", "d03", "d05"]
    assert negatives(result) == [["d02", "d04"]] * 3


def test_a_negative_lies_the_margin_below_the_relevant_document() -> None:
    # d03 scores 99, so that d04 (98.5), d05 (98) and d06 (97.5) lie 0.5, 1 and 1.5 below.
    assert negatives(mined(ids(6), {"d03": 1}, margin=0)) == [["d04", "d05", "d06"]]
    assert negatives(mined(ids(6), {"d03": 1}, margin=1)) == [["d05", "d06"]]
    assert negatives(mined(ids(6), {"d03": 1}, margin=1.25)) == [["d06"]]
    shelf = Shelf([*ids(6), "gold"])
    assert negatives(mined(ids(6), {"gold": 1}, shelf, margin=0)) == [[]]
    assert negatives(mined(ids(6), {"gold": 1}, shelf)) == [["d01", "d02", "d03", "d04"]]


@dataclass(frozen=True)
class ByNumber(Reranker):
    """Scores a document by its number, d01 highest; counts the pairs that it was asked."""

    shift: float = 0.0

    @property
    def fingerprint(self) -> str:
        return f"by number, {self.shift}"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        ASKED.extend(pairs)
        numbers = (int(re.search(r"d(\d\d) ", text)[1]) for _, text in pairs)  # type: ignore[index]
        return np.array([1 - number / 20 + self.shift for number in numbers], np.float32)


ASKED: list[tuple[str, str]] = []


def test_a_candidate_scored_near_the_relevant_document_is_no_negative() -> None:
    # The teacher gives d04 .8, so that a share of .95 allows .76: d05 (.75) is the first below it; d01 to d03 are above.
    result = mined(ids(12), {"d04": 1}, teacher=ByNumber(), relative_margin=0.95, per_positive=3)
    assert negatives(result) == [["d05", "d06", "d07"]]
    assert result.left_out == {"near_gold": 3}
    assert [passage.score for passage in (result.examples[0].positive, *result.examples[0].negatives)] == [0.8, 0.75, 0.7, 0.65]
    assert negatives(mined(ids(12), {"d04": 1}, teacher=ByNumber(), relative_margin=0.9, per_positive=3)) == [
        ["d06", "d07", "d08"]
    ]
    assert negatives(mined(ids(12), {"d04": 1}, teacher=ByNumber(), per_positive=3)) == [["d01", "d02", "d03"]]
    random_ones = negatives(mined(ids(12), {"d04": 1}, teacher=ByNumber(), relative_margin=0.9, sampling="random"))
    assert set(random_ones[0]) <= set(ids(12)[5:])


def test_a_relevant_document_that_the_teacher_scores_0_or_less_gets_no_negatives() -> None:
    result = mined(ids(12), {"d04": 1}, teacher=ByNumber(shift=-0.8), relative_margin=0.95)
    assert negatives(result) == [[]]
    assert result.left_out == {"low_gold": 1}
    assert "1 relevant document that the teacher scores 0 or less" in str(result)


def test_the_teacher_scores_no_more_candidates_than_groups_need() -> None:
    ASKED.clear()
    mined(ids(99), {"d01": 1}, teacher=ByNumber(), relative_margin=0.99, per_positive=2)
    assert len(set(ASKED)) == 3


def test_groups_whose_relevant_document_the_teacher_lacks_are_counted() -> None:
    one, gold = run({"q1": ids(8), "q2": ids(9)}), {"q1": {"d05": 1}, "q2": {"d09": 1, "d01": 1}}
    result = mine_negatives(one, one.topics, gold, per_positive=2, teacher=Returns())
    assert [(e.topic, e.positive.id, e.positive.score) for e in result.examples] == [("q1", "d05", 0.5), ("q2", "d01", 1.5)]
    assert (result.left_out, result.positive_ranks, result.negative_ranks) == ({"untaught": 1}, (5, 1), (1, 2, 2, 3))
    assert "left out: 1 group whose relevant document the teacher does not return" in str(result)


@dataclass(frozen=True)
class Returns(Stage[Topics, Run]):
    """Returns d01 and d05 for each topic."""

    def apply(self, topics: Topics, /) -> Run:
        return Run.of({topic: {"d01": 1.5, "d05": 0.5} for topic in topics}, topics)


def test_random_negatives_come_from_the_whole_window_by_rank() -> None:
    drawn = Counter()
    for seed in range(300):
        (chosen,) = negatives(mined(ids(20), {"d02": 1}, sampling="random", ranks=(1, 11), seed=seed))
        assert chosen == sorted(chosen)
        assert len(set(chosen)) == 4
        drawn.update(chosen)
    assert set(drawn) == set(ids(11)) - {"d02"}
    # Each of the ten is drawn in 120 of 300 samples on average; the standard deviation is 8.5.
    assert all(90 < count < 150 for count in drawn.values())


def test_the_groups_of_a_topic_do_not_depend_on_other_topics_or_their_order() -> None:
    hits = {f"q{n}": random.Random(n).sample(ids(40), 30) for n in range(6)}
    qrels = {topic: {ranking[3]: 1, ranking[20]: 1} for topic, ranking in hits.items()}
    shelf = Shelf(ids(40))
    texts = {topic: f"text of {topic}" for topic in hits}

    def groups(order: list[str]) -> dict[str, list[object]]:
        some = mine_negatives(run({t: hits[t] for t in order}, shelf), {t: texts[t] for t in order}, qrels, sampling="random")
        return {t: [example for example in some.examples if example.topic == t] for t in order}

    whole = groups(list(hits))
    assert groups(list(hits)[::-1]) == whole
    assert groups(["q4"])["q4"] == whole["q4"]
    assert len({tuple(n.rank for n in example.negatives) for group in whole.values() for example in group}) == 12  # type: ignore[attr-defined]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        mined(ids(30), {"d02": 1}, sampling="random", seed=seed).write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()
    line = '{"topic": "q1", "query": "what about q1", "positive": {"id": "d02", "text": "A title the document d02'
    assert (tmp_path / "a").read_text().startswith(line)


LONG = "the minister said on monday that the bridge over the river will open again in the spring of next year"


def test_negatives_never_have_the_text_of_a_relevant_document_of_the_topic() -> None:
    shelf = Shelf(ids(9), d02=LONG, d03=LONG, d04=LONG.upper() + "!", d05=LONG + " again", gold=LONG[:60] + " else altogether")
    result = mined(ids(9), {"d02": 1}, shelf)
    assert negatives(result) == [["d01", "d06", "d07", "d08"]]
    assert [(pair.id, pair.of, pair.kind, pair.similarity) for pair in result.duplicates] == [
        ("d03", "d02", "exact", 1.0),
        ("d04", "d02", "normalised", 1.0),
        ("d05", "d02", "near", 0.8),
    ]
    assert str(result).splitlines()[-3].endswith("(1 exact, 1 normalised, 1 near): d03 = d02, d04 = d02, d05 = d02")
    assert negatives(mined(ids(9), {"d02": 1}, shelf, guard_duplicates=False)) == [["d01", "d03", "d04", "d05"]]
    # Another relevant document is guarded as well, and what is merely alike stays.
    both = mined(ids(9), {"d02": 1, "d01": 1}, shelf)
    assert negatives(both) == [["d06", "d07", "d08", "d09"]] * 2
    assert negatives(mined(["d02", "gold"], {"d02": 1}, shelf)) == [["gold"]]


def test_the_guard_takes_no_text_twice_in_a_group() -> None:
    shelf = Shelf(ids(9), d02=LONG, d03=LONG + " again", d05=LONG.upper())
    result = mined(ids(9), {"d04": 1}, shelf)
    assert negatives(result) == [["d01", "d02", "d06", "d07"]]
    assert (result.left_out, result.duplicates) == ({"repeated": 2}, ())
    assert "left out: 2 candidates with the text of another negative" in str(result).splitlines()
    assert negatives(mined(ids(9), {"d04": 1}, shelf, guard_duplicates=False)) == [["d01", "d02", "d03", "d05"]]


def test_what_is_left_out_is_counted() -> None:
    hits = {"q1": ids(4), "q2": [], "q3": ids(4), "q4": ids(4), "q5": ids(4), "q6": ["blank", "d01"]}
    one = run(hits, Shelf([*ids(4)], blank="", empty="").docs and Blank(ids(4)))
    qrels = {
        "q1": {"d01": 1, "lost": 1},
        "q2": {"d01": 1},
        "q3": {"d01": 0},
        "q5": {"empty": 1},
        "q6": {"d01": 1},
        "q9": {"d01": 1},
    }
    result = mine_negatives(one, one.topics, qrels)
    assert result.left_out == {"no_gold": 2, "no_hits": 1, "no_document": 1, "no_text": 1, "empty": 1}
    assert result.examples.topics == ["q1", "q6"]
    assert result.sizes == {3: 1, 0: 1}
    facts = result.to_dict()
    assert (facts["total"], facts["topics"], facts["groups"], facts["negatives"]) == (6, 2, 2, 3)
    assert facts["ranks"] == {"least": 2, "lower": 2.5, "median": 3, "upper": 3.5, "most": 4}
    assert str(result).splitlines() == [
        "6 topics: 2 groups of 2, 3 negatives (1.50 a group: 1 with 3, 1 with 0)",
        "left out: 2 topics without a relevant document",
        "left out: 1 topic without hits",
        "left out: 1 missing relevant document",
        "left out: 1 relevant document without text",
        "left out: 1 candidate without text",
        "ranks of the negatives: 2 to 4, the median 3, half of them 2.5 to 3.5",
        "ranks of the relevant documents: 1 to 2, the median 1.5, half of them 1.25 to 1.75",
    ]


class Blank(Shelf):
    """Documents of which some have no text at all."""

    def docs(self, ids: Iterable[str]) -> list[Doc]:
        return [Doc(i, "") if i in ("blank", "empty") else super(Blank, self).docs([i])[0] for i in ids]


def recipe(run: Run, topics: Topics, qrels: Qrels, texts: dict[str, str]) -> list[dict[str, object]]:
    """The recipe of the CheckThat! 2025 report, word by word."""
    lines = []
    hits = run.to_dict()
    for topic in topics.values():
        rows = sorted(hits.get(topic.id, {}).items(), key=lambda row: (row[1], row[0]), reverse=True)
        golds = [doc_id for doc_id, grade in qrels.get(topic.id, {}).items() if grade >= 1]
        if not rows or not golds:
            continue
        for gold in sorted(golds):
            five = [doc_id for doc_id, _ in rows[:5]]
            if gold not in five:
                five = [*five[:4], gold]
            lines.append(
                {
                    "topic": topic.id,
                    "positive": (gold, texts[gold]),
                    "negatives": [(doc_id, texts[doc_id]) for doc_id in five if doc_id not in golds],
                }
            )
    return lines


@each("seed", range(20))
def test_air2025_is_the_reports_recipe(seed: int) -> None:
    rng = random.Random(seed)
    names = ids(12)
    texts = {name: f"A title {rng.choice('abc')} twice the same" for name in names}
    shelf = Shelf(names, **{name: text.removeprefix("A title ") for name, text in texts.items()})
    topics = Topics.of({f"q{n}": f"query {n}" for n in range(12)})
    rows = {t: {d: rng.choice((1.0, 2.0, 3.5)) for d in rng.sample(names, rng.choice((0, 1, 3, 5, 9)))} for t in topics}
    qrels = Qrels.of({t: {d: rng.choice((0, 1, 2)) for d in rng.sample(names, rng.choice((1, 2, 3)))} for t in topics})
    one = Run.of(rows, topics).with_(documents=shelf)
    result = mine_negatives(one, topics, qrels, preset="air2025")
    plain = [
        {
            "topic": one.topic,
            "positive": (one.positive.id, one.positive.text),
            "negatives": [(negative.id, negative.text) for negative in one.negatives],
        }
        for one in result.examples
    ]
    assert plain == recipe(one, topics, qrels, texts)
    assert result.left_out.get("no_gold", 0) + result.left_out.get("no_hits", 0) == 12 - len(result.examples.topics)


def test_a_missing_relevant_document_takes_the_fifth_place() -> None:
    shelf = Shelf([*ids(8), "gold"])
    assert negatives(mined(ids(8), {"gold": 1}, shelf, preset="air2025")) == [["d01", "d02", "d03", "d04"]]
    assert negatives(mined(ids(8), {"d07": 1}, shelf, preset="air2025")) == [["d01", "d02", "d03", "d04"]]
    assert negatives(mined(ids(8), {"d02": 1}, shelf, preset="air2025")) == [["d01", "d03", "d04", "d05"]]
    assert negatives(mined(ids(8), {"d02": 1, "d07": 1}, shelf, preset="air2025")) == [
        ["d01", "d03", "d04", "d05"],
        ["d01", "d03", "d04"],
    ]
    assert negatives(mined(ids(3), {"gold": 1}, shelf, preset="air2025")) == [["d01", "d02", "d03"]]
    assert negatives(mined(ids(1), {"d01": 1}, shelf, preset="air2025")) == [[]]


@dataclass(frozen=True)
class Asked(Stage[Topics, Run]):
    """Gives hits of its own, and writes down how many it was asked for."""

    k: int = 1000
    depth_field = "k"

    def apply(self, topics: Topics, /) -> Run:
        report = reporter()
        DEPTHS.append((self.k, list(topics)))
        report(Progress("finding", 1, 1, 0.1))
        return run({topic: ids(self.k)[:50] for topic in topics}, Shelf(ids(60)))


DEPTHS: list[tuple[int, list[str]]] = []


def test_a_stage_is_asked_for_as_many_hits_as_are_needed() -> None:
    DEPTHS.clear()
    qrels = {"q1": {"d40": 1}}
    seen: list[Progress] = []
    result = mine_negatives(Asked(), TOPICS, qrels, per_positive=2, ranks=(1, 10), progress=seen.append)
    assert DEPTHS == [(10, ["q1"])]
    assert negatives(result) == [["d01", "d02"]]
    assert {progress.task for progress in seen} == {"finding", "mining"}
    # A margin needs the score of the relevant document, wherever it lies.
    assert negatives(mine_negatives(Asked(), TOPICS, qrels, per_positive=2, ranks=(30, 50), margin=2)) == [["d44", "d45"]]
    assert DEPTHS[1] == (1000, ["q1"])


def test_the_query_is_the_text_of_the_run_where_it_has_one() -> None:
    hits = run({"q1": ids(3)})
    assert mine_negatives(hits, TOPICS, {"q1": {"d01": 1}}).examples[0].query == "what about q1"
    bare = Run.of({"q1": {"d01": 2.0, "d02": 1.0}}).with_(documents=Shelf(ids(3)))
    assert mine_negatives(bare, TOPICS, {"q1": {"d01": 1}}).examples[0].query == "one"


def test_scores_are_written_as_the_float32_that_they_are() -> None:
    one = Run.of({"q1": {"d01": 0.1, "d02": np.float32(1 / 3)}}).with_(documents=Shelf(ids(3)))
    result = mine_negatives(one, TOPICS, {"q1": {"d01": 1}})
    assert repr(result.examples[0].negatives[0].score) == "0.33333334"


def test_mining_is_at_hand_and_its_result_is_taken_where_examples_are() -> None:
    assert ft.mine_negatives is mine_negatives
    assert PRESETS["air2025"].ranks == (1, 5)
    result = mined(ids(8), {"d02": 1})
    assert Examples.of(result) is result.examples


def test_near_duplicates_of_the_relevant_claim_never_become_negatives_on_checkthat(shared: Path, tmp_path: Path) -> None:
    folder = shared / "checkthat20_task2"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    index = ft.Index.build(folder / "corpus.jsonl", tmp_path / "c.index")
    topics, qrels = Topics.read(folder, split="train"), Qrels.of(folder, split="train")
    hits = (index.bm25() % 20)(topics)
    guarded, air = mine_negatives(hits, topics, qrels), mine_negatives(hits, topics, qrels, preset="air2025")
    assert (len(guarded.examples), len(air.examples)) == (801, 801)
    letters = str.maketrans("", "", " '\"‘’“”.")

    def doubled(result: Mined) -> int:
        texts = [(e.positive.text, {n.text.translate(letters) for n in e.negatives}) for e in result.examples]
        return sum(positive.translate(letters) in others for positive, others in texts)

    assert doubled(guarded) == 0
    assert doubled(air) > 100
    texts = {doc.id: f"{doc.title} {doc.text}".strip() for doc in index.docs(index.ids)}
    plain = [(e.topic, (e.positive.id, e.positive.text), [(n.id, n.text) for n in e.negatives]) for e in air.examples]
    assert plain == [tuple(line.values()) for line in recipe(hits, topics, qrels, texts)]
