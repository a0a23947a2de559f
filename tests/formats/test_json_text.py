"""JSON that every parser reads."""

import json
import math
from typing import Any

import pytest

from fontes.formats.json_text import json_text


def test_nan_and_infinities_become_null() -> None:
    for value, text in [
        ({"a": [1.5, "NaN"]}, '{"a": [1.5, "NaN"]}'),
        ({"a": math.nan, "b": [math.inf, -math.inf, {"c": math.nan}]}, '{"a": null, "b": [null, null, {"c": null}]}'),
        (math.inf, "null"),
    ]:
        assert json_text(value) == text


def test_options_are_those_of_json() -> None:
    assert json_text({"é": {1}, "x": math.nan}, ensure_ascii=False, separators=(",", ":"), default=list) == '{"é":[1],"x":null}'
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="Circular"):
        json_text(circle)
    with pytest.raises(TypeError):
        json_text({"x": {1}})
    assert json.loads(json_text({"x": 10**400})) == {"x": 10**400}
