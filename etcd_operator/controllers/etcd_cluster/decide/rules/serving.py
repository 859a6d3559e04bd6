"""How members serve clients, with TLS or without: recorded first, then carried out by restarts.

Between members that serve clients without TLS only, and members that serve them with TLS only, all members
serve both (`Prefer`). So at any time all members serve clients with TLS, or all serve clients without, and
the record says which: clients are given such URLs, and the operator connects in that way (decision 045).
"""

import msgspec

from etcd_operator.api.persisted import TlsRecord
from etcd_operator.api.tls import ClientMode, MemberTls
from etcd_operator.controllers.etcd_cluster.decide import tls_record
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, ConfirmNoAuthentication, Plan
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    CreateAuthorities,
    DropCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import serves_as_recorded
from etcd_operator.controllers.etcd_cluster.decide.serving import Serving
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.tls_record import (
    NONE,
    dropping,
    is_incomplete,
    may_add,
    of_earlier_version,
    planned,
)
from etcd_operator.controllers.shared.decide.holds import TLS_REFUSED


def change(state: ClusterState) -> Plan | None:
    """Record how clients are to be served. `upgrade.roll` restarts the members that serve them otherwise.

    Nothing is begun while members are missing, to be removed, or not healthy: a step that fails again and
    again, as without rights, would keep the rules below from acting.
    """
    if is_incomplete(state):
        return None
    recorded, wanted = state.persisted.tls or NONE, members_of(state.desired.tls)
    if _refusal(state):
        return None
    if not _has_tls(recorded):
        return _add(state, recorded, wanted) if wanted.client else None
    if not wanted.client:
        return _remove(state, recorded)
    record = recorded.serving_as(wanted)
    if not recorded.plain_clients:
        record = msgspec.structs.replace(record, mode=wanted.mode)
    elif recorded.mode == "Disabled":
        record = msgspec.structs.replace(record, mode="Prefer")
    elif _is_settled(state) and state.tls.unkept is None:
        # Clients find the CAs with which they verify members: the bundle is published.
        record = msgspec.structs.replace(record, mode=wanted.mode, plain_clients=False)
    if record.client_cert_auth and not recorded.client_cert_auth and state.tls.unkept is not None:
        return None  # the certificate for clients may not be there
    if record == recorded:
        return None
    # Without its certificate the operator is not root, and cannot disable authentication.
    is_known = recorded.client_cert_auth and not record.client_cert_auth
    return _recorded(state, record, *((ConfirmNoAuthentication(),) if is_known else ()))


def _add(state: ClusterState, recorded: TlsRecord, wanted: MemberTls) -> Plan | None:
    """Begin to add TLS for clients. The CAs are made first, and may be there from an earlier time."""
    if not may_add(state):
        return None
    if not state.tls.client_ca:
        return planned(CreateAuthorities(), message="creating the CAs of the cluster")
    record = msgspec.structs.replace(
        recorded,
        client_ca=state.tls.client_ca,
        mode="Prefer",
        plain_clients=True,
    )
    return _recorded(state, record.serving_as(wanted))


def drop_unused(state: ClusterState) -> Plan | None:
    """The certificate for clients is deleted once no member asks for one."""
    if not state.tls.has_unused or not _is_settled(state):
        return None
    return planned(DropCertificates(members=()), message="deleting the certificate for clients")


def refused(state: ClusterState) -> Plan | None:
    """Report pods in which a member cannot be started again as it is to serve clients."""
    refusal = _refusal(state)
    return Plan.hold(TLS_REFUSED, refusal) if refusal else None


@fact
def _refusal(state: ClusterState) -> str:
    """Why a change that is wanted is not begun; empty if none is wanted, or it may be made.

    What has no pod, or another one by now, is no obstacle.
    """
    recorded, wanted = state.persisted.tls or NONE, members_of(state.desired.tls)
    if not state.kind.restarts_in_place or recorded.plain_clients:
        return ""
    now, then = Serving.of(recorded.of_members), Serving.of(wanted)
    pods = [member.pod for member in state.members if member.pod is not None]
    names = [pod.name for pod in pods if pod.serving is None or pod.serving.is_fixed(now, then)]
    if now == then or not names:
        return ""
    what = "serve clients in another way"
    if not _has_tls(recorded):
        what = "be given TLS for clients"
    elif not wanted.client:
        what = "serve clients without TLS"
    return of_earlier_version(names, f"cannot {what}")


def _has_tls(recorded: TlsRecord) -> bool:
    """Whether members serve clients with TLS, or are about to, or are about to cease."""
    return bool(recorded.client_ca) or recorded.client_secret is not None


def _remove(state: ClusterState, recorded: TlsRecord) -> Plan | None:
    """Remove TLS for clients, by way of Prefer."""
    if recorded.plain_clients and recorded.mode != "Disabled":
        return _recorded(state, _without(recorded))
    if recorded.mode == "Require":
        return _recorded(state, msgspec.structs.replace(recorded, mode="Prefer"))
    if not _is_settled(state):
        return None
    if recorded.mode == "Prefer":
        return _recorded(state, _without(recorded), ConfirmNoAuthentication())
    record = TlsRecord(
        peer_ca=recorded.peer_ca,
        peer_mode=recorded.peer_mode,
        peer_secret=recorded.peer_secret,
        peer_issuer=recorded.peer_issuer,
    )
    return _recorded(state, record, dropping(state, is_mounted=bool(recorded.peer_ca)))


def _without(recorded: TlsRecord) -> TlsRecord:
    return msgspec.structs.replace(recorded, mode="Disabled", plain_clients=True)


def _is_settled(state: ClusterState) -> bool:
    """Whether no member is being restarted, and each serves clients as is on record."""
    return state.persisted.upgrade is None and all(
        serves_as_recorded(state, member) for member in state.members
    )


def _recorded(state: ClusterState, record: TlsRecord, *before: Action) -> Plan:
    mode: ClientMode = record.mode if record.of_members.client else "Disabled"
    message = f"recording how clients are served: tls.client.mode {mode}"
    if mode != "Disabled":
        asks = "true" if record.client_cert_auth else "false"
        suites = ", ".join(record.cipher_suites) or "of etcd"
        message += (
            f", minVersion {record.min_version or 'TLS1.2'}, clientCertAuth {asks}, cipherSuites {suites}"
        )
    return tls_record.recorded(state, record, *before, message=message)
