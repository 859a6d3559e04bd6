"""Members of an ephemeral cluster are left, and none of them has a member list that counts.

They are silent, or learners, or of an etcd cluster that was given up. Whether their data is needed is not
known, so nothing is changed; a person gives them up by deleting their pods. A learner never recovers by
itself once all voters are gone, so the message names the backup that would be restored then.
"""

from collections.abc import Iterable, Sequence

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.from_backup import newest_backup
from etcd_operator.controllers.etcd_cluster.decide.recovery.loss import Left
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import unreadable
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import held


def hold(left: Left) -> Plan:
    """Report who is left, why their data does not count, and how a person gives it up."""
    silent = [member for member in left.remaining.values() if member.report is None]
    partial = [m for m in left.remaining.values() if m.report is not None and m not in left.given_up]
    texts = [
        f"{_named(silent)} may still have the data, but do not answer" if silent else "",
        f"{_named(partial)} may have only a part of the data, and have no vote" if partial else "",
        _beside(left.given_up),
    ]
    why = "; ".join(["nothing is changed", *filter(None, [unreadable(left.state)])])
    return held(
        "QuorumLost",
        f"{'; '.join(filter(None, texts))}: no quorum answers, {why}; "
        f"docs/operations.md describes how to read such data by hand{_instead(left, [*silent, *partial])}",
    )


def _named(members: Iterable[Member]) -> str:
    return ", ".join(member.named for member in members)


def _beside(given_up: Sequence[Member]) -> str:
    """Who answers for an etcd cluster that was given up: as long as they may run, no backup is restored."""
    if not given_up:
        return ""
    return (
        f"{_named(given_up)} answer for an etcd cluster that an earlier recovery gave up, and are not "
        f"recovered from (to go on without their data: {_deletion(given_up)})"
    )


def _instead(left: Left, needed: list[Member]) -> str:
    """How to restore a backup instead; empty where only members are left of which `_beside` says it."""
    if not needed:
        return ""
    found = newest_backup(left.state)
    if not isinstance(found, Plan):
        names = ", ".join(member.name for member in needed)
        return (
            f"; to give up the data of {names} and restore the backup {found.name} at revision "
            f"{found.revision}: {_deletion(left.remaining.values())}"
        )
    if found.reason != "BackupPending":
        return ""
    problem = left.state.tool_backups.problem
    why = f" ({problem})" if problem else ""
    return f"; waiting for the backup tool to report which backup could be restored instead{why}"


def _deletion(members: Iterable[Member]) -> str:
    pods = [member.pod for member in members if member.pod is not None]
    is_going = any(pod.is_terminating for pod in pods)
    force = ", with --force where the node never responds again" if is_going else ""
    return f"kubectl delete pod {' '.join(pod.name for pod in pods)}{force}"
