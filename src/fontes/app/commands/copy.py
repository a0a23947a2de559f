"""`fontes copy`: copy an index between directories and addresses."""

from __future__ import annotations

from typing import Annotated

from ..options import Json, argument, option
from ..output import reporting, tell
from ..usage import refuse_misspelt


def copy(
    source: Annotated[str, argument("An index: a directory, or an address (s3://…, gs://…, hf://…).")],
    target: Annotated[str, argument("The copy to create: a directory, or an address.")],
    overwrite: Annotated[bool, option("Replace an existing index.", True, "--overwrite")] = False,
    json: Json = False,
) -> None:
    """Copy an index to a directory or an address, and check all sums. Existing files are not copied again."""
    from ...index.remote import copy_index

    refuse_misspelt(source)
    with reporting(json):
        copy_index(source, target, overwrite=overwrite)
    tell(json, {"source": source, "target": target}, f"{source} is at {target}")
