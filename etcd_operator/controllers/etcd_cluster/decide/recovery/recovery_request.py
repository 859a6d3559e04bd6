"""The recovery of a persistent cluster that a person can request, and the answer.

The source is the survivor with the newest data, or an EtcdBackup that has more. See
`recovery.manual_recovery`, and for the names `recovery.recovery_names`.

With `spec.recovery: Automatic` the same one begins without a request, after a time
(`recovery.automatic`). But only a person gives up data for a backup.
"""

import msgspec

from etcd_operator.api.persisted import Recovery
from etcd_operator.api.shared_keys import DELETE_CLAIMS, GIVEN_UP_ANNOTATION, RECOVER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan
from etcd_operator.controllers.etcd_cluster.decide.adoption.obstacles import may_have_adopted
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.automatic import (
    is_due,
    missed,
    when_due,
    without_request,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import (
    known_problems,
    read_silent,
    unreadable,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import (
    ConfirmBackup,
    ConfirmSilence,
    FillSeed,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_entry import (
    next_from_stored,
    next_recovery,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_names import cluster_id_in, recovery_name
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_texts import missing, source_of
from etcd_operator.controllers.etcd_cluster.decide.recovery.responders import (
    keeps_running,
    may_elect,
    others_among,
    responders,
    silent_among,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import (
    SEED_POLL,
    answering,
    create_seed,
    held,
    is_filled_by_job,
    newest,
    read_among,
    record,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.stored_backups import backups_newer_than
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.versions import can_restore

SILENCE = 10.0
"""Seconds without a quorum before anybody is given up: an election, or a restart, takes less."""


def is_for(requested: str, recovery: Recovery) -> bool:
    """Whether an annotation requests this recovery, with or without the deletion of claims."""
    return requested.removesuffix(DELETE_CLAIMS) == recovery_name(recovery)


def is_requested(state: ClusterState) -> bool:
    """Whether the recovery that is possible now is requested; others are reported after every other rule.

    A request stays in the annotation when it was carried out, or became outdated before it was. It must not
    stop repairs then.
    """
    if state.has_quorum or not state.desired.recover:
        return False
    return any(is_for(state.desired.recover, recovery) for recovery in _possible(state, responders(state)))


def offered(state: ClusterState) -> Plan | None:
    """Begin the requested recovery, or name the possible one; None: there is no loss to report."""
    requested, left = state.desired.recover, responders(state)
    if may_elect(state, left):
        return None
    possible = _possible(state, left)
    if not possible:
        return _leaving(max(left, key=_best)) if left else _nothing_left(state)
    recovery = next((r for r in possible if is_for(requested, r)), possible[0])
    return _answer_to(state, requested, recovery, left)


def _possible(state: ClusterState, left: list[Member]) -> list[Recovery]:
    """The recoveries that can be requested now; the first one is offered.

    None while the members that have the newest data are being deleted: all others have less.
    """
    survivor = max(left, key=_best, default=None)
    backups = backups_newer_than(state, survivor)
    if backups or survivor is None:
        return [next_from_stored(state, backup) for backup in backups]
    return [next_recovery(state, survivor)] if keeps_running(survivor) else []


def _best(member: Member) -> tuple[int, int, bool, int]:
    """Of those with the same data, one that remains is preferred."""
    revision, committed, order = newest(member)
    return revision, committed, keeps_running(member), order


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
    why = "".join(f"; {problem}" for problem in [unreadable(state)] if problem)
    step = "docs/operations.md describes how to read the data of such a member by hand"
    if state.desired.recover:
        return held(
            "RecoveryRefused",
            f"the annotation {RECOVER_ANNOTATION} requests {state.desired.recover}, but no member from which "
            f"the cluster could be recovered answers{_no_backup(state)}: nothing is changed{why}; {step}",
        )
    if any(member.claim is not None for member in state.members):
        if why:
            return held(
                "QuorumLost", f"no quorum answers{known_problems(state)}{why}: nothing is changed; {step}"
            )
        return None  # another rule reports who is silent
    kept = [c.name for c in state.kept if cluster_id_in(c.given_up_by) == state.persisted.cluster_id]
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


def _answer_to(state: ClusterState, requested: str, recovery: Recovery, left: list[Member]) -> Plan:
    silent = silent_among(state, left)
    source = source_of(recovery, is_offered=True)
    if not can_restore(recovery.version):
        return held(
            "RecoveryUnsupported",
            f"{silent}: no quorum answers, waiting for them; etcd {recovery.version} cannot restore a "
            "snapshot without hiding writes from watchers (3.5.10 and later can)",
        )
    name = recovery_name(recovery)
    is_awaited = state.backups.is_awaited
    if recovery.backup is None and is_due(state) and not is_awaited and not is_for(requested, recovery):
        return _begin_by_itself(state, recovery, left, silent)
    how = (
        f"to give them up for good and recover from {source}, annotate the EtcdCluster with "
        f"{RECOVER_ANNOTATION}={name} ({_cost(recovery)}{_claims(state, left)})"
        f"{when_due(state) if recovery.backup is None else ''}"
        f"{'; EtcdBackups are not listed yet, and one of them may have more data' if is_awaited else ''}"
        f"{_may_be_adopting(state, left)}"
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
    return read_silent(state) or _begin(state, recovery, left, f"{silent} given up as requested")


def _may_be_adopting(state: ClusterState, left: list[Member]) -> str:
    if not others_among(state, left) or not may_have_adopted(state):
        return ""
    return "; but if this resource was created again during an adoption, set spec.adopt again instead"


def _claims(state: ClusterState, left: list[Member]) -> str:
    """What happens to the claims of all members of the old cluster; empty if there is none."""
    names = [m.claim.name for m in state.members if m.claim is not None and not state.is_attempt(m.claim)]
    if not names:
        return ""
    is_missing = any(member.claim is None for member in state.members if member not in left)
    which = f"the claims that exist ({', '.join(names)})" if is_missing else "their claims"
    kept = f"{which} are kept{_but_deleted(state)}"
    return f"; {kept}, or deleted if {DELETE_CLAIMS} is appended to the value"


def _but_deleted(state: ClusterState) -> str:
    """Somebody has deleted these: Kubernetes removes them as soon as no pod uses them."""
    names = [m.claim.name for m in state.members if m.claim is not None and m.claim.is_terminating]
    return f", except those that are already being deleted ({', '.join(names)})" if names else ""


def _cost(recovery: Recovery) -> str:
    if recovery.backup is not None:
        return "writes after the backup are then lost"
    return "writes that only these members have are then lost"


def _begin_by_itself(state: ClusterState, recovery: Recovery, left: list[Member], silent: str) -> Plan:
    why = f"{silent} {without_request(state)}"
    unknown = state.backups.refusal or state.backups.unreadable
    if unknown:
        why += f"; whether an EtcdBackup is newer is not known ({unknown})"
    return read_silent(state) or _begin(state, msgspec.structs.replace(recovery, automatic=True), left, why)


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
        silent=tuple(sorted(missed(state))) if recovery.automatic else (),
        given_up=tuple(sorted(m.name for m in state.members if m not in left)),
        message=message,
    )
    return Plan.act(
        silence,
        *begin(state, recovery),
        reason="Recovering",
        message=message,
        requeue_after=SEED_POLL,
    )


def begin(state: ClusterState, recovery: Recovery) -> list[Action]:
    """Read the backup live, write the entry of the recovery, and create what restores its data."""
    remember = record(state, recovery)
    if recovery.backup is None or not is_filled_by_job(recovery):
        return [remember, create_seed(recovery)]
    backup = next(b for b in state.backups.stored if b.name == recovery.backup.name)
    confirm = ConfirmBackup(name=backup.name, uid=backup.uid, sha256=backup.sha256)
    return [confirm, remember, FillSeed(name=recovery.seed)]
