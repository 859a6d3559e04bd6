"""How a Job ended, as far as decisions rest on it."""

from enum import Enum


class JobEnd(Enum):
    """Whether Kubernetes counts a Job as ended."""

    RUNS = "runs"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
