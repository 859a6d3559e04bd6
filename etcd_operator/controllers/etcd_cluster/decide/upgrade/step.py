"""A step of an upgrade: decided as a value, and made a plan in one place.

So whatever an upgrade does to a member, that it is the upgrading one is recorded first.

Before a member is stopped on purpose, all members must be healthy, agree on who the members are, and have the
same data; no member may lose its data. Before the first member of 3.7, each member must have saved a raft
snapshot since it runs 3.6, because 3.7 cannot read log entries that 3.5 wrote. Until then the log is padded
with entries that change nothing (docs/decisions/006).
"""

from dataclasses import dataclass, replace

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, PadLog, Plan, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import has_old_entries, needs_snapshots

UPGRADING, RESTARTING = "Upgrading", "TLSRotating"
"""Reasons: a version is changed; members are only started again, for their TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What an upgrade does next, or waits for."""

    message: str  # as status reports it
    reason: str = UPGRADING  # as status reports it
    action: Action | None = None  # None while the upgrade waits
    member: Member | None = None  # the upgrading member from this step on; None: the one on record
    is_held: bool = False  # something outside must change first
    pause: float = STEP  # seconds until the next observation


def planned(state: ClusterState, step: Step) -> Plan:
    """The plan that takes a step: what the step begins is recorded before its action."""
    actions = () if step.action is None else (*_record(state, step), step.action)
    is_restart = step.reason == UPGRADING and _begun(state, step).restart and _runs_as_desired(state)
    return Plan(
        actions=actions,
        stage=Stage.HELD if step.is_held else Stage.WORKING,
        reason=RESTARTING if is_restart else step.reason,
        message=step.message,
        requeue_after=step.pause,
    )


def _record(state: ClusterState, step: Step) -> list[Remember]:
    """Record what a step begins, unless it is on record already or the step is a record itself.

    Another version may be desired when all members run the one before: then the upgrade begins from that.
    """
    if isinstance(step.action, Remember):
        return []
    upgrade, target = state.persisted.upgrade, state.desired.version
    begun = _begun(state, step)
    is_known = bool(state.voters) and all(voter.answer is not None for voter in state.voters)
    origin = _origin(state, step.member) if is_known else begun.origin
    name = step.member.name if step.member is not None else begun.member
    is_restart = begun.restart and _runs_as_desired(state)
    wanted = Upgrade(origin=origin, target=target, member=name, restart=is_restart, since=begun.since)
    return [] if wanted == upgrade else [Remember(persisted=replace(state.persisted, upgrade=wanted))]


def _begun(state: ClusterState, step: Step) -> Upgrade:
    """The upgrade on record, or the one that a step begins."""
    if state.persisted.upgrade is not None:
        return state.persisted.upgrade
    origin, target = _origin(state, step.member), state.desired.version
    return Upgrade(origin=origin, target=target, restart=_runs_as_desired(state))


def _runs_as_desired(state: ClusterState) -> bool:
    """Whether no member has another version than the desired one, or is to get it."""
    wanted = state.desired.version
    versions = {m.answer.version for m in state.members if m.answer is not None}
    requested = {m.requested_version for m in state.members if m.requested_version}
    return versions | requested <= {wanted}


def _origin(state: ClusterState, member: Member | None) -> str:
    """The version that an upgrade begins from: the lowest that runs, else the one requested of its member."""
    running = state.lowest_version
    requested = member.requested_version if member is not None else ""
    return str(running) if running is not None else requested


def waiting_for(name: str, version: str) -> str:
    """The message of all steps of one member: the same, so that none is a status write of its own."""
    return f"waiting for {name} to serve at {version}"


LAG = 1000
"""Entries of the log that a member may be behind the others and still count as in step.

At a hundred writes a second two members asked a few ms apart differ by one; a thousand are
replayed in well under a second, and the leader keeps five times as many available.
"""

RECHECK = 1.0
"""Seconds between observations of a cluster that is not ready for an upgrade."""

PAD = 1000
"""Entries of padding in one step, at most: a third of a second where nothing else is written."""


def preflight(state: ClusterState, member: Member, obstacle: str) -> Step | None:
    """What an upgrade waits for, or does, before it stops this member; None: it may.

    obstacle: what `unhealthy` found.
    """
    if obstacle:
        return _wait(state, obstacle, is_held=not _passes(state))
    return _data_at_risk(state, member) or _pad(state)


def unhealthy(state: ClusterState) -> str:
    """What is not as it must be before a member may be away; empty if all is well."""
    listed = {entry.id for entry in state.etcd_members}
    for member in state.members:
        answer = member.answer
        if member.entry is None:
            continue
        if answer is not None and answer.errors:
            return f"{member.name}, which reports {', '.join(answer.errors)}"
        if answer is None or not member.is_healthy:
            return f"{member.name} ({_health(member)})"
        if member.entry.is_learner:
            return f"{member.name}, which does not vote yet"
        if member.pod is not None and member.pod.is_terminating:
            return f"{member.name}, whose pod is being deleted"
        if member.pod is not None and not member.pod.is_running:
            return f"{member.name}, whose container does not run"  # it has ended since it answered
        if state.committed - answer.committed > LAG:
            return f"{member.name}, which has not caught up"
        if {entry.id for entry in answer.members} != listed or answer.member_id != member.entry.id:
            return f"{member.name}, which lists different members than the rest"
    return "" if state.leader is not None else "a leader"


def _health(member: Member) -> str:
    found, problem = member.health.value, member.problem
    return found if problem is None else f"{found}; {problem.reason}: {problem.message}"


def would_lose_data(state: ClusterState, member: Member) -> bool:
    """Whether a member's data is deleted with its pod, and the others need it.

    Where the others have a quorum without the member, it may be stopped; its loss is noticed then.
    """
    return member.has_terminating_claim and len(state.voters) - 1 < state.quorum


def _data_at_risk(state: ClusterState, member: Member) -> Step | None:
    """Waits for a person while a voter would lose its data, or might while this member is away.

    If its pod ended then, and the member did not come up, there would be no quorum.
    """
    voter = next((voter for voter in state.voters if voter.has_terminating_claim), None)
    if voter is None:
        return None
    name = f"{voter.name}, whose claim is being deleted"
    if would_lose_data(state, voter):
        return _wait(state, f"{name}: only more members can save its data", is_held=True)
    if voter is not member:
        return _wait(state, f"{name}: delete its pod, and another member replaces it", is_held=True)
    return None


def _passes(state: ClusterState) -> bool:
    """Whether an obstacle is expected to pass by itself, as it is once members have been stopped.

    One that a pod shows does not: an image that is missing, or a process that crashes.
    """
    return state.persisted.upgrade is not None and all(member.problem is None for member in state.members)


def _wait(state: ClusterState, obstacle: str, *, is_held: bool) -> Step:
    """One that is held is worth a condition."""
    message = f"the upgrade to {state.desired.version} waits for {obstacle}"
    if not is_held:
        return Step(message=message)
    return Step(reason="UpgradeWaiting", message=message, is_held=True, pause=RECHECK)


def _pad(state: ClusterState) -> Step | None:
    """Before the first member of 3.7: entries of 3.5 must lie behind a raft snapshot on each of 3.6."""
    if not needs_snapshots(state.desired):
        return None
    old = [v for v in state.voters if v.answer is not None and has_old_entries(v.answer.version)]
    silent = ", ".join(voter.name for voter in old if voter.snapshots is None)
    if silent:
        message = f"the metrics page of {silent} does not answer: a raft snapshot may be missing"
        return Step(reason="UpgradeWaiting", message=message, is_held=True, pause=RECHECK)
    if all(voter.snapshots for voter in old):
        return None
    return Step(
        action=PadLog(entries=PAD),
        message="padding the log until every member saves a raft snapshot: "
        f"{state.desired.version} cannot read what 3.5 wrote",
        pause=0.0,
    )
