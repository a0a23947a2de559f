"""A store that speaks S3's protocol, and a web server, both on the loopback."""

from __future__ import annotations

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@contextlib.contextmanager
def s3_store() -> Iterator[str]:
    """A store with the bucket "papers", which the environment names to drivers; gives the address of the bucket."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    driver = pytest.importorskip("s3fs").S3FileSystem
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        driver.clear_instance_cache()  # which would go on with the address of a store before
        bucket().create_bucket(Bucket="papers")
        yield "s3://papers"
    server.stop()


def bucket() -> Any:
    """A client of the store."""
    import boto3

    return boto3.client("s3")


def upload(path: Path, key: str) -> None:
    bucket().upload_file(str(path), "papers", key)


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """A server of the files in a folder; gives its address."""
    pytest.importorskip("aiohttp")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
