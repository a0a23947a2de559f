"""`GateFile`: the file that describes a gate: topics, judgments, two arms, margins and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, create_model

from ..core import FontesError, Qrels, Topics
from ..datasets import judged_topics
from ..datasets.names import PREFIXES
from ..experiments.experiment import Text, TomlTable, beside, problem_in, read_toml, wrong_value
from ..measures.measure import Measure
from ..measures.names import need_groups
from ..tuning.folds import units_of
from .arms import Arm, CommandArm, PipelineArm, RunArm, ServerArm
from .decision import check_margins
from .engines import HttpArm, McpArm

DEFAULT = "gate.toml"
ARMS = ("baseline", "candidate")
KINDS: dict[str, type[Arm]] = {cls.kind: cls for cls in (PipelineArm, RunArm, ServerArm, HttpArm, McpArm, CommandArm)}
TooFew = Literal["fail", "skip", "xfail"]


class LimitsTable(TomlTable):
    """The greatest allowed ratios of candidate to baseline."""

    time: float | None = Field(default=None, gt=0)
    tokens: float | None = Field(default=None, gt=0)
    bytes: float | None = Field(default=None, gt=0)


class GateTable(TomlTable):
    """The file without the arms, whose tables depend on their kinds."""

    topics: str = Field(min_length=1)
    qrels: str = Field(min_length=1)
    split: str | None = Text
    machine: str | None = Text
    groups: Literal["document", "conversation"] | None = None
    k: int = Field(default=100, ge=1)
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    power: float = Field(default=0.8, gt=0, lt=1)
    allow_equal: bool = False
    allow_missing: int = Field(default=0, ge=0)
    any_generation: bool = False
    too_few: TooFew = "fail"
    margins: dict[str, float]
    limits: LimitsTable = LimitsTable()


@dataclass(frozen=True)
class GateFile:
    """A gate, as its file describes it.

    Args:
        path: The file.
        topics: The judged topics.
        all_topics: These, and those that are not judged.
        qrels: Their judgments.
        margins: The greatest allowed loss of each measure.
        baseline: The arm that must not be lost against.
        candidate: The arm that is tested; None if the file leaves it to a function of a test.
        settings: The other keys of the file.
        machine: Labels by a machine of these and more topics, for a plan.
        clusters: The group of each topic; None: each topic alone.
    """

    path: Path
    topics: Topics
    all_topics: Topics
    qrels: Qrels
    margins: Mapping[Measure, float]
    baseline: Arm
    candidate: Arm | None
    settings: GateTable
    machine: Qrels | None = None
    clusters: Mapping[str, int] | None = None

    @classmethod
    def read(cls, path: str | Path = DEFAULT) -> GateFile:
        """Read and check a file, its topics and its judgments.

        Raises:
            InputError: The file, its topics or its judgments are missing or invalid; the message names file, table and key.
        """
        path = Path(path)
        raw = read_toml(path)
        kinds: dict[str, Any] = {name: (_kind_of(path, name, raw[name]), ...) for name in ARMS if name in raw}
        if "baseline" not in kinds:
            raise problem_in(path, "", 'there is no table [baseline]; run = "baseline.run" in it names a run')
        fields = {name: kinds.get(name, (None, None)) for name in ARMS}
        model = create_model("GateFileTable", __base__=GateTable, **fields)
        try:
            table = model.model_validate(raw)
        except ValidationError as error:
            raise wrong_value(path, raw, error, model) from None
        arms: dict[str, Arm] = {name: getattr(table, name).at(path.parent) for name in kinds}
        try:
            margins = check_margins(table.margins)
        except FontesError as error:
            raise problem_in(path, "margins", str(error)) from None
        for measure in margins:
            if isinstance(measure.cutoff, int) and measure.cutoff > table.k:
                raise problem_in(path, "", f"{measure} reads more documents than k = {table.k}; write k = {measure.cutoff}")
        _check_limits(path, table.limits, list(arms.values()))
        try:
            sources = _source(path, table.topics), _source(path, table.qrels)
            topics, qrels = judged_topics(*sources, table.split, need_groups(margins))
            assert topics is not None
            assert qrels is not None
            judged = topics.judged(qrels)
            machine = None if table.machine is None else Qrels.of(_source(path, table.machine))
            units = None if table.groups is None else units_of(judged, qrels, table.groups)
        except FontesError as error:
            raise problem_in(path, "", str(error)) from None
        clusters = None if units is None else {topic: number for number, unit in enumerate(units) for topic in unit}
        arm = arms.get("candidate")
        return cls(path, judged, topics, qrels.only(judged), margins, arms["baseline"], arm, table, machine, clusters)

    @property
    def results(self) -> Path:
        """The folder of the last run."""
        return self.path.with_name(f"{self.path.stem}.results")

    @property
    def baseline_run(self) -> Path | None:
        """The file of the baseline, whether or not it exists; None for a baseline that is no file of a run."""
        return self.baseline.path(self.baseline.run_file) if isinstance(self.baseline, RunArm) else None

    @property
    def lock(self) -> Path | None:
        """The lock of the baseline, whether or not it exists; None for a baseline that is no file of a run."""
        return self.baseline.lock if isinstance(self.baseline, RunArm) else None


def _kind_of(path: Path, name: str, table: object) -> type[Arm]:
    """Return the class of an arm by the key that names its kind."""
    kinds = [kind for kind in KINDS if isinstance(table, dict) and kind in table]
    if len(kinds) != 1:
        beginning = "an arm needs one of the keys" if not kinds else f"{' and '.join(kinds)} exclude each other; keep one of"
        raise problem_in(path, name, f"{beginning} {', '.join(KINDS)}")
    return KINDS[kinds[0]]


def _check_limits(path: Path, limits: LimitsTable, arms: list[Arm]) -> None:
    for arm in arms:
        if limits.time is not None and not arm.by_topic:
            problem = f"time needs arms that answer topic by topic, and '{arm.kind}' does not; use another arm, or leave it out"
            raise problem_in(path, "limits", problem)
        for cost in ("tokens", "bytes"):
            if getattr(limits, cost) is not None and cost not in arm.costs:
                problem = f"the {cost} of an arm with the key '{arm.kind}' are not known; leave {cost} out"
                raise problem_in(path, "limits", problem)


def _source(path: Path, name: str) -> str:
    """Return the path of a file or folder beside the gate's file, or the name of a collection."""
    return name if name.startswith(tuple(PREFIXES)) else str(beside(path, name))
