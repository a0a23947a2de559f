"""Joining a cluster, tasks and actors."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import ray_parts

from fontes.cluster import Actors, Cluster, joined, joining, map_unordered, map_with
from fontes.cluster.actors import in_order
from fontes.cluster.joining import translated
from fontes.core.errors import FontesError, InputError, MissingExtraError, ParameterError
from fontes.core.work import Progress, work


@pytest.fixture(scope="module")
def cluster(ray: str) -> Cluster:
    with joined(ray) as cluster:
        return cluster


def test_each_part_is_done_once(cluster: Cluster) -> None:
    results = dict(map_unordered(cluster, ray_parts.square, range(9), "squaring"))
    assert results == {number: number * number for number in range(9)}
    assert list(in_order(iter([(1, "b"), (0, "a"), (2, "c")]))) == ["a", "b", "c"]


def test_tasks_and_actors_belong_to_the_work_block_that_starts_them(cluster: Cluster) -> None:
    with work(threads=3, ray=True):
        assert list(map_unordered(cluster, ray_parts.threads_here, [1], "counting")) == [(0, (3, None))]
        with Actors(cluster, [ray_parts.Counter], "counting", cpus=0) as actors:
            assert actors.answers(ray_parts.threads_of_holder, 1) == [(3, None)]


def test_progress_counts_the_parts_of_actors_which_report_nothing_themselves(ray: str) -> None:
    told: list[Progress] = []
    with work(ray=ray, progress=told.append):
        results = map_with(ray_parts.Counter, ray_parts.reported_and_sum, range(9), "summing", None)
    assert results == list(range(9))
    assert [(progress.task, progress.done) for progress in told] == [("summing", done) for done in range(1, 10)]


def test_an_error_of_a_task_comes_back_as_itself(cluster: Cluster) -> None:
    with pytest.raises(InputError, match=r"^document '3' is odd$"):
        list(map_unordered(cluster, ray_parts.refuse, [3], "squaring"))


@pytest.mark.slow
def test_a_task_whose_process_dies_is_begun_again(cluster: Cluster, tmp_path: Path) -> None:
    parts = [(str(tmp_path), number) for number in range(2)]
    assert dict(map_unordered(cluster, ray_parts.die_once, parts, "dying")) == {0: 0, 1: 1}


@pytest.mark.slow
def test_actors_hold_what_they_made_and_are_started_again_when_they_die(cluster: Cluster, tmp_path: Path) -> None:
    with Actors(cluster, [ray_parts.Counter, ray_parts.Counter], "counting", cpus=0) as actors:
        answers = [answer for answer in actors.answers(ray_parts.process_and_sum, 1) if not isinstance(answer, FontesError)]
        assert [value for _, value in answers] == [101, 101]
        assert len({process for process, _ in answers}) == 2
        assert dict(actors.map_unordered(ray_parts.die_once_holding, [(str(tmp_path), 5)])) == {0: 5}
        results = dict(actors.map_unordered(ray_parts.process_and_sum, range(6)))
    assert [results[number][1] for number in range(6)] == [100, 101, 102, 103, 104, 105]


@pytest.mark.slow
def test_an_actor_that_has_no_place_is_not_waited_for(cluster: Cluster) -> None:
    with Actors(cluster, [ray_parts.Counter], "being in the way") as others:
        others.answers(ray_parts.process_and_sum, 1)
        in_time = threading.Timer(30, others.close)  # so that the test ends in any case
        in_time.start()
        with Actors(cluster, [ray_parts.Counter, ray_parts.Counter], "counting") as actors:
            results = dict(actors.map_unordered(ray_parts.process_and_sum, range(6)))
        in_time.cancel()
    assert [results[number][1] for number in range(6)] == [100, 101, 102, 103, 104, 105]
    assert len({process for process, _ in results.values()}) == 1


def test_a_node_that_is_lost_before_it_says_its_versions_is_left_out(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        """A library whose second node is lost as soon as it is asked."""

        def __init__(self, stays: bool) -> None:
            self._nodes = [{"NodeID": "1" * 56, "NodeManagerHostname": "lost", "Alive": True, "Resources": {"CPU": 1.0}}]
            self._stays = stays

        def __getattr__(self, name: str) -> Any:
            return getattr(cluster.ray, name)

        def nodes(self) -> list[dict[str, Any]]:
            nodes = self._nodes
            self._nodes = nodes if self._stays else []
            return [*cluster.ray.nodes(), *nodes]

    monkeypatch.setitem(sys.modules, "ray", Gone(stays=False))
    with joined():
        pass
    monkeypatch.setitem(sys.modules, "ray", Gone(stays=True))
    with pytest.raises(FontesError, match="comparing: "), joined(purpose="comparing"):
        pass


def test_what_an_actor_cannot_make_is_said_in_its_own_words(cluster: Cluster) -> None:
    actors = Actors(cluster, [ray_parts.refuse_to_load], "loading", cpus=0)
    with actors, pytest.raises(InputError, match="the model 'x' is not there"):
        list(actors.map_unordered(ray_parts.process_and_sum, [1]))


def test_a_function_that_always_dies_is_a_sentence(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fontes.cluster.actors.RETRIES", 0)
    with pytest.raises(FontesError, match=r"^dying: a process of the cluster died"):
        list(map_unordered(cluster, ray_parts.die, [1], "dying"))


def test_a_node_with_another_version_is_refused_by_name(ray: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = joining.versions()
    process = os.getpid()

    def versions() -> dict[str, str]:
        return here | ({"numpy": "1.0"} if os.getpid() == process else {})

    monkeypatch.setattr(joining, "versions", versions)
    with pytest.raises(FontesError, match=rf"the node .+ has numpy {here['numpy']}, this process 1.0"), joined(ray):
        pass


def test_an_address_where_nothing_answers_or_that_is_none_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False))
    with pytest.raises(FontesError, match=r"no Ray cluster answers at 127.0.0.1:9"), joined("127.0.0.1:9"):
        pass
    with pytest.raises(ParameterError, match="'here' is not an address of a Ray cluster"), joined("here"):
        pass


def test_without_ray_the_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"encoding needs Ray.* pip install 'fontes\[ray\]'"), joined(True, "encoding"):
        pass


def test_an_address_that_lets_nobody_in_without_its_token_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(**options: object) -> None:
        raise ConnectionError("RPC error: InvalidAuthToken")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=refuses))
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(FontesError, match=rf"{address} refuses this process.* RAY_AUTH_MODE=token"), joined(address):
            pass


def test_actors_that_outlive_the_cluster_start_no_other_one() -> None:
    killed: list[object] = []
    actors: Any = Actors.__new__(Actors)
    actors._actors, actors._budget = [object()], None
    for there in (False, True):
        actors._cluster = Cluster(SimpleNamespace(is_initialized=lambda there=there: there, kill=killed.append), {})  # type: ignore[arg-type]
        actors.close()
        assert len(killed) == there


def test_an_interrupt_while_ray_waits_comes_out_as_itself() -> None:
    pytest.importorskip("ray")
    with pytest.raises(KeyboardInterrupt), translated("waiting"):
        raise SystemError("<cyfunction CoreWorker.wait> returned a result with an exception set") from KeyboardInterrupt()


def test_no_more_actors_are_begun_than_the_memory_of_each_machine_has_room_for() -> None:
    pytest.importorskip("ray")
    options: list[dict[str, Any]] = []

    def remote(**chosen: Any) -> Any:
        options.append(chosen)
        return lambda holder: SimpleNamespace(remote=lambda make, *settings: make)

    nodes = {"a": {"CPU": 8.0, "memory": 3e9}, "b": {"CPU": 4.0, "memory": 10e9}, "c": {"CPU": 16.0, "memory": 1e9}}
    cluster = Cluster(SimpleNamespace(remote=remote), nodes)  # type: ignore[arg-type]
    counts = [len(Actors.alike(cluster, dict, "encoding", 99, memory)) for memory in (0, 10**9, 2 * 10**9, 50 * 10**9)]
    assert counts == [2 + 1 + 4, 2 + 1 + 1, 1 + 1, 1]
    assert [chosen.get("memory") for chosen in options] == [None, 10**9, 2 * 10**9, 10 * 10**9]
    assert {chosen["num_cpus"] for chosen in options} == {4}
