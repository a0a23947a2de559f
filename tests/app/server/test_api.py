"""Requests made up from the server's own OpenAPI document, right ones and wrong ones: nothing but good answers and 4xx."""

import contextlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from support.serving import Running, serving, springs

TOKEN = "a token of many letters"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    path = springs(tmp_path_factory.mktemp("server"))
    with serving(path, any_pipeline=True, writable=True, token=TOKEN, refresh=0.0) as running:
        yield running


def fuzz(server: Running, examples: int, number: int) -> int:
    """Sends so many made-up requests to each address in each way that is described; how many there were."""
    import schemathesis
    from schemathesis import GenerationMode

    schema = schemathesis.openapi.from_dict(server.get("/openapi.json"))
    sent = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in GenerationMode:
            strategy = operation.as_strategy(generation_mode=mode)

            @seed(number)
            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
            )
            @given(strategy)
            def send(case) -> None:
                nonlocal sent
                sent += 1
                response = case.call(base_url=server.address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
                assert response.status_code < 500, (case.as_curl_command(), response.text)
                if response.status_code >= 400:
                    assert response.headers["content-type"][0] == "application/problem+json"
                    assert "Traceback" not in response.text

            # There is nothing wrong that could be sent, or schemathesis recurses too deeply to make it.
            with contextlib.suppress(Unsatisfiable, RecursionError):
                send()
    return sent


@pytest.mark.slow
def test_no_request_that_can_be_made_up_fails_inside(server: Running) -> None:
    assert fuzz(server, int(os.environ.get("FONTES_EXAMPLES", "0")) or 4, 1) >= 50
    assert server.get("/health") == {"status": "ok"}


@pytest.mark.slow
def test_ten_minutes_of_made_up_requests_fail_nowhere(tmp_path: Path) -> None:
    ends, sent, number = time.monotonic() + 600, 0, 1
    path = springs(tmp_path)
    with serving(path, any_pipeline=True, writable=True, token=TOKEN) as server:
        while time.monotonic() < ends:
            number += 1
            sent += fuzz(server, 20, number)
            assert server.get("/health") == {"status": "ok"}
    assert sent > 1000
