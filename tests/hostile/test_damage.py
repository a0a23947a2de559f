"""Files that are damaged, header edits and metadata made to fit included: searches never crash and never believe them.

Each trial changes one file of an index or of the cache, in a process of its own kind that may crash; see `support.trials`.
`make test` does some dozens, `make test-all` some thousands.
"""

import os
from collections import Counter
from pathlib import Path

import pytest
from support.trials import build, outcomes

SOME = 25
MANY = int(os.environ.get("FONTES_TRIALS", 5_000))
CACHES = ("runs", "approximate")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage")
    build(folder)
    return folder


@pytest.mark.parametrize("trials", [range(SOME), pytest.param(range(SOME, MANY), marks=pytest.mark.slow)], ids=["some", "many"])
@pytest.mark.slow
def test_damage_is_refused_in_one_sentence_or_harmless_or_found_by_checksums(root: Path, trials: range) -> None:
    results = outcomes(root, trials)
    assert len(results) == len(trials)
    kinds = Counter(result["outcome"].partition(":")[0] for result in results)
    assert not [result for result in results if result["outcome"].startswith(("crash", "raw"))]
    assert set(kinds) <= {"right", "refused", "wrong, but verified", "wrong, and forged"}
    assert kinds["refused"] > len(trials) // 3
    for result in results:
        if result["file"].startswith("cache/"):
            assert result["outcome"] == "right", result
        if result["outcome"].startswith("refused"):
            assert "\n" not in result["outcome"]
            assert str(root) in result["outcome"]  # the file or the folder that is at fault


@pytest.mark.slow
def test_trials_reach_every_kind_of_file(root: Path) -> None:
    sound = {str(file.relative_to(root / "sound")) for file in (root / "sound").rglob("*") if file.is_file()}
    there = "\n".join(sorted(sound))
    names = ["deleted-", "vectors-", "late-", "sparse-", "column-", "text.bytes", "postings", "bounds.npy", "scales.npy"]
    for name in [*names, "manifest.json", "artifact.json", "residuals.npy", *(f"cache/{cache}" for cache in CACHES)]:
        assert name in there
