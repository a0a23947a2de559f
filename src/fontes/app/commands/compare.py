"""`fontes compare`: compare runs, with statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ...core import Qrels
from ...core.errors import InputError, ParameterError
from ...experiments import compare as compare_runs
from ..options import Json, Judged, Machine, Measures, ReportFiles, Split, argument, option, options_of, reads_files
from ..output import print_report
from ..pipelines import open_index


@reads_files("id", "text", of="topics")
@options_of(compare_runs, "test", "correction", "alpha", "seed", "allow_empty")
def compare(
    settings: dict[str, Any],
    qrels: Judged,
    runs: Annotated[list[Path], argument("Runs: TREC or MS MARCO.")],
    measures: Measures = None,
    baseline: Annotated[str | None, option("A run, to test the others against.", "all pairs are tested")] = None,
    topics: Annotated[str | None, option("Topics to measure, with their texts: as the judgments.", "all judged topics")] = None,
    index: Annotated[Path | None, option("Index, for its documents' texts in a page.", False)] = None,
    split: Split = None,
    machine: Machine = None,
    output: ReportFiles = None,
    html: Annotated[Path | None, option("Write the report as a page.", False)] = None,
    json: Json = False,
) -> None:
    """Compare runs: means side by side, tests, intervals and effect sizes."""
    from ...datasets import judged_topics
    from ...measures import DEFAULT
    from ...measures.evaluation import refuse_exchanged
    from ...measures.names import need_groups, parse_all

    for path in runs:
        _refuse_measure(path)
    opened = None if index is None else open_index(index)
    parsed = parse_all(measures or DEFAULT)
    try:
        queries, judgments = judged_topics(topics, qrels, split, groups=need_groups(parsed))
        assert judgments is not None  # `qrels` is given
        report = compare_runs(
            runs,
            queries,
            judgments,
            parsed,
            baseline=baseline,
            cache=False,
            machine=None if machine is None else Qrels.of(machine),
            **settings,
        )
    except InputError as error:
        for path in runs:
            refuse_exchanged(path, qrels, error)
        raise
    report = report if opened is None else report.with_documents(opened)
    if html is not None:
        report.save(html, "html")
    print_report(report, output, json)


def _refuse_measure(path: Path) -> None:
    """Raise ParameterError if a path is the name of a measure and not of a file."""
    from ...measures import parse

    if path.exists() or path.suffix:
        return
    try:
        parse(str(path))
    except ParameterError:
        return
    raise ParameterError(f"'{path}' is a measure, not a run; write -m {path}")
