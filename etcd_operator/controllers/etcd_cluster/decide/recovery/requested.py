"""How a recovery of persistent members begins: a person requests the one that the status names.

Their data is on volumes, so it may come back whatever happened to pods and nodes, and no loss can be proven.
So the operator waits, reports which members are missing, and names the recovery that is possible; a person
who knows that the data is lost sets the annotation `recover` to that name (see `entry`; the reasons are in
docs/decisions/008). The source is the survivor with the newest data, or an EtcdBackup that has more.

With `spec.recovery: Automatic` the same one begins without a request, after a time (`authority`). But only a
person gives up data for a backup.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.shared_keys import DELETE_CLAIMS, GIVEN_UP_ANNOTATION, RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import may_have_adopted
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.first_start import is_resuming
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import ConfirmSilence
from etcd_operator.controllers.etcd_cluster.decide.recovery.authority import (
    is_due,
    missed,
    when_due,
    without_request,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import (
    begin,
    cluster_id_in,
    is_for,
    next_from_stored,
    next_from_survivor,
    recovery_name,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import (
    known_problems,
    read_silent,
    unreadable,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.situation import (
    answering,
    best,
    is_corrupt,
    keeps_running,
    may_elect,
    others_among,
    read_among,
    responders,
    silent_among,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.source import less_than, stored_newer_than
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import SEED_POLL, held, missing, source_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.versions import can_restore

SILENCE = 10.0
"""Seconds without a quorum before anybody is given up: an election, or a restart, takes less."""


def is_requested(state: ClusterState) -> bool:
    """Whether the recovery that is possible now is requested; others are reported after every other rule.

    A request stays in the annotation when it was carried out, or became outdated before it was. It must not
    stop repairs then.
    """
    if state.has_quorum or not state.desired.recover:
        return False
    return any(is_for(state.desired.recover, recovery) for recovery in _possible(state, responders(state)))


@fact
def offered(state: ClusterState) -> Plan | None:
    """Begin the requested recovery, or name the possible one; None: there is no loss to report."""
    left = responders(state)
    if may_elect(state, left):
        return None
    possible = _possible(state, left)
    if not possible:
        survivor = best(state, left)
        return _leaving(survivor) if survivor is not None else _nothing_left(state)
    recovery = next((r for r in possible if is_for(state.desired.recover, r)), possible[0])
    return _answer_to(state, recovery, left)


def offered_again(state: ClusterState, seed: str, why: str) -> Plan:
    """Name the next recovery after an attempt that will never serve."""
    made = read_silent(state) or offered(state)
    if made is None:
        left, what = responders(state), "no member from which the cluster could be recovered answers"
        if left:
            what = f"{', '.join(member.name for member in left)} answer and may elect a leader"
        return held("QuorumLost", f"{why or f'{seed} was lost before it served'}; {what}: nothing is changed")
    if not why or made.actions or made.reason not in ("QuorumLost", "RecoveryRefused"):
        return made
    return replace(made, message=f"{why}; {made.message}")


@fact
def offer(state: ClusterState) -> Plan | None:
    """Report a loss, and the name by which its recovery can be requested; None: a quorum may come back."""
    if state.kind.can_prove_loss or state.has_quorum:
        return None
    made = read_silent(state) or offered(state)
    if made is not None and is_resuming(state) and made.reason in _LOSSES and made.stage is Stage.HELD:
        return None  # a member that answers before the others is no survivor of a loss
    return made


_LOSSES = ("QuorumLost", "RecoveryUnsupported")
"""Why the operator waits for the data of a lost quorum."""


def _possible(state: ClusterState, left: list[Member]) -> list[Recovery]:
    """The recoveries that can be requested now; the first one is offered.

    None while the members that have the newest data are being deleted: all others have less.
    """
    survivor = best(state, left)
    newer = _from_stored(state, less_than(state, survivor) if survivor is not None else 0)
    if newer or survivor is None:
        return newer
    if not keeps_running(survivor):
        return []
    older = _from_stored(state, 0) if is_corrupt(state, survivor) else []
    return [next_from_survivor(state, survivor, "Requested"), *older]


def _from_stored(state: ClusterState, least: int) -> list[Recovery]:
    """The recoveries from EtcdBackups that have more than this revision, the newest first."""
    backups = stored_newer_than(state, least)
    return [next_from_stored(state, b, "Requested", version=b.etcd_version) for b in backups]


def _leaving(survivor: Member) -> Plan:
    """Its pod or its EtcdPeer has been deleted, and it still answers."""
    step = "the finalizers of its EtcdPeer show who holds it"
    if survivor.pod is not None and survivor.pod.is_terminating:
        step = "if its node does not respond, delete its pod with --force"
        if survivor.claim is None or survivor.claim.is_terminating:
            step += ", which deletes its volume, too"
    return held(
        "QuorumLost",
        f"no quorum answers; {survivor.name} has the newest data and is being deleted: waiting until it runs "
        f"again or is gone; {step}",
    )


def _nothing_left(state: ClusterState) -> Plan | None:
    """No member that could be recovered from answers, and no backup helps."""
    problem = unreadable(state)
    why = f"; {problem}" if problem else ""
    step = "docs/operations.md describes how to read the data of such a member by hand"
    if state.desired.recover:
        return held(
            "RecoveryRefused",
            f"the annotation {RECOVER_ANNOTATION} requests {state.desired.recover}, but no member from which "
            f"the cluster could be recovered answers{_no_backup(state)}: nothing is changed{why}; {step}",
        )
    if any(member.claim is not None for member in state.members):
        if not why:
            return None  # another rule reports who is silent
        return held(
            "QuorumLost", f"no quorum answers{known_problems(state)}{why}: nothing is changed; {step}"
        )
    kept = [c.name for c in state.kept_claims if cluster_id_in(c.given_up_by) == state.persisted.cluster_id]
    if kept:
        return held(
            "NoBackup",
            f"no member is left but those that were given up, whose claims are kept: {', '.join(kept)}; to "
            f"start them again on their data, remove the annotation {GIVEN_UP_ANNOTATION} from these claims",
        )
    return held(
        "NoBackup",
        f"the claims of all members are gone{_no_backup(state)}: no empty cluster is bootstrapped in its "
        "place; restore a backup with an EtcdRestore, or delete the cluster and create it again to begin "
        "with an empty one",
    )


def _no_backup(state: ClusterState) -> str:
    if not state.backups.is_listed:
        return ", and EtcdBackups cannot be read now"
    none = f", and no EtcdBackup of the etcd cluster {state.persisted.cluster_id} is completed"
    return f"{none}{state.backups.but_unreadable}"


def _answer_to(state: ClusterState, recovery: Recovery, left: list[Member]) -> Plan:
    requested, silent = state.desired.recover, silent_among(state, left)
    if not can_restore(recovery.version):
        return held(
            "RecoveryUnsupported",
            f"{silent}: no quorum answers, waiting for them; etcd {recovery.version} cannot restore a "
            "snapshot without hiding writes from watchers (3.5.10 and later can)",
        )
    if is_for(requested, recovery):
        led = any(member.answer is not None and member.answer.leader for member in left)
        if led or state.unavailable_for < SILENCE:
            message = f"{silent}: confirming the loss before recovering as {recovery_name(recovery)}"
            return Plan.wait("QuorumLost", message, requeue_after=1.0)
        return read_silent(state) or _begin(state, recovery, left, f"{silent} given up as requested")
    if (
        recovery.backup is None
        and is_due(state)
        and not is_corrupt(state, state.by_name[recovery.survivor])
        and not state.backups.is_awaited
    ):
        return _begin_by_itself(state, recovery, left, silent)
    how = _how_to_request(state, recovery, left)
    if not requested:
        return held(
            "QuorumLost",
            f"{silent}: no quorum answers, waiting for their data to come back; if it never will: {how}",
        )
    return held(
        "RecoveryRefused",
        f"the annotation {RECOVER_ANNOTATION} requests {requested}, which is not the recovery that is "
        f"possible now; {silent}: remove the annotation to wait for their data, or {how}",
    )


def _how_to_request(state: ClusterState, recovery: Recovery, left: list[Member]) -> str:
    """What a person can do, and what it costs."""
    cost = "writes after the backup are then lost"
    due = ""
    if recovery.backup is None:
        cost, due = "writes that only these members have are then lost", when_due(state)
        if is_corrupt(state, state.by_name[recovery.survivor]):
            due = _corrupt(state, recovery)
    if state.backups.is_awaited:
        due += "; EtcdBackups are not listed yet, and one of them may have more data"
    if others_among(state, left) and may_have_adopted(state):
        due += "; but if this resource was created again during an adoption, set spec.adopt again instead"
    return (
        f"to give them up for good and recover from {source_of(recovery, is_offered=True)}, annotate the "
        f"EtcdCluster with {RECOVER_ANNOTATION}={recovery_name(recovery)} ({cost}{_claims(state, left)}){due}"
    )


def _corrupt(state: ClusterState, recovery: Recovery) -> str:
    """That the data of the survivor may be wrong, and what else there is, as the end of a message."""
    why = f"; etcd reports the data of {recovery.survivor} as corrupt (alarm CORRUPT)"
    older = _from_stored(state, 0)
    if not older:
        return why
    return f"{why}; {recovery_name(older[0])} requests {source_of(older[0], is_offered=True)} instead"


def _claims(state: ClusterState, left: list[Member]) -> str:
    """What happens to the claims of all members of the old cluster; empty if there is none."""
    names = [m.claim.name for m in state.members if m.claim is not None and not state.is_attempt(m.claim)]
    if not names:
        return ""
    is_missing = any(member.claim is None for member in state.members if member not in left)
    kept = f"the claims that exist ({', '.join(names)})" if is_missing else "their claims"
    # Kubernetes removes these as soon as no pod uses them.
    going = [m.claim.name for m in state.members if m.claim is not None and m.claim.is_terminating]
    but = f", except those that are already being deleted ({', '.join(going)})" if going else ""
    return f"; {kept} are kept{but}, or deleted if {DELETE_CLAIMS} is appended to the value"


def _begin_by_itself(state: ClusterState, recovery: Recovery, left: list[Member], silent: str) -> Plan:
    why = f"{silent} {without_request(state)}"
    unknown = state.backups.refusal or state.backups.unreadable
    if unknown:
        why += f"; whether an EtcdBackup is newer is not known ({unknown})"
    automatic = msgspec.structs.replace(recovery, authority="Automatic", is_unstable=True)
    return read_silent(state) or _begin(state, automatic, left, why)


def _begin(state: ClusterState, recovery: Recovery, left: list[Member], why: str) -> Plan:
    lost = (
        missing(recovery)
        if recovery.backup is not None
        else "writes that only the given-up members had are missing"
    )
    message = f"{why}: recovering from {source_of(recovery)} as {recovery.seed}; {lost}"
    silence = ConfirmSilence(
        survivors=answering(left),
        read=read_among(left),
        silent=tuple(sorted(missed(state))) if recovery.is_automatic else (),
        given_up=tuple(sorted(m.name for m in state.members if m not in left)),
        message=message,
    )
    begun = begin(state, recovery)
    return Plan.act(silence, *begun, reason="Recovering", message=message, requeue_after=SEED_POLL)
