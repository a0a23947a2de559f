"""What Prometheus reads at /metrics."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TOGETHER = (1, 2, 4, 8, 16, 32, 64, 128)
MEDIA = CONTENT_TYPE_LATEST


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        options = {"registry": self._registry, "namespace": "fontes"}
        self.requests = Counter("requests", "Requests that were answered", ("path", "method", "status"), **options)  # type: ignore[arg-type]
        self.seconds = Histogram("request_seconds", "Seconds a request", ("path",), buckets=SECONDS, **options)  # type: ignore[arg-type]
        self.refused = Counter("refused", "Requests that a limit refused", ("limit",), **options)  # type: ignore[arg-type]
        self.batches = Histogram("batch_topics", "Topics that were searched together", ("queue",), buckets=TOGETHER, **options)  # type: ignore[arg-type]
        self.model_calls = Counter("model_calls", "Batches that went through a model", ("pipeline",), **options)  # type: ignore[arg-type]
        self._gauges = {
            "queue": Gauge("queue_requests", "Requests that wait for a thread", ("queue",), **options),  # type: ignore[arg-type]
            "working": Gauge("requests_at_once", "Requests that are worked on", **options),  # type: ignore[arg-type]
            "conversations": Gauge("conversations", "Conversations that are kept", **options),  # type: ignore[arg-type]
            "generation": Gauge("index_generation", "States of an index that were gone over to", ("index",), **options),  # type: ignore[arg-type]
            "documents": Gauge("index_documents", "Documents of an index", ("index",), **options),  # type: ignore[arg-type]
        }

    def watch(self, gauge: str, value: Callable[[], float], label: str | None = None) -> None:
        """Has a gauge show what a function gives when Prometheus asks."""
        shown = self._gauges[gauge]
        (shown if label is None else shown.labels(label)).set_function(value)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)
