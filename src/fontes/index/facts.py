"""Description of a state of an index: counts, sizes, vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.html import table
from ..core.values import Doc
from .component import components
from .postings import POSTINGS
from .segment import BASE_COMPONENTS
from .texts import TEXTS

if TYPE_CHECKING:
    from .state import State

SAMPLE = 10_000  # maximum number of documents in `sampled`
BATCH = 512  # documents read at a time


def facts_of(state: State) -> dict[str, Any]:
    """Entries of `Index.info`."""
    from ..formats.ciff import header_of
    from .columns import COLUMNS

    segments = state.manifest["segments"]
    extra = sorted({name for leaf in state.leaves for name in leaf.segment.opened if name not in BASE_COMPONENTS})
    return {
        "path": str(state.path),
        "documents": len(state),
        **POSTINGS.facts(state),
        "fields": list(state.fields),
        **COLUMNS.facts(state),
        "analyzer": state.manifest["analyzer"],
        **({"shards": state.manifest["shards"]} if "shards" in state.manifest else {}),
        **({"missing": state.missing} if state.missing else {}),
        "segments": len(segments),
        "deleted": sum(s["deleted"]["documents"] for s in segments if s["deleted"]),
        "bytes": sum(file["bytes"] for segment in segments for file in segment["files"].values()),
        **TEXTS.facts(state),
        **({} if state.ciff is None else {"ciff": asdict(header_of(state.ciff))}),
        "format": state.manifest["version"],
        "fontes": state.manifest["fontes"],
        "fingerprint": state.fingerprint,
        **state.vectors.facts(state),
        **{key: value for name in extra for key, value in components[name].facts(state).items()},
    }


def shown(name: str, info: Mapping[str, Any]) -> str:
    """Return the facts as an HTML table, for notebooks."""
    analyzer = {"version": 1, **info["analyzer"]}
    rows = [
        ("path", info["path"]),
        *((name, f"{info[name]:,}") for name in ("documents", "terms", "postings", "tokens")),
        *((name, str(info[name])) for name in ("shards",) if name in info),
        *(("missing", f"shard {shard['shard']}: {shard['problem']}") for shard in info.get("missing", ())),
        ("segments", f"{info['segments']}, with {info['deleted']:,} deleted documents in them"),
        ("mean length", f"{info['mean_length']:.1f} terms"),
        ("fields", ", ".join(info["fields"])),
        ("analyzer", ", ".join(f"{key}={value}" for key, value in analyzer.items() if value not in (None, [], {}))),
        *(("CIFF", text) for text in [info.get("ciff", {}).get("description")] if text),
        ("size", f"{info['bytes']:,} bytes, of which text {info['bytes_of_text']:,}"),
        *((name, f"{info[name]['bytes']:,} bytes") for name in ("separate", "positions") if name in info),
        *(("vectors", f"{v['encoder']}, {v['dtype']}, {v['dim']} dimensions") for v in info["vectors"]),
        *(("weights", f"{w['encoder']}, {w['postings']:,} of {w['terms']:,} terms") for w in info["weights"]),
        ("fingerprint", info["fingerprint"][:16]),
    ]
    return table(["index", name], rows)


def sampled(index: State) -> Iterator[list[Doc]]:
    """Yield the documents of an index in batches: all of them, or 10,000 evenly spaced ones."""
    count = len(index)
    numbers = np.linspace(0, count - 1, SAMPLE).astype(np.int64) if count > SAMPLE else np.arange(count)
    ids = index.ids.take(numbers)
    for first in range(0, len(ids), BATCH):
        yield index.docs(ids[first : first + BATCH])
