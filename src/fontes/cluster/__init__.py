"""Distributed work with Ray: clusters, tasks, actors, and indexes on them. Only this package imports Ray."""

from .actors import Actors, map_unordered, map_with
from .building import build_on_cluster
from .encoding import remote_encoder
from .joining import Cluster, joined, joined_here
from .shards import ShardActors, apply

__all__ = [
    "Actors",
    "Cluster",
    "ShardActors",
    "apply",
    "build_on_cluster",
    "joined",
    "joined_here",
    "map_unordered",
    "map_with",
    "remote_encoder",
]
