"""Units, keys and records of stages that reorder: what changes a ranking without a word."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.each import each
from support.hashed_encoder import Hashed, Parts
from support.reordered import candidates

from fontes.core import Run
from fontes.index import Index


@each(("text", "days"), [("12h", 0.5), ("36h", 1.5), ("10d", 10), ("2w", 14), ("1.5 w", 10.5), ("2y", 730)])
def test_a_half_life_as_a_text_is_one_in_days(shop: Index, text: str, days: float) -> None:
    assert shop.boost("date", half_life=text)(candidates(shop)) == shop.boost("date", half_life=float(days))(candidates(shop))
    origin = shop.boost("date", half_life=text, origin="2024-02-20")
    assert origin(candidates(shop)) == shop.boost("date", half_life=float(days), origin="2024-02-20")(candidates(shop))


def test_a_factor_of_0_changes_no_score(shop: Index) -> None:
    for stage in (shop.boost("sold", by=0, multiply=True), shop.boost(where="lang == 'cs'", by=0)):
        assert stage(candidates(shop)).to_dict() == candidates(shop).to_dict()


def test_each_boost_records_its_origin(shop: Index) -> None:
    first, second = shop.boost("date", half_life="10d"), shop.boost("sold", half_life=2)
    assert second(first(candidates(shop))).provenance["origins"] == {repr(first): "2024-01-31", repr(second): 3}


def test_an_infinite_value_of_another_document_does_not_matter(tmp_path: Path) -> None:
    docs = [{"_id": name, "text": "tea", "metadata": {"price": price}} for name, price in (("a", 1.5), ("b", float("inf")))]
    index = Index.build(docs, tmp_path / "x.index")
    assert index.boost("price")({"q": {"a": 1.0}}).to_dict() == {"q": {"a": 2.5}}


@each("stage", ['boost("sold")', 'sort("sold")', 'collapse("maker")', "mmr()"])
def test_a_document_that_does_not_match_is_explained_as_such(shop: Index, stage: str) -> None:
    from fontes.core.expression import pipeline

    whole = pipeline(f"bm25() >> {stage}", shop)
    assert "is not among the 4 documents" in whole.explain("tea", "e").label


def test_a_document_of_several_vectors_is_compared_by_their_mean(tmp_path: Path) -> None:
    texts = ["red fish swim green birds fly", "green birds fly", "red fish swim", "old stones lie", "green birds sing"]
    index, encoder = Index.build([(f"d{n}", text) for n, text in enumerate(texts)], tmp_path / "x.index"), Parts()
    index.encode(encoder)
    run = Run.of({"q": {f"d{n}": 5.0 - n for n in range(5)}})
    chosen = index.mmr(lambda_=0.0, encoder=encoder)(run)["q"]
    means = np.array(
        [
            np.mean(
                [encoder.encode_queries([" ".join(text.split()[i : i + 3])])[0] for i in range(0, len(text.split()), 3)], axis=0
            )
            for text in texts
        ]
    )
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosines = np.maximum(means @ means.T, 0.0)
    order = [int(doc_id[1:]) for doc_id in chosen.ids]
    greatest = [0.0, *(max(cosines[doc, other] for other in order[:n]) for n, doc in enumerate(order) if n)]
    assert chosen.scores.tolist() == pytest.approx([-value for value in greatest], abs=1e-6)


def test_the_key_of_mmr_is_of_its_vectors(tmp_path: Path) -> None:
    index, encoder = Index.build([("a", "tea"), ("b", "tea milk")], tmp_path / "x.index"), Hashed()
    other = Index.build([("a", "tea"), ("b", "tea milk")], tmp_path / "y.index")
    for one, salt in ((index, ""), (other, "salt")):
        one.encode(replace(encoder, salt=salt))
    digests = [one.embeddings(replace(encoder, salt=salt)).meta["digest"] for one, salt in ((index, ""), (other, "salt"))]
    keys = [index.mmr(encoder=encoder).key(), other.mmr(encoder=replace(encoder, salt="salt")).key()]
    assert all(key is not None and digest in key for key, digest in zip(keys, digests, strict=True))
    assert digests[0] not in str(index.mmr().key())


def test_a_document_that_resembles_none_is_compared_with_none(tmp_path: Path) -> None:
    index = Index.build([("a", "tea"), ("b", "stone"), ("c", "tea leaf")], tmp_path / "x.index")
    stage = index.bm25() >> index.mmr()
    unlike, like = (stage.explain("tea stone leaf", doc_id) for doc_id in ("b", "a"))
    assert "nearest of those chosen before" not in str(unlike)
    assert "to 'c', the nearest of those chosen before" in str(like)
