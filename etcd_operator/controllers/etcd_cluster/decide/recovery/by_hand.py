"""What is left of ephemeral members and recovered from only by hand: why, and how a person goes on.

Members that are silent, that never voted, that an earlier recovery gave up, or whose data may be wrong.
"""

from collections.abc import Iterable, Sequence

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import unreadable
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import Left, left_of, never_had_data
from etcd_operator.controllers.etcd_cluster.decide.recovery.source import older_source
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import held
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.reports import BackupReport


def corrupt(state: ClusterState, survivor: Member) -> Plan:
    """All that is left may be wrong, and no backup has as much: a person chooses."""
    tool_backups = state.tool_backups
    report = tool_backups.report
    newest = report.newest if report is not None and report.is_checked else None
    known = "there is no spec.backup"
    step = f"save it with `etcdctl snapshot save` at {survivor.name}, and compare it with what else you have"
    if newest is not None and newest.cluster_id == state.persisted.cluster_id:
        known = f"the newest backup is {newest.name} at revision {newest.revision}"
        step += f"; to go on with the backup, {deletion(left_of(state).remaining.values())}"
    elif tool_backups.has_tool and report is not None and report.is_checked:
        known = "the backup tool has no intact backup of this etcd cluster"
    elif tool_backups.has_tool:
        known = f"the backup tool does not report its backups ({tool_backups.problem or 'no answer yet'})"
    return held(
        "QuorumLost",
        f"no quorum can return, and etcd reports the data of {survivor.name}, at revision "
        f"{survivor.revision}, as corrupt (alarm CORRUPT): nothing is recovered from it; {known}; {step}",
    )


def without_responders(left: Left) -> Plan:
    """Report who is left, why their data does not count, and how a person gives it up.

    They are silent, or learners, or of an etcd cluster that was given up. Whether their data is needed is not
    known, so nothing is changed. A learner never recovers by itself once all voters are gone, so the message
    names the backup that would be restored then.
    """
    silent = [m for m in left.remaining.values() if m.report is None and not never_had_data(m)]
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
        f"recovered from (to go on without their data: {deletion(given_up)})"
    )


def _instead(left: Left, needed: list[Member]) -> str:
    """How to begin with less data; empty where only members are left of which `_beside` says it."""
    if not needed:
        return ""
    found = older_source(left.state)
    if not isinstance(found, Plan):
        names = ", ".join(member.name for member in needed)
        if isinstance(found, BackupReport):
            what = f"restore the backup {found.name}"
        else:
            what = f"go back to {found.survivor}"
        what += f" at revision {found.revision}"
        return f"; to give up the data of {names} and {what}: {deletion(left.remaining.values())}"
    if found.reason != "BackupPending":
        return ""
    problem = left.state.tool_backups.problem
    why = f" ({problem})" if problem else ""
    return f"; waiting for the backup tool to report which backup could be restored instead{why}"


def deletion(members: Iterable[Member]) -> str:
    """The command that gives up the data of these members."""
    pods = [member.pod for member in members if member.pod is not None]
    is_going = any(pod.is_terminating for pod in pods)
    force = ", with --force where the node never responds again" if is_going else ""
    return f"kubectl delete pod {' '.join(pod.name for pod in pods)}{force}"
