"""A server of judging for tests, in a thread or in a process."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
from support.serving import Running, in_thread

PIPELINES = {"one": "bm25()", "two": "ql()"}


@contextlib.contextmanager
def judged(
    index: Path, judgments: Path, topics: Mapping[str, str], pipelines: Mapping[str, str] = PIPELINES, depth: int = 20
) -> Iterator[Running]:
    """A server of judging in a thread of this process; `service` is its store."""
    from fontes import Topics
    from fontes.app.judging.judging import Judging, fill_pools
    from fontes.app.judging.routes import router
    from fontes.app.judging.store import JudgmentStore
    from fontes.app.server.service import Service
    from fontes.app.server.settings import ServerSettings

    service = Service([index], ServerSettings(port=0), pipelines)
    service.described["judging"] = True
    with JudgmentStore(judgments) as store:
        store.add_topics(Topics.of(topics))
        fill_pools(store, service.served(None).state, depth)
        with in_thread(service, [router(Judging(store, depth))]) as (address, client):
            yield Running(address, client, store)


def as_judge(address: str, token: str) -> httpx.Client:
    """A client that shows a token."""
    return httpx.Client(base_url=address, timeout=30, headers={"authorization": f"Bearer {token}"})
