"""Gates: tests that a change of a search loses no quality."""

from .accepting import accept, init
from .arms import Arm, CommandArm, FunctionArm, PipelineArm, Reply, RunArm, ServerArm
from .decision import Answer, Decision, MeasureDecision, decide
from .engines import HttpArm, McpArm
from .file import GateFile
from .lock import Change, Lock
from .planning import Drift, MeasurePlan, Plan, Spread, drift, plan_baseline, plan_differences
from .result import GateResult, Limit, LostTopic, Moved
from .running import plan_gate, run_gate

__all__ = [
    "Answer",
    "Arm",
    "Change",
    "CommandArm",
    "Decision",
    "Drift",
    "FunctionArm",
    "GateFile",
    "GateResult",
    "HttpArm",
    "Limit",
    "Lock",
    "LostTopic",
    "McpArm",
    "MeasureDecision",
    "MeasurePlan",
    "Moved",
    "PipelineArm",
    "Plan",
    "Reply",
    "RunArm",
    "ServerArm",
    "Spread",
    "accept",
    "decide",
    "drift",
    "init",
    "plan_baseline",
    "plan_differences",
    "plan_gate",
    "run_gate",
]
