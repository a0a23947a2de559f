"""Hooks of mkdocs: notebooks as pages, copied commands, and a search that finds all words, with guides before the reference."""

import json
import logging
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

CODE = re.compile(r'(<div class="highlight"><pre><span></span><code)>(.*?)(?=</code>)', re.DOTALL)
LUNR_STATE = "e=e+s+o.id"  # in lunr.TokenSet.prototype.toString
log = logging.getLogger("mkdocs.hooks")
LINK = re.compile(r"(\]\([\w./-]*)\.ipynb\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds a page for each notebook; the notebook itself stays, to download."""
    for notebook in sorted(Path(config.docs_dir, "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=_page(notebook)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of pages to notebooks lead to their pages; the search shows guides before the reference and benchmarks."""
    if page.file.src_uri.startswith(("reference/", "benchmarks", "peers")):
        page.meta.setdefault("search", {"boost": 0.5})
    return LINK.sub(r"\1.md)", markdown)


def on_post_build(config: Any, **_: Any) -> None:
    """Mends the site's search: lunr tells the states of its automaton apart by letters and numbers without a separator.

    With digits in terms two states may look equal; a search that meets the joined state, such as `rerank`, finds nothing.
    """
    (worker,) = Path(config["site_dir"], "assets/javascripts/workers").glob("search.*.min.js")
    code = worker.read_text(encoding="utf-8")
    if code.count(LUNR_STATE) != 1:
        log.warning("the site's search has another form: see whether lunr still mistakes states, and mend tools/pages.py")
    worker.write_text(code.replace(LUNR_STATE, f'{LUNR_STATE}+" "'), encoding="utf-8")


def on_page_content(html: str, **_: Any) -> str:
    """Gives each console block what is copied: its commands, without prompts and what they print."""
    return CODE.sub(_with_copy, html)


def _with_copy(block: re.Match[str]) -> str:
    if '<span class="gp">' not in block[2]:
        return block[0]
    lines = [line for line in block[2].split("\n") if line.strip() and '<span class="go">' not in line]
    commands = [unescape(re.sub(r"<[^>]+>", "", re.sub(r'<span class="gp">.*?</span>', "", line))) for line in lines]
    return f'{block[1]} data-copy="{escape(chr(10).join(commands))}">{block[2]}'


def _page(notebook: Path) -> str:
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```py\n{source}\n```" if cell["cell_type"] == "code" else source)
        parts += [output for one in cell.get("outputs", ()) for output in _shown(one)]
    title, _, rest = "\n\n".join(parts).partition("\n")
    download = f'<p><a href="{notebook.name}" download>Download this notebook</a></p>'
    return f"{title}\n\n{download}\n{rest}\n"


def _shown(output: dict[str, Any]) -> list[str]:
    data = output.get("data", {"text/plain": output.get("text", [])})
    for form in ("image/svg+xml", "text/html"):
        if form in data:
            html = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<style.*?</style>", "", "".join(data[form]), flags=re.DOTALL)
            lines = (line for line in html.splitlines() if line.strip())
            return [f'<div class="output {"plot" if "svg" in form else ""}">{" ".join(lines)}</div>']
    text = "".join(data["text/plain"])
    return [f'<pre class="output">{escape(text).rstrip()}</pre>'.replace("\n\n", "\n&#8203;\n")]
