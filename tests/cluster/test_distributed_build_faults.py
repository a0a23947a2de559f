"""A build on a cluster by Ray, undisturbed and disturbed: killed workers, nodes and drivers, full disks."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from cluster.test_distributed_build import collection, digests, lines
from support import ray_parts
from support.one_by_one import one_by_one, small_parts
from support.processes import small_disk

from fontes.cluster import building
from fontes.core import FontesError
from fontes.index import Index
from fontes.index.leftovers import clean, leftovers

DRIVER = """
    import os, signal, sys
    from support import ray_parts
    from fontes.index import Index
    from fontes.cluster import building
    building.MIN_PART, building.PART, building.make_part = 1, int(sys.argv[4]), ray_parts.counted_part
    ended = 0
    def killed(progress):
        global ended
        ended += 1
        if ended == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    Index.build(sys.argv[1], sys.argv[2], ray=sys.argv[3], progress=killed)
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "corpus.jsonl"
    path.parent.mkdir()
    path.write_bytes(lines(collection()))
    Index.build(path, path.parent / "one")
    return path


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_worker_killed_in_a_segment_and_one_killed_in_a_merge_change_nothing(ray, corpus, out, monkeypatch):
    small_parts(monkeypatch, corpus.stat().st_size // 4, 3)
    monkeypatch.setattr(building, "make_part", ray_parts.part_that_dies_once)
    monkeypatch.setattr(building, "make_merge", ray_parts.merge_that_dies_once)
    Index.build(corpus, out / "x", ray=ray)
    assert digests(out / "x") == digests(corpus.parent / "one")
    assert sorted(entry.name for entry in out.iterdir()) == ["died-merge", "died-part", "x"]


@pytest.mark.slow
def test_a_driver_killed_and_started_again_goes_on_with_the_parts_that_are_finished(ray, corpus, out, monkeypatch):
    part = corpus.stat().st_size // 8
    arguments = [str(corpus), str(out / "x"), ray, str(part)]
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(DRIVER), *arguments], check=False, env=environment())
    assert killed.returncode == -signal.SIGKILL
    assert not (out / "x").exists()
    (left,) = leftovers(out / "x")
    assert (left.path.name, left.what, left.in_use) == (".x.building-in_parts", "an unfinished x", False)
    small_parts(monkeypatch, part)
    monkeypatch.setattr(building, "make_part", ray_parts.counted_part)
    Index.build(corpus, out / "x", ray=ray)
    assert digests(out / "x") == digests(corpus.parent / "one")
    names = [entry.name for entry in out.iterdir()]
    assert sum(name.startswith("before-") for name in names) >= 3
    assert not any(name.startswith(".") for name in names)


def test_a_damaged_part_and_a_part_of_another_input_are_built_again(corpus, out, monkeypatch):
    one_by_one(monkeypatch, corpus.stat().st_size // 4)
    with monkeypatch.context() as patch:
        patch.setattr(building, "make_merge", _lost)
        with pytest.raises(FontesError, match="lost"):
            Index.build(corpus, out / "x", ray=True)
    (folder,) = out.iterdir()
    first, *_ = sorted(folder.glob("part-*"))
    file = first / "doc_ids.bytes.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    monkeypatch.setattr(building, "make_part", ray_parts.counted_part)
    Index.build(corpus, out / "x", ray=True)
    assert digests(out / "x") == digests(corpus.parent / "one")
    done = sorted(entry.name for entry in out.iterdir() if entry.name != "x")
    assert [name.partition("-")[0] for name in done].count("new") == 1
    assert f"new-{first.name}" in done


def test_what_a_stopped_build_has_left_goes_with_another_build_and_with_clean(corpus, out, monkeypatch):
    one_by_one(monkeypatch, corpus.stat().st_size // 4)
    monkeypatch.setattr(building, "make_merge", _lost)
    for name in ("x", "y"):
        with pytest.raises(FontesError, match="lost"):
            Index.build(corpus, out / name, ray=True)
    assert sorted(entry.name for entry in out.iterdir()) == [".x.building-in_parts", ".y.building-in_parts"]
    Index.build(corpus, out / "x")
    assert sorted(entry.name for entry in out.iterdir()) == [".y.building-in_parts", "x"]
    gone, staying = clean(out / "y")
    assert (len(gone), staying) == (1, [])
    assert [entry.name for entry in out.iterdir()] == ["x"]


def test_a_second_build_at_the_same_place_is_refused_while_the_first_runs(corpus, out, monkeypatch):
    one_by_one(monkeypatch, corpus.stat().st_size // 2)

    def second(progress: object) -> None:
        with pytest.raises(FontesError, match=r"x is being built by another process; wait until that is done"):
            Index.build(corpus, out / "x", ray=True)

    Index.build(corpus, out / "x", ray=True, progress=second)
    assert digests(out / "x") == digests(corpus.parent / "one")


@pytest.mark.slow
def test_a_full_disk_in_a_task_is_one_sentence_and_leaves_nothing(ray, corpus, tmp_path, monkeypatch):
    small_parts(monkeypatch, corpus.stat().st_size // 2)
    with small_disk(tmp_path / "disk", "300k") as disk:
        with pytest.raises(FontesError, match=r"x cannot be written: No space left on device; nothing was changed"):
            Index.build(corpus, disk / "x", ray=ray)
        left = [entry for entry in disk.rglob("*") if entry.is_file()]
        assert left == []


@pytest.mark.slow
def test_a_node_killed_in_a_build_changes_nothing(corpus, out):
    script = """
        import sys, threading, time
        from pathlib import Path
        from ray.cluster_utils import Cluster
        from support import ray_parts
        from fontes.index import Index
        from fontes.cluster import building
        building.MIN_PART, building.PART, building.make_part = 1, int(sys.argv[3]), ray_parts.slow_part
        memory = {"object_store_memory": 80_000_000, "memory": 2_000_000_000, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **memory})
        other, third = cluster.add_node(num_cpus=1, **memory), cluster.add_node(num_cpus=1, **memory)
        out = Path(sys.argv[2])
        def kill():
            while len(list(out.parent.glob("begun-*"))) < 3:
                time.sleep(0.05)
            cluster.remove_node(other, allow_graceful=False)
            print("killed", flush=True)
        threading.Thread(target=kill, daemon=True).start()
        Index.build(sys.argv[1], out, ray=cluster.address)
        cluster.shutdown()
    """
    arguments = [str(corpus), str(out / "x"), str(corpus.stat().st_size // 9)]
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    ended = subprocess.run(command, check=False, env=environment(), capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "killed" in ended.stdout
    assert digests(out / "x") == digests(corpus.parent / "one")


def environment() -> dict[str, str]:
    folders = [str(Path(ray_parts.__file__).parent.parent), str(Path(building.__file__).parents[3])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "RAY_USAGE_STATS_ENABLED": "0"}


def _lost(merge: object) -> None:
    raise FontesError("lost")
