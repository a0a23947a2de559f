"""What a state of an index is: counts, sizes, what encoders have made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..core.html import table
from .ciff import header_of

if TYPE_CHECKING:
    from .state import State


def facts_of(reader: State) -> dict[str, Any]:
    """What `Index.info` gives."""
    segments = reader.manifest["segments"]
    files = [(name, file["bytes"]) for segment in segments for name, file in segment["files"].items()]
    return {
        "path": str(reader.path),
        "documents": len(reader),
        "terms": len(reader.terms),
        "postings": reader.count("postings"),
        "tokens": reader.tokens,
        "mean_length": reader.tokens / len(reader) if len(reader) else 0.0,
        "fields": list(reader.fields),
        "columns": reader.columns,
        "analyzer": reader.manifest["analyzer"],
        **({"shards": reader.manifest["shards"]} if "shards" in reader.manifest else {}),
        **({"missing": reader.missing} if reader.missing else {}),
        "segments": len(segments),
        "deleted": sum(s["deleted"]["documents"] for s in segments if s["deleted"]),
        "bytes": sum(size for _, size in files),
        "bytes_of_text": sum(size for name, size in files if name.startswith("text.")),
        **({} if reader.ciff is None else {"ciff": asdict(header_of(reader.ciff))}),
        "format": reader.manifest["version"],
        "fontes": reader.manifest["fontes"],
        "fingerprint": reader.fingerprint,
        **reader.vectors.info(),
    }


def shown(name: str, info: Mapping[str, Any]) -> str:
    """The facts as a table in HTML, for notebooks."""
    analyzer = info["analyzer"]
    rows = [
        ("path", info["path"]),
        *((name, f"{info[name]:,}") for name in ("documents", "terms", "postings", "tokens")),
        *((name, str(info[name])) for name in ("shards",) if name in info),
        *(("missing", f"shard {one['shard']}: {one['problem']}") for one in info.get("missing", ())),
        ("segments", f"{info['segments']}, with {info['deleted']:,} deleted documents in them"),
        ("mean length", f"{info['mean_length']:.1f} terms"),
        ("fields", ", ".join(info["fields"])),
        ("analyzer", ", ".join(f"{key}={value}" for key, value in analyzer.items() if value not in (None, [], {}))),
        *(("CIFF", text) for text in [info.get("ciff", {}).get("description")] if text),
        ("size", f"{info['bytes']:,} bytes, of which text {info['bytes_of_text']:,}"),
        *(("vectors", f"{v['encoder']}, {v['dtype']}, {v['dim']} dimensions") for v in info["vectors"]),
        *(("weights", f"{w['encoder']}, {w['postings']:,} of {w['terms']:,} terms") for w in info["weights"]),
        ("fingerprint", info["fingerprint"][:16]),
    ]
    return table(["index", name], rows)
