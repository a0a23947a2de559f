"""Token vectors that are damaged, or of a stranger: compiled loops never read beside them, and nothing waits for ever."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.damage import forge
from support.damaged_indexes import Fake
from support.forged import forged_artifact

from fontes.core import FontesError, IndexFormatError
from fontes.index import Index
from fontes.neural.late.encode import encode_late
from fontes.neural.late.store import JoinedTokens, scores_of, stored_tokens

DOCS = [{"_id": f"d{n:02}", "text": f"w{n % 7} w{n % 11} w{n}"} for n in range(40)]
QUERIES = Fake().encode_queries(["w1 w2", "w30"])


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = Index.build(DOCS[:36], tmp_path_factory.mktemp("late") / "x.index", analyzer="whitespace", threads=1)
    for nbits in (4, 16):
        encode_late(index, Fake(), nbits=nbits, centroids=8)
    return index.path


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "x.index"))


@pytest.mark.parametrize("nbits", [4, 16])
@pytest.mark.parametrize("width", [4, 9, 64])
def test_vectors_of_other_dimensions_than_the_model_has_are_damage(copy: Path, nbits: int, width: int) -> None:
    model: Any = Fake(width=width)
    store = stored_tokens(Index.open(copy), model, nbits)
    (query,) = model.encode_queries(["w1 w2"])
    uses: list[Callable[[], object]] = [lambda: store.candidates(query, 2, 0.3, 8), lambda: store.scores(query, np.arange(3))]
    for use in uses:
        with pytest.raises(IndexFormatError, match=f"vectors of 8 dimensions, those of its model have {width}; make it again"):
            use()
    with pytest.raises(FontesError, match="dimensions"):
        scores_of(store, [query], np.arange(3))
    index = Index.open(copy)
    index.add(DOCS[36:], threads=1)
    with pytest.raises(FontesError, match="dimensions"):
        encode_late(index, model, nbits=nbits)


def searched(store: JoinedTokens) -> list[list[float]]:
    return [store.scores(query, store.candidates(query, 2, 0.3, 8)).tolist() for query in QUERIES]


@pytest.mark.parametrize("forged", [False, True])
@pytest.mark.parametrize("name", ["lists.bounds", "bounds"])
def test_descending_bounds_are_damage_that_no_search_and_no_merge_follows(copy: Path, name: str, forged: bool) -> None:
    file = next(copy.glob(f"segment-*/late-*-4/{name}.npy"))
    np.save(file, np.load(file)[::-1].copy())
    if forged:
        forge(copy, file)
    index = Index.open(copy)
    with pytest.raises(IndexFormatError, match=rf"{name}\.npy is damaged: it does not rise from 0"):
        stored_tokens(index, Fake(), 4)  # type: ignore[arg-type]
    index.add(DOCS[36:], threads=1)
    assert len(index) == len(DOCS)
    with pytest.raises(IndexFormatError, match=rf"{name}\.npy is damaged"):
        index.delete([doc["_id"] for doc in DOCS[:20]])  # of more than half of a segment, which is merged
    assert len(Index.open(copy)) == len(DOCS)


@pytest.mark.parametrize(
    "changes", [{"centroids": 0}, {"recall": None}, {"fingerprint": 7}, {"tokens": -1}, {"dim": "8"}], ids=repr
)
def test_metadata_of_another_type_are_damage(copy: Path, changes: dict[str, Any]) -> None:
    for folder in copy.glob("segment-*/late-*"):
        forged_artifact(folder, lambda meta: meta.update(changes))
    for nbits in (4, 16):
        with pytest.raises(IndexFormatError, match=r"artifact\.json has no|has 0 centroids|damaged"):
            searched(stored_tokens(Index.open(copy), replace(Fake()), nbits))  # type: ignore[arg-type]
