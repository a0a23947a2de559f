"""Fontes: document retrieval, from a question, a claim, an event or a conversation to the documents that it came from.

`import fontes` needs numpy alone and is quick: each public name is loaded from its subpackage when it is first used. The names
are those of `__init__.pyi`; others are in their subpackages, such as `fontes.measures` or `fontes.plots`.
"""

from functools import cache
from typing import Any


@cache
def _public() -> Any:
    """The public names, whose list is read when the first of them is used: commands use none."""
    import lazy_loader

    return lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("fontes")
    find, _, names = _public()
    return names if name == "__all__" else find(name)


def __dir__() -> list[str]:
    names: list[str] = _public()[1]()
    return names
