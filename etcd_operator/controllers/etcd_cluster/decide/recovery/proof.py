"""Whether it is proven that no quorum of ephemeral members can return by itself.

No read through a quorum can precede a recovery (I12). Instead: a member is elected only by a majority of the
voters that it lists itself. So if every member whose data may still exist answers, and none of them lists a
majority of such members, nobody can be elected, and without an election no list changes. Only a pod that is
missing, or that will never run again, counts as lost here: one on a silent node may return, or may be serving
clients on the other side of a network partition (docs/decisions/007).

With `spec.recovery: Automatic` the user accepts another rule for members that are silent: `authority`.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import when_due, without_silent
from etcd_operator.controllers.etcd_cluster.decide.recovery.machine import Lost, go_on
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import read_silent, unreadable
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import ELECTION, Left, left_of
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import held
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import is_blocked

LEARNER_GRACE = 10.0
"""Seconds for silent members without a vote: one that was just given it would be elected by then."""


@fact
def situation(state: ClusterState) -> Plan | Left | None:
    """What to do about ephemeral members; or what is left, where a source is to be chosen."""
    if not state.persisted.is_bootstrapped or not state.kind.can_prove_loss:
        return None
    recovery = state.persisted.recovery_under_way
    if recovery is not None:
        found = go_on(state, recovery)
        return what_is_left(state) if isinstance(found, Lost) else found
    return None if state.has_quorum else what_is_left(state)


def chooses_source(state: ClusterState) -> bool:
    """Whether a recovery chooses its source now: what the backup tool has decides then, and only then."""
    left = situation(state)
    return isinstance(left, Left) and (bool(left.responders) or not left.remaining)


def names_backup(state: ClusterState) -> bool:
    """Whether the status names the backup that a person may restore. A quorum may still serve somewhere."""
    left = situation(state)
    return isinstance(left, Left) and bool(left.remaining) and not left.responders


def what_is_left(state: ClusterState) -> Plan | Left | None:
    """What is left, if no quorum can return; or why that is not certain. None: a quorum may come back.

    Nothing can be recovered from what is left without responders (`proven.begin`).
    """
    left = left_of(state)
    if left.is_empty or state.persisted.is_restoring:
        return left
    rest = without_silent(left)
    if rest is not None:
        return read_silent(state) or rest
    if not left.responders:
        return None if _is_for_the_upgrade(state, left) else read_silent(state) or left
    electable = [responder for responder in left.responders if left.may_elect(responder)]
    if electable:
        return _await_election(left, electable)
    silent = read_silent(state) or _wait_for_silent(left)
    return silent or _wait_for_unaware(left) or _wait_for_deletion(left) or left


def _is_for_the_upgrade(state: ClusterState, left: Left) -> bool:
    """Whether the upgrade brings one back: it is stopped on purpose, or crashes at an undesired version."""
    upgrade = state.persisted.upgrade
    if upgrade is not None and upgrade.member in left.remaining:
        return True
    return any(is_blocked(state, member) for member in left.remaining.values())


def _await_election(left: Left, electable: list[Member]) -> Plan | None:
    """Members that answer are a majority by the list of one of them; None: they may be electing a leader.

    They cannot if they do not reach each other, or if that one missed the last change of members: it needs
    the vote of another whose log is longer, and that other needs more votes than are left. Nothing that etcd
    reports distinguishes the two cases (it reports the commit index, not the end of the log), so a person
    decides.
    """
    silent = any(member.report is None for member in left.remaining.values())
    if silent or left.state.unavailable_for < ELECTION:
        return None
    names, ahead = ", ".join(left.remaining), [w.name for w in left.responders if w not in electable]
    step = "check that they reach each other on port 2380"
    if ahead:
        behind = ", ".join(member.name for member in electable)
        step += (
            f"; if they do, {behind} missed the last change of members and can never lead: "
            f"delete its pod to recover from {', '.join(ahead)}"
        )
    return held("QuorumLost", f"{names} answer, but do not elect a leader: nothing is changed; {step}")


def _wait_for_silent(left: Left) -> Plan | None:
    """A silent voter may have data that the others lack: only a person can give it up."""
    silent = [name for name, member in left.remaining.items() if member.report is None]
    voters = [name for name in silent if name in left.all_voters]
    if voters:
        names, why = ", ".join(voters), unreadable(left.state)
        return held(
            "QuorumLost",
            f"no quorum can return, but {names} may have newer data and does not answer: waiting for it"
            f"{why and '; ' + why}; delete its pod to give it up and recover from the others"
            f"{when_due(left.state)}",
        )
    if silent and left.state.unavailable_for < LEARNER_GRACE:
        return Plan.wait(
            "QuorumLost", f"no quorum can return; waiting for {', '.join(silent)}", requeue_after=1.0
        )
    return None


def _wait_for_unaware(left: Left) -> Plan | None:
    """A voter that has not heard of its promotion: as a learner it is not recovered from, whatever it has."""
    known = max((r.report.committed for r in left.responders if r.report is not None), default=0)
    reports = ((name, left.remaining[name].report) for name in left.all_voters if name in left.remaining)
    names = [name for name, r in reports if r is not None and r.is_learner and r.committed > known]
    if not names:
        return None
    return held(
        "QuorumLost",
        f"no quorum can return, but {', '.join(names)} has newer data, and has not learned that it votes: "
        f"nothing is changed; delete its pod to give it up and recover from the others{when_due(left.state)}",
    )


def _wait_for_deletion(left: Left) -> Plan | None:
    """What is being deleted may still have the newest data, and be needed by a person who stops the node."""
    if left.able:
        return None
    lost, names = ", ".join(left.lost_voters), ", ".join(responder.name for responder in left.responders)
    return held(
        "QuorumLost",
        f"{lost} lost for good, and {names} being deleted: no member is left to recover from",
    )
