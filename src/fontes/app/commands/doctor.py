"""`fontes doctor`: report what is installed, what is missing for what, and what the machine offers."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution, metadata, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ...core.work import cpuinfo, processor_features, thread_count
from ..options import Json
from ..output import print_json

REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[([\w,-]+)\])?([^;]*)(?:;.*extra == ['\"]([\w-]+)['\"])?")
HIDDEN_EXTRAS = ("all", "test", "docs")  # extras that combine others, or are for development
INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "neon", "asimd", "bf16")
BFLOAT16_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}


def doctor(as_json: Json = False) -> None:
    """Report what is installed, what each extra lacks, and what the machine offers."""
    facts = examine()
    if as_json:
        print_json(facts)
    else:
        sys.stdout.write("\n".join(_format_facts(facts)) + "\n")


def examine() -> dict[str, object]:
    """Return versions, processor, folders, extras and problems, without importing the packages and without network access."""
    from ...storage.caches import cache_folder
    from ...storage.compiled import compiled_bytes

    features = processor_features()
    cache = cache_folder()
    extras = _extras()
    problems = []
    if not _writable(cache):
        problems.append(
            f"{cache} cannot be written, so weights, scores and digests are computed again; set FONTES_CACHE to another folder"
        )
    return {
        "fontes": version("fontes"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": cpuinfo("model name") or platform.processor() or platform.machine(),
        "threads": thread_count(),
        "instructions": [name for name in INSTRUCTIONS if name in features],
        "bfloat16": bool(features & BFLOAT16_INSTRUCTIONS),
        "cache": str(cache),
        "compiled": compiled_bytes(),
        "packages": {name: _version(name) for name in _required("")},
        "extras": extras,
        "problems": problems,
    }


def _format_facts(facts: dict[str, Any]) -> list[str]:
    instructions = ", ".join(facts["instructions"]) or "not known"
    models = (
        "bfloat16 is tried beside float32" if facts["bfloat16"] else "float32; the processor has no instructions for bfloat16"
    )
    lines = [
        f"Fontes {facts['fontes']}, Python {facts['python']}, {facts['system']}",
        f"processor  {facts['processor']}; {facts['threads']} threads; {instructions}",
        f"models     {models}" + (", and a GPU where torch finds one" if not facts["extras"]["neural"]["missing"] else ""),
        f"cache      {facts['cache']}",
    ]
    for folder, size in facts["compiled"].items() or {"none yet; the first build compiles": 0}.items():
        lines.append(f"compiled   {folder}" + (f" ({size / 1e6:.1f} MB)" if size else ""))
    lines.append("packages   " + ", ".join(f"{name} {installed or 'missing'}" for name, installed in facts["packages"].items()))
    width = max(map(len, facts["extras"]), default=0) + 5
    for name, extra in facts["extras"].items():
        parts = ", ".join(f"{package} {installed}" for package, installed in extra["installed"].items())
        missing = f"missing: {', '.join(extra['missing'])}" if extra["missing"] else ""
        lines.append(f"  [{name}]".ljust(width) + "; ".join(filter(None, [parts, missing])))
    incomplete = [name for name, extra in facts["extras"].items() if extra["missing"]]
    if names := ",".join(incomplete):
        lines.append(f"pip install {_origin(names)} adds what is missing")
    return lines + [f"problem: {problem}" for problem in facts["problems"]]


def _origin(extras: str) -> str:
    """Return Fontes with extras as pip installs it from where it came: an index of packages, a clone or a wheel (PEP 610)."""
    origin = json.loads(distribution("fontes").read_text("direct_url.json") or "{}")
    url = origin.get("url", "")
    if not url.startswith("file:"):
        return f"'fontes[{extras}]'"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"{editable}{shlex.quote(f'{url2pathname(urlsplit(url).path)}[{extras}]')}"


def _extras() -> dict[str, dict[str, Any]]:
    """Return the installed packages of each extra, with their versions, and the missing ones."""
    extras = {}
    for extra in metadata("fontes").get_all("Provides-Extra") or []:
        if extra not in HIDDEN_EXTRAS:
            versions = {name: _version(name) for name in _required(extra)}
            installed = {name: number for name, number in versions.items() if number}
            extras[extra] = {"installed": installed, "missing": [name for name, number in versions.items() if not number]}
    return extras


def _required(extra: str) -> list[str]:
    """Return the packages that an extra requires, through other extras too; "" stands for the required packages of Fontes."""
    names: list[str] = []
    for line in metadata("fontes").get_all("Requires-Dist") or []:
        if (match := REQUIREMENT.match(line)) and (match[4] or "") == extra:
            if match[1] == "fontes":
                names += [name for part in (match[2] or "").split(",") for name in _required(part)]
            else:
                names.append(match[1])
    return list(dict.fromkeys(names))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _writable(folder: Path) -> bool:
    """Whether a folder, or its nearest existing parent, can be written to."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)
