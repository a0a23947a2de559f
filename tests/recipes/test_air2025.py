"""The recipe air2025: its steps against the report, its division of the real tweets, and runs of others beside it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.posts import air, beir, collection
from support.punkt import punkt as punkt
from support.threads import one_thread as one_thread
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_training import no_curves as no_curves
from typer.testing import CliRunner

import fontes as ft
from fontes.app import cli
from fontes.core import Doc, Qrels, Run, Topics
from fontes.recipes import Air2025, learning as training
from fontes.recipes.result import OtherRuns
from fontes.train import Mined

DATA = Path(__file__).parents[3] / "shared" / "data" / "checkthat25_4b"
REAL = pytest.mark.skipif(not DATA.is_dir(), reason="the test collections are not here")
PUBLISHED = {  # RR@5 of participants' runs, as others computed it
    "dev.leon_predictions_BM25_TOP10": 0.5523,
    "dev.leon_predictions_SciBERT_TOP10": 0.7084,
    "test.leon_predictions_BM25_TOP10": 0.4314,
    "test.leon_predictions_SciBERT_TOP10": 0.6828,
}
pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Tweets:
    """The real tweets with the judgments of two splits, apart and together, and how the recipe divides them."""

    topics: Topics
    both: list[Qrels]
    qrels: Qrels
    divided: Any


@pytest.fixture(scope="module")
def tweets() -> Tweets:
    topics = ft.read_topics(DATA / "queries.jsonl")
    both = [ft.read_qrels(DATA / "qrels" / f"{split}.tsv") for split in ("train", "dev")]
    qrels = Qrels(row for one in both for row in one.rows())
    return Tweets(topics, both, qrels, Air2025().divide(topics, qrels, None, None))


@REAL
def test_the_real_tweets_are_merged_and_divided_as_published(tweets: Tweets) -> None:
    assert len(tweets.qrels) == 14_253
    measured, judged, learning = tweets.divided
    assert judged is not None
    assert learning is not None
    learned = {**learning.train.topics, **learning.dev.topics}
    assert (len(learned), len(measured)) == (11_392, 2_848)  # of 14,240
    assert len({topic.text for topic in [*learned.values(), *measured.values()]}) == 14_240
    assert set(measured) == set(judged)
    assert len(learning.dev.topics) == 1_139


@REAL
@pytest.mark.slow
def test_another_seed_divides_the_real_tweets_otherwise(tweets: Tweets) -> None:
    other = Air2025(seed=1).divide(tweets.topics, tweets.qrels, None, None)
    assert len(other[0]) == 2_848
    assert set(other[0]) != set(tweets.divided[0])


@REAL
def test_the_runs_of_participants_are_measured_on_their_own_tweets() -> None:
    qrels = Qrels(row for split in ("train", "dev", "test") for row in ft.read_qrels(DATA / "qrels" / f"{split}.tsv").rows())
    paths = sorted((DATA / "runs").glob("*.trec"))
    others = OtherRuns.of(paths, Topics.of({"elsewhere": "a topic"}), qrels, [ft.RR @ 5])
    assert len(others.apart) == 6
    for name, value in PUBLISHED.items():
        interval = others.apart[name]["RR@5"]
        assert interval.mean == pytest.approx(value, abs=5e-5)
        assert interval.low < interval.mean < interval.high
        assert interval.topics == len(ft.read_qrels(DATA / "qrels" / f"{name.partition('.')[0]}.tsv"))
        half = 1.96 * 0.45 / interval.topics**0.5  # reciprocal ranks of 0 and 1 mostly, of a deviation of about .45
        assert interval.high - interval.low == pytest.approx(2 * half, rel=0.15)


@REAL
def test_as_run_divides_the_real_tweets_as_pandas_and_scikit_learn_do(tweets: Tweets) -> None:
    selection, pandas = pytest.importorskip("sklearn.model_selection"), pytest.importorskip("pandas")
    topics = tweets.topics
    measured, judged, learning = Air2025().set(["as=run"]).divide(topics, tweets.qrels, None, None)
    frames = [pandas.DataFrame([(t, topics[t].text, *one[t]) for t in topics if t in one]) for one in tweets.both]
    distinct = pandas.concat(frames, ignore_index=True).drop_duplicates(subset=[1])
    train, test = selection.train_test_split(distinct, test_size=0.2, random_state=42)
    assert learning is not None
    assert judged is not None
    assert not learning.dev.topics
    assert (set(learning.train.topics), set(measured)) == (set(train[0]), set(test[0]))
    assert (len(train), len(test)) == (11_392, 2_848)
    assert {t: set(judged[t]) for t in judged} == dict(zip(test[0], ({doc} for doc in test[2]), strict=True))
    assert len(set(tweets.divided[0]) & set(measured)) < 600  # another draw


@pytest.mark.slow
def test_as_run_learns_from_all_other_posts_to_the_last_state(start: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    recipe = air(start, seed=1).set(["seed=7", "as=run", "epochs=1"])
    result = recipe.run(docs, posts, qrels, tmp_path)
    assert list(result.runs) == ["bm25", "reranked"]
    assert result.learning is not None
    (model,) = result.learning.notes
    assert (model["queries"], model["best"]) == (24, model["steps"])
    settings = json.loads((Path(model["model"]) / "training.json").read_text())["settings"]
    expected = {
        "held_out": 0,
        "warm_up": 10_000,
        "weight_decay": 0.01,
        "order": "shuffled",
        "best": "last",
        "seed": 7,
        "epochs": 1,
    }
    assert {name: settings[name] for name in expected} == expected
    assert "interpolated" not in (tmp_path / "recipe.md").read_text()


@pytest.mark.slow
def test_their_other_systems_are_rows_of_model_folders_beside_the_published_figures(start: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    ready = str(save_cross_encoder(tmp_path / "ready"))
    recipe = air(start, reranker=ready, start_1to1=start, candidates_1to1=7, e5_large=start, minilm_l12=start)
    result = recipe.run(docs, posts, qrels, tmp_path / "out")
    assert list(result.runs) == ["bm25", "reranked", "interpolated", "reranked-1to1", "e5-large", "minilm-l12"]
    assert result.learning is not None
    note = next(note for note in result.learning.notes if note["role"] == "reranked-1to1" or "rows" in note)
    assert note["rows"] == 2 * note["queries"]  # one pair of the relevant document, one of another
    settings = json.loads((Path(note["model"]) / "training.json").read_text())["settings"]
    assert (settings["epochs"], settings["warm_up"], settings["best"]) == (1, 100, "last")
    assert {len(ranking) for ranking in result.runs["reranked-1to1"].values()} == {7}
    figures = {(row["system"], row["measure"]): row for row in result.published()}
    assert figures["e5-large", "RR@10"]["published"] == 0.6461
    assert figures["e5-large", "RR@10"]["here"] is not None
    assert figures["distilbert", "RR@5"] == {"system": "distilbert", "measure": "RR@5", "here": None, "published": 0.4280}
    page = (tmp_path / "out" / "recipe.md").read_text()
    assert "the encoders on the 1,400 tweets of development" in page
    assert "| reranked-1to1 | 0." in page
    assert "0.6352 |" in page


def test_a_preset_that_is_not_there_is_refused_with_those_that_are() -> None:
    assert Air2025().set(["as=report"]) == Air2025()
    assert Air2025().set(["as=all"]).minilm == "sentence-transformers/all-MiniLM-L6-v2"


def test_the_systems_are_those_of_the_report(start: str, tmp_path: Path, punkt: Path) -> None:
    docs, posts, qrels = collection()
    result = Air2025(start=start, candidates=4, epochs=1, precision="float32").run(docs, posts, qrels, tmp_path)
    stages = {name: system["stages"] for name, system in result.to_dict()["systems"].items()}
    assert stages["bm25"] == 'bm25(variant="okapi", k1=1.5, b=0.75) % 4'
    assert stages["reranked"].startswith(f"{stages['bm25']} >> cross_encoder(")
    assert stages["interpolated"].startswith("fuse(")
    assert {len(ranking) for ranking in result.runs["bm25"].values()} == {4}
    assert {topic: set(run.ids) for topic, run in result.runs["reranked"].items()} == {
        topic: set(run.ids) for topic, run in result.runs["bm25"].items()
    }


def test_bm25_is_rank_bm25_over_the_words_of_nltk_in_their_case(tmp_path: Path, punkt: Path) -> None:
    pytest.importorskip("nltk")
    from nltk.tokenize import word_tokenize

    docs = [ft.Doc("a", "Masks help. It is so."), ft.Doc("b", "masks don't, they say"), ft.Doc("c", "IT helps", "Bread")]
    docs += [ft.Doc(f"d{n}", f"word{n} other It") for n in range(6)]
    posts = {f"q{n}": text for n, text in enumerate(["Masks It", "masks help", "IT", "Bread", "they don't say", "so It is"])}
    ready = str(save_cross_encoder(tmp_path / "ready"))
    one = Air2025(start=ready, reranker=ready, candidates=4, held_out=0.5)
    result = one.run(docs, posts, {topic: {"a": 1} for topic in posts}, tmp_path)
    words = {doc.id: word_tokenize(f"{doc.title} {doc.text}".strip()) for doc in docs}
    df = Counter(word for terms in words.values() for word in set(terms))
    idf = {word: math.log((len(docs) - n + 0.5) / (n + 0.5)) for word, n in df.items()}
    floor = 0.25 * sum(idf.values()) / len(idf)  # rank_bm25's: epsilon times the mean, in place of what is below 0
    avgdl = sum(map(len, words.values())) / len(docs)

    def score(post: str, terms: list[str]) -> float:
        length = 1.5 * (1 - 0.75 + 0.75 * len(terms) / avgdl)
        tf = {word: terms.count(word) for word in word_tokenize(post) if word in terms}
        counted = [word for word in word_tokenize(post) if word in tf]
        return sum((idf[w] if idf[w] >= 0 else floor) * tf[w] * 2.5 / (tf[w] + length) for w in counted)

    for topic, ranking in result.runs["bm25"].items():
        for hit in ranking:
            assert hit.score == pytest.approx(score(posts[topic], words[hit.id]), rel=1e-5)


def test_only_a_run_with_the_measured_topics_is_compared(tmp_path: Path) -> None:
    folder = beir(tmp_path)
    _, _, qrels = collection()
    ids = list(qrels)
    right = {topic: {next(iter(qrels[topic])): 2.0, "d39": 1.0} for topic in ids}
    second = {topic: {next(iter(qrels[topic])): 1.0, "d39": 2.0} for topic in ids}
    ft.write_run(Run.of(second), tmp_path / "bm25.run")
    ft.write_run(Run.of({topic: right[topic] for topic in ids[:5]} | {"x": {"d1": 1.0}}), tmp_path / "few.run")
    ready = save_cross_encoder(tmp_path / "ready")
    settings = ("analyzer=standard", f"start={ready}", f"reranker={ready}", "candidates=4")
    command = ["recipe", "run", "air2025", *(f"--{name}={folder}" for name in ("collection", "topics", "qrels"))]
    command += ["--split=test", "--train=train", "--dev=dev", *(f"-s{text}" for text in settings)]
    command += ["--run", str(tmp_path / "bm25.run"), "--run", str(tmp_path / "few.run"), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(cli.app, command, catch_exceptions=False)
    assert "few: RR@5 1.0000 (1.0000 to 1.0000), R@5 1.0000" in result.stdout
    lock = json.loads((tmp_path / "out" / "experiment.lock").read_text())
    assert lock["systems"]["others/bm25"]["measures"]["RR@5"] == 0.5
    page = (tmp_path / "out" / "recipe.md").read_text()
    assert "## Runs of others\n\n| system | topics | RR@5 |" in page
    assert "| few | 5 | 1.0000 (1.0000 to 1.0000) |" in page
    assert "| others/bm25 | 8 | 0.5000 (0.5000 to 0.5000) |" in page


def test_hybrid_candidates_are_reranked_by_the_same_model_and_errors_are_counted(start: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    model = str(save_cross_encoder(tmp_path / "cross"))
    recipe = air(start, seed=1, reranker=model, dense=start)
    result = recipe.run(docs, posts, qrels, tmp_path / "out")
    assert list(result.runs) == ["bm25", "reranked", "interpolated", "hybrid", "reranked-hybrid"]
    hybrid, reranked = result.runs["hybrid"], result.runs["reranked-hybrid"]
    for topic in hybrid.topics:
        assert set(hybrid[topic].ids) == set(reranked[topic].ids)
        assert len(hybrid[topic].ids) == 5
        both = set(reranked[topic].ids) & set(result.runs["reranked"][topic].ids)
        scores = [dict(zip(run[topic].ids, run[topic].scores, strict=True)) for run in (reranked, result.runs["reranked"])]
        assert all(scores[0][doc] == pytest.approx(scores[1][doc], abs=1e-5) for doc in both)
    page = (tmp_path / "out" / "recipe.md").read_text()
    assert "\n## Errors of reranking\n" in page
    assert re.search(r"^\| reranked-hybrid \| 6 \| \d \| \d \| \d \| \d \| \d \| \d \| \d \|$", page, re.MULTILINE)
    (row,) = re.findall(r"^\| reranked \| runs/reranked.run \| (.*?) \|", page, re.MULTILINE)
    assert re.fullmatch(r".*cross \([0-9a-f]{8}\)", row.replace("\\", ""))
    assert "| bm25 | runs/bm25.run | none |" in page


def test_guarded_negatives_are_no_duplicates_of_the_relevant_document(
    start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, posts, qrels = collection()
    twins = [Doc(f"twin-{doc.id}", doc.text, doc.title) for doc in docs]
    mined, mine = [], training.mine_negatives

    def noted(*arguments: Any, **settings: Any) -> Mined:
        mined.append(mine(*arguments, **settings))
        return mined[-1]

    monkeypatch.setattr(training, "mine_negatives", noted)
    for guard in (False, True):
        recipe = air(start, seed=1, guard=guard, epochs=1, negatives=2, candidates=10, held_out=0.0)
        recipe.run([*docs, *twins], posts, qrels, tmp_path / str(guard))
    raw, guarded = (
        [(one.positive.id, {negative.id for negative in one.negatives}) for one in result.examples] for result in mined
    )
    assert any(f"twin-{positive}" in negatives for positive, negatives in raw)
    assert not any(f"twin-{positive}" in negatives for positive, negatives in guarded)
    assert [len(negatives) for _, negatives in guarded] == [2] * len(guarded)  # further hits replace the duplicates
