"""Routes for operators: /health, /ready and /metrics, with counters for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from .answers import busy, json_response, service_of

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TOPICS = (1, 2, 4, 8, 16, 32, 64, 128)

router = APIRouter(tags=["operation"])


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        options: dict[str, Any] = {"registry": self._registry, "namespace": "fontes"}
        self.requests = Counter("requests", "Requests that were answered", ("path", "method", "status"), **options)
        self.seconds = Histogram("request_seconds", "Seconds a request", ("path",), buckets=SECONDS, **options)
        self.refused = Counter("refused", "Requests that a limit refused", ("limit",), **options)
        self.batches = Histogram("batch_topics", "Topics searched together", ("queue",), buckets=TOPICS, **options)
        self.model_calls = Counter("model_calls", "Batches that went through a model", ("pipeline",), **options)
        self._gauges = {
            "queue": Gauge("queue_requests", "Requests waiting for a thread", ("queue",), **options),
            "working": Gauge("requests_at_once", "Requests in progress", **options),
            "generation": Gauge("index_generation", "States of an index served before the present one", ("index",), **options),
            "documents": Gauge("index_documents", "Documents of an index", ("index",), **options),
        }

    def watch(self, gauge: str, value: Callable[[], float], label: str | None = None) -> None:
        """Set the function that returns the value of a gauge."""
        watched = self._gauges[gauge]
        (watched if label is None else watched.labels(label)).set_function(value)

    def text(self) -> bytes:
        """All values in Prometheus' text format."""
        return generate_latest(self._registry)


@router.get("/health", response_class=Response)
async def health(request: Request) -> Response:
    """Whether the process responds."""
    return json_response({"status": "ok"})


@router.get("/ready", response_class=Response)
async def ready(request: Request) -> Response:
    """Whether all models are loaded, and which states of the indexes are served. 503 until then."""
    service = service_of(request)
    if not service.ready:
        raise busy("the server is getting ready")
    indexes = {
        served.name: {
            "generation": served.state.generation,
            "fingerprint": served.state.index.fingerprint,
            **({"trouble": "a newer state cannot be served; the log says why"} if served.trouble else {}),
        }
        for served in service.indexes.values()
    }
    return json_response({"status": "ready", "indexes": indexes})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Counters and gauges in Prometheus' text format."""
    return Response(service_of(request).metrics.text(), media_type=CONTENT_TYPE_LATEST)
