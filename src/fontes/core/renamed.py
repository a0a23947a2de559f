"""Deprecated public names, kept for one version."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that maps old names to new ones with a DeprecationWarning.

    Args:
        module: The module's `__name__`.
        names: The new names by the old ones.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        warnings.warn(f"{module}.{name} is now {module}.{names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return get
