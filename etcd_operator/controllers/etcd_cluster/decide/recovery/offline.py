"""Members that run and answer nobody, because they restarted without a quorum: how their data is read.

An etcd answers only after it has followed a leader once. What it has is read by a container that is added to
its pod (`manifests.survivor_reader`). It changes nothing, but it remains in the pod, so none is added for an
election, a restart, or while so many members run that they will elect a leader by themselves; nor after one
that has found a leader in this loss; and each other one that has ended doubles the time until the next.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import AddReader
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import ReaderFacts, Reading
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import voters_of
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from etcd_operator.pods.reports import SurvivorReport

READ_AFTER = 10.0
"""Seconds without a quorum before a minority is read: as long as for all other steps of a recovery."""

READ_MAJORITY_AFTER = 120.0
"""Seconds before a majority is read: it elects a leader by itself, unless something is wrong for long."""

READ_AGAIN = 1.0

REST = 30.0
"""Seconds from the end of the second reader of a pod to the third. The first is followed at once."""

MOST_DOUBLED = 10
"""How often that time is doubled at most: to nine hours."""


@fact
def read_silent(state: ClusterState) -> Plan | None:
    """Have the data of silent members read; None if all that can be read has been read."""
    wanted = _wanted(state)
    unread = [member for member in wanted if _can_be_read(member)]
    if unread and state.unavailable_for >= _patience(state):
        add = (AddReader(name=member.name) for member in unread)
        return Plan.act(*add, reason="QuorumLost", message=_message(state, unread), requeue_after=READ_AGAIN)
    reading = [member for member in wanted if _is_being_read(member)]
    return Plan.wait("QuorumLost", _message(state, reading), requeue_after=READ_AGAIN) if reading else None


def _wanted(state: ClusterState) -> list[Member]:
    """All members, as long as nobody's list is known; then the voters: nobody recovers from a learner."""
    listed = {name for member in state.members for name in voters_of(state, member)}
    return [m for m in state.members if not listed or m.name in listed or m.has_voted]


def _message(state: ClusterState, members: list[Member]) -> str:
    names = ", ".join(member.name for member in members)
    reading = f"reading the data of {names} without changing it: running, but unable to serve requests"
    return f"no quorum answers{known_problems(state)}: {reading}"


def known_problems(state: ClusterState) -> str:
    """Which members have a known problem; for messages, empty if none has."""
    problems = ", ".join(m.named for m in state.members if m.problem is not None)
    return f", {problems}" if problems else ""


def unreadable(state: ClusterState) -> str:
    """Why data of silent members cannot be read; empty if nothing is wrong with that."""
    return "; ".join(
        f"the data of {m.name} cannot be read: {m.unreadable}" for m in state.members if m.unreadable
    )


def why_no_other_reader(reader: ReaderFacts, ended_for: float, *, is_of_this_loss: bool) -> str:
    """Why no other reader follows one that has ended so many seconds ago; empty if one may.

    is_of_this_loss: whether it ended since the quorum was lost. What one found in an earlier loss shows
    nothing now.
    """
    if reader.found_leader and is_of_this_loss:
        return "it follows a leader: check that the operator reaches its port 2379"
    if reader.number == 1 or ended_for >= REST * 2 ** min(reader.number - 2, MOST_DOUBLED):
        return ""
    return f"{reader.number} containers that read the data have ended, and the next one is added later"


def _can_be_read(member: Member) -> bool:
    pod = member.pod
    if pod is None or member.answer is not None or member.refusal is not None or member.unreadable:
        return False
    if not pod.is_running or pod.is_terminating:
        return False
    return pod.reader is None or pod.reader.has_ended


def _is_being_read(member: Member) -> bool:
    """Also while its etcd restarts, but not one that cannot run: nothing is read of it then."""
    pod = member.pod
    is_ended = pod is not None and (pod.is_finished or pod.never_joined or member.problem is not None)
    is_possible = pod is not None and (pod.is_running or not is_ended)
    reader = pod.reader if pod is not None and is_possible else None
    is_asked = reader is not None and not reader.has_ended and not member.unreadable
    return is_asked and member.report is None and member.refusal is None


def _patience(state: ClusterState) -> float:
    running = [member for member in state.members if member.is_running]
    known = max(len(state.members), state.desired.size)
    return READ_MAJORITY_AFTER if 2 * len(running) > known else READ_AFTER


def reading_of(report: SurvivorReport, member: Member) -> Reading:
    """What a member would have answered; a learner, or one that its own list does not have, has no list."""
    entries = tuple(
        EtcdMember(id=each.id, name=each.name, peer_urls=each.peer_urls, is_learner=each.is_learner)
        for each in report.members
    )
    is_voter = any(entry.id == report.member_id and not entry.is_learner for entry in entries)
    answer = Answer(
        member_id=report.member_id,
        cluster_id=report.cluster_id,
        version=member.requested_version,
        leader="",
        committed=report.committed,
        applied=report.committed,
        revision=report.revision,
        is_learner=not is_voter,
        corrupt=frozenset(report.corrupt),
        members=entries if is_voter else (),
    )
    return Reading(answer=answer, sha256=report.sha256)
