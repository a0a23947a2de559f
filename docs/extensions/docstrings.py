"""Makes our docstrings, which are plain text, into Markdown for the reference.

A paragraph of "name   what it is" lines becomes a table, another paragraph with columns is set as it stands, an angle bracket
stays one, and an object such as `AP = _AP()` gets the docstring of its class.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Attribute, Class, Docstring, Extension, Function, Module

ROW = re.compile(r"(\S.*?) {2,}(\S.*)")
MADE = re.compile(r"(_\w+)\(\)")


class Docstrings(Extension):
    """What griffe calls for each object that it has read."""

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        _rewrite(func.docstring)

    def on_class(self, *, cls: Class, **kwargs: Any) -> None:
        _rewrite(cls.docstring)

    def on_module(self, *, mod: Module, **kwargs: Any) -> None:
        for attribute in mod.attributes.values() if not mod.is_alias else ():
            made = MADE.fullmatch(str(attribute.value))
            if made and made[1] in mod.classes and attribute.docstring is None:
                of = mod.classes[made[1]].docstring
                if of is not None:
                    attribute.docstring = Docstring(of.value, parent=attribute)
        _rewrite(mod.docstring)

    def on_attribute(self, *, attr: Attribute, **kwargs: Any) -> None:
        _rewrite(attr.docstring)


def _rewrite(docstring: Docstring | None) -> None:
    if docstring is not None:
        docstring.value = "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", docstring.value)))


def _paragraph(text: str) -> str:
    lines = text.splitlines()
    if not any(re.search(r"\S {2,}\S", line) for line in lines):
        return "`".join(part.replace("<", "&lt;") if i % 2 == 0 else part for i, part in enumerate(text.split("`")))
    rows: list[list[str]] = []
    for line in lines:
        row = ROW.fullmatch(line)
        if row and not re.search(r" {2,}", row[2]):
            rows.append([row[1], row[2]])
        elif rows and re.fullmatch(r" {4,}\S+(?: \S+)*", line):
            rows[-1][1] += " " + line.strip()
        else:
            return f"```text\n{text}\n```"
    cells = [(f"`{name}`", what.replace("<", "&lt;").replace("|", "\\|")) for name, what in rows]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {what} |" for name, what in cells)])
