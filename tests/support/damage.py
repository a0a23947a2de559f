"""Indexes and caches that are damaged, and what comes of searching them: each trial in a process that may crash.

A trial has a number, from which all else of it follows. `build` makes a folder with indexes of every kind of file and a cache.
A worker (this file, run as a program) changes one file of a copy, searches, tells what came of it, and puts the file back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parent.parent
DOCUMENTS, WORDS = 4_500, 2_000  # of the index of texts: more than one window of the kernel, and lists with rows of bounds
FEW = 150  # documents with vectors
ROOM = 1 << 30  # bytes that a trial may take beside what the worker has
SECONDS = 60  # that a trial may take
SHAPE = re.compile(rb"'shape': \(([^)]*)\)")
DESCR = re.compile(rb"'descr': '([^']*)'")
TYPES = (
    b"<i8",
    b"<u8",
    b"<f8",
    b"<i4",
    b"<u4",
    b"<f4",
    b"<i2",
    b"<u2",
    b"<f2",
    b"|i1",
    b"|u1",
    b"|b1",
    b">i4",
    b"|O",
    b"<c8",
    b"|V4",
)
TOPICS = {"q1": "w1 w7 w300", "q2": "w2 w1999 w45 w46 spring", "q3": "w1"}


@dataclass(frozen=True)
class Fake:
    """A late-interaction model without a transformer: a token is a word, its vector depends on the word alone."""

    fingerprint: str = "fake"
    width: int = 8

    def encode_queries(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [np.stack([word_vector(word, self.width) for word in text.split()]) for text in texts]

    def encode_documents(self, docs: Sequence[Any], progress: Any = None) -> tuple[np.ndarray, np.ndarray]:
        rows = self.encode_queries([doc.text for doc in docs])
        return np.concatenate(rows), np.cumsum([0, *map(len, rows)])


@lru_cache(None)
def word_vector(word: str, width: int) -> np.ndarray:
    """A vector of unit length."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    vector = np.random.default_rng(seed).standard_normal(width).astype(np.float32)
    return vector / np.linalg.norm(vector)


def encoders() -> list[tuple[Any, str]]:
    """Encoders, and the precision in which an index has their vectors."""
    from support.counting_encoder import Counting, Several

    return [
        (Counting(fingerprint="one"), "float32"),
        (Several(fingerprint="two"), "float16"),
        (Several(fingerprint="three"), "int8"),
    ]


def build(root: Path) -> None:
    """Makes the folder `sound` in a process of its own: two indexes and the cache of their searches."""
    _worker(root, "build")


def _build(root: Path) -> None:
    from support.counting_terms import CountingTerms

    from fontes import Index
    from fontes.neural.late.encode import encode_late

    sound = root / "sound"
    draw = np.random.default_rng(7)
    words = np.minimum(draw.zipf(1.25, (DOCUMENTS, 9)), WORDS)
    docs: list[dict[str, Any]] = [
        {"_id": f"d{n * 7919 % 5003:04}", "text": " ".join(f"w{w}" for w in row)} for n, row in enumerate(words.tolist())
    ]
    for n in range(0, DOCUMENTS, 50):
        metadata = {"year": 2000 + n % 25, "tag": ["léto", "zima"][: n % 3], "day": f"2020-01-{1 + n % 28:02}", "part": n / 7}
        docs[n] |= {"title": f"Pramen č. {n}", "metadata": {**metadata, "kind": f"k{n % 3}", "good": n % 2 == 0}}
    index = Index.build(docs[:-600], sound / "texts.index", analyzer="whitespace")
    index.add(docs[-600:-300])
    index.add(docs[-300:])
    index.delete([doc["_id"] for doc in docs[5:-400:97]])
    index = Index.build(docs[:FEW], sound / "vectors.index", analyzer="whitespace")
    index.add(docs[FEW : FEW + FEW // 2])
    index.delete([docs[7]["_id"], docs[70]["_id"]])
    for encoder, dtype in encoders():
        index.encode(encoder, dtype=dtype)
    index.encode(CountingTerms())
    for nbits in (2, 16):
        encode_late(index, Fake(), nbits=nbits, centroids=16)
    trials = Trials(sound, SEARCHES)
    trials.search("lexical")
    for name in ("sparse", "approximate", "runs"):
        trials.search(name)


# What is searched; each opens what it searches.


def _scores(run: Any) -> list[Any]:
    return [[ranking.ids, ranking.scores.tolist()] for ranking in run.values()]


def lexical(root: Path) -> Any:
    """All kinds of lexical models, feedback, an explanation."""
    from fontes import Index, Topic

    index = Index.open(root / "texts.index")
    minus = Topic("m", "", weights={"w1": -1.0, "w5": 2.0})
    stages = [
        index.bm25(k=10),
        index.bm25(k=20) >> index.rm3() >> index.bm25(k=10),
        index.tfidf(k=1000),
        index.ql(k=10),
        index.bm25(variant="okapi", k=5),
    ]
    runs = [_scores(stage(TOPICS)) for stage in stages]
    explained = [stages[0].explain("w1 w7", index.ids[place]).value for place in (0, 4_000)]
    return runs, _scores(stages[0](minus)), explained, len(index), repr(index), index.info()["tokens"]


def texts(root: Path) -> Any:
    """All documents, the terms of some, and a snippet."""
    from fontes import Index

    index = Index.open(root / "texts.index")
    some = list(index.ids)[::500]
    docs = index.reader.documents(list(index.ids), range(len(index))) + index.docs(some)
    return (
        [(d.id, d.text, d.title, sorted(d.metadata.items())) for d in docs],
        index.analyzed(some),
        index.marked("w1", docs[0]),
    )


def dense(root: Path) -> Any:
    """Exact search in vectors."""
    from fontes import Index

    index = Index.open(root / "vectors.index")
    runs = [_scores(index.dense(e, dtype=dtype, k=20)({"q": "fox", "r": "dog"})) for e, dtype in encoders()]
    value = index.dense(encoders()[2][0]).explain("fox", index.ids[3]).value
    return runs, value, [v["dim"] for v in index.info()["vectors"]]


def approximate(root: Path) -> Any:
    """Approximate search in vectors."""
    from fontes import Index

    index = Index.open(root / "vectors.index")
    encoder = encoders()[1][0]
    algorithms = [*(["hnsw", "IVF4,Flat"] if _there("faiss") else []), *(["annoy:5"] if _there("annoy") and False else [])]
    return [_scores(index.dense(encoder, algorithm=name, k=20)({"q": "fox"})) for name in algorithms]


def late(root: Path) -> Any:
    """Search in token vectors."""
    from fontes import Index
    from fontes.neural.late.store import stored

    index = Index.open(root / "vectors.index")
    model = Fake()
    (query,) = model.encode_queries(["w1 w2 w77"])
    answers = []
    for nbits in (2, 16):
        store = stored(index, model, nbits)
        docs = store.candidates(query, 2, 0.3, 40)
        answers.append([docs.tolist(), store.scores(query, docs).tolist()])
        answers.append(store.scores(query, np.arange(store.documents)).tolist())
    return answers


def columns(root: Path) -> Any:
    """A filtered search, and how many documents have each value."""
    from fontes import Index

    index = Index.open(root / "texts.index")
    run = index.bm25(k=10, where="year >= 2010 and 'zima' in tag")(TOPICS)
    counts = index.facets(*index.columns)
    other = index.bm25(k=10, where="day < '2020-01-20' and good and kind in ('k1', 'k2') or part > 99.5")
    return index.columns, _scores(run), _scores(other(TOPICS)), [(name, list(counts[name].items())) for name in counts]


def sparse(root: Path) -> Any:
    """Search in weights of terms."""
    from support.counting_terms import CountingTerms

    from fontes import Index

    index = Index.open(root / "vectors.index")
    return _scores(index.splade(CountingTerms(), k=20)({"q": "w1 w2", "r": "w77"}))


def runs(root: Path) -> Any:
    """A run out of the cache of runs, or searched again."""
    from fontes import Index, Topics
    from fontes.experiments.cache import Cache, key_of

    index, topics = Index.open(root / "texts.index"), Topics.of(TOPICS)
    cache, key = Cache(root / "cache" / "runs"), key_of("topics", ["bm25"])
    if (run := cache.load(key, topics, {index.fingerprint: index})) is None:
        run = index.bm25(k=30)(topics)
        cache.store(key, run, topics)
    return _scores(run)


def written(root: Path) -> Any:
    """Documents added and deleted, and all merged."""
    from fontes import Index

    index = Index.open(root / "texts.index")
    index.add([("new", "w1 w2 w2")])
    index.delete([index.ids[1]])
    index.merge()
    return _scores(Index.open(index.path).bm25(k=10)(TOPICS)), index.info()["tokens"], index.doc("new").text


SEARCHES: dict[str, Callable[[Path], Any]] = {
    "lexical": lexical,
    "texts": texts,
    "runs": runs,
    "written": written,
    "columns": columns,
    "dense": dense,
    "approximate": approximate,
    "late": late,
    "sparse": sparse,
}


def concerned(file: str) -> list[str]:
    """The searches that read a file."""
    if file.startswith("cache/"):
        return {"impacts": ["lexical", "sparse"], "runs": ["runs"]}.get(file.split("/")[1], ["approximate"])
    if "/column" in file:
        return ["columns", "columns", "written"]
    if file.startswith("texts.index"):
        return ["lexical", "lexical", "texts", "written", "columns"]
    kinds = {"vectors-": ["dense", "approximate", "late"], "late-": ["late"], "sparse-": ["sparse"]}
    return next((names for part, names in kinds.items() if f"/{part}" in file), ["dense", "sparse", "late"])


def _there(library: str) -> bool:
    from importlib.util import find_spec

    return find_spec(library) is not None


# Damage.


@dataclass(frozen=True)
class Damage:
    """A file and what it holds now, None where it is gone; `how` it came about; whether the metadata were made to fit."""

    file: str
    content: bytes | None
    how: str
    forged: bool


def damage(sound: dict[str, bytes], number: int) -> Damage:
    """That of a trial."""
    draw = np.random.default_rng([11, number])
    kinds = sorted({_kind(file) for file in sound})
    kind = kinds[int(draw.integers(len(kinds)))]
    files = sorted(file for file in sound if _kind(file) == kind)
    file = files[int(draw.integers(len(files)))]
    names = sorted(WAYS)
    while True:
        how = names[int(draw.integers(len(names)))]
        content = WAYS[how](sound[file], draw, sound, file)
        if content != sound[file]:
            break
    is_array = file.endswith(".npy") and not file.startswith("cache/")
    forged = is_array and content is not None and bool(draw.random() < 0.4)
    return Damage(file, content, how, forged)


def _kind(file: str) -> str:
    return re.sub(r"[0-9a-f]{16,}(-\d+)?", "*", file)


def _flip(content: bytes, draw: Any, first: int, last: int, count: int = 1) -> bytes:
    new = bytearray(content)
    for _ in range(count):
        if first < min(last, len(new)):
            new[int(draw.integers(first, min(last, len(new))))] ^= 1 << int(draw.integers(8))
    return bytes(new)


def _overwritten(content: bytes, draw: Any) -> bytes:
    """A number made extreme."""
    width = int(draw.choice([1, 2, 4, 8]))
    places = (len(content) - 128) // width
    if places <= 0:
        return content
    at = 128 + width * int(draw.integers(places))
    values = [
        b"\xff" * width,
        b"\0" * width,
        b"\xff" * (width - 1) + b"\x7f",
        b"\0" * (width - 1) + b"\x80",
        b"\1" + b"\0" * (width - 1),
    ]
    return content[:at] + values[int(draw.integers(len(values)))] + content[at + width :]


def _swapped(content: bytes, draw: Any) -> bytes:
    """Two numbers in each other's place, so that all add up as before."""
    width = int(draw.choice([1, 2, 4, 8]))
    places = (len(content) - 128) // width
    if places < 2:
        return content
    a, b = sorted(128 + width * int(place) for place in draw.choice(places, 2, replace=False))
    return content[:a] + content[b : b + width] + content[a + width : b] + content[a : a + width] + content[b + width :]


def _stretch(content: bytes, draw: Any) -> bytes:
    """A piece of the file where another one should be."""
    if len(content) < 130:
        return content
    size = int(draw.integers(1, min(4096, len(content) - 128) + 1))
    a, b = (int(draw.integers(128, len(content) - size + 1)) for _ in range(2))
    piece = b"\0" * size if draw.random() < 0.3 else content[a : a + size]
    return content[:b] + piece + content[b + size :]


def _header(content: bytes, draw: Any) -> bytes:
    """An npy header with another shape or type, of the same length where that is possible."""
    end = content.find(b"\n") + 1
    header = content[:end]
    match = SHAPE.search(header)
    if not content.startswith(b"\x93NUMPY") or not end or match is None:
        return content
    if draw.random() < 0.3:
        kind = TYPES[int(draw.integers(len(TYPES)))]
        new = DESCR.sub(b"'descr': '" + kind + b"'", header)
    else:
        sizes = [int(size) for size in match[1].split(b",") if size.strip()]
        shown = str(sizes[0])
        changes: list[Any] = [
            [sizes[0] // 2, *sizes[1:]],
            [sizes[0] + 1, *sizes[1:]],
            [max(0, sizes[0] - 1), *sizes[1:]],
            [int("0" + shown[1:] if len(shown) > 1 else 0), *sizes[1:]],
            [10**15, *sizes[1:]],
            [2**63 + sizes[0], *sizes[1:]],
            sizes[::-1],
            [*sizes, 1],
            [int(np.prod(sizes))],
            [],
            [0, *sizes[1:]],
            [2, *[max(1, size // 2) for size in sizes]],
        ]
        chosen = changes[int(draw.integers(len(changes)))]
        text = ", ".join(map(str, chosen)) + ("," if len(chosen) == 1 else "")
        new = header.replace(match[0], b"'shape': (" + text.encode() + b")")
    new = new.rstrip(b" \n")
    return new.ljust(len(header) - 1) + b"\n" + content[end:]


def _json(content: bytes, draw: Any) -> bytes:
    """A value of a JSON object replaced by another, or left out; what is no JSON stays as it is."""
    try:
        value = json.loads(content)
    except ValueError:
        return content
    others = [None, -1, 0, 10**30, 1.5, True, "", "x", "../..", [], {}, [[]], "\ud800", 2**31]
    inner, at = value, None
    while isinstance(inner, (dict, list)) and inner and (at is None or draw.random() < 0.7):
        at, outer = (
            (list(inner)[int(draw.integers(len(inner)))] if isinstance(inner, dict) else int(draw.integers(len(inner)))),
            inner,
        )
        inner = outer[at]
    if at is None:
        return content
    if draw.random() < 0.2:
        del outer[at]
    else:
        outer[at] = others[int(draw.integers(len(others)))]
    return json.dumps(value).encode()


def _exchanged(content: bytes, draw: Any, sound: dict[str, bytes], file: str) -> bytes:
    """What another file of the same folder holds."""
    folder = file.rpartition("/")[0]
    others = sorted(other for other in sound if other.rpartition("/")[0] == folder)
    return sound[others[int(draw.integers(len(others)))]]


WAYS: dict[str, Callable[[bytes, Any, dict[str, bytes], str], bytes | None]] = {
    "a bit": lambda content, draw, *_: _flip(content, draw, 0, len(content)),
    "a bit of the values": lambda content, draw, *_: _flip(content, draw, 128, len(content)),
    "a bit of the header": lambda content, draw, *_: _flip(content, draw, 0, 128),
    "some bits": lambda content, draw, *_: _flip(content, draw, 0, len(content), int(draw.integers(2, 20))),
    "cut off": lambda content, draw, *_: content[: int(draw.integers(len(content)))] if content else content,
    "longer": lambda content, draw, *_: content + bytes(int(draw.integers(1, 200))),
    "gone": lambda *_: None,
    "a number": lambda content, draw, *_: _overwritten(content, draw),
    "another number": lambda content, draw, *_: _overwritten(content, draw),
    "two numbers": lambda content, draw, *_: _swapped(content, draw),
    "a stretch": lambda content, draw, *_: _stretch(content, draw),
    "the header": lambda content, draw, *_: _header(content, draw),
    "the shape": lambda content, draw, *_: _header(content, draw),
    "JSON": lambda content, draw, *_: _json(content, draw),
    "exchanged": _exchanged,
}


def forge(folder: Path, file: Path) -> None:
    """Makes the metadata fit a file that was changed, as a stranger can."""
    from support.forged import digest, forged_artifact

    from fontes.index.files import _fingerprint

    fact = {"bytes": file.stat().st_size, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    if (file.parent / "artifact.json").exists():
        forged_artifact(file.parent, lambda meta: meta["files"].__setitem__(file.name, fact))
        return
    manifest = json.loads((folder / "manifest.json").read_text())
    for segment in manifest["segments"]:
        if segment["name"] == file.parent.name:
            segment["files"][file.name] = fact
        if segment.get("deleted") and segment["deleted"]["name"] == file.parent.name:
            segment["deleted"]["files"][file.name] = fact
    if "deleted" in manifest["segments"][0]:
        manifest["fingerprint"] = _fingerprint(manifest)
    else:
        facts = {key: value for key, value in manifest.items() if key not in ("fingerprint", "segments")}
        manifest["fingerprint"] = digest([facts, manifest["segments"][0]["files"]])
    (folder / "manifest.json").write_text(json.dumps(manifest))


class Trials:
    """The trials over a folder that `build` made, of which this works in `folder`."""

    def __init__(self, folder: Path, searches: dict[str, Callable[[Path], Any]]) -> None:
        from fontes.lexical import impacts

        impacts.LARGE = 1  # so that all impacts are kept on disk
        os.fsync = lambda file: None
        os.environ["FONTES_CACHE"] = str(folder / "cache")
        self.folder, self._searches = folder, searches
        self.sound = {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}
        self.answers: dict[str, str] = {}

    def search(self, name: str) -> str:
        """The answer of a search, as a digest."""
        answer = json.dumps(self._searches[name](self.folder), default=str)
        return hashlib.sha256(answer.replace(str(self.folder), "").encode()).hexdigest()

    def run(self, number: int) -> dict[str, Any]:
        """Does a trial: what was damaged, and the outcome of a search that reads it."""
        done = damage(self.sound, number)
        path = self.folder / done.file
        try:
            if done.content is None:
                path.unlink()
            else:
                path.write_bytes(done.content)
            index = self.folder / done.file.partition("/")[0]
            if done.forged:
                forge(index, path)
            names = concerned(done.file)
            name = names[number % len(names)]
            outcome = self._outcome(name)
            if not outcome.startswith(("right", "refused", "raw")):
                if done.forged:
                    outcome = "wrong, and forged"
                elif (name, outcome) != ("written", "wrong") and not done.file.startswith("cache/"):
                    outcome = self._verified(index, outcome)
            return {"file": done.file, "how": done.how, "search": name, "outcome": outcome}
        finally:
            self.restore()

    def _outcome(self, name: str) -> str:
        from fontes.core import FontesError, IndexFormatError

        try:
            return "right" if self.search(name) == self.answers[name] else "wrong"
        except IndexFormatError as error:
            return f"refused: {error}"
        except FontesError as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            ours = [
                f for f in traceback.extract_tb(error.__traceback__) if "fontes" in f.filename and "support" not in f.filename
            ]
            where = ours[-1] if ours else where
            return f"raw: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"

    def _verified(self, index: Path, outcome: str) -> str:
        """What becomes of a wrong answer, or of another error, where the sums are to be verified."""
        from fontes import Index
        from fontes.core import IndexFormatError

        try:
            Index.open(index, verify=True)
        except IndexFormatError:
            return "wrong, but verified"
        return f"{outcome} although verified"

    def answer(self) -> None:
        """Writes down what each search answers while nothing is damaged."""
        for name in self._searches:
            self.answers[name] = self.search(name)
            self.restore()

    def restore(self) -> None:
        """Puts all files back, and takes new ones away."""
        for place, folders, files in os.walk(self.folder, topdown=False):
            for name in files:
                file = Path(place, name)
                content = self.sound.get(str(file.relative_to(self.folder)))
                if content is None:
                    file.unlink()
                elif file.stat().st_size != len(content) or file.read_bytes() != content:
                    file.write_bytes(content)
            for name in folders:
                with contextlib.suppress(OSError):  # it is not empty
                    Path(place, name).rmdir()
        for name, content in self.sound.items():
            if not (self.folder / name).exists():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / name).write_bytes(content)


def outcomes(root: Path, numbers: Iterable[int]) -> list[dict[str, Any]]:
    """Does trials in workers, each new one after the trial that crashed the one before; a crash is an outcome too.

    Args:
        root: The folder that `build` made.
        numbers: Of the trials.
    """
    waiting, results = list(numbers), []
    while waiting:
        status, printed, failure = _worker(root, *map(str, waiting))
        lines = [json.loads(line) for line in printed.splitlines()]
        if not lines and status:
            raise RuntimeError(failure[-3000:])
        done = [line for line in lines if "outcome" in line]
        results += done
        waiting = waiting[len(done) :]
        if status and len(lines) > len(done):
            name = signal.Signals(-status).name if status < 0 else str(status)
            results.append({**lines[-1], "outcome": f"crash: {name}"})
            waiting = waiting[1:]
        elif status:
            raise RuntimeError(failure[-3000:])
    return results


def _worker(root: Path, *arguments: str) -> tuple[int, str, str]:
    """What a worker ends with and prints; an error where it could not even build."""
    import fontes

    source = Path(fontes.__file__).parent.parent
    variables = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{TESTS}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(root)]
    done = subprocess.run(command, input=" ".join(arguments), capture_output=True, text=True, env=variables, check=False)
    if arguments == ("build",) and done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return done.returncode, done.stdout, done.stderr


def main() -> None:
    """A worker: does the trials whose numbers it reads, and prints a line before and after each."""
    root = Path(sys.argv[1])
    arguments = sys.stdin.read().split()
    if arguments == ["build"]:
        _build(root)
        return
    work = root / f"work-{os.getpid()}"
    shutil.copytree(root / "sound", work)
    try:
        trials = Trials(work, SEARCHES)
        trials.answer()
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, taken + ROOM))
        for number in map(int, arguments):
            done = damage(trials.sound, number)
            print(json.dumps({"number": number, "file": done.file, "how": done.how}), flush=True)
            signal.alarm(SECONDS)
            print(json.dumps({"number": number, **trials.run(number)}), flush=True)
            signal.alarm(0)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
