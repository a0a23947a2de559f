"""Fontes: document retrieval, from a question, a claim, an event or a conversation to the documents that it came from.

`import fontes` needs numpy alone and is quick: each public name is loaded from its subpackage when it is first used. The names
are those of `__init__.pyi`; others are in their subpackages, such as `fontes.measures` or `fontes.plots`.
"""

from typing import Any

import lazy_loader

_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("fontes")
    return _find(name)
