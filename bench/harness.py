"""What the benchmarks share: their options, measured child processes, medians, and tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers

HERE = Path(__file__).parent
SMALL = bool(os.environ.get("FONTES_BENCH_SMALL"))  # whether a bench is only tried out: no figure is worth anything then
NOISE = float("inf") if SMALL else 0.15  # cores that others may keep busy during a measurement


def options(description: str | None, runs: int = 5) -> argparse.ArgumentParser:
    """The options of benchmarks that measure speed beside that of peers."""
    runs = amount(runs, 1)
    parser = data_option(description)
    parser.add_argument("--peers", type=Path, default=peers.DEFAULT, help="the peers' environment (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=runs, help="how often everything is measured (default: %(default)s)")
    return parser


def data_option(description: str | None) -> argparse.ArgumentParser:
    """The option of every benchmark."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("FONTES_DATA")
    parser.add_argument(
        "--data",
        type=Path,
        default=data,
        required=data is None,
        help="a folder of collections in BEIR's form (default: FONTES_DATA)",
    )
    return parser


def amount(full: int, small: int) -> int:
    """How often, or with how much, something is measured: `small` if the bench is only tried out."""
    return small if SMALL else full


@dataclass(frozen=True)
class Process:
    """A child process that has ended.

    What it reported; its seconds of clock and of processor; its peak memory in MiB (not less than that of the process that
    started it has, so import little there); how many cores others kept busy meanwhile.
    """

    report: dict[str, Any]
    wall: float
    cpu: float
    memory: float
    others: float


def process(command: Sequence[Any], variables: dict[str, str] | None = None, most: int = 3, patience: float = 60) -> Process:
    """Runs a command, whose last line of output may be JSON, and measures it.

    Waits for the machine to be quiet, at most `patience` seconds; runs again, `most` times in all, where others were busy on
    it, and keeps the quietest.
    """
    tries: list[Process] = []
    while len(tries) < most:
        wait_until_quiet(patience)
        tries.append(_process(command, variables))
        if tries[-1].others < NOISE:
            break
    return min(tries, key=lambda one: one.others)


def _process(command: Sequence[Any], variables: dict[str, str] | None) -> Process:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        start, busy = time.perf_counter(), _busy()
        child = subprocess.Popen([str(part) for part in command], env=variables, stdout=out, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        wall, busy = time.perf_counter() - start, _busy() - busy
        child.returncode = os.waitstatus_to_exitcode(status)
        for file in (out, errors):
            file.seek(0)
        if child.returncode:
            last = errors.read().decode(errors="replace")[-3000:]
            raise SystemExit(f"{' '.join(map(str, command))} ended with {child.returncode}:\n{last}")
        lines = out.read().decode().splitlines()
    report = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    cpu = usage.ru_utime + usage.ru_stime
    return Process(report, wall, cpu, usage.ru_maxrss / 1024, max(0.0, busy - cpu) / wall)


class Worker:
    """A process that waits for orders: lines of JSON in, and out a line with = and JSON for each.

    Args:
        command: What is run.
        variables: Its environment.
    """

    def __init__(self, command: Sequence[Any], variables: dict[str, str]) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(part) for part in command],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def answer(self, **order: Any) -> Any:
        """Its answer to an order; without one, what it says of itself."""
        assert self._process.stdin
        assert self._process.stdout
        if order:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("="):
                return json.loads(line[1:])
        self._log.seek(0)
        raise SystemExit(f"an engine ended:\n{self._log.read()[-3000:]}")

    def end(self) -> None:
        self._process.communicate()


def wait_until_quiet(seconds: float = 60) -> None:
    """Returns when less than NOISE cores have been busy for a second, or after `seconds`."""
    give_up = time.perf_counter() + seconds
    while not SMALL and time.perf_counter() < give_up:
        start, busy = time.perf_counter(), _busy()
        time.sleep(1)
        if (_busy() - busy) / (time.perf_counter() - start) < NOISE:
            return


def _busy() -> float:
    """Seconds that all processors have worked since the machine was started; 0 where the system does not tell."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    user, nice, system, _idle, _wait, interrupts, soft, steal = map(int, stat.read_text().split()[1:9])
    return (user + nice + system + interrupts + soft + steal) / os.sysconf("SC_CLK_TCK")


def engine(
    name: str, folder: Path, program: str, *arguments: Any, variables: dict[str, str] | None = None, **tries: Any
) -> Process:
    """Runs a program of the bench, for Fontes in this environment, for another engine in the peers' at `folder`.

    Args:
        name: The engine.
        folder: The peers' environment.
        program: The program.
        arguments: Its arguments.
        variables: Variables beside those of the environment.
        tries: As for `process`.
    """
    ours = name.startswith("fontes")
    python = sys.executable if ours else peers.python(folder)
    given = {**(dict(os.environ) if ours else peers.environment(folder)), **(variables or {})}
    return process([python, HERE / program, *arguments], given, **tries)


def middle(values: Iterable[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, and the least and the greatest value."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Prints a Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    body = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    sys.stdout.write(f"\n{title}\n\n{body}\n")
    sys.stdout.flush()


def machine() -> str:
    """The machine and the load on it, in a sentence."""
    cpu = Path("/proc/cpuinfo")
    models = [x.partition(":")[2].strip() for x in cpu.read_text().splitlines() if x.startswith("model name")]
    model = models[0] if models else platform.processor()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores of {model or platform.machine()}, {memory:.0f} GiB, {platform.system()}, "
        f"Python {platform.python_version()}; load before the measurement {load:.2f}"
    )


def size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
