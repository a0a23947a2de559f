"""What published splits have in common, and what new ones leave out, with the seconds.

python bench/split.py --data FOLDER
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import harness

import fontes as ft


def timed(what: str, work: Callable[..., object], *given: object, **how: object) -> None:
    start = time.perf_counter()
    result = work(*given, **how)
    print(f"\n## {what}, {time.perf_counter() - start:.1f} s\n{result}", flush=True)


def given_splits(folder: Path) -> None:
    topics = ft.read_topics(folder / "queries.jsonl")
    qrels = {name: ft.read_qrels(folder / f"qrels/{name}.tsv") for name in ("train", "dev", "test")}
    for train, test in (("train", "dev"), ("train", "test"), ("dev", "test")):
        timed(f"{folder.name}: {train} and {test}", ft.train.leakage, (topics, qrels[train]), (topics, qrels[test]))
    for groups in (None, "document"):
        timed(f"{folder.name}: a new split by {groups or 'topic'}", ft.split, topics, list(qrels.values()), groups=groups)


def canard(folder: Path) -> None:
    with (folder / "train.jsonl").open(encoding="utf-8") as file:
        train = rewrites([json.loads(line) for line in file])
    dev = rewrites(json.loads((folder / "dev.json").read_text(encoding="utf-8")))
    timed("canard, rewritten questions: train and dev", ft.train.leakage, train, dev)
    timed("canard, rewritten questions: train by conversation", ft.split, train, groups="conversation")


def rewrites(rows: list[dict[str, str]]) -> ft.Topics:
    return ft.Topics(ft.Topic(f"{row['QuAC_dialog_id']}_{row['Question_no']}", row["Rewrite"]) for row in rows)


def main() -> None:
    options = harness.options(__doc__).parse_args()
    given_splits(options.data / "checkthat20_task2")
    given_splits(options.data / "checkthat25_4b")
    folder = options.data / "ctkfacts_cs"
    for groups in (None, "document"):
        timed(
            f"ctkfacts_cs by {groups or 'topic'}", ft.split, folder / "queries.jsonl", folder / "qrels/test.tsv", groups=groups
        )
    canard(options.data / "canard")


if __name__ == "__main__":
    main()
