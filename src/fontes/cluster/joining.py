"""Joining or starting a Ray cluster, and comparing its nodes' versions with the driver's."""

from __future__ import annotations

import logging
import os
import platform
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.errors import FontesError, MissingExtraError, ParameterError
from ..core.work import resources
from ..storage.hashes import hash_json, hash_text

ANSWER_TIMEOUT = 5.0  # seconds for an address to answer
START_TIMEOUT = 120.0  # seconds for a node to start a worker and report its versions
_checked_nodes: set[tuple[str, str]] = set()  # ids of nodes, and the hash of the versions that they share with this process

NAMED = ("auto", "local")  # addresses that do not name a machine
# Environment variables set to 0 by default: usage statistics, a replaced `print`, a lower priority of Ray's processes.
OFF = ("RAY_USAGE_STATS_ENABLED", "RAY_TQDM_PATCH_PRINT", "RAY_worker_niceness")
SENTENCES = {
    "OutOfMemoryError": "a machine of the cluster ran out of memory and ended a process; use smaller parts, or more memory",
    "WorkerCrashedError": "a process of the cluster died again after a restart; it may lack memory",
    "ActorDiedError": "a process of the cluster died again after a restart; it may lack memory",
    "ActorUnavailableError": "a process of the cluster does not answer; check its node",
    "NodeDiedError": "a machine of the cluster is lost; start the command again, which resumes",
    "ObjectLostError": "a result was lost with its machine; start the command again, which resumes",
    "OwnerDiedError": "a result was lost with its machine; start the command again, which resumes",
    "TaskCancelledError": "it was cancelled",
}
LIBRARIES = ("numpy", "numba", "PyStemmer", "simplemma", "nltk", "spacy", "nupunkt")


@dataclass(frozen=True)
class Cluster:
    """A joined Ray cluster: the Ray library, and the resources ("CPU", "GPU", "memory") of each live node by name."""

    ray: ModuleType = field(repr=False)
    nodes: Mapping[str, Mapping[str, float]]

    @property
    def cpus(self) -> int:
        """Logical CPUs of all nodes."""
        return int(sum(node.get("CPU", 0) for node in self.nodes.values()))

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return int(sum(node.get("GPU", 0) for node in self.nodes.values()))


@contextmanager
def joined(ray: bool | str = True, purpose: str = "ray") -> Iterator[Cluster]:
    """Join a Ray cluster during the block; a Ray that was started for it is stopped afterwards.

    A process that has already joined Ray keeps its cluster.

    Args:
        ray: An address: "auto", "host:6379", "ray://host:10001"; or True for the address in RAY_ADDRESS, or else a local Ray.
        purpose: Name of the work, for messages.

    Raises:
        MissingExtraError: Ray is not installed.
        FontesError: Nothing answers at the address, or a node's versions differ.
    """
    for name in OFF:
        os.environ.setdefault(name, "0")
    try:
        import ray as library
    except ImportError:
        raise MissingExtraError.of("Ray", "ray", purpose) from None
    starts_ray = not library.is_initialized()
    if starts_ray:
        _start(library, ray)
    try:
        with translated(purpose):
            _compare_versions(library)
            cluster = Cluster(library, {_name(node): node["Resources"] for node in _alive(library)})
        yield cluster
    finally:
        if starts_ray:
            library.shutdown()


def joined_here(purpose: str) -> AbstractContextManager[Cluster]:
    """Join the cluster of `work`; see `joined`."""
    return joined(resources().ray or True, purpose)


def _start(library: ModuleType, ray: bool | str) -> None:
    """Join the cluster at an address, or start a local one."""
    address = ray if isinstance(ray, str) else os.environ.get("RAY_ADDRESS", "local")
    _check_address(address)
    options: dict[str, object] = {"include_dashboard": False} if address == "local" else {}
    try:
        library.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except ConnectionError:
        if address in NAMED:
            raise FontesError(
                f"no Ray cluster is at {address}; start one with 'ray start --head', or give its address"
            ) from None
        token = "if it is a Ray cluster with a token, set RAY_AUTH_MODE=token, and use its token here"
        raise FontesError(f"the server at {address} refuses this process; {token}") from None
    except (RuntimeError, ValueError, OSError, ImportError) as error:
        raise FontesError(f"the Ray cluster at {address} cannot be joined: {str(error).strip().splitlines()[0]}") from error


def _check_address(address: str) -> None:
    """Raise FontesError if nothing answers at an address: Ray itself would keep trying."""
    if address in NAMED:
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        raise ParameterError(f"'{address}' is not an address of a Ray cluster; write auto, HOST:6379 or ray://HOST:10001")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise FontesError(f"no Ray cluster answers at {address} ({error}); is it running, and is the port right?") from None


def _alive(library: ModuleType) -> list[dict[str, Any]]:
    return [node for node in library.nodes() if node["Alive"]]


def _name(node: Mapping[str, Any]) -> str:
    """Name of a node for messages, with its id, since a machine may run several nodes."""
    return f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"


def versions() -> dict[str, str]:
    """Return local versions of Fontes, Python, numpy and the analyzers' libraries."""
    installed = {"Fontes": f"{_version('fontes')}, source {_source()}", "Python": platform.python_version()}
    return installed | {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


@cache
def _source() -> str:
    """Hash of Fontes' source: different checkouts may have the same version."""
    folder = Path(__file__).resolve().parent.parent
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*.py"))
    return hash_json([[name, hash_text((folder / name).read_text(encoding="utf-8"))] for name in files])[:12]


def _compare_versions(library: ModuleType, local: Mapping[str, str] | None = None) -> None:
    """Raise FontesError for the first node whose versions differ from this process's."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    local = local or versions()
    digest = hash_json(local)
    ask = library.remote(num_cpus=0, max_retries=3)(versions)
    unchecked = [node for node in _alive(library) if (node["NodeID"], digest) not in _checked_nodes]
    nodes = {ask.options(scheduling_strategy=On(node["NodeID"], soft=False)).remote(): node for node in unchecked}
    ready = library.wait(list(nodes), num_returns=len(nodes), timeout=START_TIMEOUT)[0] if nodes else []
    for reference, node in nodes.items():
        name = _name(node)
        if reference not in ready:
            raise FontesError(
                f"the node {name} has not started a process in {START_TIMEOUT:.0f} s; check its log, or remove it"
            )
        try:
            remote = library.get(reference)
        except library.exceptions.RayTaskError as error:
            problem = str(error.cause).splitlines()[0] if error.cause else "its Fontes differs"
            raise FontesError(f"the node {name} cannot report its versions: {problem}; install the same there") from error
        except library.exceptions.RayError:
            if name in map(_name, _alive(library)):
                raise
            continue  # the node was lost meanwhile, and gets no tasks
        for library_name, local_version in local.items():
            if (remote_version := remote.get(library_name, "not installed")) != local_version:
                raise FontesError(
                    f"the node {name} has {library_name} {remote_version}, this process {local_version}; install the same there"
                )
        _checked_nodes.add((node["NodeID"], digest))


@contextmanager
def translated(task: str) -> Iterator[None]:
    """Unwrap the errors of a task, and turn Ray's errors into FontesErrors that begin with the name of the task."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from error
        raise FontesError(f"{task}: {_last_line(error)}") from error
    except RayError as error:
        names = [cls.__name__ for cls in type(error).__mro__]
        sentence = next((SENTENCES[name] for name in names if name in SENTENCES), _last_line(error))
        raise FontesError(f"{task}: {sentence}") from error
    except SystemError as error:  # raised by Ray's C code for an exception in a signal handler, such as Ctrl-C's
        raise (error.__cause__ or error) from None
    except ConnectionError as error:
        raise FontesError(f"{task}: the connection to the cluster is lost; start the command again") from error


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()
