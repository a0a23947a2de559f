"""`accept` makes the candidate's run the baseline; `init` writes the file of a gate with a first baseline."""

from __future__ import annotations

import json
import os
import shutil
from datetime import date
from pathlib import Path
from typing import Any

from ..core import InputError, Run
from ..datasets import dataset
from ..datasets.names import PREFIXES, named
from ..experiments.experiment import problem_in
from ..index import Index
from ..measures import evaluate
from ..storage.files import write
from .decision import Answer
from .file import DEFAULT, GateFile
from .lock import Change, Lock, digest_of, digests_of, texts_of
from .running import run_gate

RESULT = ("outcome", "problems", "margins", "digests", "baseline", "arms", "differences")  # what `accept` reads of a result
TEMPLATE = """\
# fontes gate run: does the candidate lose against the baseline?
topics = {topics}
qrels = {qrels}
{split}allow_equal = true  # a change that has no effect on the search passes

[margins]  # the greatest loss of the mean that is allowed
"nDCG@10" = 0.01

[baseline]
run = "{stem}.baseline.run"  # 'fontes gate accept' replaces it

[candidate]
index = {index}
pipeline = {pipeline}
"""


def accept(gate: GateFile, because: str = "") -> Lock:
    """Make the candidate's run of the last `fontes gate run` the baseline, and write its lock.

    Args:
        gate: The gate.
        because: Why a change is accepted that does not pass; the lock keeps it.

    Raises:
        InputError: The baseline is no file of a run, there is no result, the arms did not run, something changed since, or the
            change does not pass and there is no reason to accept it.
    """
    if gate.baseline_run is None or gate.lock is None:
        raise problem_in(gate.path, "baseline", 'only the file of a run can be accepted: run = "baseline.run"')
    result, candidate = _last(gate), gate.results / "candidate.run"
    again = f"run 'fontes gate run {gate.path}' again"
    today, margins = date.today().isoformat(), texts_of(gate.margins)
    lock = Lock.read(gate.lock) if gate.lock.exists() else None
    now = digest_of(gate.baseline_run) if gate.baseline_run.exists() else None
    is_first = now is None and lock is None
    digests = digests_of(candidate, gate.topics, gate.qrels) if result["digests"] else {}
    if (digests, margins) != (result["digests"], result["margins"]):
        raise InputError(f"{gate.results}: the run, the topics, the judgments or the margins have changed since; {again}")
    if lock is not None and digests and not lock.differences(digests, margins):  # it is the baseline already
        if now != digests["run"]:  # and was interrupted
            write(gate.baseline_run, [candidate.read_bytes()])
        return lock
    problems = [
        problem for problem in result["problems"] if not (is_first and problem.startswith("the baseline did not answer"))
    ]
    if problems:
        raise InputError(f"{gate.path}: there is nothing to accept, for the gate did not run: {problems[0]}")
    if result["baseline"] != now:
        raise InputError(f"{gate.baseline_run}: the baseline has changed since the last run; {again}")
    if not is_first and result["outcome"] != Answer.PASSES and not because:
        remedy = "--because REASON accepts it, and is kept in the lock"
        raise InputError(f"{gate.path}: the last answer is '{result['outcome']}'; {remedy}")
    changes = (Change(today, "the first baseline", "", {}),) if lock is None else lock.changes
    if not is_first:
        changes = (*changes, Change(today, result["outcome"], because, result["differences"]))
    means = evaluate(Run.of(candidate), gate.qrels, list(gate.margins))
    accepted = Lock(digests, margins, {name: means[name] for name in margins}, result["arms"]["candidate"], changes)
    accepted.save(gate.lock)  # first: without the run, it tells that the run is missing, and the differences are in it
    write(gate.baseline_run, [candidate.read_bytes()])
    return accepted


def _last(gate: GateFile) -> Any:
    path = gate.results / "result.json"
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if missing := next((key for key in RESULT if key not in result), None):
            raise ValueError(f"it lacks '{missing}'")
        return result
    except FileNotFoundError:
        raise InputError(f"{path}: there is no result to accept; run 'fontes gate run {gate.path}' first") from None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: the result cannot be read ({error}); run 'fontes gate run {gate.path}' again") from None


def init(
    source: str,
    path: Path = Path(DEFAULT),
    topics: str | None = None,
    qrels: str | None = None,
    split: str | None = None,
    pipeline: str = "bm25()",
) -> GateFile:
    """Write the file of a gate, and the run of a pipeline as its first baseline.

    Args:
        source: An index, or a collection with topics and judgments (sample:NAME, irds:NAME or a BEIR folder), which is indexed.
        path: The file to write.
        topics: Topics, for an index.
        qrels: Judgments, for an index.
        split: Split of the topics and judgments.
        pipeline: The pipeline of the baseline.

    Raises:
        InputError: The file exists, or something is missing or cannot be read.
    """
    index, collection = Path(source), None
    if topics is None or qrels is None:
        collection = named(source) or (dataset(source) if index.is_dir() and not (index / "manifest.json").exists() else None)
        if collection is None:
            remedy = "or give a collection, such as sample:harbour/claims"
            raise InputError(f"{source}: an index needs --topics and --qrels; {remedy}")
        topics, qrels, index = topics or source, qrels or source, path.with_name(f"{path.stem}.index")
    written = [path, *(path.with_name(f"{path.stem}.{end}") for end in ("baseline.run", "baseline.lock", "results"))]
    written += [index] if collection is not None else []
    if exists := next(filter(Path.exists, written), None):
        raise InputError(f"{exists} exists; delete it, or name another file for the gate")
    values = {
        "topics": _beside(path, topics),
        "qrels": _beside(path, qrels),
        "index": _beside(path, str(index)),
        "pipeline": pipeline,
    }
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    line = "" if split is None else f"split = {json.dumps(split, ensure_ascii=False)}\n"
    write(path, [TEMPLATE.format(**texts, split=line, stem=path.stem).encode()])
    try:
        gate = GateFile.read(path)
        if collection is not None:
            Index.build(collection.corpus, index)
        run_gate(gate).write()
        accept(gate)
    except BaseException:
        for file in written:
            if file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            else:
                file.unlink(missing_ok=True)
        raise
    return gate


def _beside(path: Path, name: str) -> str:
    """Return a name as it stands in the file: a collection, or a path relative to the folder of the file."""
    return name if name.startswith(tuple(PREFIXES)) else os.path.relpath(name, path.parent)
