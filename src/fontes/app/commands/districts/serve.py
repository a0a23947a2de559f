"""`fontes serve`: an HTTP server and its search page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ....core.errors import needs_extra
from ...completion import complete_pipeline
from ...options import argument, option, options_of
from ...output import say
from ...server.settings import KEY, TOKEN, ServerSettings, named_expressions, secret_of
from ...usage import refuse_misspelt


@options_of(ServerSettings)
def serve(
    indexes: Annotated[list[Path], argument("Index directories.", metavar="INDEX...")],
    settings: dict[str, Any],
    pipeline: Annotated[
        list[str] | None,
        option("Pipeline of requests, NAME=EXPR or EXPR; repeatable.", "bm25=bm25()", autocompletion=complete_pipeline),
    ] = None,
    rewriter: Annotated[list[str] | None, option("Rewriter of turns, NAME=EXPR or EXPR; repeatable.", "as fontes chat")] = None,
    key_file: Annotated[
        Path | None, option("File with the key that every client must send.", "FONTES_KEY of the environment")
    ] = None,
    token_file: Annotated[Path | None, option("File with the token of --writable.", "FONTES_TOKEN of the environment")] = None,
) -> None:
    """Serve indexes over HTTP, with a page to search them. --quiet logs only errors."""
    with needs_extra("server", "fontes serve", "FastAPI"):
        from ...server.running import serve as run
        from ...server.service import Service

    for index in indexes:
        refuse_misspelt(index)
    settings["root_path"] = settings.get("root_path", "").rstrip("/")
    settings["origins"] = tuple(origin.rstrip("/").lower() for origin in settings.get("origins", ()))
    token, key = secret_of(token_file, TOKEN) if settings.get("writable") else "", secret_of(key_file, KEY)
    service = Service(
        indexes,
        ServerSettings(**settings, token=token, key=key),
        named_expressions(pipeline or []),
        named_expressions(rewriter or []),
    )
    names = " and ".join(f"{served.name} ({len(served.state.index):,} documents)" for served in service.indexes.values())
    run(service, started=lambda address: say(f"{names} at {address} ; Ctrl-C ends"))
