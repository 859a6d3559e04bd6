"""What the rules have in common that change the record of a cluster's TLS, each for one of its ports."""

from collections.abc import Iterable
from dataclasses import replace

from etcd_operator.api.definitions.tls_validations import OLDEST_TLS_MINOR
from etcd_operator.api.persisted import TlsRecord
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import DropCertificates
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import RESTARTING, unhealthy

NONE = TlsRecord()


def is_incomplete(state: ClusterState) -> bool:
    """Whether nothing is begun now: members are missing, to be removed, or not healthy."""
    return state.persisted.upgrade is None and (
        len(state.members) != state.desired.size or bool(unhealthy(state))
    )


def may_add(state: ClusterState) -> bool:
    """Whether TLS may be added: no etcd is too old, and the Secret with the CAs can be read."""
    running = state.lowest_version
    return running is not None and running.minor >= OLDEST_TLS_MINOR and state.tls.unkept is None


def dropping(state: ClusterState, *, is_mounted: bool) -> DropCertificates:
    """Delete the Secret for clients, and those of members that mount none for the other port.

    A pod that is there mounts its Secret again whenever its container starts, and cannot be changed.
    """
    is_kept = is_mounted or state.kind.restarts_in_place
    return DropCertificates(members=() if is_kept else tuple(member.name for member in state.members))


def recorded(state: ClusterState, record: TlsRecord, *before: Action, message: str) -> Plan:
    """Write the record, after other acts."""
    kept = record if record != NONE else None
    return planned(*before, Remember(persisted=replace(state.persisted, tls=kept)), message=message)


def planned(*actions: Action, message: str) -> Plan:
    """Acts that restarts follow."""
    return Plan.act(*actions, reason=RESTARTING, message=message, requeue_after=STEP)


def of_earlier_version(pods: Iterable[str], consequence: str) -> str:
    """Why pods have to be replaced by a person."""
    return (
        f"the pods {', '.join(pods)} were created by an earlier version of the operator, and {consequence}: "
        "delete one after another, each when all members serve"
    )
