"""Upgrades: one member at a time, from the highest number down, as clients go on.

    Preflight -> for each member: MoveLeader? -> Replace -> AwaitVersion -> AwaitHealthy -> Done

A state machine without a state of its own: each look decides afresh from what members ask for,
what they run, and the one thing that is remembered, the member in hand (`record.Upgrade`). That is
written before the member is touched, so an operator that dies at any point knows which member may
be away on purpose. What is true of every step:

- a member is touched only while all others are healthy, in step, and of one mind about who the
  members are; so no more than one is ever away;
- the leader is moved, and seen to have moved, before its member is touched;
- a member that does not come up at its new version stops the upgrade. Whatever the spec says by
  then is tried on that same member next: the same version, a later one, or the earlier one as long
  as etcd's cluster version has not moved. So it is with members that crash only after others
  have followed: they are not running, so that trying costs nothing and needs no quorum.

**From 3.6 to 3.7.** 3.7 cannot read log entries that 3.5 wrote, and panics on each start. They are
harmless once the member has saved a raft snapshot behind them, which etcd does every 10000 entries.
So before the first 3.7 member every member must have saved one since it runs 3.6, unless the
cluster was founded with 3.6 or later; where they have not, the log is padded with entries that
change nothing (docs/decisions/006).
"""

from dataclasses import replace

from etcd_operator.api.persisted import Upgrade
from etcd_operator.core.actions import Action, MoveLeader, PadLog, Plan, Remember, ReplaceMember
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.blocked import await_upgrading, is_blocked, try_again
from etcd_operator.core.upgrade.member import STEP, remember, upgrading_member, waiting_for
from etcd_operator.core.upgrade.preflight import losing_data, unhealthy
from etcd_operator.core.upgrade.skew import has_old_entries, needs_snapshots, skew_refusal

RECHECK = 1.0
"""Seconds between looks at a cluster that is not fit for an upgrade."""

PAD = 1000
"""Entries of padding in one step, at most: a third of a second where nothing else goes on."""


def roll(state: ClusterState) -> Plan | None:
    """The next step of the upgrade that is under way or asked for."""
    if not state.persisted.is_bootstrapped or skew_refusal(state):
        return None
    upgrade = state.persisted.upgrade
    upgrading = upgrading_member(state)
    blocked = [member for member in state.members if member is not upgrading and is_blocked(state, member)]
    if blocked:
        return try_again(state, upgrading, max(blocked, key=lambda member: member.ordinal))
    if upgrade is not None and upgrading is not None:
        return await_upgrading(state, upgrade, upgrading)
    if not state.has_quorum or not state.voters:
        return None
    pending = [voter for voter in state.voters if not _is_done(state, voter)]
    if not pending:
        return _finish(state, upgrade)
    if _grows_first(state):
        return None
    return _preflight(state) or _pad(state) or _touch(state, pending)


def refused(state: ClusterState) -> Plan | None:
    """Say why the version asked for is not gone to. The members go on at the versions they have."""
    why = skew_refusal(state) if state.persisted.is_bootstrapped else ""
    return Plan.hold("UpgradeRefused", why) if why else None


def _is_done(state: ClusterState, member: Member) -> bool:
    """Whether it is asked to run the version wanted and, as far as it says, does."""
    wanted = state.desired.version
    return member.requested_version == wanted and (member.answer is None or member.answer.version == wanted)


def _finish(state: ClusterState, upgrade: Upgrade | None) -> Plan | None:
    if upgrade is None:
        return None
    unfit = unhealthy(state)
    if unfit:
        return Plan.wait("Upgrading", f"waiting for {unfit}", requeue_after=STEP)
    return Plan.act(
        Remember(persisted=replace(state.persisted, upgrade=None)),
        reason="UpgradeFinished",
        message=f"all members run {state.desired.version}",
        requeue_after=STEP,
    )


def _grows_first(state: ClusterState) -> bool:
    """Members that are missing come first: once members have been touched, or where one may not be away."""
    if len(state.voters) >= state.desired.size:
        return False
    return state.persisted.upgrade is not None or len(state.voters) - 1 < quorum(len(state.voters))


def _preflight(state: ClusterState) -> Plan | None:
    unfit = unhealthy(state) or losing_data(state)
    if not unfit:
        return None
    message = f"the upgrade to {state.desired.version} waits for {unfit}"
    if state.persisted.upgrade is not None:
        return Plan.wait("Upgrading", message, requeue_after=STEP)
    return Plan.hold("UpgradeWaiting", message, requeue_after=RECHECK)


def _pad(state: ClusterState) -> Plan | None:
    """Before the first member of 3.7: entries of 3.5 must lie behind a raft snapshot on each of 3.6."""
    if not needs_snapshots(state.desired):
        return None
    old = [v for v in state.voters if v.answer is not None and has_old_entries(v.answer.version)]
    silent = [voter.name for voter in old if voter.snapshots is None]
    if silent:
        return Plan.hold(
            "UpgradeWaiting",
            f"the metrics page of {', '.join(silent)} does not answer: "
            "whether a raft snapshot was saved is not known",
            requeue_after=RECHECK,
        )
    if all(voter.snapshots for voter in old):
        return None
    return Plan.act(
        *remember(state, None),
        PadLog(entries=PAD),
        reason="Upgrading",
        message="padding the log until every member saves a raft snapshot: "
        f"{state.desired.version} cannot read what 3.5 wrote",
        requeue_after=0.0,
    )


def _touch(state: ClusterState, pending: list[Member]) -> Plan:
    """Take the next member away, or first its leadership."""
    upgrade = state.persisted.upgrade
    member = max(pending, key=lambda voter: voter.ordinal)
    heir = _heir(state, member) if state.leader is member else None
    if upgrade is not None and _is_too_soon(state, upgrade, heir):
        return Plan.wait("Upgrading", waiting_for(upgrade.member, state.desired.version), requeue_after=STEP)
    act: Action = ReplaceMember(name=member.name, version=state.desired.version)
    if heir is not None:
        act = MoveLeader(name=heir.name, member_id=heir.id)
    return Plan.act(
        *remember(state, member),
        act,
        reason="Upgrading",
        message=waiting_for(member.name, state.desired.version),
        requeue_after=STEP if isinstance(act, ReplaceMember) else 0.0,
    )


def _is_too_soon(state: ClusterState, upgrade: Upgrade, heir: Member | None) -> bool:
    """Whether a member was started so lately that the next step would be felt.

    An heir whose connections have just begun takes five times as long to be elected as another (50 ms for
    10, measured), and etcd drops what is proposed meanwhile. And ephemeral members are back within a second,
    before clients try them again: a roll of three would leave clients with no member at all for a moment.
    Persistent ones take longer anyhow.
    """
    upgrading = state.by_name.get(upgrade.member) if state.kind.restarts_in_place else None
    return any(m is not None and m.pod is not None and m.pod.started_lately for m in (heir, upgrading))


def _heir(state: ClusterState, member: Member) -> Member | None:
    """Who shall lead instead: a member that is done, one in step, the one that stays undisturbed longest.

    Of those that are done that is the first, because its connections are the oldest; of the others it
    is the one whose turn comes last.
    """

    def rank(voter: Member) -> tuple[bool, bool, int]:
        is_done = _is_done(state, voter)
        return not is_done, state.must_catch_up(voter), -voter.ordinal if is_done else voter.ordinal

    return min((voter for voter in state.healthy_voters if voter is not member), key=rank, default=None)
