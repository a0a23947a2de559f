"""`compare`: systems are run, measured and tested side by side, on the same topics and judgments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ..comparison import Report, Testing, report_of
from ..core import ParameterError, Topics
from ..measures.agreement import AnyQrels, AnyTopics, judgments_of
from ..measures.measure import Measure
from ..measures.names import DEFAULT, parse_all
from .cache import Cache
from .systems import named, run_all, stem


def compare(
    systems: Mapping[str, object] | Iterable[object],
    topics: AnyTopics | None,
    qrels: AnyQrels,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT,
    *,
    baseline: str | None = None,
    test: str = "t",
    correction: str = "holm",
    alpha: float = 0.05,
    seed: int = 0,
    cache: bool | str | os.PathLike[str] = True,
) -> Report:
    """Runs and measures systems, and tests whether their differences are more than chance.

    A prefix that several pipelines share is run once. Values are over all judged topics, as for `evaluate`.

    Args:
        systems: Stages, runs (all that `Run.of` accepts) or files of runs: in a mapping from name to system, or in a list,
            where a file is called by its stem and a stage by what it prints.
        topics: All that `Topics.of` accepts, or the path of a file; None where no system is a stage. Stages are run on the
            topics that have judgments.
        qrels: All that `Qrels.of` accepts, or the path of a file.
        measures: As for `evaluate`.
        baseline: The name of the system that the others are tested against; without one, all pairs are tested.
        test: "t" (paired t-test), "wilcoxon" (signed ranks), "fisher" (randomisation), each two-sided, or "tukey" (honestly
            significant differences, topics as blocks).
        correction: "holm", "bonferroni", "bh" (Benjamini-Hochberg) or "none", over the comparisons of each measure; "tukey"
            corrects by itself.
        alpha: The corrected p up to which a difference is called significant; intervals cover 1 - alpha.
        seed: Of randomisation (100,000 permutations) and bootstrap (10,000 resamples): the same seed, the same numbers.
        cache: Whether to keep the runs of stages, and those of each prefix, on disk: True in the user's cache folder, or the
            path of a folder; False neither reads nor writes. See `Stage.key` for which.

    Raises:
        InputError: A file or a value cannot be read, or there are no judgments.
        ParameterError: A name is unknown, or a number out of its range.
        PipelineError: A stage does not go from topics to a run.
    """
    by_name = named(systems)
    parsed = parse_all(measures)
    testing = Testing(test, correction, alpha, seed)
    against = None if baseline is None else _name_of(baseline, list(by_name))
    judgments = judgments_of(qrels)
    known = None if topics is None else Topics.read(topics)
    runs = run_all(by_name, None if known is None else known.judged(judgments), Cache.of(cache))
    return report_of(
        runs,
        judgments,
        parsed,
        topics=known,
        baseline=against,
        testing=testing,
    )


def _name_of(baseline: str, names: list[str]) -> str:
    """The name of the baseline, which may be written as the path of its file."""
    for name in (baseline, stem(baseline)):
        if name in names:
            return name
    raise ParameterError(f"the baseline '{baseline}' is none of the systems; there are {', '.join(names)}")
