"""What can be done for an EtcdRestore, and what is reported meanwhile."""

from dataclasses import dataclass
from enum import Enum

from etcd_operator.api.restores import FAILED, PENDING, RestoreFailure, Verified


class Act(Enum):
    """What is done for a restore, after its status was written."""

    NOTHING = "nothing"
    CREATE_CHECK = "create the Job that verifies the backup"
    CREATE_CLAIMS = "create the claims that are missing"
    CREATE_JOBS = "create the Jobs that are missing"
    ANNOTATE = "annotate the claims with the ID of the cluster"
    REMOVE_JOBS = "remove the Jobs, whose pods hold the claims"
    CREATE_CLUSTER = "create the EtcdCluster"
    CLEAN_UP = "remove what was made"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What the status reports, what to do, and when to observe again at the latest (seconds).

    snapshot, failure: to be recorded. requeue_after: None for an event.
    """

    phase: str
    reason: str
    message: str
    act: Act = Act.NOTHING
    snapshot: Verified | None = None
    failure: RestoreFailure | None = None
    requeue_after: float | None = None


def going(
    reason: str,
    message: str,
    *,
    act: Act = Act.NOTHING,
    snapshot: Verified | None = None,
    requeue_after: float | None = None,
) -> RestorePlan:
    """It goes on."""
    return RestorePlan(
        phase=PENDING, reason=reason, message=message, act=act, snapshot=snapshot, requeue_after=requeue_after
    )


def failed(reason: str, message: str) -> RestorePlan:
    """Record why first; what was made is removed after that."""
    return RestorePlan(
        phase=PENDING,
        reason="CleaningUp",
        message=f"removing what the restore created, because of: {message}",
        failure=RestoreFailure(reason=reason, message=message),
        requeue_after=0.0,
    )


def ended(why: RestoreFailure) -> RestorePlan:
    """It has failed, and nothing is left to be removed."""
    return RestorePlan(phase=FAILED, reason=why.reason, message=why.message)
