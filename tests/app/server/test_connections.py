"""Connections of every kind: malformed, unfinished, slow, many. After each of them the next request is answered."""

import contextlib
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.each import each
from support.serving import Running, serving

GET = b"GET /search?q=water HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def server(path: Path):
    with serving(path, seconds=1.5) as running:
        yield running


@pytest.fixture(scope="module")
def patient(path: Path):
    with serving(path, max_concurrency=3000) as running:
        yield running


def connection(server: Running) -> socket.socket:
    return socket.create_connection(server.place, timeout=10)


def answer(sent: bytes, server: Running, responses: int = 1) -> bytes:
    """Bytes that come until the server closes, as many responses are complete, or nothing comes for a second."""
    with connection(server) as to:
        to.sendall(sent)
        to.settimeout(1)
        received = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while complete(received) < responses and (piece := to.recv(65536)):
                received += piece
        return received


def complete(received: bytes) -> int:
    """Number of responses that are there whole."""
    count = 0
    while (head := received.partition(b"\r\n\r\n"))[1]:
        length = re.search(rb"content-length: (\d+)", head[0].lower())
        if length is None or len(head[2]) < int(length[1]):
            break
        count, received = count + 1, head[2][int(length[1]) :]
    return count


@each(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"\x00\x01\x02\x03" * 50,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),  # what TLS begins with
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /search?q=\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /search?q=x HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /search?q=" + b"y" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"TRACE /search HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT evil:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_gets_nothing_but_a_4xx_and_the_next_one_is_answered(server: Running, sent: bytes) -> None:
    first = answer(sent, server).partition(b"\r\n")[0]
    assert first == b"" or first.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200")), first
    assert server.get("/search?q=water")["hits"]


def test_a_malformed_request_is_told_so_as_a_problem(server: Running) -> None:
    head, _, body = answer(b"nonsense\r\n\r\n", server).partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"x-content-type-options: nosniff" in head
    assert b"the request is not valid HTTP" in body


def test_requests_in_a_row_on_one_connection_are_answered_in_their_order(server: Running) -> None:
    answers = answer(GET * 5 + GET.replace(b"water", b"geyser"), server, 6)
    assert answers.count(b"HTTP/1.1 200 OK") == 6
    assert answers.rindex(b'"query":"geyser"') > answers.rindex(b'"query":"water"')


def post(size: int) -> bytes:
    """A search whose body has so many bytes, as one piece with its head."""
    body = b'{"topics": [{"id": "1", "text": "water"}]}'.ljust(size)
    return b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + (
        b"Content-Length: %d\r\n\r\n%s" % (size, body)
    )


@pytest.mark.parametrize("size", [65_536, 200_000, 3_000_000])
def test_a_large_body_that_comes_with_its_head_is_read(server: Running, size: int) -> None:
    assert answer(post(size), server).startswith(b"HTTP/1.1 200 ")
    answers = answer(post(size) + GET, server, 2)
    assert answers.count(b"HTTP/1.1 200 ") == 2, answers[:200]


@each("pieces", [1, 7])
@each(("size", "status"), [(65_536, b"200"), (65_537, b"400"), (200_000, b"400")])
def test_a_head_has_its_limit_however_it_arrives(server: Running, size: int, status: bytes, pieces: int) -> None:
    sent, received = (GET[:-2] + b"X: ").ljust(size - 4, b"y") + b"\r\n\r\n", b""
    with connection(server) as to, contextlib.suppress(ConnectionError):
        for start in range(0, min(size, 80_000), step := -(-size // pieces)):
            to.sendall(sent[start : start + step])
            time.sleep(0.02 * (pieces > 1))
        received = to.recv(65536)
    assert received.startswith(b"HTTP/1.1 " + status)
    assert (status == b"200") is (b"the head of the request has more than 65,536 bytes" not in received)


def test_requests_that_never_get_complete_are_ended(server: Running) -> None:
    bodies = [
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{",
        b"POST /search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ]
    heads = [
        b"",
        b"GET /sea",
        b"GET /search?q=x HTTP/1.1\r\nHost: local",
        GET + b"GET /sea",
        post(70_000) + b"GET /sea",
        b"POST /documents HTTP/1.1\r\nHost: evil\r\nContent-Length: 2\r\n\r\n{}" + b"GET /sea",
    ]
    with contextlib.ExitStack() as stack:
        connections = {beginning: stack.enter_context(connection(server)) for beginning in [*heads, *bodies]}
        for beginning, to in connections.items():
            to.sendall(beginning)
        for beginning, to in connections.items():
            received = b""
            with contextlib.suppress(ConnectionError):  # a connection that stays open is a time-out
                while piece := to.recv(65536):
                    received += piece
            if beginning in bodies:
                assert b"HTTP/1.1 408 " in received
                assert b"the request was not complete after 1.5 seconds (--seconds)" in received
    assert server.get("/search?q=water")["hits"]


@pytest.mark.slow
def test_a_client_that_does_not_read_is_left(tmp_path: Path) -> None:
    from fontes import Doc, Index

    Index.build([Doc(f"d{n}", "water " + "filler " * 20_000) for n in range(100)], tmp_path / "long.index", threads=1)
    with serving(tmp_path / "long.index", seconds=3.0) as running:
        slow = []
        for _ in range(5):
            to = socket.socket()
            to.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            to.connect(running.place)
            to.sendall(GET.replace(b"water", b"water&k=100&text=1"))
            slow.append(to)
        limit = time.monotonic() + 60
        while "fontes_requests_at_once 1.0" not in running.client.get("/metrics").text:
            assert time.monotonic() < limit
            time.sleep(0.1)
        assert running.get("/search?q=water")["hits"]
        for to in slow:
            to.close()


def test_clients_that_go_leave_nothing_behind(server: Running) -> None:
    for _ in range(50):
        with connection(server) as to:
            to.sendall(GET)
    limit = time.monotonic() + 60
    while "fontes_requests_at_once 1.0" not in server.client.get("/metrics").text:
        assert time.monotonic() < limit
        time.sleep(0.1)
    assert server.get("/search?q=water")["hits"]


def test_a_hundred_connections_are_answered(patient: Running) -> None:
    with contextlib.ExitStack() as stack:
        every = [stack.enter_context(connection(patient)) for _ in range(100)]
        for to in every:
            to.sendall(GET)
        with ThreadPoolExecutor(8) as pool:
            heads = list(pool.map(lambda to: to.recv(100)[:15], every))
    assert heads == [b"HTTP/1.1 200 OK"] * 100
    assert patient.get("/search?q=water")["hits"]


@pytest.mark.slow
def test_thousands_of_connections_are_answered(patient: Running) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    try:
        with contextlib.ExitStack() as stack:
            every = [stack.enter_context(connection(patient)) for _ in range(2000)]
            for to in every[:1000]:  # the others never say anything
                to.sendall(GET)
            assert patient.get("/search?q=water")["hits"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
