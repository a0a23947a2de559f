"""Two collections, and which of them an index holds, for tests of builds that are stopped or run side by side."""

from pathlib import Path

from fontes.index import Index

OLD = [(f"o{n}", f"old fox {n}") for n in range(30)]
NEW = [(f"n{n}", f"new dog {n} " * 20) for n in range(80)]


def state(path: Path) -> str:
    """ "old", "new" or "none": which index is at `path`, which must be sound."""
    if not path.exists():
        return "none"
    index = Index.open(path)
    index.check(deep=True)
    first = index.ids[0]
    assert len(index) == {"o": 30, "n": 80}[first[0]]
    assert index.doc(first).text.startswith({"o": "old", "n": "new"}[first[0]])
    assert len(index.bm25(threads=1).search("fox dog", 1000)) == len(index)
    return {"o": "old", "n": "new"}[first[0]]


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if ".building-" in p.name]
