"""`fontes new`: write a project that runs: data, an experiment, a notebook and a README."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from ...core.errors import InputError
from ..options import Json, argument
from ..output import tell

TEMPLATES = Path(__file__).parent.parent / "project"
PLACEHOLDER = "PROJECT"  # for the name of the project in templates
TASK = "claims"  # of the sample collection


def new(directory: Annotated[Path, argument("Folder to write; it is new or empty.")], json: Json = False) -> None:
    """Write a project: a folder of data, an experiment, a notebook and a README. They run, on a sample until you replace it."""
    from ...storage.files import as_path, write

    folder = as_path(directory)
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(f"{directory} is not empty; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        files = dict(_files(folder.resolve().name))
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{directory} is a file; name a new folder") from None
    except OSError as error:
        raise InputError(f"{directory}: the folder cannot be made ({error.strerror or error})") from None
    for name, content in files.items():
        write(folder / name, [content])
    tell(
        json,
        {"directory": str(directory), "files": list(files)},
        f"{directory}: {', '.join(files)}",
        f"Next: cd {directory}; fontes experiment experiment.toml",
    )


def _files(project: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of a project."""
    from ...datasets.samples import HARBOUR, Harbour

    title = " ".join(project.split())
    for name, written in (("README.md", title), ("experiment.toml", ""), ("notebook.ipynb", json_.dumps(title)[1:-1])):
        yield name, (TEMPLATES / name).read_text(encoding="utf-8").replace(PLACEHOLDER, written).encode()
    yield ".gitignore", (TEMPLATES / "gitignore").read_bytes()
    yield "data/corpus.jsonl", (HARBOUR / "corpus.jsonl").read_bytes()
    yield "data/queries.jsonl", (HARBOUR / TASK / "queries.jsonl").read_bytes()
    judgments = [
        f"{topic}\t{doc}\t{grade}\n" for topic, grades in Harbour(TASK).qrels().items() for doc, grade in grades.items()
    ]
    yield "data/qrels/test.tsv", "".join(["query-id\tcorpus-id\tscore\n", *judgments]).encode()
