"""Write src/fontes/index_methods.py: a method of `Index` for each stage that works on an index.

python tools/index_methods.py
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fontes.core.parameters import Parameter, parameters, summary
from fontes.core.part import fields, stages
from fontes.core.registry import STAGES
from fontes.neural.encode import encode
from fontes.neural.stored import encoder_of

FILE = Path(__file__).resolve().parent.parent / "src" / "fontes" / "index_methods.py"
WIDTH = 128
FUNCTIONS: dict[str, Callable[..., Any]] = {"encode": encode, "encoder": encoder_of}
PLACES = {
    "ColBERT": ".neural.late.colbert",
    "Encoder": ".neural.encoders.base",
    "ProgressCallback": ".core.work",
    "Reranker": ".rerank.reranker",
    "SparseEncoder": ".neural.sparse.splade",
}
"""Where the types of parameters are, besides those that the head imports."""
HEAD = '''"""`fontes.Index`: an index with a method for each stage that works on one. Written by `tools/index_methods.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from .core.values import Topic
from .index import index
from .index.factory import stage_method
from .suggest.suggestions import Suggesting

if TYPE_CHECKING:
    from .core.ranking import Ranking
{imports}


class Index(Suggesting, index.Index):
    """Searchable collection. `Index.build` makes one on disk, `Index.open` opens it.

    It holds the documents, their statistics (ids, term frequencies, document lengths) and the analyzer, but no scores:
    models and parameters are chosen at search time.

    All attributes and methods of the open state are available on the index: `index.ids`, `index.doc(id)`; and it has a method
    for each stage of Fontes that works on an index, such as `index.bm25()`. A stage of another package is made by its class,
    `Reverse(index)`, or by name, `fontes.pipeline("bm25() >> reverse()", index)`. The index keeps reading its state until
    `refresh()`, or until it changes the index itself. A stage keeps the state that it was made with.
    """

    def search(
        self,
        query: str | Topic,
        k: int = 10,
        offset: int = 0,
        *,
        where: str | None = None,
        sort: str | None = None,
        descending: bool = False,
        facets: Sequence[str] = (),
        **unknown: Never,
    ) -> Ranking:
        """Return the best `k` documents by BM25 with default parameters: `index.bm25().search(query, k, offset, …)`.

        The arguments are those of `Stage.search`.
        """
        return self.bm25().search(query, k, offset, where=where, sort=sort, descending=descending, facets=facets, **unknown)
'''


def written() -> str:
    """The whole file."""
    classes = {name: cls for name in STAGES if "index" in parameter_names(cls := stages[name])}
    methods = [method(name, cls, cls.__name__) for name, cls in classes.items()]
    methods += [
        method(name, function, str(inspect.signature(function).return_annotation)) for name, function in FUNCTIONS.items()
    ]
    types = {cls.__name__: f".{relative(cls)}" for cls in classes.values()} | PLACES
    imports = "\n".join(f"    from {place} import {name}" for name, place in types.items())
    text = HEAD.replace("{imports}", imports) + "\n".join(methods)
    for command in (["check", "--select", "F401,I", "--fix", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(FILE), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def method(name: str, source: Any, gives: str) -> str:
    """The method that calls a stage's class, or a function, with the index."""
    kinds = inspect.signature(source).parameters
    positional = [one for one in parameters(source).values() if kinds[one.name].kind is not inspect.Parameter.KEYWORD_ONLY]
    named = [one for one in parameters(source).values() if one not in positional]
    declared = ["self", *map(declaration, positional), *["*"][: len(named)], *map(declaration, named)]
    values = ["self", *(one.name for one in positional), *(f"{one.name}={one.name}" for one in named)]
    args = "".join(
        textwrap.fill(f"{one.name}: {one.description}", WIDTH, initial_indent=" " * 12, subsequent_indent=" " * 16) + "\n"
        for one in (*positional, *named)
    )
    doc = textwrap.fill(summary(source), WIDTH - 6, initial_indent=" " * 8, subsequent_indent=" " * 8).strip()
    lines = [
        *(["    @stage_method"] if inspect.isclass(source) else []),
        f"    def {name}({', '.join(declared)}) -> {gives}:",
        f'        """{doc}' + (f"\n\n        Args:\n{args}        " if args else "") + '"""',
        f"        from .{relative(source)} import {source.__name__}",
        "",
        f"        {'' if gives == 'None' else 'return '}{source.__name__}({', '.join(values)})",
    ]
    return "\n" + "\n".join(lines) + "\n"


def declaration(parameter: Parameter) -> str:
    """Name, type and default of a parameter."""
    default = getattr(parameter.default, "__name__", None) or repr(parameter.default)
    return f"{parameter.name}: {parameter.kind}" + ("" if parameter.required else f" = {default}")


def parameter_names(cls: Any) -> set[str]:
    """Names of the fields of a part's constructor."""
    return {field.name for field in fields(cls)}


def relative(source: Any) -> str:
    """The module of a class or function, in Fontes."""
    return str(source.__module__).removeprefix("fontes.")


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
