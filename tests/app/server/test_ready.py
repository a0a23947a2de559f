"""What a server does before it says that it is ready, and what it does about work that nobody waits for any more."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.serving import serving, springs

from fontes.core.run import Run
from fontes.core.stage import Stage
from fontes.core.values import Topics
from fontes.core.work import Progress, reporter

COMPILED = """
import asyncio, sys
from pathlib import Path
from numba.core.registry import CPUDispatcher
from fontes.app.server.searching import SearchOptions, SearchRequest
from fontes.app.server.service import Service
from fontes.app.server.settings import ServerSettings
from fontes.core.values import Topic

def versions():
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("fontes")]
    kernels = {id(k): k for module in modules for k in vars(module).values() if isinstance(k, CPUDispatcher)}
    return {(k.__name__, str(s)) for k in kernels.values() for s in k.signatures}

async def begin():
    running = asyncio.create_task(service.run())
    while not service.ready:
        await asyncio.sleep(0.01)
    running.cancel()

service = Service([Path(sys.argv[1])], ServerSettings(), {"bm25": "bm25()", "tfidf": "tfidf()"})
asyncio.run(begin())
before = versions()
served = service.served(None)
for name in served.state.pipelines:
    for options in ({}, {"where": "year >= 2020"}, {"facets": ("kind",)}, {"explain": True}, {"text": True}):
        options = SearchOptions(**options)
        several = SearchRequest(served, name, options, (Topic("1", "hot spring"), Topic("2", "karst")), True)
        for requests in ([SearchRequest(served, name, options, (Topic("1", "hot water"),))], [several] * 3):
            (*_, answer) = service._lexical._work(requests)
            assert isinstance(answer, bytes), answer
assert len(before) > 5
print(*sorted(versions() - before))
service.close()
"""


def test_nothing_is_compiled_any_more_when_a_server_is_ready(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMPILED, str(springs(tmp_path))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.returncode) == ("", 0), ended.stderr


@dataclass(frozen=True)
class Endless(Stage[Topics, Run]):
    """A stage that never ends, and tells how far it is."""

    def apply(self, topics: Topics, /) -> Run:
        report = reporter()
        for done in self.steps():
            report(Progress("waiting", done, None, 0.0))
        raise AssertionError

    def steps(self) -> Iterator[int]:
        done = 0
        while True:
            time.sleep(0.01)
            ENDLESS.append(done := done + 1)
            yield done


ENDLESS: list[int] = []


@pytest.mark.parametrize("queue", ["_lexical", "_models"])
def test_work_that_took_too_long_ends_where_its_stage_tells_how_far_it_is(tmp_path: Path, queue: str) -> None:
    with serving(springs(tmp_path), seconds=0.3) as running:
        state = running.service.indexes["springs"].state
        state.pipelines["bm25"] = Endless()
        state.models["bm25"] = queue == "_models"
        state._ready.clear()
        responses = [running.client.get("/search?q=water") for _ in range(3)]
        assert [response.status_code for response in responses] == [503] * 3
        free = getattr(running.service, queue)
        limit = time.monotonic() + 10
        before = len(ENDLESS)
        while len(free) or free._free < (1 if queue == "_models" else free._pool._max_workers):
            assert time.monotonic() < limit
            time.sleep(0.05)
        after = len(ENDLESS)
        time.sleep(0.2)
        assert len(ENDLESS) == after >= before
