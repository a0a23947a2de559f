"""BM25 whose parameters are tuned by folds of the measured topics."""

from pathlib import Path

import pytest

from fontes import Doc, Index, Qrels, Topic, Topics, evaluate, tune
from fontes.recipes.folds import OutOfFold, tune_by_folds
from fontes.train import Side

SPACE = {"k1": [0.2, 2.0], "b": [0.0, 1.0]}
WORDS = "gale pump seal weir lock kiln barge quay".split()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Each word is twice in a long document, and once in a short one: b decides which is first."""
    long = [Doc(f"long-{word}", f"{word} {word} {'filler ' * 9}") for word in WORDS]
    return Index.build([*long, *(Doc(f"short-{word}", f"{word} here") for word in WORDS)], tmp_path / "index")


def side_of(relevant: dict[str, str]) -> Side:
    """Topics of one word each, with their relevant documents."""
    topics = Topics(Topic(word, word) for word in relevant)
    return Side(topics, Qrels.of({word: {doc: 1} for word, doc in relevant.items()}))


def test_each_topic_is_searched_with_what_is_best_without_it(index: Index) -> None:
    relevant = {word: f"long-{word}" for word in WORDS[:-1]} | {WORDS[-1]: f"short-{WORDS[-1]}"}
    side = side_of(relevant)
    tuned = tune_by_folds(index.bm25(), SPACE, side, "RR@10")
    assert tuned is not None
    stage, said = tuned
    run = stage(side.topics)
    assert run.documents is index.state
    for word in WORDS:  # what is best on the other folds, by a search of our own
        others = Topics(topic for topic in side.topics.values() if stage.fold_of[topic.id] != stage.fold_of[word])
        best = tune(index.bm25(), SPACE, others, side.qrels.only(others), "RR@10", folds=2).stage
        assert run[word].ids == best(Topics([Topic(word, word)]))[word].ids
    assert evaluate(run, side.qrels, ["RR@10"])["RR@10"] < 1  # the last is found with what is best for the others
    assert ": for each of 8 topics the values" in said
    assert sum(int(part.rpartition("(")[2].split()[0]) for part in said.split(": for each")[0].split("; ")) == 5


def test_a_topic_without_judgments_is_searched_with_what_is_best_for_all(index: Index) -> None:
    side = side_of({word: f"long-{word}" for word in WORDS[:5]})
    tuned = tune_by_folds(index.bm25(), SPACE, side, "RR@10")
    assert tuned is not None
    topics = Topics([*side.topics.values(), Topic("new", WORDS[6])])
    assert tuned[0](topics)["new"].ids == tuned[0].stages[-1](topics)["new"].ids == [f"long-{WORDS[6]}", f"short-{WORDS[6]}"]
    assert list(tuned[0](topics)) == list(topics)


def test_topics_that_share_a_relevant_document_are_in_one_fold(index: Index) -> None:
    shared = side_of(dict.fromkeys(WORDS[:4], "long-gale") | {"lock": "long-lock", "kiln": "long-kiln"})
    tuned = tune_by_folds(index.bm25(), SPACE, shared, "RR@10")
    assert tuned is not None
    assert len({tuned[0].fold_of[word] for word in WORDS[:4]}) == 1
    assert len(set(tuned[0].fold_of.values())) == 3
    assert tune_by_folds(index.bm25(), SPACE, side_of(dict.fromkeys(WORDS, "long-gale")), "RR@10") is None


def test_other_folds_are_another_system_for_the_cache(index: Index) -> None:
    stages = tuple(index.bm25(k1=value) for value in (0.5, 1.0, 2.0))
    one, other = (OutOfFold(stages, {"gale": fold}) for fold in (0, 1))
    assert one.key() != other.key()
    assert None not in (one.key(), other.key())
    assert "gale" not in repr(one)
