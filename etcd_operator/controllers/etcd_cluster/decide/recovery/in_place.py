"""A person gives up the data of a cluster that serves, for that of an EtcdBackup: a restore in place.

It is requested by name, like the recovery of a lost quorum, and goes the same way (`machine`). The
differences: the old cluster serves until the seed does, and the person may change their mind until then.

    requested by name -> entry in status -> claim and Job of the seed (`seed_job`) -> it serves
    -> the Service selects nobody -> existing-only, and its claim has the ID: no return
    -> the last revision that was observed is recorded -> the old members are deleted, their claims kept
    -> the Service selects the seed -> the cluster ID is recorded -> learners

Clients that are connected to an old member write until it is stopped: the person gives these writes up, too.
"""

import msgspec
from semver import Version

from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.shared_keys import RESTORE_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import leftovers
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import (
    begin,
    claims_kept_by,
    next_from_stored,
    recovery_name,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import CompletedBackup
from etcd_operator.controllers.etcd_cluster.decide.recovery.texts import SEED_POLL, held, source_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.versions import can_restore, starts_on


def restore(state: ClusterState) -> Plan | None:
    """Begin the restore that is requested; what cannot begin is reported after every other rule."""
    requested = state.desired.restore_in_place
    if not requested or not state.has_quorum or _obstacle(state):
        return None
    possible = (_next(state, backup) for backup in state.backups.stored)
    recovery = next((r for r in possible if recovery_name(r) == requested), None)
    if recovery is None or _version_problem(state, recovery):
        return None
    message = (
        f"restoring {source_of(recovery)} as {recovery.seed}, as requested: writes after the backup are "
        f"given up (the cluster is at revision {recovery.given_up})"
    )
    return Plan.act(*begin(state, recovery), reason="Restoring", message=message, requeue_after=SEED_POLL)


def refused(state: ClusterState) -> Plan | None:
    """Report why a restore is not carried out, and the name of the one that would be."""
    requested, former = state.desired.restore_in_place, state.persisted.recovery
    if not requested or (
        former is not None and former.replaces_cluster and recovery_name(former) == requested
    ):
        return None  # it was carried out
    why = f"the annotation {RESTORE_ANNOTATION} requests {requested}"
    if former is not None and former.failure and _is_attempt(state, former):
        why = f"{former.failure}; {_effect(state, requested)}"
        return held("RestoreFailed", f"{why}; {_possible(state, requested)}{leftovers(state)}")
    possible = f"{_possible(state, requested)}{leftovers(state)}"
    return held("RestoreRefused", f"{why}, which is not possible: {possible}")


def _effect(state: ClusterState, requested: str) -> str:
    """What a restore that failed has changed."""
    given_up = claims_kept_by(requested, state.kept_claims)
    if given_up:
        return f"members had already been given up, and their claims are kept: {', '.join(given_up)}"
    return "nothing was changed, and the cluster continues unchanged"


def _is_attempt(state: ClusterState, former: Recovery) -> bool:
    """Whether this very attempt is requested; when it ended, it stopped to name the cluster it gives up."""
    named = msgspec.structs.replace(former, replaces=state.persisted.cluster_id)
    return former.is_in_place and recovery_name(named) == state.desired.restore_in_place


def _possible(state: ClusterState, requested: str) -> str:
    """What stands in the way; or the name to request, for the backup that was meant or else the newest."""
    obstacle = _obstacle(state)
    if obstacle:
        return obstacle
    stored = sorted(state.backups.stored, key=lambda backup: (backup.time, backup.revision), reverse=True)
    meant = [backup for backup in stored if backup.name in requested.split("/")]
    recovery = _next(state, (meant or stored)[0])
    problem = _version_problem(state, recovery)
    if problem:
        return problem
    others = [backup.name for backup in stored if not meant][1:]
    also = f"; other backups that can be requested in the same way: {', '.join(others[:5])}" if others else ""
    return (
        f"to restore {source_of(recovery, is_offered=True)}, and give up all writes after it, annotate the "
        f"EtcdCluster with {RESTORE_ANNOTATION}={recovery_name(recovery)}{also}"
    )


def _next(state: ClusterState, backup: CompletedBackup) -> Recovery:
    """The entry of a restore of this backup, with the version that runs."""
    version = str(state.lowest_version or backup.etcd_version)
    return next_from_stored(state, backup, "InPlace", version=version)


def _obstacle(state: ClusterState) -> str:
    """Why no backup can be restored now; empty if one can."""
    if state.persisted.is_adopting:
        return "the cluster is being adopted: wait until the adoption has ended"
    if state.persisted.upgrade is not None:
        return "an upgrade is in progress: wait until the upgrade has ended"
    if not state.backups.is_listed:
        return "EtcdBackups cannot be read now"
    if not state.backups.stored:
        return (
            f"no EtcdBackup of this cluster is completed in its namespace{state.backups.but_unreadable}; "
            "from any other backup, an EtcdRestore can create a new cluster"
        )
    return ""


def _version_problem(state: ClusterState, recovery: Recovery) -> str:
    """Why the version that runs cannot start on a backup; empty if it can."""
    backup = next(b for b in state.backups.stored if b.name == recovery.source.name)
    found, running = backup.etcd_version, recovery.version
    if not can_restore(running):
        return f"etcdutl {running} cannot raise revisions: upgrade to 3.5.10 or later first"
    if not Version.is_valid(found) or not starts_on(running, found):
        return (
            f"the backup {backup.name} is of etcd {found or 'an unknown version'}, and the cluster runs "
            f"{running}: the backup must be of the same minor version or of the one before; an EtcdRestore "
            "can create a new cluster from it"
        )
    return ""
