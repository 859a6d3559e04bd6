"""What is reported of a bootstrapped cluster that no other rule acts upon."""

from collections.abc import Iterable

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.first_start import (
    CREATING,
    LONG_BOOTSTRAP,
    awaited,
    is_resuming,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL, RECHECK
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import when_due
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import undeleted_seed
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import kept_survivor
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import OUT_OF_SPACE


def watch(state: ClusterState) -> Plan | None:
    """Report why not all members are healthy voters."""
    if not state.has_quorum:
        return _without_quorum(state)
    if not state.voters:
        return Plan.wait("Observing", "waiting for a voter to report the members", requeue_after=RECHECK)
    # The pod of a removed member may report a failure: etcd ends with an error then.
    members = [member for member in state.members if member is not kept_survivor(state)]
    going = [member for member in members if member.entry is None and member.is_terminating]
    undeleted = undeleted_seed(state)  # reported after what was refused
    unhealthy = [member for member in members if not member.is_healthy and member not in going]
    known = _known_problem(unhealthy)
    if known is not None:
        return known
    if unhealthy and state.age < LONG_BOOTSTRAP:
        names = ", ".join(member.name for member in unhealthy)
        return Plan.wait(CREATING, f"waiting for {names} to serve", requeue_after=BOOTSTRAP_POLL)
    if unhealthy:
        names = ", ".join(f"{member.name} ({member.health.value})" for member in unhealthy)
        return Plan.hold("MemberUnhealthy", f"waiting for {names}", requeue_after=RECHECK)
    going = [member for member in going if member.name != undeleted]
    if going:
        # The message of the step before, so that the wait is no status write of its own.
        names = ", ".join(member.name for member in going)
        return Plan.wait("Removing", f"removing what is left of {names}", requeue_after=RECHECK)
    if state.is_out_of_space:
        return Plan.hold(*OUT_OF_SPACE, requeue_after=RECHECK)
    return None


def _without_quorum(state: ClusterState) -> Plan:
    if is_resuming(state):
        known = _known_problem(state.members)
        return known or Plan.wait(CREATING, awaited(state), requeue_after=BOOTSTRAP_POLL)
    message = f"{_silent(state)}: no quorum answers{when_due(state)}"
    return Plan.hold("QuorumLost", message, requeue_after=RECHECK)


def _known_problem(members: Iterable[Member]) -> Plan | None:
    for member in members:
        if member.problem is not None:
            problem = member.problem
            return Plan.hold(problem.reason, f"{member.name}: {problem.message}", requeue_after=RECHECK)
    return None


def _silent(state: ClusterState) -> str:
    names = [member.named for member in state.members if not member.is_healthy]
    return f"{', '.join(names)} unhealthy or not answering" if names else "no member is known"
