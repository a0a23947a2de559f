"""The search of the documentation's site, as the site does it: its own worker, run by Node.js."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGES = {
    "highlight": "guides/search-and-runs.html",
    "autocomplete": "guides/search-and-runs.html",
    "typo tolerance": "guides/search-and-runs.html",
    "pagination": "guides/search-and-runs.html",
    "pandas": "guides/search-and-runs.html",
    "MAP@5": "concepts/measures.html",
    "api key": "guides/serve.html",
    "health check": "guides/serve.html",
    "offline models": "guides/encoders.html",
    "delete a document": "guides/living.html",
    "update a document": "guides/living.html",
    "jupyter": "start/first-search.html",
    "docker": "start/install.html",
    "vector search": "guides/dense.html",
    "facets": "guides/filter.html",
    "stop words": "guides/analyzers.html",
    "cross-encoder": "guides/rerank.html",
}


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("mkdocs") or shutil.which("node") is None, reason="needs the extra docs, and Node.js")
def test_the_site_finds_the_page_that_explains_a_word(tmp_path: Path) -> None:
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "-q", "-d", site], cwd=HERE.parent, check=True)
    terms = {word[:4] for word in "rerank retrieval index search query bm25 analyzer train evaluate server filter".split()}
    queries = [*PAGES, *sorted(terms)]
    command = ["node", HERE / "support" / "site_search.js", site, *queries]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = {query: json.loads(line) for query, line in zip(queries, lines, strict=True)}
    assert {query: found[query][0].partition("#")[0] for query in PAGES} == PAGES
    assert all(found[term] for term in terms)
