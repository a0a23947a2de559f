"""`fontes info`: describe an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ..options import Json, Partial, argument
from ..output import print_info, print_json


def info(
    index: Annotated[Path | None, argument("An index directory.", "what is cached")] = None,
    partial: Partial = False,
    json: Json = False,
) -> None:
    """Describe an index; without one, list the bytes in the user's cache and of compiled code."""

    if index is None:
        from ...storage.caches import cached_bytes
        from ...storage.compiled import compiled_bytes

        facts: dict[str, object] = {**cached_bytes(), **compiled_bytes()}
    else:
        from ..pipelines import open_index

        facts = open_index(index, partial=partial).info()
    if json:
        print_json(facts)
    else:
        print_info(facts)
