"""Write the lists of options in docs/reference/command-line.md from the commands' help, and those that `app/quick.py` reads.

In the page, the text around them stays.

python tools/command_line.py
"""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import typer

from fontes.app import cli
from fontes.app.commands import search
from fontes.app.options import model_parameters
from fontes.app.quick import TABLE

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "command-line.md"
SAVED = 9  # words saved, from which on an option of several commands is described once
GENERATED = re.compile(r"^(?:\* `.*\n)+\n?|^\[Shared\]\(#shared-options\): .*\n", re.MULTILINE)
KINDS = {str: "str", str | None: "str", int: "int", int | None: "int", float | None: "float", bool: "flag"}
OF_FILES = ("topics", "split", "not_itself", "output", "tag", "to", "ir_metadata", "ray")  # parameters for files of topics
MODELS = ("search", "explain")  # have an option for each parameter of lexical models
OF_MODELS = (
    "* `--k1`, `--mu`, …: Each parameter of [`bm25`](stages.md#bm25), [`tfidf`](stages.md#tfidf) and [`ql`](stages.md#ql)"
)
EXPRESSION = re.compile(r"'(\w+(?:=\w+)?\([^']*\)[^']*)'")


def commands() -> dict[str, Any]:
    """The commands by name; those of a group by both names."""
    group: Any = typer.main.get_command(cli.app)
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        found |= {f"{name} {n}": c for n, c in command.commands.items()} if hasattr(command, "commands") else {name: command}
    return found


def written(page: str) -> str:
    """The page with the lists of all its commands."""
    known = commands()
    rows = {name: [Row.of(p) for p in command.params if shown(name, p)] for name, command in known.items()}
    shared = shared_rows([one for own in rows.values() for one in own])
    head, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    for number, section in enumerate(sections):
        title, _, text = section.partition("\n")
        text = GENERATED.sub("", text).strip("\n")
        name = title.removeprefix("fontes ")
        if title == "Shared options":
            text += "\n\n" + "\n".join(sorted(map(str, shared.values())))
        elif name in known:
            own = [str(one) for one in rows[name] if one.key not in shared] + ([OF_MODELS] if name in MODELS else [])
            text += "\n\n" + "\n".join(own) if own else ""
            alike = [one.short(shared[one.key].default) for one in rows[name] if one.key in shared]
            text += f"\n\n[Shared](#shared-options): {', '.join(alike)}" if alike else ""
        body = text.strip("\n")
        sections[number] = f"{title}\n\n{body}\n"
    return head + "\n".join(f"## {section}" for section in sections)


def quick_table() -> str:
    """The options of `fontes search` that `app/quick.py` reads: texts, numbers from 1 and flags, without those of files."""
    declared, every = (inspect.signature(function).parameters for function in (inspect.unwrap(search.search), search.search))
    own = {name: parameter for name, parameter in every.items() if name in declared}
    options: dict[str, list[str]] = {}
    for parameter in commands()["search"].params:
        name, plain_option = parameter.name, every.get(parameter.name)
        if plain_option is None or name not in (*own, *model_parameters()) or name in OF_FILES:
            continue
        kind, option = KINDS.get(plain_option.annotation.__origin__), plain_option.annotation.__metadata__[0]
        if kind and option.metavar is None and option.max is None:
            options |= {typed: [name, kind] for typed in parameter.opts if typed.startswith("-")}
    table = {
        "arguments": ["index", "query"],
        "defaults": {name: parameter.default for name, parameter in own.items() if name not in ("index", "query")},
        "options": options,
        "parameters": [name for name in model_parameters() if any(name == option for option, _ in options.values())],
    }
    return f"{json.dumps(table)}\n"


def shared_rows(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """Options that several commands describe alike, one of each name, with their most frequent default."""
    counts = Counter(one.key for one in rows)
    defaults = Counter((one.key, one.default) for one in rows)
    saved = {key: (count - 1) * len(key[1].split()) for key, count in counts.items()}
    shared = {key[0]: key for key in sorted(saved, key=lambda key: saved[key]) if saved[key] >= SAVED}
    usual = {key: default for (key, default), _ in reversed(defaults.most_common())}
    return {key: Row(*key, usual[key]) for key in shared.values()}


def shown(name: str, parameter: Any) -> bool:
    """Whether a parameter gets a row."""
    of_models = {f"--{own.strip('_').replace('_', '-')}" for own in model_parameters()} if name in MODELS else set()
    return not (parameter.hidden or of_models & set(parameter.opts))


class Row(NamedTuple):
    """An argument or option: its names, its help and its default."""

    names: str
    help: str
    default: str

    @classmethod
    def of(cls, parameter: Any) -> Row:
        """The row of a parameter of a command."""
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
        return cls(names, (parameter.help or "").rstrip("."), default)

    @property
    def key(self) -> tuple[str, str]:
        """Names and help, by which options are shared."""
        return self.names, self.help

    def short(self, usual: str) -> str:
        """The last name, and a default other than the usual one."""
        name = self.names.split(", ")[-1]
        other = self.default or ("optional" if usual == "required" else "required")
        return name if self.default == usual else f"{name} ({other})"

    def __str__(self) -> str:
        names = f"{self.names} ({self.default})" if self.default else self.names
        return f"* {names}: {plain(self.help)}"


def plain(text: str) -> str:
    """Text that is no Markdown, but for expressions, which are code."""
    parts = EXPRESSION.split(text)
    return "".join(f"`{part}`" if n % 2 else re.sub(r"([*<>_\[\]])", r"\\\1", part) for n, part in enumerate(parts))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    TABLE.write_text(quick_table(), encoding="utf-8")
