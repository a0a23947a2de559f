"""Settings of a server: its address, its secrets, and a limit for everything that a request may ask for."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path

from ...core.checks import check_whole
from ...core.errors import InputError, ParameterError
from ...core.renamed import renamed

NAMED = re.compile(r"([A-Za-z][\w.-]*)=(?!=)(.*)", re.DOTALL)  # NAME=EXPR
TOKEN, KEY = "FONTES_TOKEN", "FONTES_KEY"  # variables of the environment
SHORTEST = 16  # characters of a token or key
PREFIX = re.compile(r"(?:/[\w.~-]+)+", re.ASCII)
ORIGIN = re.compile(r"https?://[\w.:\[\]-]+|\*", re.ASCII)


@dataclass(frozen=True)
class ServerSettings:
    """The settings of a server. Each limit is refused with a sentence that names it.

    Args:
        host: The address that the server listens at.
        port: The port; 0 for any that is free.
        hosts: Host names that requests may use, besides the address and those of this machine.
        root_path: The path under which a reverse proxy serves it, such as "/search"; the proxy may strip it or not.
        origins: Web origins whose pages may send requests and read the answers (CORS), such as "https://app.example.org"; "*"
            for all.
        any_pipeline: Whether a request may bring an expression of its own.
        writable: Whether clients with the token may add and delete documents.
        token: The secret of clients that may change documents; it allows reading too.
        key: The secret of clients that may read; "" where everybody may.
        query: Characters of a query.
        body: Bytes of a request's body.
        k: Hits of a query.
        batch: Topics of a request, or documents that are deleted.
        seconds: How long a request may take.
        at_once: Requests that are worked on at once.
        rate: Requests a second of each client; 0 for any number.
        talks: Conversations that are kept.
        kept: Seconds that a conversation is kept after its last turn.
        refresh: Seconds between two looks at whether an index has changed; 0 for none.
        drain: Seconds that requests have to be finished when the server ends.
        log_queries: Whether the log has the queries.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    hosts: tuple[str, ...] = ()
    root_path: str = ""
    origins: tuple[str, ...] = ()
    any_pipeline: bool = False
    writable: bool = False
    token: str = ""
    key: str = ""
    query: int = 2_000
    body: int = 4 << 20
    k: int = 1_000
    batch: int = 100
    seconds: float = 30.0
    at_once: int = 1_000
    rate: float = 0.0
    talks: int = 1_000
    kept: float = 3_600.0
    refresh: float = 1.0
    drain: float = 30.0
    log_queries: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                check_whole(f"--{field.name.replace('_', '-')}", value, int(field.name != "port") and 1)
            elif field.type == "float" and not (0 < value < 1e9 or (value == 0 and field.name in ("rate", "refresh"))):
                raise ParameterError(f"--{field.name} must be a number above 0, not {value!r}")
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
    """A token or key, from a file or from the environment, never from the command line; "" where there is none.

    Args:
        path: The file; None for the environment.
        variable: The variable of the environment.

    Raises:
        InputError: The file cannot be read, or the secret is too short.
    """
    kind = variable.rpartition("_")[2].lower()
    if path is None:
        secret, where = os.environ.get(variable, ""), f"{variable} in the environment"
        if not secret:
            return ""
    else:
        try:
            secret, where = path.read_text(encoding="utf-8").strip(), str(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: the {kind} cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable():
        raise InputError(f"{where}: a {kind} has {SHORTEST} ASCII characters or more: openssl rand -hex 16 makes one")
    return secret


def named_expressions(texts: list[str]) -> dict[str, str]:
    """Expressions by name, in their order: `NAME=EXPR`, or an expression, which is its own name.

    Raises:
        ParameterError: Two have one name.
    """
    expressions: dict[str, str] = {}
    for text in texts:
        match = NAMED.fullmatch(text.strip())
        name, expression = (match[1], match[2].strip()) if match else (text.strip(), text.strip())
        if name in expressions:
            raise ParameterError(f"two pipelines are called '{name}'; write NAME=EXPR with another name")
        expressions[name] = expression
    return expressions


__getattr__ = renamed(__name__, {"Settings": "ServerSettings"})
