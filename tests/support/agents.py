"""A client that is connected to the tools of agents in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp import Client

from fontes.app.agents.protocol import Protocol


def connected(tools: Any, use: Callable[[Client], Awaitable[Any]], *log_and_session: Any, **options: Any) -> Any:
    """What a function of a connected client returns.

    Args:
        tools: What it is connected to.
        use: The function.
        log_and_session: The log of its calls, and the name of its session.
        options: Of the client.
    """

    async def run() -> Any:
        async with Client(Protocol(tools, *log_and_session).server(), **options) as client:
            return await use(client)

    return asyncio.run(run())
