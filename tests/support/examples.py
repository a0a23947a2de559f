"""How many examples Hypothesis makes."""

from hypothesis import settings


def up_to(count: int, quick: int | None = None) -> int:
    """Return `count` in `make test-all`, which draws new examples; in `make test` `quick`, or a third, at least 10."""
    return (quick or max(count // 3, min(count, 10))) if settings.default.derandomize else count
