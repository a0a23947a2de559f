"""Hooks of mkdocs: each notebook in docs/notebooks is a page, with the outputs that it stores."""

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

LINK = re.compile(r"(\]\([\w./-]*)\.ipynb\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds a page for each notebook; the notebook itself stays, to download."""
    for notebook in sorted(Path(config.docs_dir, "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page(notebook)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links of pages to notebooks lead to their pages."""
    return LINK.sub(r"\1.md)", markdown)


def page(notebook: Path) -> str:
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```py\n{source}\n```" if cell["cell_type"] == "code" else source)
        parts += [output for one in cell.get("outputs", ()) for output in shown(one)]
    title, _, rest = "\n\n".join(parts).partition("\n")
    download = f'<p><a href="{notebook.name}" download>Download this notebook</a></p>'
    return f"{title}\n\n{download}\n{rest}\n"


def shown(output: dict[str, Any]) -> list[str]:
    data = output.get("data", {"text/plain": output.get("text", [])})
    for form in ("image/svg+xml", "text/html"):
        if form in data:
            html = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<style.*?</style>", "", "".join(data[form]), flags=re.DOTALL)
            lines = (line for line in html.splitlines() if line.strip())
            return [f'<div class="output {"plot" if "svg" in form else ""}">{" ".join(lines)}</div>']
    text = "".join(data["text/plain"])
    return [f'<pre class="output">{escape(text).rstrip()}</pre>'.replace("\n\n", "\n&#8203;\n")]
