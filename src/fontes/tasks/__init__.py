"""Shared tasks: what organisers give, laid out, checked, run, and turned into notes and a submission."""

from . import checkthat, evidence, runs
from .base import Roles, Task, TaskData, TaskSide, registry
from .checks import DataCheck, check_data
from .choosing import TaskOptions
from .project import TaskProject, new_project
from .release import ReleasedFiles
from .running import TaskResult, check_submission, run_task

__all__ = [
    "DataCheck",
    "ReleasedFiles",
    "Roles",
    "Task",
    "TaskData",
    "TaskOptions",
    "TaskProject",
    "TaskResult",
    "TaskSide",
    "check_data",
    "check_submission",
    "new_project",
    "registry",
    "run_task",
]

del checkthat, evidence, runs
