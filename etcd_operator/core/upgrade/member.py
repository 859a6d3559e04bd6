"""The member in hand: the one that an upgrade has taken away, and what is written down about it."""

from dataclasses import replace

from etcd_operator.api.persisted import Upgrade
from etcd_operator.core.actions import Action, Remember
from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.skew import lowest

STEP = 0.1
"""Seconds between looks while a member restarts or catches up: neither wakes anybody."""


def upgrading_member(state: ClusterState) -> Member | None:
    """The member that may be away on purpose; None once it is back, or no member any more."""
    upgrade = state.persisted.upgrade
    upgrading = state.by_name.get(upgrade.member) if upgrade is not None else None
    if upgrading is None or (state.has_quorum and state.voters and upgrading.entry is None):
        return None
    return None if is_back(upgrading) else upgrading


def is_back(member: Member) -> bool:
    """Whether it serves, at the version that its objects ask for."""
    running = member.answer.version if member.answer is not None else ""
    return member.is_healthy and not is_going(member) and running == member.requested_version


def is_going(member: Member) -> bool:
    """Whether its EtcdPeer is being deleted, to be made again at another version."""
    return member.peer is not None and member.peer.is_terminating


def may_fail_by_version(state: ClusterState, member: Member) -> bool:
    """Whether a member that calls its data broken may do so because of its new version only."""
    upgrade = state.persisted.upgrade
    return (
        upgrade is not None and upgrade.member == member.name and member.requested_version != upgrade.origin
    )


def remember(state: ClusterState, member: Member | None) -> list[Action]:
    """Write down what is begun, where it is not written already.

    Another version may be asked for when all have come up at the one before: then it is begun from that.
    """
    running, upgrade = lowest(state), state.persisted.upgrade
    origin = str(running) if running is not None or member is None else member.requested_version
    target = state.desired.version
    begun = upgrade or Upgrade(origin=origin, target=target)
    name = member.name if member is not None else begun.member
    is_known = bool(state.voters) and all(voter.answer is not None for voter in state.voters)
    origin = origin if is_known else begun.origin
    wanted = Upgrade(origin=origin, target=target, member=name, since=begun.since)
    return [] if wanted == upgrade else [Remember(persisted=replace(state.persisted, upgrade=wanted))]


def waiting_for(name: str, version: str) -> str:
    """The sentence of every wait for one member, so that none of its steps is a status write of its own."""
    return f"waiting for {name} to serve at {version}"
