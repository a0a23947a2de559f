"""Work on more than one machine, by Ray: joining a cluster, tasks, and actors that hold something. Only here is Ray."""

from .actors import Actors
from .joining import Cluster, joined
from .stages import apply
from .tasks import spread

__all__ = ["Actors", "Cluster", "apply", "joined", "spread"]
