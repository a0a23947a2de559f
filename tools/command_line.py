"""Write the tables of options in docs/reference/command-line.md from the commands' help; the text around them stays.

python tools/command_line.py
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import typer

from fontes.app import cli
from fontes.app.pipelines import OWN

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "command-line.md"
SHARED = 3  # commands with the same option, from which on it is described once
GENERATED = re.compile(r"^(?:\|.*\n)+\n?|^\[Shared\]\(#shared-options\): .*\n", re.MULTILINE)
MODELS = ("search", "explain")  # have an option for each parameter of lexical models
OF_MODELS = (
    "| `--k1`, `--mu`, … | Each parameter of [`bm25`](stages.md#bm25), [`tfidf`](stages.md#tfidf) and [`ql`](stages.md#ql). |"
)


def commands() -> dict[str, Any]:
    """The commands by name; those of a group by both names."""
    group: Any = typer.main.get_command(cli.app)
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        found |= {f"{name} {n}": c for n, c in command.commands.items()} if hasattr(command, "commands") else {name: command}
    return found


def written(page: str) -> str:
    """The page with the tables of all its commands."""
    known = commands()
    rows = {name: [row(p) for p in command.params if shown(name, p)] for name, command in known.items()}
    counts = Counter(one for own in rows.values() for one in own)
    shared = [one for one, count in counts.items() if count >= SHARED]
    head, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    for number, section in enumerate(sections):
        title, _, text = section.partition("\n")
        text = GENERATED.sub("", text).strip("\n")
        name = title.removeprefix("fontes ")
        if title == "Shared options":
            text += table(sorted(shared))
        elif name in known:
            text += table([*(one for one in rows[name] if one not in shared), *([OF_MODELS] if name in MODELS else [])])
            names = [re.findall(r"`[^`]*`", one.partition(" |")[0])[-1] for one in rows[name] if one in shared]
            text += f"\n\n[Shared](#shared-options): {', '.join(names)}" if names else ""
        sections[number] = f"{title}\n\n{text.strip()}\n"
    return head + "\n".join(f"## {section}" for section in sections)


def table(rows: list[str]) -> str:
    """A table of rows, after an empty line."""
    return "\n\n" + "\n".join(["| argument, option: default | |", "|---|---|", *rows]) if rows else ""


def shown(name: str, parameter: Any) -> bool:
    """Whether a parameter gets a row."""
    of_models = {f"--{own.strip('_').replace('_', '-')}" for own in OWN} if name in MODELS else set()
    return not (parameter.hidden or of_models & set(parameter.opts))


def row(parameter: Any) -> str:
    """The row of a parameter: its names, its default and its help."""
    option = parameter.param_type_name == "option"
    names = ", ".join(f"`{one}`" for one in (parameter.opts if option else [parameter.name.upper()]))
    default = parameter.show_default
    if not isinstance(default, str):
        value = parameter.default if default else None
        if parameter.required:
            default = "required" if option else ""
        elif isinstance(value, list | tuple):
            default = ",".join(map(str, value))
        else:
            default = "" if value is None or value is False or callable(value) else str(value)
    return cell(f"{names}: {default}" if default else names, (parameter.help or "").rstrip("."))


def cell(names: str, text: str) -> str:
    """A row, in which the text is no Markdown."""
    escaped = re.sub(r"([*<>|_\[\]])", r"\\\1", text)
    return f"| {names} | {escaped} |"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
