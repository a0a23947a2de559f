"""Settings of a server: its address, its secrets, and the limits of requests."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ...core.checks import check_whole
from ...core.errors import InputError, ParameterError
from ...core.values import check_tolerance

NAMED = re.compile(r"([A-Za-z][\w.-]*)=(?!=)(.*)", re.DOTALL)  # NAME=EXPR
TOKEN, KEY = "FONTES_TOKEN", "FONTES_KEY"  # environment variables
MIN_SECRET = 16  # characters of a token or key
PREFIX = re.compile(r"(?:/[\w.~-]+)+", re.ASCII)
ORIGIN = re.compile(r"https?://[\w.:\[\]-]+|\*", re.ASCII)


def _setting(default: object, *options: str) -> Any:
    """A field with these command-line options; without any, the field has no option."""
    return field(default=default, metadata={"options": options})


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server. `fontes serve` has an option for each; its help is the description here.

    Args:
        port: Port to listen at; 0 for any that is free.
        host: Address to listen at.
        hosts: Another host name of this server; repeatable.
        root_path: Path under which a reverse proxy serves this server, such as /search.
        proxies: Reverse proxy whose X-Forwarded-For and -Proto are trusted: an address, or * for all; repeatable.
        origins: Origin allowed by CORS, such as https://app.example.org, or * for all; repeatable.
        any_pipeline: Accept expressions as pipelines of requests, with only the models of --pipeline.
        writable: Let clients that have the token add, change and delete documents.
        token: Secret of clients that may change documents; it allows reading too.
        key: Secret of clients that may read; "" if everybody may.
        query: Maximum characters of a query.
        body: Maximum bytes of a request's body.
        tolerance: How requests that do not say it search misspelt words: off, auto or typing.
        k: Maximum hits of a query.
        batch: Maximum topics of a request, or of documents to delete.
        queue: Maximum writes to an index that wait for a commit.
        seconds: Time limit of a request, in seconds.
        max_concurrency: Maximum requests in progress.
        refresh: Seconds between checks for a newer state of the index; 0 for none.
        drain: Seconds in which running requests may finish when the server ends.
        log_queries: Write queries into the log.
    """

    port: int = field(default=8080, metadata={"limits": (0, 65_535)})
    host: str = "127.0.0.1"
    hosts: tuple[str, ...] = _setting((), "--name")
    root_path: str = ""
    proxies: tuple[str, ...] = _setting((), "--proxy")
    origins: tuple[str, ...] = _setting((), "--origin")
    any_pipeline: bool = False
    writable: bool = False
    token: str = _setting("")
    key: str = _setting("")
    query: int = 2_000
    body: int = 4 << 20
    tolerance: str = "off"
    k: int = _setting(1_000, "-k", "--k")
    batch: int = 100
    queue: int = 1_000
    seconds: float = 30.0
    max_concurrency: int = 1_000
    refresh: float = 1.0
    drain: float = 30.0
    log_queries: bool = False

    def __post_init__(self) -> None:
        for setting in fields(self):
            value, option = getattr(self, setting.name), f"--{setting.name.replace('_', '-')}"
            if setting.type == "int":
                check_whole(option, value, 0 if setting.name == "port" else 1)
            elif setting.type == "float" and not (0 < value < 1e9 or (value == 0 and setting.name == "refresh")):
                raise ParameterError(f"{option} must be a number above 0, not {value!r}")
        check_tolerance("--tolerance", self.tolerance)
        if self.port > 65_535:
            raise ParameterError(f"--port must be 65,535 at most, not {self.port}")
        if self.writable and not self.token:
            raise ParameterError(f"--writable needs a token: --token-file FILE, or {TOKEN} in the environment")
        if self.root_path and not PREFIX.fullmatch(self.root_path):
            raise ParameterError(
                f"--root-path must be a path such as /search, without a slash at its end, not '{self.root_path}'"
            )
        for origin in self.origins:
            if not ORIGIN.fullmatch(origin):
                raise ParameterError(f"--origin must be such as https://app.example.org, without a path, or *, not '{origin}'")


def secret_of(path: Path | None, variable: str) -> str:
    """Read a token or key from a file or, if `path` is None, from an environment variable; "" if it is not set.

    Raises:
        InputError: The file cannot be read, or the secret is too short.
    """
    kind = variable.rpartition("_")[2].lower()
    if path is None:
        secret, source = os.environ.get(variable, ""), f"{variable} in the environment"
        if not secret:
            return ""
    else:
        try:
            secret, source = path.read_text(encoding="utf-8").strip(), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: the {kind} cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(secret) < MIN_SECRET or not secret.isascii() or not secret.isprintable():
        raise InputError(f"{source}: a {kind} has {MIN_SECRET} ASCII characters or more: openssl rand -hex 16 makes one")
    return secret


def named_expressions(texts: list[str]) -> dict[str, str]:
    """Parse texts of the form `NAME=EXPR`; an expression without a name is its own name.

    Raises:
        ParameterError: Two have the same name.
    """
    expressions: dict[str, str] = {}
    for text in texts:
        match = NAMED.fullmatch(text.strip())
        name, expression = (match[1], match[2].strip()) if match else (text.strip(), text.strip())
        if name in expressions:
            raise ParameterError(f"two pipelines are called '{name}'; write NAME=EXPR with another name")
        expressions[name] = expression
    return expressions
