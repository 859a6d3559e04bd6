"""The recovery of a persistent cluster that a person can request: its name, and what answers a request.

With `spec.recovery: Automatic` the same one begins without a request, after a time (`rules.automatic`).

The name differs for each cluster ID, survivor and attempt: one that is left on the object, or in a manifest,
never begins another recovery. See `rules.manual_recovery`.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.improbable import DELETE_CLAIMS, RECOVER_ANNOTATION
from etcd_operator.api.persisted import Recovery
from etcd_operator.core.actions import ConfirmSilence, Plan, Remember
from etcd_operator.core.members import Member
from etcd_operator.core.recoveries import duration
from etcd_operator.core.rules.automatic import is_due, missed, outlook
from etcd_operator.core.rules.responders import may_elect, remains, responders, silent_among
from etcd_operator.core.rules.seed import SEED_POLL, create_seed, held, newest, next_recovery
from etcd_operator.core.state import ClusterState
from etcd_operator.core.versions import can_restore

SILENCE = 10.0
"""Seconds without a quorum before anybody is given up: an election, or a restart, takes less."""


def name_of(recovery: Recovery) -> str:
    """The name by which a person requests this recovery, and no other."""
    return f"{recovery.replaces}/{recovery.survivor}/{recovery.generation}"


def is_for(requested: str, recovery: Recovery) -> bool:
    """Whether an annotation requests this recovery, with or without the deletion of claims."""
    return requested.removesuffix(DELETE_CLAIMS) == name_of(recovery)


def is_requested(state: ClusterState) -> bool:
    """Whether the recovery that is possible now is requested; others are reported after every other rule.

    A request stays in the annotation when it was carried out, or became outdated before it was. It must not
    stop repairs then.
    """
    able = [member for member in responders(state) if remains(member)]
    if state.has_quorum or not able or not state.desired.recover:
        return False
    return is_for(state.desired.recover, next_recovery(state, max(able, key=newest)))


def offered(state: ClusterState) -> Plan | None:
    """Begin the requested recovery, or name the possible one; None: there is no loss to report."""
    requested, left = state.desired.recover, responders(state)
    if may_elect(state, left):
        return None
    able = [m for m in left if remains(m)]
    if not able and not requested:
        return None  # no survivor: another rule reports who is silent
    if not able:
        return held(
            "RecoveryRefused",
            f"the annotation {RECOVER_ANNOTATION} requests {requested}, but no member that could be "
            "recovered from answers: nothing is changed; docs/operations.md describes how to recover the "
            "data of a member that restarted without a quorum",
        )
    return _answer_to(state, requested, next_recovery(state, max(able, key=newest)), left)


def _answer_to(state: ClusterState, requested: str, recovery: Recovery, left: list[Member]) -> Plan:
    silent = silent_among(state, left)
    source = f"{recovery.survivor} at revision {recovery.revision}"
    if not can_restore(recovery.version):
        return held(
            "RecoveryUnsupported",
            f"{silent}: no quorum answers, waiting for them; etcd {recovery.version} cannot restore a "
            "snapshot without hiding writes from watchers (3.5.10 and later can)",
        )
    name = name_of(recovery)
    if is_due(state) and not is_for(requested, recovery):
        return _begin_by_itself(state, recovery, left, silent)
    how = (
        f"to give them up for good and recover from {source}, annotate the EtcdCluster with "
        f"{RECOVER_ANNOTATION}={name} (writes that only they have are lost then; their claims are kept, "
        f"or deleted where {DELETE_CLAIMS} is appended to that name){outlook(state)}"
    )
    if not requested:
        return held(
            "QuorumLost",
            f"{silent}: no quorum answers, waiting for their data to come back; if it never will: {how}",
        )
    if not is_for(requested, recovery):
        return held(
            "RecoveryRefused",
            f"the annotation {RECOVER_ANNOTATION} requests {requested}, which is not the recovery that is "
            f"possible now; {silent}: remove the annotation to wait for their data, or {how}",
        )
    led = any(member.answer is not None and member.answer.leader for member in left)
    if led or state.unavailable_for < SILENCE:
        return Plan.wait(
            "QuorumLost", f"{silent}: confirming the loss before recovering as {name}", requeue_after=1.0
        )
    return _begin(state, recovery, left, f"{silent} given up as requested")


def _begin_by_itself(state: ClusterState, recovery: Recovery, left: list[Member], silent: str) -> Plan:
    seconds = duration(int(state.absence.seconds))
    why = f"{silent} given up without a request, after {seconds} (spec.recovery: Automatic)"
    return _begin(state, msgspec.structs.replace(recovery, automatic=True), left, why)


def _begin(state: ClusterState, recovery: Recovery, left: list[Member], why: str) -> Plan:
    message = (
        f"{why}: recovering from {recovery.survivor} at revision "
        f"{recovery.revision} as {recovery.seed}; writes that only they had are missing"
    )
    survivors = {m.name: m.pod.uid for m in left if m.pod is not None}
    silence = ConfirmSilence(
        survivors=tuple(survivors.items()),
        silent=tuple(sorted(missed(state))) if recovery.automatic else (),
        message=message,
    )
    return Plan.act(
        silence,
        Remember(persisted=replace(state.persisted, recovery=recovery)),
        create_seed(recovery),
        reason="Recovering",
        message=message,
        requeue_after=SEED_POLL,
    )
