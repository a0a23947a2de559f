"""Trials of damaged indexes and caches: what comes of searching them, each in a process that may crash.

A trial has a number, from which all else of it follows. `build` makes a folder with indexes of every kind of file and a cache.
A worker (this file, run as a program) changes one file of a copy, searches, tells what came of it, and puts the file back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from support.damage import damage, forge
from support.damaged_indexes import SEARCHES, concerned, make

TESTS = Path(__file__).resolve().parent.parent
ROOM = 1 << 30  # bytes that a trial may take beside what the worker has
SECONDS = 60  # that a trial may take


def build(root: Path) -> None:
    """Makes the folder `sound` in a process of its own: two indexes and the cache of their searches."""
    _worker(root, "build")


def _build(root: Path) -> None:
    make(root)
    trials = Trials(root / "sound", SEARCHES)
    for name in ("lexical", "sparse", "approximate", "runs"):
        trials.search(name)


class Trials:
    """The trials over a folder that `build` made, of which this works in `folder`."""

    def __init__(self, folder: Path, searches: dict[str, Callable[[Path], Any]]) -> None:
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
