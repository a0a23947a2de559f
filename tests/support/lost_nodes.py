"""Work on some nodes of one machine, of which each piece loses one in the middle; or an encoding whose driver somebody kills.

python -m support.lost_nodes node|stages|driver INDEX LOG
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.counting_encoder import BLOCK
from support.ray_parts import Slow, SlowStage

from fontes.cluster import apply
from fontes.core import Topics
from fontes.index import Index
from fontes.index.embeddings import journal
from fontes.tuning import tune

QUIET: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}


def started(*arguments: object) -> subprocess.Popen[str]:
    """Begins this module in a process."""
    tests = Path(__file__).resolve().parent.parent
    paths = [str(tests.parent / "src"), str(tests), os.environ.get("PYTHONPATH", "")]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-m", "support.lost_nodes", *map(str, arguments)]
    return subprocess.Popen(command, env=variables, cwd=tests, stdout=subprocess.PIPE, text=True)


def encoded_count(log: Path) -> int:
    return len(log.read_text().split()) if log.exists() else 0


def lose_nodes(log: Path, *works: Callable[[Path], None]) -> None:
    """Does each work with a log of its own; when there are some lines in it a node is lost."""
    import ray
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    Path("/tmp/ray").mkdir(exist_ok=True)  # where Ray notes the address; a fresh machine has no such folder
    cluster = Cluster(initialize_head=True, head_node_args={**node, "temp_dir": folder, "include_dashboard": False})
    others = [cluster.add_node(**node) for _ in range(len(works) + 1)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, **{name: QUIET[name] for name in ("log_to_driver", "logging_level")})

    def lose(own: Path) -> None:
        while encoded_count(own) < 2 * BLOCK:
            time.sleep(0.05)
        cluster.remove_node(others.pop(), allow_graceful=False)
        print("a node is lost", flush=True)

    for work in works:
        own = log.with_name(f"{log.name}-{len(others)}")
        thread = threading.Thread(target=lose, args=(own,), daemon=True)
        thread.start()
        work(own)
        thread.join()
    ray.shutdown()
    cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def lose_a_node(index: Path, log: Path) -> None:
    lose_nodes(log, lambda own: Index.open(index).encode(Slow(str(own)), ray=True))


def results(index: Path, ray: bool | None = None) -> dict[str, Callable[[Path], Any]]:
    """A reranking of an index's run, and a tuning, which give JSON values."""
    opened, topics = Index.open(index), Topics.of({f"q{number}": f"fox {number}" for number in range(24)})

    def reranked(log: Path) -> Any:
        stage, run = SlowStage(str(log)), (opened.bm25() % 5)(topics)
        return (apply(stage, run, ray) if ray else stage(run)).to_dict()

    def tuned(log: Path) -> Any:
        stage, qrels = opened.bm25() >> SlowStage(str(log)), {f"q{number}": {f"d{number}": 1} for number in range(8)}
        tuning = tune(stage, {"bm25__k1": [0.5, 1.0, 1.5, 2.0], "bm25__b": [0.2, 0.8]}, topics, qrels, folds=2, ray=ray)
        return {"params": tuning.params, "scores": [[trial.params, trial.score] for trial in tuning.trials]}

    return {"reranked": reranked, "tuned": tuned}


def lose_a_node_each(index: Path, log: Path) -> None:
    values: dict[str, Any] = {}

    def kept(name: str, work: Callable[[Path], Any]) -> Callable[[Path], None]:
        return lambda own: values.update({name: work(own)})

    lose_nodes(log, *(kept(name, work) for name, work in results(index, ray=True).items()))
    log.write_text(json.dumps(values))


def drive(index: Path, log: Path) -> None:
    import ray

    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")
    ray.init("local", num_cpus=2, object_store_memory=80_000_000, _temp_dir=folder, **QUIET)
    Index.open(index).encode(Slow(str(log)), ray=True)


if __name__ == "__main__":
    journal.BLOCK_DOCUMENTS = BLOCK
    {"node": lose_a_node, "stages": lose_a_node_each, "driver": drive}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
