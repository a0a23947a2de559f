"""Encoding on three nodes of one machine, one of which is lost in the middle; or by a driver that somebody kills.

python -m support.lost_nodes node|driver INDEX LOG
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from support.counting_encoder import BLOCK
from support.ray_parts import Slow

from fontes.index import Index
from fontes.index.attached import journal

QUIET: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}


def encoded_count(log: Path) -> int:
    return len(log.read_text().split()) if log.exists() else 0


def lose_a_node(index: Path, log: Path) -> None:
    import ray
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "temp_dir": folder, "include_dashboard": False})
    others = [cluster.add_node(**node) for _ in range(2)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, **{name: QUIET[name] for name in ("log_to_driver", "logging_level")})

    def lose() -> None:
        while encoded_count(log) < 2 * BLOCK:
            time.sleep(0.05)
        cluster.remove_node(others[0], allow_graceful=False)
        print("a node is lost", flush=True)

    thread = threading.Thread(target=lose)
    thread.start()
    Index.open(index).encode(Slow(str(log)), ray=True)
    thread.join()
    ray.shutdown()
    cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def drive(index: Path, log: Path) -> None:
    import ray

    folder = tempfile.mkdtemp(prefix="r", dir="/tmp")
    ray.init("local", num_cpus=2, object_store_memory=80_000_000, _temp_dir=folder, **QUIET)
    Index.open(index).encode(Slow(str(log)), ray=True)


if __name__ == "__main__":
    journal.BLOCK = BLOCK
    {"node": lose_a_node, "driver": drive}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
