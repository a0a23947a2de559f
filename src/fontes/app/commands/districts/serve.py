"""`fontes serve`: indexes and pipelines behind HTTP, and the page that searches them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...server.settings import ServerSettings

commands = typer.Typer()
DEFAULT = ServerSettings()


@commands.command(rich_help_panel="Search")
def serve(
    indexes: Annotated[list[Path], typer.Argument(metavar="INDEX...", help="Index directories.", show_default=False)],
    pipeline: Annotated[
        list[str] | None,
        typer.Option(help="What may be searched with, NAME=EXPR or EXPR; more than once.", show_default="bm25=bm25()"),
    ] = None,
    rewriter: Annotated[
        list[str] | None,
        typer.Option(help="How turns of conversations may be rewritten, NAME=EXPR or EXPR.", show_default="as fontes chat"),
    ] = None,
    any_pipeline: Annotated[
        bool, typer.Option("--any-pipeline", help="Take expressions from requests, with models of --pipeline alone.")
    ] = False,
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.", min=0, max=65_535)] = DEFAULT.port,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = DEFAULT.host,
    name: Annotated[list[str] | None, typer.Option(help="Another host name of this server; more than once.")] = None,
    root_path: Annotated[str, typer.Option(help="The path under which a proxy serves it, such as /app.")] = "",
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Let pages of this origin read answers (CORS), such as https://app.example.org; * for all."),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(help="A file with the key that every client must send.", show_default="FONTES_KEY of the environment"),
    ] = None,
    writable: Annotated[bool, typer.Option("--writable", help="Let clients that have the token change documents.")] = False,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token.", show_default="FONTES_TOKEN of the environment")
    ] = None,
    query: Annotated[int, typer.Option(help="Limit: characters of a query.")] = DEFAULT.query,
    body: Annotated[int, typer.Option(help="Limit: bytes of a request's body.")] = DEFAULT.body,
    k: Annotated[int, typer.Option("-k", "--k", help="Limit: hits of a query.")] = DEFAULT.k,
    batch: Annotated[int, typer.Option(help="Limit: topics of a request.")] = DEFAULT.batch,
    seconds: Annotated[float, typer.Option(help="Limit: seconds a request.")] = DEFAULT.seconds,
    at_once: Annotated[int, typer.Option(help="Limit: requests at once.")] = DEFAULT.at_once,
    rate: Annotated[float, typer.Option(help="Limit: requests a second of each client; 0 for none.")] = DEFAULT.rate,
    talks: Annotated[int, typer.Option(help="Limit: conversations that are kept.")] = DEFAULT.talks,
    kept: Annotated[float, typer.Option(help="Seconds a conversation is kept after its last turn.")] = DEFAULT.kept,
    refresh: Annotated[float, typer.Option(help="Seconds between looks at whether an index has changed; 0: never.")] = (
        DEFAULT.refresh
    ),
    drain: Annotated[float, typer.Option(help="Seconds that requests have to be finished at the end.")] = DEFAULT.drain,
    log_queries: Annotated[bool, typer.Option("--log-queries", help="Have queries in the log.")] = False,
) -> None:
    """Serve indexes over HTTP, with a page to search them. --quiet logs errors alone."""
    from ....core.errors import MissingExtraError
    from ...output import say
    from ...server.settings import KEY, TOKEN, named_expressions, secret_of
    from ...usage import refuse_misspelt

    try:
        from ...server.running import serve as run
        from ...server.service import Service
    except ImportError as error:
        if isinstance(error, MissingExtraError) or (error.name or "").startswith("fontes"):
            raise
        raise MissingExtraError.of(error.name or "FastAPI", "server", "fontes serve") from None

    for index in indexes:
        refuse_misspelt(index)
    settings = ServerSettings(
        host=host,
        port=port,
        hosts=tuple(name or ()),
        root_path=root_path.rstrip("/"),
        origins=tuple(each.rstrip("/").lower() for each in origin or ()),
        any_pipeline=any_pipeline,
        writable=writable,
        token=secret_of(token_file, TOKEN) if writable else "",
        key=secret_of(key_file, KEY),
        query=query,
        body=body,
        k=k,
        batch=batch,
        seconds=seconds,
        at_once=at_once,
        rate=rate,
        talks=talks,
        kept=kept,
        refresh=refresh,
        drain=drain,
        log_queries=log_queries,
    )
    service = Service(indexes, settings, named_expressions(pipeline or []), named_expressions(rewriter or []))
    served = " and ".join(f"{served.name} ({len(served.state.index):,} documents)" for served in service.indexes.values())
    run(service, started=lambda address: say(f"{served} at {address} ; Ctrl-C ends"))
