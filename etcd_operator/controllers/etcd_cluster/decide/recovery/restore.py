"""A new cluster begins with a backup: a seed restores it, then the cluster grows as any other.

It is a recovery that replaces nothing (`Recovery.replaces` is empty), so it is made once like any other: its
entry in status comes before its seed, and a lost seed is followed by one of another name and token. Nothing
here ever bootstraps an empty cluster: without a backup the seed reports that there is none.
"""

import msgspec

from etcd_operator.api.persisted import RestoredBackup, Via
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.recovery.loss import Left
from etcd_operator.controllers.etcd_cluster.decide.recovery.quorum_lost import go_on, start
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import ConfirmNothingLeft
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_entry import next_recovery_of
from etcd_operator.controllers.etcd_cluster.decide.recovery.revision_bump import bump_at
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import held, under_way
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.versions import can_restore


def restore(state: ClusterState) -> Plan | None:
    """Begin with the backup that the spec names, or continue."""
    if state.persisted.is_bootstrapped or state.persisted.bootstrap is not None:
        return None
    recovery = state.persisted.recovery
    if recovery is None or recovery.backup is None:
        return _begin(state)
    found = go_on(state, recovery)
    if not isinstance(found, Left):
        return found
    # Its seed was lost.
    source = msgspec.structs.replace(recovery.backup, name="", sha256="", time="", age=0)
    return _start(state, source, recovery.version)


def _begin(state: ClusterState) -> Plan | None:
    source = state.desired.restore
    if source is None or any(member.pod is not None for member in state.members):
        return None  # the bootstrap reports pods without a status
    if not can_restore(state.desired.version):
        return held(
            "RecoveryUnsupported",
            f"etcd {state.desired.version} cannot restore a backup without hiding writes from watchers: set "
            "spec.version to 3.5.10 or later",
        )
    via: Via = (
        "Bucket" if source.s3 is not None else "Tool" if state.tool_backups.has_source_tool else "Claim"
    )
    return _start(state, RestoredBackup(cluster=source.cluster, via=via), state.desired.version)


def _start(state: ClusterState, source: RestoredBackup, version: str) -> Plan:
    recovery = next_recovery_of(state, source, revision=0, version=version)
    recovery = msgspec.structs.replace(recovery, bump=bump_at(state.desired.created))
    proof = ConfirmNothingLeft(message=under_way(recovery), is_loss=False)
    return start(state, recovery, proof)
