"""Where the writes of a cluster that a restore in place gives up end, and how it takes writes again.

Whoever is connected to an old member writes to it until it is stopped. Its alarm NOSPACE ends that at one
point of its log, so that the revision in the status is the last one that anybody was acknowledged.

    the Service selects nobody -> existing-only: the point of no return -> `stopped` in status -> the alarm
    -> its last revision in status -> the members are deleted

If members do not answer then, and their pods may run, they are waited for, but not for ever: clients are
without a service. After that the status reports that the last revision is not known, and who did not answer.

A quota that is used up raises the same alarm. So `stopped` is written before the operator raises it, and
distinguishes them where the restore ends without a change: the operator disarms only what it may have raised,
and only once. What a used-up quota raises again is the user's (`OutOfSpace`).
"""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from etcd_operator.api.persisted import Recovery
from etcd_operator.core.actions import Action, Plan
from etcd_operator.core.members import Member, quorum
from etcd_operator.core.recovery_actions import (
    AllowWrites,
    CloseClients,
    ReopenClients,
    SetSeedExistingOnly,
    StopWrites,
)
from etcd_operator.core.recovery_names import claims_kept_by, recovery_name
from etcd_operator.core.replies import Answer
from etcd_operator.core.rules.responders import is_led
from etcd_operator.core.rules.seed import (
    SEED_POLL,
    least_revision,
    reason_of,
    record,
    under_way,
    voters_of,
)
from etcd_operator.core.state import ClusterState

PATIENCE = 30.0
"""Seconds without a service for clients until members that do not answer are given up all the same."""


def close(recovery: Recovery) -> Plan:
    """The seed serves: keep new clients away from the old cluster, then pass the point of no return."""
    return _act(
        recovery,
        CloseClients(name=recovery.seed),
        SetSeedExistingOnly(name=recovery.seed, revision=least_revision(recovery)),
    )


def stop(state: ClusterState, recovery: Recovery, left: list[Member]) -> Plan | None:
    """After the point of no return: end the writes of the old cluster; None: nothing more is done for that.

    Silence proves nothing: who does not answer the operator may serve clients.
    """
    if _is_recorded(state, recovery) or _shows_alarm(left):
        return None
    able = _leader_first(left) if is_led(state, left) else []
    stops = [StopWrites(name=m.name, member_id=m.answer.member_id) for m in able[:1] if m.answer is not None]
    if stops:
        return _act(recovery, *_remember(state, recovery, stopped=True), *stops)
    voters = _voters(state, recovery, left)
    running = [name for name in voters if _may_run(state.by_name[name])]
    if len(running) < quorum(len(voters)) or state.unavailable_for >= PATIENCE:
        return None
    return Plan.wait(
        reason_of(recovery),
        f"{under_way(recovery)}; it is not known whether {', '.join(running)} still take writes: waiting for "
        f"their answers for at most {round(PATIENCE)} seconds, or until their pods are gone",
        requeue_after=1.0,
    )


def _leader_first(members: Iterable[Member]) -> list[Member]:
    """The healthy ones, and first the one that leads.

    It has applied an entry of its own term. Another one may refuse all that goes through the log, for ever
    (see `awaited_entry`).
    """
    able = [member for member in members if member.is_healthy]
    leaders = {member.answer.leader for member in able if member.answer is not None}
    return sorted(able, key=lambda member: member.answer is None or member.answer.member_id not in leaders)


def has_stopped(state: ClusterState, recovery: Recovery) -> bool:
    """Whether the old cluster was set to take no more puts, or some of its members were given up."""
    return recovery.stopped or _is_recorded(state, recovery)


def _is_recorded(state: ClusterState, recovery: Recovery) -> bool:
    """Whether the last revision is on record: members are given up only after that."""
    return bool(claims_kept_by(recovery_name(recovery), state.kept))


def _shows_alarm(left: list[Member]) -> bool:
    return any(member.answer is not None and _takes_no_puts(member.answer) for member in left)


def _takes_no_puts(answer: Answer) -> bool:
    """Also with the alarm CORRUPT, which ends deletions, too: no other alarm is needed then."""
    return answer.is_out_of_space or bool(answer.corrupt)


def _voters(state: ClusterState, recovery: Recovery, left: list[Member]) -> list[str]:
    """The voters of the old cluster; without an answer all of its members."""
    listed = {name for responder in left for name in voters_of(state, responder) if name}
    return [m.name for m in state.members if m.name != recovery.seed and (m.name in listed or not listed)]


def _may_run(member: Member) -> bool:
    return member.pod is not None and not member.pod.is_finished


def with_given_up(state: ClusterState, recovery: Recovery, left: list[Member]) -> Recovery:
    """The entry of a restore in place with the last revision of the old cluster.

    A member that reports the alarm has applied all that was acknowledged before it. Without the alarm,
    whoever acknowledged the last write has applied it: the revision is known if all voters answer.
    """
    if not recovery.in_place or _is_recorded(state, recovery):
        return recovery
    answers = [member.answer for member in left if member.answer is not None]
    found = [answer.revision for answer in answers if _takes_no_puts(answer)]
    answering = {member.name for member in left if member.answer is not None}
    silent_members = () if found else tuple(n for n in _voters(state, recovery, left) if n not in answering)
    last = max([recovery.given_up, *(found or (answer.revision for answer in answers))])
    return msgspec.structs.replace(recovery, given_up=last, silent_members=silent_members)


def remembering(state: ClusterState, recovery: Recovery, plan: Plan) -> Plan:
    """A handover that writes the last revision of the old cluster first: afterwards nobody knows it."""
    if recovery == state.persisted.recovery:
        return plan
    return replace(plan, actions=(record(state, recovery), *plan.actions))


def handed_over(recovery: Recovery) -> Recovery:
    """The entry once the new cluster is on record: nothing of the old one takes writes again.

    A seed with a survivor's data has its alarms, too: what a former restore stopped is allowed in it.
    """
    return msgspec.structs.replace(recovery, stopped=recovery.stopped and not recovery.in_place)


# The old cluster goes on


def reopening(state: ClusterState, recovery: Recovery, left: list[Member]) -> list[Action]:
    """What lets clients use the old cluster again, where they were kept away from it."""
    able = _leader_first(left) if recovery.stopped and is_led(state, left) else []
    allowed = [AllowWrites(name=member.name) for member in able[:1]]
    written = _remember(state, recovery, stopped=False) if allowed else []
    opened = [ReopenClients(name=recovery.seed)] if state.backups.is_closed else []
    return [*allowed, *written, *opened]


def reopen(state: ClusterState) -> Plan | None:
    """Let the Service select members although no restore is under way.

    A request to close it may take effect after its reply was given up, when the restore has ended.
    """
    recovery = state.persisted.recovery
    if recovery is None or not state.backups.is_closed or state.persisted.is_recovering:
        return None
    return Plan.act(
        ReopenClients(name=recovery.seed),
        reason="Repairing",
        message="letting clients reach the cluster again",
    )


def allow_writes(state: ClusterState) -> Plan | None:
    """Let the cluster take puts again after a restore that ended while that was not possible.

    Also where no answer shows the alarm yet: the request may have taken effect after the last probe.
    """
    recovery = state.persisted.recovery
    if recovery is None or not recovery.stopped or not state.has_quorum or not state.healthy_voters:
        return None
    return Plan.act(
        AllowWrites(name=_leader_first(state.healthy_voters)[0].name),
        *_remember(state, recovery, stopped=False),
        reason="Repairing",
        message="letting the cluster take writes again",
    )


def _remember(state: ClusterState, recovery: Recovery, *, stopped: bool) -> list[Action]:
    if recovery.stopped == stopped:
        return []
    return [record(state, msgspec.structs.replace(recovery, stopped=stopped))]


def _act(recovery: Recovery, *actions: Action) -> Plan:
    return Plan.act(
        *actions, reason=reason_of(recovery), message=under_way(recovery), requeue_after=SEED_POLL
    )
