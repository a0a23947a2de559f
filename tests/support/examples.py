"""How many examples Hypothesis makes."""

from hypothesis import settings


def up_to(count: int) -> int:
    """Return `count` in `make test-all`, which draws new examples, and a third of it, at least 10, in `make test`."""
    return max(count // 3, min(count, 10)) if settings.default.derandomize else count
