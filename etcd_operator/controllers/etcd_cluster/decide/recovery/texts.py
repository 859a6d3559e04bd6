"""A recovery in words, for status and Events, and how often it is observed."""

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.formats import duration_text

RECHECK = 2.0
"""Seconds between observations while somebody else has to act."""

SEED_POLL = 0.15
"""Seconds between observations of a seed: the start of its etcd causes no event."""

ONLY_LOST = "writes that only lost members had are missing"
SINCE_BACKUP = "writes after the backup are missing"

CREATING = (120, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400)
"""Seconds for which a pod has been ContainerCreating when that is reported, and reported again.

Kubernetes reports the reason in Events only: a volume that cannot be attached, a Secret that is missing.
Steps, because each other message is a write of the status. A large image may take the first of them.
"""


def held(reason: str, message: str) -> Plan:
    """Nothing may be done until somebody else acts."""
    return Plan.hold(reason, message, requeue_after=RECHECK)


def step(recovery: Recovery, *actions: Action) -> Plan:
    """The next step of a recovery that is under way."""
    return Plan.act(
        *actions, reason=reason_of(recovery), message=under_way(recovery), requeue_after=SEED_POLL
    )


def source_of(recovery: Recovery, *, is_offered: bool = False) -> str:
    """What is restored: a member's data or a backup, with its revision, and how old a backup was.

    is_offered: it has not begun. Its age still grows, and would be a write of the status in each pass.
    """
    backup = recovery.backup
    if backup is None:
        how = ", read from its data without a quorum" if recovery.offline_survivor is not None else ""
        return f"{recovery.survivor} at revision {recovery.revision}{how}"
    if not backup.name:
        return f"the newest backup of {backup.cluster}"
    age = "" if is_offered else f" ({duration_text(backup.age)} before)"
    return (
        f"the backup {backup.name} of {backup.cluster}, taken at {backup.time}{age}, "
        f"revision {recovery.revision}"
    )


def under_way(recovery: Recovery) -> str:
    """One message for all steps of a recovery."""
    if recovery.is_in_place:
        return f"restoring {source_of(recovery)} as {recovery.seed}"
    return f"recovering from {source_of(recovery)} as {recovery.seed}"


def reason_of(recovery: Recovery, *, is_done: bool = False) -> str:
    """What is done: a new cluster is restored, or one that serves, or a lost one recovered."""
    if recovery.is_in_place or recovery.is_at_creation:
        return "Restored" if is_done else "Restoring"
    return "Recovered" if is_done else "Recovering"


def missing(recovery: Recovery) -> str:
    """What a recovery can have lost."""
    if recovery.is_in_place:
        return (
            f"{SINCE_BACKUP}; the last revision that was observed of the cluster that was given up is "
            f"{recovery.given_up}"
        )
    found = ONLY_LOST if recovery.backup is None else SINCE_BACKUP
    if not recovery.given_up:
        return found
    return (
        f"{found}, and so are those from revision {recovery.given_up} on that an earlier seed acknowledged, "
        "which was lost while it was the only member"
    )


def of_replaced(recovery: Recovery) -> str:
    """Whose members are given up, as the end of a message: in place, no cluster was lost."""
    return " of the cluster before the restore" if recovery.is_in_place else " of the cluster that was lost"


def origin(recovery: Recovery) -> str:
    """How it began, where no person decided it, as the end of a message."""
    return "; started automatically (spec.recovery: Automatic)" if recovery.is_automatic else ""


def creating(member: Member) -> str:
    """That the pod of a new member does not get started, as the end of a message; empty if it is not late."""
    pod = member.pod
    reached = [seconds for seconds in CREATING if pod is not None and pod.creating_for >= seconds]
    if pod is None or not pod.is_assigned or not reached:
        return ""
    return (
        f"; the pod {pod.name} has been ContainerCreating for more than {duration_text(reached[-1])}: "
        f"`kubectl describe pod {pod.name}` shows which volume, Secret or image is missing"
    )


def way_out(pod: str, node: str) -> str:
    """What a person can do about a pod whose node does not respond."""
    where = f"its node {node}" if node else "its node"
    return f" (if {where} never responds again: kubectl delete pod {pod} --force)"
