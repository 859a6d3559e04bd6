"""How Jobs start and end, as far as decisions rest on it."""

from enum import Enum

START_PATIENCE = 600.0
"""Seconds for which nothing of a Job may run: a person may have to make a Secret, or a node may be lost."""


class JobEnd(Enum):
    """Whether Kubernetes counts a Job as ended."""

    RUNS = "runs"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
