"""JSON as standards have it: Python's `json` writes NaN and infinities, which other parsers refuse."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: object, **options: Any) -> str:
    """Return a value as JSON, with null for NaN and infinities.

    Args:
        value: The value.
        **options: Arguments of `json.dumps`.

    Raises:
        TypeError: The value has parts that JSON cannot hold; with `default`, that function converts them.
    """
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(json.loads(json.dumps(value, **options), parse_constant=lambda _: None), allow_nan=False, **options)
