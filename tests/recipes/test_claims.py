"""The recipe claims: what is tuned, trained and chosen, on which topics, and what is refused."""

import itertools
from pathlib import Path

import pytest
from support.posts import collection
from support.threads import one_thread as one_thread
from support.tiny_cross_encoder import save_cross_encoder
from support.tiny_splade import splade
from support.tiny_training import no_curves as no_curves

import fontes as ft
from fontes.core import Doc
from fontes.recipes import Claims, RecipeResult
from fontes.rewrite import PlainPosts

pytestmark = pytest.mark.usefixtures("one_thread")
TRIED = {"k1": "0.5 1.5", "b": "0.1 0.9"}


@pytest.fixture(scope="module")
def result(start: str, tmp_path_factory: pytest.TempPathFactory) -> RecipeResult:
    """The recipe with all that it can have, on 30 posts with handles."""
    docs, posts, qrels = collection()
    folder = tmp_path_factory.mktemp("claims")
    sparse = str(splade(tmp_path_factory.mktemp("splade")))
    recipe = Claims(start=start, sparse=sparse, candidates=5, precision="float32", held_out=0.3, **TRIED)
    typed = {topic: f"@{text.replace(' ', ' #')} https://t.co/x" for topic, text in posts.items()}
    return recipe.run(docs, typed, qrels, folder)


@pytest.mark.slow
def test_all_that_is_trained_and_chosen_is_noted(result: RecipeResult) -> None:
    assert result.learning is not None
    notes = {note["role"]: note for note in result.learning.notes if "measure" not in note}
    choices = {note["role"]: note for note in result.learning.notes if "measure" in note}
    assert set(notes) == {"encoder", "reranker", "sparse"}
    assert (notes["encoder"]["kind"], notes["reranker"]["kind"]) == ("bi-encoder", "cross-encoder")
    assert set(choices) == {"tuned", "dense", "sparse", "fused", "reranked", "claims"}
    assert len(choices["fused"]["weights"]) == 3
    train, dev, measured = (len(one) for one in (result.learning.train.topics, result.learning.dev.topics, result.runs["bm25"]))
    assert (train, dev, measured) == (17, 7, 6)
    assert choices["tuned"]["topics"] == 24  # those to learn from too: nothing of BM25 is learned from them
    assert choices["fused"]["topics"] == choices["dense"]["topics"] == 7
    page = (result.folder / "recipe.md").read_text()
    assert "\n\ntuned: k1 " in page
    assert "\n\nfused: weights " in page


def test_bm25_is_tuned_on_the_training_and_validation_topics(result: RecipeResult) -> None:
    assert result.learning is not None
    choice = next(note for note in result.learning.notes if note["role"] == "tuned")
    docs, _, _ = collection()
    index = ft.Index.build(docs, result.folder / "again", analyzer="english")
    topics = ft.Topics([*result.learning.train.topics.values(), *result.learning.dev.topics.values()])
    qrels = ft.Qrels([*result.learning.train.qrels.rows(), *result.learning.dev.qrels.rows()])
    values = {}
    for k1, b in itertools.product((0.5, 1.5), (0.1, 0.9)):
        run = (PlainPosts() >> index.bm25(k1=k1, b=b) % 20)(topics)
        values[f"k1 {k1:g}, b {b:g}"] = ft.evaluate(run, qrels, "RR@5")["RR@5"]
    assert choice["value"] == pytest.approx(max(values.values()))
    assert values[choice["choice"]] == max(values.values())


def test_each_system_is_made_of_the_ones_before_it(result: RecipeResult) -> None:
    assert list(result.runs) == ["bm25", "tuned", "dense", "sparse", "fused", "reranked", "claims"]
    assert result.report is not None
    assert result.report.baseline == "claims"
    fused, reranked, claims = (result.runs[name] for name in ("fused", "reranked", "claims"))
    for topic in fused:
        assert set(reranked[topic].ids) == set(claims[topic].ids) == set(fused[topic].ids[:5])
        assert not fused.topics[topic].text.startswith("@")
    reading = next(note["choice"] for note in result.learning.notes if note["role"] == "reranked")  # type: ignore[union-attr]
    stages = result.to_dict()["systems"]["reranked"]["stages"]
    assert ("as_typed() >> cross_encoder" in stages) == (reading == "as they are")
    weights = next(note["weights"] for note in result.learning.notes if note["role"] == "claims")  # type: ignore[union-attr]
    again = ft.fuse(fused.top(5), reranked, method="wsum", weights=weights)
    assert again == claims.with_(provenance=again.provenance)


def test_models_that_are_given_are_not_trained_and_posts_may_stay_as_they_are(start: str, tmp_path: Path) -> None:
    docs, posts, qrels = collection()
    reranker = str(save_cross_encoder(tmp_path / "reranker"))
    recipe = Claims(start=start, encoder=start, reranker=reranker, posts=None, candidates=5, held_out=0.3, k1="1", b="0.5")
    result = recipe.run(docs, posts, qrels, tmp_path / "out")
    assert not (tmp_path / "out" / "models").exists()
    assert list(result.runs) == ["bm25", "tuned", "dense", "fused", "reranked", "claims"]
    stages = {name: one["stages"] for name, one in result.to_dict()["systems"].items()}
    assert stages["tuned"] == "bm25(k1=1.0, b=0.5)"
    assert result.learning is not None
    assert [note["role"] for note in result.learning.notes] == ["encoder", "fused", "reranker", "claims"]


def test_near_duplicates_are_on_no_side_twice() -> None:
    docs = [Doc(f"d{n}", f"text {n}") for n in range(8)]
    words = ["masks", "bread", "harbour", "rain", "ships", "school", "cats", "tax"]
    posts = {f"q{n}": f"Did the {word} really come to this town in {1990 + n}?" for n, word in enumerate(words)}
    posts["again"] = posts["q3"].upper()
    qrels = {topic: {docs[0].id: 1} for topic in posts}
    measured, _, learning = Claims(test=0.25).divide(ft.Topics.of(posts), ft.Qrels.of(qrels), None, None)
    assert learning is not None
    sides = [*measured, *learning.train.topics, *learning.dev.topics]
    assert len(sides) == len(set(sides)) == 8
    assert len({"q3", "again"} & set(sides)) == 1
