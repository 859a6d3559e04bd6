"""Upgrades: one member at a time, from the highest number down, while clients go on.

Members that have to load other CAs are started again in the same way, at the version that they run.

    Preflight -> for each member: MoveLeader? -> ReplaceMember -> until it serves -> Done

A state machine without a state of its own: each pass decides afresh from what members' objects request,
what they run, and the one thing that is on record, the upgrading member (`persisted.Upgrade`). That is
written before the member is stopped, so that an operator that dies at any point knows which member may
be away on purpose. What is true of every step:

- a member is stopped only while all others are healthy, in step, and list the same members
  (`upgrade.step`); so no more than one is ever away;
- the leader is moved, and observed to have moved, before its member is stopped;
- a member that does not come up at its new version blocks the upgrade (`member`). Whatever the spec names
  then is tried on that same member next: the same version, a later one, or the earlier one as long
  as etcd's cluster version has not moved. The same holds for members that crash only after others
  have followed: they do not run, so trying costs nothing and needs no quorum.
"""

from dataclasses import replace

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    MoveLeader,
    Plan,
    Remember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import awaited_restarts, restarts
from etcd_operator.controllers.etcd_cluster.decide.facts.peering import is_out_of_reach
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.member import await_upgrading, is_blocked, restart
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import skew_refusal
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import (
    RESTARTING,
    Step,
    planned,
    preflight,
    unhealthy,
    waiting_for,
)


@fact
def roll(state: ClusterState) -> Plan | None:
    """The next step of the upgrade that is under way or desired."""
    step = next_step(state)
    return planned(state, step) if step is not None else None


@fact
def next_step(state: ClusterState) -> Step | None:
    """What the upgrade does next, or waits for, if no other rule comes before it; None if there is none."""
    if not state.persisted.is_bootstrapped or skew_refusal(state):
        return None
    upgrade, upgrading = state.persisted.upgrade, state.upgrading_member
    stopped = [member for member in state.members if member is not upgrading and is_blocked(state, member)]
    if stopped:
        return restart(state, max(stopped, key=lambda member: member.ordinal))
    unreached = _lead_within_reach(state, upgrade) if upgrade is not None else None
    if unreached is not None:
        return unreached
    if upgrade is not None and upgrading is not None:
        return await_upgrading(state, upgrade, upgrading)
    return _go_on(state) if state.has_quorum and state.voters else None


def _lead_within_reach(state: ClusterState, upgrade: Upgrade) -> Step | None:
    """Move leadership away from a member that others cannot connect to: what they forward to it gets lost.

    That are the keep-alives of leases, among other things (measured with 3.6: no reply within 7 s).
    """
    leader = state.leader
    if not state.has_quorum or leader is None or not leader.is_healthy or not is_out_of_reach(leader):
        return None
    transferee = _transferee(state, leader)
    if transferee is None or is_out_of_reach(transferee):
        return None
    action = MoveLeader(name=transferee.name, member_id=transferee.id)
    return Step(action=action, message=waiting_for(upgrade.member, state.desired.version), pause=0.0)


def _go_on(state: ClusterState) -> Step | None:
    """No member is away: stop the next one, or finish."""
    pending = [voter for voter in state.voters if not _is_done(state, voter)]
    if pending and grows_first(state):
        return None
    obstacle = unhealthy(state)
    if pending:
        # One that others cannot connect to is the first, before another one is made such. Then one whose data
        # goes with its pod, so that it is not needed while another is away.
        member = max(pending, key=lambda v: (is_out_of_reach(v), v.has_terminating_claim, v.ordinal))
        return preflight(state, member, obstacle) or _stop_next(state, member)
    return _finish(state, obstacle) if state.persisted.upgrade is not None else None


def _is_done(state: ClusterState, member: Member) -> bool:
    """Whether its objects, if there are any, request the desired version and, if it answers, it runs that.

    And whether it has loaded the CAs that it is to trust, and serves clients as is on record.

    One without objects is lost, or is about to get them at that version: nothing has to be upgraded.
    """
    wanted = state.desired.version
    is_requested = member.requested_version in ("", wanted) and member.name not in restarts(state)
    return is_requested and (member.answer is None or member.answer.version == wanted)


def grows_first(state: ClusterState) -> bool:
    """Missing members come first: once members have been stopped, or where none may be away."""
    if len(state.voters) >= state.desired.size:
        return False
    return state.persisted.upgrade is not None or len(state.voters) - 1 < quorum(len(state.voters))


def _stop_next(state: ClusterState, member: Member) -> Step:
    upgrade = state.persisted.upgrade
    transferee = _transferee(state, member) if state.leader is member else None
    if upgrade is not None and _is_too_soon(state, upgrade, transferee):
        return Step(member=member, message=waiting_for(upgrade.member, state.desired.version))
    action: Action = ReplaceMember(name=member.name, version=state.desired.version)
    message = waiting_for(member.name, state.desired.version)
    if transferee is None:
        return Step(action=action, member=member, message=message)
    action = MoveLeader(name=transferee.name, member_id=transferee.id)
    return Step(action=action, member=member, message=message, pause=0.0)


def _is_too_soon(state: ClusterState, upgrade: Upgrade, transferee: Member | None) -> bool:
    """Whether a member was started so lately that clients would notice the next step.

    A transferee whose connections have just begun takes five times as long to be elected as another (50 ms
    for 10, measured), and etcd drops what is proposed meanwhile. And ephemeral members are back within a
    second, before clients try them again: an upgrade of three would leave clients with no member at all for a
    moment. Persistent ones take longer anyhow.
    """
    upgrading = state.by_name.get(upgrade.member) if state.kind.restarts_in_place else None
    return any(m is not None and m.pod is not None and m.pod.started_lately for m in (transferee, upgrading))


def _transferee(state: ClusterState, member: Member) -> Member | None:
    """The next leader: preferably one that others can connect to, that is done, in step, and kept longest.

    Of those that are done that is the first, because its connections are the oldest; of the others it
    is the one whose turn comes last.
    """

    def rank(voter: Member) -> tuple[bool, bool, bool, int]:
        is_done = _is_done(state, voter)
        order = -voter.ordinal if is_done else voter.ordinal
        return is_out_of_reach(voter), not is_done, state.must_catch_up(voter), order

    return min((voter for voter in state.healthy_voters if voter is not member), key=rank, default=None)


def _finish(state: ClusterState, obstacle: str) -> Step:
    if obstacle:
        return Step(message=f"waiting for {obstacle}")
    awaited = awaited_restarts(state)
    if awaited:
        return Step(message=awaited)
    upgrade = state.persisted.upgrade
    is_restart = upgrade is not None and upgrade.restart
    return Step(
        action=Remember(persisted=replace(state.persisted, upgrade=None)),
        reason=RESTARTING if is_restart else "UpgradeFinished",
        message="all members have been restarted"
        if is_restart
        else f"all members run {state.desired.version}",
    )
