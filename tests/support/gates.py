"""Sixty topics with one relevant document each, and runs of them, for tests of gates."""

from collections.abc import Iterable
from pathlib import Path

TOPICS = 60


def write_run(path: Path, lower: Iterable[int] = (), without: Iterable[int] = (), score: str = "") -> None:
    """Write a run with the relevant document of each topic first, of the topics in `lower` second; leave out `without`."""
    lines = []
    for topic in range(TOPICS):
        ids = [f"x{topic}", f"d{topic}"] if topic in set(lower) else [f"d{topic}", f"x{topic}"]
        ids = [] if topic in set(without) else [*ids, f"y{topic}"]
        lines += [f"{topic} Q0 {doc} {rank} {score or 10 - rank} test\n" for rank, doc in enumerate(ids, 1)]
    path.write_text("".join(lines))


def write_texts(folder: Path) -> None:
    """Write topics and judgments."""
    (folder / "queries.tsv").write_text("".join(f"{topic}\tquery number {topic}\n" for topic in range(TOPICS)))
    (folder / "qrels.txt").write_text("".join(f"{topic} 0 d{topic} 1\n" for topic in range(TOPICS)))
