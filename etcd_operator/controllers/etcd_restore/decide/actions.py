"""What can be done for an EtcdRestore, and what is reported meanwhile."""

from dataclasses import KW_ONLY, dataclass
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


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What the status reports, and what to do."""

    reason: str
    message: str
    _: KW_ONLY
    phase: str = PENDING
    act: Act = Act.NOTHING
    snapshot: Verified | None = None  # to be recorded
    failure: RestoreFailure | None = None  # to be recorded
    requeue_after: float | None = None  # seconds until the next pass at the latest; None for an event


def failed(reason: str, message: str) -> RestorePlan:
    """Record why first; what was made is removed after that."""
    return RestorePlan(
        "CleaningUp",
        f"removing what the restore created, because of: {message}",
        failure=RestoreFailure(reason=reason, message=message),
        requeue_after=0.0,
    )


def ended(why: RestoreFailure) -> RestorePlan:
    """It has failed, and nothing is left to be removed."""
    return RestorePlan(why.reason, why.message, phase=FAILED)
