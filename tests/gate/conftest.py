"""What the tests of gates share: a gate of two runs."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from support.gates import write_run, write_texts


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., Path]:
    """Writes a gate of two runs; `lower` topics lose, and `candidate` is another table."""

    def written(lower: Iterable[int] = (), candidate: str = 'run = "candidate.run"', head: str = "", tail: str = "") -> Path:
        write_texts(tmp_path)
        write_run(tmp_path / "baseline.run")
        write_run(tmp_path / "candidate.run", lower)
        path = tmp_path / "gate.toml"
        path.write_text(
            f'topics = "queries.tsv"\nqrels = "qrels.txt"\n{head}\n[margins]\nRR = 0.01\n'
            f'[baseline]\nrun = "baseline.run"\n[candidate]\n{candidate}\n{tail}\n'
        )
        return path

    return written
