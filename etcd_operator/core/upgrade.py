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

from semver import Version

from etcd_operator.api.record import Upgrade
from etcd_operator.core.actions import Action, MoveLeader, PadLog, Plan, Remember, ReplaceMember
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.paths import has_old_entries, lowest, minor, needs_snapshots, refusal
from etcd_operator.core.preflight import ailing, doomed, would_lose_data
from etcd_operator.core.state import ClusterState

STEP = 0.1
"""Seconds between looks while a member restarts or catches up: neither wakes anybody."""

BLOCKED_RECHECK = 1.0
"""Seconds between looks at a member that does not come up; its pod's own events come first."""

PATIENCE = 30.0
"""Seconds without a quorum after which a member in hand that runs is not what keeps it away."""

PAD = 1000
"""Entries of padding in one step, at most: a third of a second where nothing else goes on."""


def roll(state: ClusterState) -> Plan | None:
    """The next step of the upgrade that is under way or asked for."""
    if not state.record.is_born or refused_path(state):
        return None
    upgrade = state.record.upgrade
    hand = _in_hand(state, upgrade)
    stuck = [member for member in state.members if member is not hand and is_stuck(state, member)]
    if stuck:
        return _try_again(state, upgrade, hand, max(stuck, key=lambda member: member.ordinal))
    if upgrade is not None and hand is not None:
        return _await(state, upgrade, hand)
    if not state.has_quorum or not state.voters:
        return None
    pending = [voter for voter in state.voters if not _is_done(state, voter)]
    if not pending:
        return _finish(state, upgrade)
    if _grows_first(state):
        return None
    return _preflight(state) or _pad(state) or _touch(state, upgrade, pending)


def start_again(state: ClusterState, member: Member) -> Plan | None:
    """Try a member that does not run at the version that is asked for by now, if that can help it."""
    if refused_path(state) or not is_stuck(state, member):
        return None
    upgrade = state.record.upgrade
    return _try_again(state, upgrade, _in_hand(state, upgrade), member)


def refused(state: ClusterState) -> Plan | None:
    """Say why the version asked for is not gone to. The members go on at the versions they have."""
    why = refused_path(state) if state.record.is_born else ""
    return Plan.hold("UpgradeRefused", why) if why else None


def refused_path(state: ClusterState) -> str:
    """Why the version asked for cannot be reached from what runs; empty if it can."""
    running = lowest(state)
    return refusal(running, Version.parse(state.desired.version)) if running is not None else ""


def may_fail_by_version(state: ClusterState, member: Member) -> bool:
    """Whether a member that calls its data broken may do so because of its new version only."""
    upgrade = state.record.upgrade
    return upgrade is not None and upgrade.member == member.name and member.asked_version != upgrade.origin


def _in_hand(state: ClusterState, upgrade: Upgrade | None) -> Member | None:
    """The member that may be away on purpose; None once it is back, or no member any more."""
    hand = state.by_name.get(upgrade.member) if upgrade is not None else None
    if hand is None or (state.has_quorum and state.voters and hand.entry is None):
        return None
    return None if _is_back(hand) else hand


def _is_done(state: ClusterState, member: Member) -> bool:
    """Whether it is asked to run the version wanted and, as far as it says, does."""
    wanted = state.desired.version
    return member.asked_version == wanted and (member.answer is None or member.answer.version == wanted)


def _is_back(member: Member) -> bool:
    """Whether it serves, at the version that its objects ask for."""
    is_going = member.peer is not None and member.peer.is_terminating
    running = member.answer.version if member.answer is not None else ""
    return member.is_healthy and not is_going and running == member.asked_version


def is_stuck(state: ClusterState, member: Member) -> bool:
    """Whether it does not run at a version that is no longer asked for, and may run at the one that is.

    One that this upgrade has touched may. Any other one only if its process crashes, and by a patch only:
    what keeps it down may be something else, and its log may be one that the new version cannot read.
    A learner joins at the version that the others run, which may not be had any more. It may run any.
    """
    asked, wanted = member.asked_version, state.desired.version
    if asked in ("", wanted) or _is_going(member) or (state.voters and member.entry is None):
        return False
    if would_lose_data(state, member):
        return False
    if member.pod is None or _is_beyond_help(state, member) or member.trouble is None:
        return False
    if member.pod.is_running or member.pod.is_terminating:
        return False
    upgrade = state.record.upgrade
    was_touched = upgrade is not None and asked != upgrade.origin
    if needs_snapshots(state.desired) and has_old_entries(asked):
        return False
    is_learner = member.entry is not None and member.entry.is_learner
    if is_learner and not state.has_quorum:
        return False  # whatever it runs, it starts only with the others
    return was_touched or is_learner or (member.pod.has_restarted and minor(asked) == minor(wanted))


def _try_again(state: ClusterState, upgrade: Upgrade | None, hand: Member | None, stuck: Member) -> Plan:
    """Start a member at the version that is asked for by now; one that is in hand stays so."""
    wanted = state.desired.version
    return Plan.act(
        *_remember(state, upgrade, hand or stuck),
        ReplaceMember(name=stuck.name, version=wanted),
        reason="Upgrading",
        message=f"{stuck.name} does not run at {stuck.asked_version}: starting it at {wanted}",
        requeue_after=STEP,
    )


def _await(state: ClusterState, upgrade: Upgrade, hand: Member) -> Plan | None:
    """The member in hand is away: let it come, or start it again if something else is asked by now."""
    asked, wanted = hand.asked_version, state.desired.version
    if _is_beyond_help(state, hand):
        return None  # that is for other rules to say
    if asked and asked != wanted and not _is_going(hand) and _may_leave(state, hand):
        return Plan.act(
            *_remember(state, upgrade, hand),
            ReplaceMember(name=hand.name, version=wanted),
            reason="Upgrading",
            message=f"{hand.name} did not come up at {asked}: starting it at {wanted}",
            requeue_after=STEP,
        )
    if hand.trouble is not None:
        return Plan.hold(
            "UpgradeBlocked",
            f"{hand.name} does not come up at {asked or wanted}: {hand.trouble.reason}: "
            f"{hand.trouble.message}; the other members are not touched; {_way_out(upgrade, asked)}",
            requeue_after=BLOCKED_RECHECK,
        )
    if hand.pod is not None and hand.pod.is_running and state.unavailable_for > PATIENCE:
        return None  # others are missing: that, too
    return Plan.wait("Upgrading", _waiting_for(hand.name, wanted), requeue_after=STEP)


def _way_out(upgrade: Upgrade, asked: str) -> str:
    """What a person can do. A member that went back in vain has data that only the newer version reads."""
    if asked == upgrade.origin:
        return f"another version in the spec than {asked} is tried on this one at once"
    return f"{upgrade.origin} in the spec takes this one back"


def _is_beyond_help(state: ClusterState, member: Member) -> bool:
    """Whether its data is gone or of no use, whatever version is asked for."""
    if state.holder_of(member) is None:
        return True
    return member.pod is not None and (member.pod.has_no_data or member.pod.can_never_join)


def _is_going(member: Member) -> bool:
    return member.peer is not None and member.peer.is_terminating


def _finish(state: ClusterState, upgrade: Upgrade | None) -> Plan | None:
    if upgrade is None:
        return None
    unfit = ailing(state)
    if unfit:
        return Plan.wait("Upgrading", f"waiting for {unfit}", requeue_after=STEP)
    return Plan.act(
        Remember(record=replace(state.record, upgrade=None)),
        reason="UpgradeFinished",
        message=f"all members run {state.desired.version}",
        requeue_after=STEP,
    )


def _grows_first(state: ClusterState) -> bool:
    """Members that are missing come first: once members have been touched, or where one may not be away."""
    if len(state.voters) >= state.desired.size:
        return False
    return state.record.upgrade is not None or len(state.voters) - 1 < quorum(len(state.voters))


def _preflight(state: ClusterState) -> Plan | None:
    unfit = ailing(state) or doomed(state)
    if not unfit:
        return None
    message = f"the upgrade to {state.desired.version} waits for {unfit}"
    if state.record.upgrade is not None:
        return Plan.wait("Upgrading", message, requeue_after=STEP)
    return Plan.hold("UpgradeWaiting", message, requeue_after=BLOCKED_RECHECK)


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
            requeue_after=BLOCKED_RECHECK,
        )
    if all(voter.snapshots for voter in old):
        return None
    return Plan.act(
        *_remember(state, state.record.upgrade, None),
        PadLog(entries=PAD),
        reason="Upgrading",
        message="padding the log until every member saves a raft snapshot: "
        f"{state.desired.version} cannot read what 3.5 wrote",
        requeue_after=0.0,
    )


def _touch(state: ClusterState, upgrade: Upgrade | None, pending: list[Member]) -> Plan:
    """Take the next member away, or first its leadership."""
    member = max(pending, key=lambda voter: voter.ordinal)
    heir = _heir(state, member) if state.leader is member else None
    fresh = _too_fresh(state, upgrade, heir)
    if upgrade is not None and fresh is not None:
        # The sentence of the wait before: a status that changes at each step is a write at each step.
        return Plan.wait("Upgrading", _waiting_for(upgrade.member, state.desired.version), requeue_after=STEP)
    act: Action = ReplaceMember(name=member.name, version=state.desired.version)
    if heir is not None:
        act = MoveLeader(name=heir.name, member_id=heir.id)
    return Plan.act(
        *_remember(state, upgrade, member),
        act,
        reason="Upgrading",
        message=_waiting_for(member.name, state.desired.version),
        requeue_after=STEP if isinstance(act, ReplaceMember) else 0.0,
    )


def _too_fresh(state: ClusterState, upgrade: Upgrade | None, heir: Member | None) -> Member | None:
    """A member that was started so lately that the next step would be felt.

    An heir whose connections have just begun takes five times as long to be elected as another (50 ms for
    10, measured), and etcd drops what is proposed meanwhile. And ephemeral members are back within a second,
    before clients try them again: a roll of three would leave clients with no member at all for a moment.
    Persistent ones take longer anyhow.
    """
    hand = state.by_name.get(upgrade.member) if upgrade is not None else None
    waited_for = (heir, None if state.desired.is_persistent else hand)
    return next((m for m in waited_for if m is not None and m.pod is not None and m.pod.started_lately), None)


def _heir(state: ClusterState, member: Member) -> Member | None:
    """Who shall lead instead: a member that is done, one in step, the one that stays undisturbed longest.

    Of those that are done that is the first, because its connections are the oldest; of the others it
    is the one whose turn comes last.
    """

    def rank(voter: Member) -> tuple[bool, bool, int]:
        is_done = _is_done(state, voter)
        return not is_done, state.must_catch_up(voter), -voter.ordinal if is_done else voter.ordinal

    return min((voter for voter in state.healthy_voters if voter is not member), key=rank, default=None)


def _may_leave(state: ClusterState, member: Member) -> bool:
    """Whether the others are a quorum without it, or it does not serve anyhow.

    One that runs and is not heard may be part of the quorum that answers, or of one that is not heard
    either: where all are silent that run, it may be the operator who is cut off.
    """
    if would_lose_data(state, member):
        return False
    others = [voter for voter in state.healthy_voters if voter is not member]
    if member.is_healthy or (state.has_quorum and _runs(member)):
        return len(others) >= quorum(len(state.voters))
    rest = [other for other in state.members if other is not member and _runs(other)]
    return not _runs(member) or not rest or bool(state.answers)


def _runs(member: Member) -> bool:
    return member.pod is not None and member.pod.is_running


def _remember(state: ClusterState, upgrade: Upgrade | None, member: Member | None) -> list[Action]:
    """Write down what is begun, where it is not written already.

    Another version may be asked for when all have come up at the one before: then it is begun from that.
    """
    running = lowest(state)
    origin = str(running) if running is not None or member is None else member.asked_version
    target = state.desired.version
    begun = upgrade or Upgrade(origin=origin, target=target)
    name = member.name if member is not None else begun.member
    is_known = bool(state.voters) and all(voter.answer is not None for voter in state.voters)
    origin = origin if is_known else begun.origin
    wanted = Upgrade(origin=origin, target=target, member=name, since=begun.since)
    return [] if wanted == upgrade else [Remember(record=replace(state.record, upgrade=wanted))]


def _waiting_for(name: str, version: str) -> str:
    return f"waiting for {name} to serve at {version}"
