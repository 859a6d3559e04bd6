"""Adoption: our members join a running etcd cluster, then its own (external) members are removed.

    endpoints in the spec -> its ID and members are recorded -> ours join as learners, one at a time, and are
    promoted -> the leadership moves to one of ours -> each removal is recorded, then requested -> finished

Nothing is ever bootstrapped (I4). From the record until the end, the external members count as voters
(`ClusterState.all_voters`), and the rules for learners and lost members apply as in any cluster. The other
planned changes wait. Until the first removal the adoption can be turned back: ours leave again.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import AdoptedMember, Adoption
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    MoveLeader,
    Plan,
    Remember,
    RemoveExternal,
    RemoveMember,
)
from etcd_operator.controllers.etcd_cluster.decide.adoption import adoptable
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import (
    after_addition,
    before_removal,
    noted,
    remember,
    unhealthy,
)
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import addition, lead_elsewhere, remove
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import is_losing_data, pending_learner
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.observation import listed
from etcd_operator.controllers.etcd_cluster.decide.polling import RECHECK, STEP
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD


def begin(state: ClusterState) -> Plan | None:
    """Record the cluster that is adopted, or report why it cannot be."""
    asked = state.desired.adopt
    if asked is None or state.persisted.is_bootstrapped or _may_resume(state):
        return None
    if asked.mode == "Leave":
        return _turned_back()
    refused = _in_the_way(state) or adoptable.refusal(state)
    if refused:
        return Plan.hold("AdoptionRefused", refused, requeue_after=RECHECK)
    answers = dict(adoptable.answers(state))
    (cluster_id,) = {answer.cluster_id for answer in answers.values()}
    committed = max(answer.committed for answer in answers.values())
    adoption = Adoption(members=_members(answers), committed=committed)
    persisted = replace(state.persisted, cluster_id=cluster_id, adoption=adoption)
    return Plan.act(
        Remember(persisted=persisted),
        reason="Adopting",
        message=f"adopting the cluster {cluster_id}, with {len(adoption.members)} members",
        requeue_after=STEP,
    )


def _members(answers: dict[str, Answer]) -> tuple[AdoptedMember, ...]:
    at = {answer.member_id: endpoint for endpoint, answer in answers.items()}
    return tuple(
        AdoptedMember(id=entry.id, endpoint=at[entry.id], peer_urls=entry.peer_urls)
        for entry in listed(list(answers.values()))
    )


def _may_resume(state: ClusterState) -> bool:
    """Whether there are claims of a cluster that has served: its data comes first, and is never replaced."""
    return state.persisted.bootstrap is None and any(
        member.claim is not None and member.claim.cluster_id for member in state.members
    )


def _in_the_way(state: ClusterState) -> str:
    if state.persisted.bootstrap is not None:
        return "the bootstrap of this cluster has begun: delete this resource and create it again"
    if state.persisted.is_restoring:
        return "the restore of a backup to this cluster has begun: delete this resource and create it again"
    if not state.members:
        return ""
    names = ", ".join(member.name for member in state.members)
    if any(member.pod is not None for member in state.members):
        return (
            f"members run under this name ({names}): give this resource another name; if another operator "
            "handed them over, remove spec.adopt (docs/migrating.md)"
        )
    return f"there are objects of former members ({names}): delete them"


def leave(state: ClusterState) -> Plan | None:
    """Turn back: remove our learner, then our voters one at a time, while no external member was removed."""
    adoption, asked = state.persisted.adoption, state.desired.adopt
    if not state.persisted.is_adopting or adoption is None or asked is None or asked.mode != "Leave":
        return None
    if any(member.removed for member in adoption.members):
        return Plan.hold(
            "TooLateToLeave",
            "external members have been removed already: set spec.adopt.mode to Complete",
            requeue_after=RETRY_HELD,
        )
    pending = pending_learner(state)
    if pending is not None:
        return remove(state, pending.name, pending.id, f"turning back: removing {pending.name}")
    if not state.voters:
        return _turned_back()
    return _leave(state, _leaving(state))


def _leaving(state: ClusterState) -> Member:
    """An unhealthy member first."""
    ours = [voter for voter in state.voters if not voter.is_healthy] or state.voters
    return min(ours, key=state.kind.departure)


def _leave(state: ClusterState, leaving: Member) -> Plan:
    """Our unhealthy members leave first. So the rest has a quorum while the external ones have one."""
    candidates = [member for member in state.external if member.is_healthy]
    if len(candidates) < quorum(len(state.external)):
        return _at_risk(state)
    actions: list[Action] = []
    if state.leader is leaving:
        transferee = max(
            candidates, key=lambda member: member.answer.committed if member.answer is not None else 0
        )
        actions.append(MoveLeader(name=transferee.name, member_id=transferee.id))
    actions += remember(state, before_removal(state, leaving.name))
    actions.append(RemoveMember(name=leaving.name, member_id=leaving.id))
    return Plan.act(
        *actions, reason="TurningBack", message=f"turning back: removing {leaving.name}", requeue_after=STEP
    )


def _turned_back() -> Plan:
    return Plan.hold(
        "TurnedBack",
        "no member of this resource is in the cluster that was to be adopted: delete this resource, or set "
        "spec.adopt.mode to Complete",
        requeue_after=RETRY_HELD,
    )


def _at_risk(state: ClusterState) -> Plan:
    waits = ", ".join(unhealthy(state)) or "more members of this resource"
    return Plan.hold(
        "QuorumAtRisk", f"not removing a member, to keep a quorum: waiting for {waits}", requeue_after=RECHECK
    )


def proceed(state: ClusterState) -> Plan | None:
    """Add ours, move the leadership to one of them, remove the external members, end. In this order."""
    adoption, asked = state.persisted.adoption, state.desired.adopt
    if not state.persisted.is_adopting or adoption is None or asked is None:
        return None
    if not state.external:
        return _finish(state, adoption)
    if state.voters and adoption.last_member_removed:
        # Its removal had begun when the mode was changed: it is needed again.
        record = remember(state, after_addition(state))
        return Plan.act(*record, reason="Adopting", message="continuing the adoption", requeue_after=STEP)
    finishing = _finish_removal(state)
    if finishing is not None:
        return finishing
    if len(state.voters) < state.desired.size:
        return addition(state) or _await_health(state)
    if asked.mode == "Join" and not state.leaving:
        return _joined(state)
    return _remove_external(state, adoption)


def _joined(state: ClusterState) -> Plan:
    rejections = ", ".join(rejection.why for at, rejection in state.rejected if at in _ids(state.external))
    if rejections:
        return Plan.hold(
            "MemberUnhealthy",
            f"all members of this resource have joined; {rejections}",
            requeue_after=RECHECK,
        )
    return Plan.wait(
        "Joined",
        "all members have joined; the external members are kept until spec.adopt.mode is Complete",
        requeue_after=RETRY_HELD,
    )


def _ids(members: tuple[Member, ...]) -> set[str]:
    return {member.id for member in members}


def _finish_removal(state: ClusterState) -> Plan | None:
    """Carry out a removal that is recorded, while a quorum of the others is healthy.

    Before ours grow: etcd adds no member while a voter is down, which this one, that is not asked any more,
    may be. It counts for nothing already, so ours need not be a quorum of the rest by themselves.
    """
    leaving = next(iter(state.leaving), None)
    rest = [voter for voter in state.all_voters if voter is not leaving]
    able = [voter for voter in rest if voter.is_healthy and not is_losing_data(state, voter)]
    ours = [voter for voter in able if voter in state.voters]
    if leaving is None or not ours or len(able) < quorum(len(rest)):
        return None
    return _removal(state, leaving, ours)


def _await_health(state: ClusterState) -> Plan:
    waits = f"a member is added only when all members are healthy: waiting for {', '.join(unhealthy(state))}"
    dead = [m.id for m in state.external if m.answer is None and m not in state.leaving]
    if dead:
        waits += (
            f"; if an external member never comes back, remove it: etcdctl member remove {' or '.join(dead)}"
        )
    return Plan.hold("MemberUnhealthy", waits, requeue_after=RECHECK)


def _finish(state: ClusterState, adoption: Adoption) -> Plan:
    finished = msgspec.structs.replace(adoption, finished=True)
    return Plan.act(
        Remember(persisted=replace(state.persisted, adoption=finished)),
        reason="Adopted",
        message="all members of the adopted cluster belong to this resource",
        requeue_after=STEP,
    )


def _remove_external(state: ClusterState, adoption: Adoption) -> Plan:
    """Remove an external member if ours alone are a quorum of those that are left."""
    ours = list(state.healthy_voters)
    losing = [voter for voter in ours if is_losing_data(state, voter)]
    if len(ours) - len(losing) < quorum(len(state.all_voters) - 1) or len(ours) < len(state.voters):
        return _at_risk(state)
    leaving = min(state.external, key=lambda member: member.is_healthy)
    members = tuple(_with_removal(member, leaving.id) for member in adoption.members)
    return _removal(state, leaving, ours, *remember(state, noted(state, members=members)))


def _removal(state: ClusterState, leaving: Member, ours: list[Member], *record: Action) -> Plan:
    """After the leadership is one of ours. record: that the removal begins, which allows no way back."""
    leader = state.leader
    if leader in state.external:
        return _plan(f"moving the leadership from {leader.name}", *lead_elsewhere(state, leader, ours))
    removal = RemoveExternal(name=leaving.name, member_id=leaving.id)
    return _plan(f"removing {leaving.name}", *record, removal)


def _plan(message: str, *actions: Action) -> Plan:
    return Plan.act(*actions, reason="RemovingExternal", message=message, requeue_after=STEP)


def _with_removal(member: AdoptedMember, removed: str) -> AdoptedMember:
    return msgspec.structs.replace(member, removed=member.removed or member.id == removed)
