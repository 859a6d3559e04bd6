"""The next member that joins or leaves, how a learner is removed again (I1, I2), and who leads instead."""

from collections.abc import Iterable
from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AddLearner,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    MoveLeader,
    Plan,
    RemoveMember,
)
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import (
    after_addition,
    before_removal,
    remember,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.facts.peering import is_listed_only, started
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import is_losing_data, may_change
from etcd_operator.controllers.etcd_cluster.decide.kinds.protocol import Numbers
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.polling import RECHECK, STEP
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import joining_version
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD


def joining(state: ClusterState, name: str, token: str) -> Joining:
    """How a new member starts: with all that etcd lists, and itself.

    etcd compares URLs, and members may have theirs with TLS or without while that is being changed. Those
    that have theirs otherwise than this one are named with their URLs.
    """
    listed = [m for m in state.members if m.entry is not None and m.name != name]
    is_secure = started(state, name).secured.has_secure_peers
    others = (m.name for m in listed if is_listed_only(m, with_tls=is_secure))
    differing = (m for m in listed if not is_listed_only(m, with_tls=is_secure))
    entries = (member.entry for member in (*state.external, *differing) if member.entry is not None)
    external = tuple((entry.id, url) for entry in entries for url in entry.peer_urls)
    return Joining(members=(*others, name), token=token, external=external)


def remove(state: ClusterState, name: str, member_id: str, why: str) -> Plan:
    """Remove a learner: it has no vote, and no data that others lack."""
    return Plan.act(
        *remember(state, _with_number_used(before_removal(state, name), state, name)),
        RemoveMember(name=name, member_id=member_id),
        DeleteMember(name=name),
        reason="Removing",
        message=why,
        requeue_after=STEP,
    )


def join(state: ClusterState, name: str, first: tuple[Action, ...]) -> Plan:
    """Create the objects of a member that etcd lists once `first` is done."""
    actions = [*first, *remember(state, _with_number_used(after_addition(state), state, name))]
    start = joining(state, name, state.desired.token)
    actions.append(CreateMember(name=name, start=start, version=joining_version(state)))
    if state.kind.has_member_services:
        actions.append(CreateMemberService(name=name))
    return Plan.act(*actions, reason="ScalingUp", message=f"adding {name}", requeue_after=STEP)


def _with_number_used(record: PersistedState, state: ClusterState, name: str) -> PersistedState:
    """The record with this number used up, where none is used twice.

    Only once etcd lists the name: an add that etcd refuses for now is tried again with the
    same number, and a crash in between leaves the number in etcd's list.
    """
    ordinal = ordinal_of(name)
    if state.kind.reuses_numbers or ordinal < state.persisted.next_ordinal:
        return record
    return replace(record, next_ordinal=ordinal + 1)


@fact
def addition(state: ClusterState) -> Plan | None:
    """Add one learner, when every voter is healthy; one whose removal has begun is not asked any more."""
    if not may_change(state) or len(state.voters) >= state.desired.size:
        return None
    if any(not voter.is_healthy and voter not in state.leaving for voter in state.all_voters):
        return None  # upkeep reports which
    name = _next_name(state)
    former = state.by_name.get(name)
    if former is not None and former.claim is not None and not former.claim.is_terminating:
        return Plan.hold(
            "ClaimInTheWay",
            f"the claim {name} holds data of another cluster: delete it, so that a member can be added",
            requeue_after=RETRY_HELD,
        )
    if former is not None:
        return Plan.wait("ScalingUp", f"waiting until the former {name} is deleted", requeue_after=RECHECK)
    return join(state, name, (AddLearner(name=name),))


def _next_name(state: ClusterState) -> str:
    numbers = Numbers(
        size=state.desired.size,
        taken=frozenset(
            [*(m.ordinal for m in state.voters), *(ordinal_of(c.name) for c in state.kept_claims)]
        ),
        leaving=frozenset(member.ordinal for member in state.members if _is_given_up(state, member)),
        known=frozenset(member.ordinal for member in state.members),
        unused=state.persisted.next_ordinal,
    )
    return state.desired.member_name(state.kind.next_ordinal(numbers))


def _is_given_up(state: ClusterState, former: Member) -> bool:
    """Whether this is a member of a lost cluster that is still being deleted."""
    claim = former.claim
    if claim is None or not claim.is_terminating:
        return False
    return claim.cluster_id not in ("", state.persisted.cluster_id)


@fact
def next_removal(state: ClusterState) -> Plan | None:
    """Remove one member: an unhealthy one first, else the next by order of departure.

    Its objects are deleted by the next pass (`unlisted_objects`). A removed etcd ends by itself at once; a
    process that is terminated at the same moment takes a second longer.
    """
    if not may_change(state) or len(state.voters) <= state.desired.size:
        return None
    leaving = _leaving_member(state)
    rest = [voter for voter in state.voters if voter is not leaving]
    healthy = [voter for voter in rest if _remains(voter) and not _goes_before(state, voter, leaving)]
    if len(healthy) < quorum(len(rest)):
        names = ", ".join(voter.name for voter in rest if voter not in healthy)
        return Plan.hold(
            "QuorumAtRisk",
            f"not scaling down while {names} are unhealthy or about to lose data",
            requeue_after=1.0,
        )
    return Plan.act(
        *lead_elsewhere(state, leaving, healthy),
        RemoveMember(name=leaving.name, member_id=leaving.id),
        reason="ScalingDown",
        message=f"removing {leaving.name}",
        requeue_after=STEP,
    )


def _leaving_member(state: ClusterState) -> Member:
    unhealthy = [voter for voter in state.voters if not voter.is_healthy]
    losing_data = [voter for voter in state.voters if is_losing_data(state, voter)]
    return _by_departure(state, unhealthy or losing_data or state.voters)[0]


def _remains(voter: Member) -> bool:
    """Whether it serves and continues to: a pod that is being deleted still answers for a moment.

    And a process may have ended since it answered.
    """
    is_going = voter.pod is not None and (voter.pod.is_terminating or not voter.pod.is_running)
    return voter.is_healthy and not is_going


def _goes_before(state: ClusterState, voter: Member, leaving: Member) -> bool:
    """Whether a voter loses its data with its next restart while the silent leaving one keeps its own."""
    return is_losing_data(state, voter) and not is_losing_data(state, leaving)


def _by_departure(state: ClusterState, members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=state.kind.departure)


def lead_elsewhere(state: ClusterState, leaving: Member, healthy: list[Member]) -> list[Action]:
    """Move the leadership to the member that is kept longest, so that it moves once and not at each step.

    A member that lags behind is chosen only if there is no other.
    """
    if state.leader is not leaving:
        return []
    able = [voter for voter in healthy if not state.must_catch_up(voter)] or healthy
    return [
        MoveLeader(name=transferee.name, member_id=transferee.id)
        for transferee in _by_departure(state, able)[-1:]
    ]
