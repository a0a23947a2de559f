"""llms.txt and llms-full.txt of the site (https://llmstxt.org): a hook of mkdocs, which `make docs` runs."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

DIRECTIVE = re.compile(r"^::: (fontes[\w.]*)\n(?:    .*\n|\n(?=    ))*", re.MULTILINE)
PLOT = re.compile(r'^<div class="output plot">.*\n', re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ATTRIBUTES = re.compile(r"\{[:.#][^}\n]*\}")
_texts: dict[str, str] = {}  # of pages, by their address


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Keep the text of a page."""
    _texts[page.url] = markdown


def on_post_build(config: Any, **_: Any) -> None:
    """Write both files beside the pages."""
    site = Path(config["site_dir"])
    index, whole = llms(config["site_name"], config["site_description"], sections(config["nav"]), _texts)
    (site / "llms.txt").write_text(index, encoding="utf-8")
    (site / "llms-full.txt").write_text(whole, encoding="utf-8")


def sections(nav: list[Any]) -> dict[str, list[str]]:
    """Paths of the pages by section of the navigation; those outside of sections under ""."""
    by_section: dict[str, list[str]] = {}
    for entry in nav:
        for name, inside in entry.items() if isinstance(entry, dict) else [("", entry)]:
            by_section.setdefault(name if isinstance(inside, list) else "", []).extend(_paths(inside))
    return by_section


def _paths(inside: Any) -> list[str]:
    if isinstance(inside, str):
        return [inside]
    values = inside.values() if isinstance(inside, dict) else inside
    return [path for value in values for path in _paths(value)]


def llms(name: str, description: str, by_section: dict[str, list[str]], texts: dict[str, str]) -> tuple[str, str]:
    """The list of pages, and all pages as one text.

    Args:
        name: Name of the site.
        description: What it is about.
        by_section: Paths of the pages by section.
        texts: Markdown of the pages by address, which is the path with .html in place of .md.
    """
    lines, whole = [f"# {name}", "", f"> {description}", ""], [f"# {name}\n\n> {description}\n"]
    for section, paths in by_section.items():
        lines += [f"## {section}", ""] if section else []
        for path in paths:
            url = path.removesuffix(".md") + ".html"
            title, first = heading(texts[url])
            lines.append(f"- [{title}]({url}): {first}" if first else f"- [{title}]({url})")
            text = DIRECTIVE.sub(lambda match: documented(match[1]), PLOT.sub("", texts[url]))
            whole.append(f"\n<!-- {url} -->\n\n{text.strip()}\n")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n", "".join(whole)


def heading(text: str) -> tuple[str, str]:
    """Title of a page, and the first sentence before its first section."""
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    paragraphs = [
        part.strip() for part in BLOCK.sub("", text[title.end() if title else 0 :]).partition("\n## ")[0].split("\n\n")
    ]
    first = next((part for part in paragraphs if re.match(r"[\w*`\[]", part) and not part.startswith("* ")), "")
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    sentence = re.split(r"(?<=[.:!?]) (?=[A-Z`])", plain)[0]
    return ATTRIBUTES.sub("", title[1]).strip() if title else "", sentence


def documented(name: str) -> str:
    """Signature and docstring of a public name, in place of the directive that shows it on the site."""
    value: Any = import_module("fontes")
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            return f"### `{name}`\n"
    try:
        signature = str(inspect.signature(value)) if callable(value) else ""
    except (TypeError, ValueError):
        signature = ""
    return f"### `{name}{signature}`\n\n{inspect.getdoc(value) or ''}\n"
