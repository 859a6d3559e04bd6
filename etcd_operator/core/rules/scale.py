"""Growing and shrinking: one membership change at a time, learners first (I1, I2).

Each look decides afresh from what is there, so that sizes may be edited at any speed
while a change is under way.
"""

from collections.abc import Iterable
from dataclasses import replace

from etcd_operator.core.actions import (
    Action,
    AddLearner,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    MoveLeader,
    Plan,
    Promote,
    Remember,
    RemoveMember,
)
from etcd_operator.core.kinds.protocol import Numbers
from etcd_operator.core.members import Member, ordinal_of, quorum
from etcd_operator.core.names import member_name
from etcd_operator.core.rules.objects import joining
from etcd_operator.core.rules.replace import is_lost, removable, removable_corrupt
from etcd_operator.core.state import ClusterState
from etcd_operator.core.upgrade.blocked import start_again
from etcd_operator.core.upgrade.skew import joining_version

STEP = 0.1
"""Seconds between looks while a member starts or catches up: neither wakes anybody."""

LONG_SILENCE = 120.0
"""Seconds of silence after which a learner that runs is worth a word."""

TOO_LONG = 600.0
"""Seconds of silence after which it is taken out: some gigabytes have come from the leader by then."""

RECHECK = 2.0
"""Seconds between looks at a learner that has been silent for long."""


def orphaned_objects(state: ClusterState) -> Plan | None:
    """Remove the objects of members that a quorum no longer lists."""
    if not _may_change(state):
        return None
    removed = [m for m in state.members if m.entry is None and _is_left_over(state, m)]
    if not removed:
        return None
    names = ", ".join(member.name for member in removed)
    return Plan.act(
        *(DeleteMember(name=member.name) for member in removed),
        reason="Removing",
        message=f"removing what is left of {names}",
        requeue_after=STEP,
    )


def outdated_learner(state: ClusterState) -> Plan | None:
    """Take a learner that has not started out again before a lost voter, or one with corrupt data, goes.

    Its flags list the members as they were. etcd compares them with the list before it writes
    anything, and refuses for ever once a member is gone (`member count is unequal`).
    """
    learner = _learner(state)
    if learner is None or learner.entry is None or learner.entry.name:
        return None
    if removable(state) is None and removable_corrupt(state) is None:
        return None
    return _take_out(state, learner.name, learner.id, f"{learner.name} has not started and a voter must go")


def finish_learner(state: ClusterState) -> Plan | None:
    """Bring the one pending learner to an end: start it, promote it, or take it out again."""
    learner = _learner(state)
    if not _may_change(state) or learner is None or learner.entry is None:
        return None
    name, entry = learner.name, learner.entry
    has_objects = state.kind.is_made(learner)
    was_lost = _is_losing_data(state, learner) or (
        is_lost(state, learner) if has_objects else bool(entry.name)
    )
    if len(state.voters) >= state.desired.size or was_lost:
        why = f"{name} was lost while it joined" if was_lost else f"{name} is not needed"
        return _take_out(state, name, entry.id, why)
    if not has_objects:
        return _join(state, name, ())
    if not entry.name and learner.pod is not None and learner.pod.can_never_join:
        return _take_out(state, name, entry.id, f"{name} can never start as it is: beginning again")
    if learner.problem is not None:
        return start_again(state, learner) or Plan.hold(
            learner.problem.reason, f"{name}: {learner.problem.message}", requeue_after=1.0
        )
    is_going = learner.pod is not None and learner.pod.is_terminating
    if learner.answer is None or is_going:
        return _await_answer(state, learner)
    return Plan.act(
        Promote(name=name, member_id=entry.id),
        reason="ScalingUp",
        message=f"{name} has caught up: letting it vote",
        requeue_after=STEP,
    )


def down(state: ClusterState) -> Plan | None:
    """Take one member out: an unhealthy one first, else the last (persistent) or the oldest.

    Its objects go at the next look, as what `strays` finds. A removed etcd ends by itself at once;
    told to stop in that very moment it waits for a second for its peers to hang up.
    """
    if not _may_change(state) or len(state.voters) <= state.desired.size:
        return None
    victim = _victim(state)
    rest = [voter for voter in state.voters if voter is not victim]
    healthy = [voter for voter in rest if _stays(voter) and not _goes_before(state, voter, victim)]
    if len(healthy) < quorum(len(rest)):
        names = ", ".join(voter.name for voter in rest if voter not in healthy)
        return Plan.hold(
            "QuorumAtRisk", f"not shrinking while {names} do not serve, or lose their data", requeue_after=1.0
        )
    return Plan.act(
        *lead_elsewhere(state, victim, healthy),
        RemoveMember(name=victim.name, member_id=victim.id),
        reason="ScalingDown",
        message=f"removing {victim.name}",
        requeue_after=STEP,
    )


def up(state: ClusterState) -> Plan | None:
    """Add one learner, when every voter is healthy."""
    if not _may_change(state) or len(state.voters) >= state.desired.size:
        return None
    if any(not voter.is_healthy for voter in state.voters):
        return None  # upkeep says which
    name = _next_name(state)
    former = state.by_name.get(name)
    if former is not None and former.claim is not None and not former.claim.is_terminating:
        return Plan.hold(
            "ClaimInTheWay",
            f"the claim {name} holds data that is not this cluster's: remove or rename it to grow",
            requeue_after=10.0,
        )
    if former is not None:
        return Plan.wait("ScalingUp", f"waiting for the former {name} to go", requeue_after=STEP)
    return _join(state, name, (AddLearner(name=name),))


def _await_answer(state: ClusterState, learner: Member) -> Plan:
    """Wait for a learner that runs; say when that takes long, and begin again when it takes too long.

    What hangs or is cut off does not come up by itself, but one that gets much data from the leader does.
    So the first bound only says so, and holds where the learner is in the way: of another member's
    repair, or of an upgrade. The second is long, and therefore all the back-off that attempts need.
    """
    name = learner.name
    if learner.silent_for < LONG_SILENCE:
        return Plan.wait("ScalingUp", f"waiting for {name} to start", requeue_after=STEP)
    if learner.silent_for >= TOO_LONG or _is_wanted_otherwise(state):
        return _take_out(state, name, learner.id, f"{name} runs and answers nobody: beginning again")
    return Plan.hold(
        "LearnerSilent",
        f"{name} joins, but has run for {LONG_SILENCE / 60:.0f} minutes without an answer: see its log; "
        f"after {TOO_LONG / 60:.0f} minutes, or when it is in the way, it is taken out to begin again",
        requeue_after=RECHECK,
    )


def _is_wanted_otherwise(state: ClusterState) -> bool:
    """Whether something waits for the learner that it cannot be done beside."""
    versions = {voter.requested_version for voter in state.voters} - {"", state.desired.version}
    return bool(versions) or any(not voter.is_healthy for voter in state.voters)


def _learner(state: ClusterState) -> Member | None:
    return next((m for m in state.members if m.entry is not None and m.entry.is_learner), None)


def _take_out(state: ClusterState, name: str, member_id: str, why: str) -> Plan:
    """Remove a learner: it has no vote, and nobody's only copy of anything."""
    return Plan.act(
        *_taken(state, name),
        RemoveMember(name=name, member_id=member_id),
        DeleteMember(name=name),
        reason="Removing",
        message=why,
        requeue_after=STEP,
    )


def _join(state: ClusterState, name: str, first: tuple[Action, ...]) -> Plan:
    """Make the objects of a member that etcd lists once `first` is done."""
    actions = [*first, *_taken(state, name)]
    start = joining(state, name, state.desired.token)
    actions.append(CreateMember(name=name, start=start, version=joining_version(state)))
    if state.kind.has_member_services:
        actions.append(CreateMemberService(name=name))
    return Plan.act(*actions, reason="ScalingUp", message=f"adding {name}", requeue_after=STEP)


def _taken(state: ClusterState, name: str) -> list[Action]:
    """Remember that a number is used up, where none is used twice.

    Only once etcd lists the name: an add that etcd refuses for now is tried again with the
    same number, and a crash in between leaves the number in etcd's list.
    """
    ordinal = ordinal_of(name)
    if state.kind.reuses_numbers or ordinal < state.persisted.next_ordinal:
        return []
    return [Remember(persisted=replace(state.persisted, next_ordinal=ordinal + 1))]


def _next_name(state: ClusterState) -> str:
    numbers = Numbers(
        size=state.desired.size,
        taken=frozenset([*(m.ordinal for m in state.voters), *(ordinal_of(c.name) for c in state.kept)]),
        leaving=frozenset(member.ordinal for member in state.members if _is_given_up(state, member)),
        known=frozenset(member.ordinal for member in state.members),
        unused=state.persisted.next_ordinal,
    )
    return member_name(state.desired, state.kind.next_ordinal(numbers))


def _is_given_up(state: ClusterState, former: Member) -> bool:
    """Whether this is a member of a lost cluster that is still being deleted."""
    claim = former.claim
    if claim is None or not claim.is_terminating:
        return False
    return claim.cluster_id not in ("", state.persisted.cluster_id)


def _victim(state: ClusterState) -> Member:
    unhealthy = [voter for voter in state.voters if not voter.is_healthy]
    losing_data = [voter for voter in state.voters if _is_losing_data(state, voter)]
    return _by_departure(state, unhealthy or losing_data or state.voters)[0]


def _is_losing_data(state: ClusterState, voter: Member) -> bool:
    """Whether what holds its data is being deleted, although it still serves."""
    holder = state.kind.storage_of(voter)
    return holder is not None and holder.is_terminating


def _stays(voter: Member) -> bool:
    """Whether it serves and will go on to: a pod that is being deleted still answers for a moment."""
    return voter.is_healthy and not (voter.pod is not None and voter.pod.is_terminating)


def _goes_before(state: ClusterState, voter: Member, victim: Member) -> bool:
    """Whether a voter loses its data with its next restart while the victim, though silent, keeps its own."""
    return _is_losing_data(state, voter) and not _is_losing_data(state, victim)


def _by_departure(state: ClusterState, members: Iterable[Member]) -> list[Member]:
    """The order in which healthy members leave when a cluster shrinks."""
    return sorted(members, key=state.kind.departure)


def lead_elsewhere(state: ClusterState, victim: Member, healthy: list[Member]) -> list[Action]:
    """Hand leadership to the member that stays the longest, so that it moves once and not at each step.

    But to one that was only just promoted only if there is no other: it may have much to catch up.
    """
    if state.leader is not victim:
        return []
    able = [voter for voter in healthy if not state.must_catch_up(voter)] or healthy
    return [MoveLeader(name=heir.name, member_id=heir.id) for heir in _by_departure(state, able)[-1:]]


def _may_change(state: ClusterState) -> bool:
    """Whether etcd's list is to be trusted, and there is a member to ask for a change of it.

    Without one, as where an alarm names the only voter, other rules report the reason.
    """
    return state.persisted.is_bootstrapped and state.has_quorum and bool(state.healthy_voters)


def _is_left_over(state: ClusterState, member: Member) -> bool:
    """Whether objects of a member that etcd does not list are ours to remove.

    A claim alone is removed only if this very cluster marked it as a member's, or made it for a member
    that never answered (its creation was applied late, when the member was gone again): anything else that
    has such a name may be somebody's copy.
    """
    if member.is_going:
        return False
    if member.pod is not None or member.peer is not None or member.has_service:
        return True
    claim = member.claim
    if claim is not None and claim.member_id:
        return claim.cluster_id == state.persisted.cluster_id
    made = (claim.cluster_uid, claim.token) if claim is not None else ("", "")
    return made == (state.desired.uid, state.desired.token)
