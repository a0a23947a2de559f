"""Times `compare` from files of runs to a report, beside ranx on the same files.

    python bench/compare.py [--peers DIR] [--runs N] [--systems 10] [--topics 1400] [--depth 100]

Makes the runs: half of them with scores like ranks (depth to 1), half with six decimals. Each measurement is a whole process,
from its start to the printed table; ranx is also measured without its start and its compilation, on the second call.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import peers
from harness import HERE, machine, middle, process, spread, table

MEASURES = ("nDCG@10", "AP", "RR@10", "P@10", "R@100", "Rprec")
RANX = ("ndcg@10", "map", "mrr@10", "precision@10", "recall@100", "r-precision")


def make(folder: Path, systems: int, topics: int, depth: int) -> None:
    """Writes qrels and runs: each topic has 1 to 5 relevant documents, which the systems rank high by luck and by skill."""
    generator = np.random.default_rng(7)
    documents = np.array([f"doc{number:06d}" for number in range(20 * depth)])
    relevant = [generator.choice(len(documents), generator.integers(1, 6), replace=False) for _ in range(topics)]
    with (folder / "qrels.txt").open("w") as file:
        for topic, docs in enumerate(relevant):
            file.writelines(f"q{topic} 0 {documents[d]} {generator.integers(1, 3)}\n" for d in docs)
    for system in range(systems):
        with (folder / f"system{system}.run").open("w") as file:
            for topic, docs in enumerate(relevant):
                noise = generator.normal(size=len(documents))
                noise[docs] += 1 + 0.2 * system
                best = np.argsort(-noise)[:depth]
                scores = [f"{x:.6f}" for x in noise[best].tolist()] if system % 2 else range(depth, 0, -1)
                rows = zip(documents[best].tolist(), scores, strict=True)
                file.writelines(f"q{topic} Q0 {d} {r} {s} system{system}\n" for r, (d, s) in enumerate(rows, 1))


def ranx(folder: Path) -> None:
    """In the peers' environment: two comparisons, the second without compilation; prints their seconds."""
    import time

    from ranx import Qrels, Run, compare  # type: ignore[import-not-found]

    def once() -> tuple[float, object]:
        start = time.perf_counter()
        qrels = Qrels.from_file(str(folder / "qrels.txt"), kind="trec")
        runs = [Run.from_file(str(path), kind="trec") for path in sorted(folder.glob("*.run"))]
        report = compare(qrels, runs, list(RANX), stat_test="student", max_p=0.05, rounding_digits=4)
        return time.perf_counter() - start, report

    first, _ = once()
    second, report = once()
    print(report)
    print(json.dumps({"first": first, "second": second}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, default=peers.DEFAULT, help="the peers' environment (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="how often everything is measured (default: %(default)s)")
    for name, default in (("systems", 10), ("topics", 1400), ("depth", 100)):
        parser.add_argument(f"--{name}", type=int, default=default, help="(default: %(default)s)")
    parser.add_argument("--show", action="store_true", help="print both tables")
    parser.add_argument("--ranx", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ranx:
        ranx(given.ranx)
        return
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, given.systems, given.topics, given.depth)
        runs = sorted(folder.glob("*.run"))
        program = Path(sys.executable).parent / "fontes"
        command = [program, "compare", folder / "qrels.txt", *runs, "--measures", ",".join(MEASURES)]
        commands = {
            "fontes, all pairs": command,
            "fontes, baseline": [*command, "--baseline", "system0"],
            "ranx, all pairs": [peers.python(given.peers), HERE / "compare.py", "--ranx", folder],
        }
        if given.show:
            for command in commands.values():
                subprocess.run([str(part) for part in command], check=True)
        measured = {name: [] for name in commands}
        for _ in range(given.runs):
            for name, command in commands.items():
                measured[name].append(process(command))
    rows = [
        [name, spread([p.wall for p in tries]), f"{middle(p.memory for p in tries):.0f}"] for name, tries in measured.items()
    ]
    for part in ("first", "second"):
        rows.append([f"ranx, its {part} call alone", spread([p.report[part] for p in measured["ranx, all pairs"]]), ""])
    title = f"{given.systems} systems, {given.topics} topics, {given.depth} documents, {len(MEASURES)} measures, t-test"
    table(title, ["", "seconds: median (least–greatest)", "MiB"], rows)


if __name__ == "__main__":
    main()
