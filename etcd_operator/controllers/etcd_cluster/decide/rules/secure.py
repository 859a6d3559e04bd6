"""TLS of a cluster: its CAs are made and recorded before anything uses them, and its certificates are kept.

The CAs are made once, under the UID of the resource, and their fingerprints are in the status before the
first member is created. So a cluster never has members of two CAs: whatever the observation misses, members
are only created with the CAs on record.
"""

from dataclasses import replace

from etcd_operator.api.persisted import AuthRecord, TlsRecord
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    CreateAuthorities,
    KeepCertificates,
    Plan,
    PublishAuthority,
    Remember,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD

REFUSED = "TLSRefused"


def begin(state: ClusterState) -> Plan | None:
    """Record the TLS of a new cluster, after its CAs are made."""
    if state.persisted.has_begun:
        return None
    held = _of_another_scheme(state)
    if held is not None:
        return held
    if state.desired.tls is None:
        return _record(state, None) if state.persisted.tls is not None else None
    if not state.tls.peer_ca:
        return _create(state)
    wanted = members_of(state.desired.tls)
    record = TlsRecord(
        peer_ca=state.tls.peer_ca if wanted.peer else "",
        client_ca=state.tls.client_ca if wanted.client else "",
        client_cert_auth=wanted.client_cert_auth,
        min_version=wanted.min_version,
    )
    return _record(state, record) if state.persisted.tls != record else None


def _create(state: ClusterState) -> Plan:
    running = [member.name for member in state.members if member.pod or member.peer]
    if running:
        return Plan.hold(
            REFUSED,
            f"{', '.join(running)} run, and were not created with the CAs of this resource: members of "
            "another resource cannot be taken over with spec.tls yet; remove spec.tls if they use no TLS",
            requeue_after=RETRY_HELD,
        )
    return Plan.act(
        CreateAuthorities(),
        reason="Creating",
        message="creating the CAs of the cluster",
        requeue_after=BOOTSTRAP_POLL,
    )


def _record(state: ClusterState, record: TlsRecord | None) -> Plan:
    return Plan.act(
        Remember(persisted=replace(state.persisted, tls=record)),
        reason="Creating",
        message="recording the TLS of the cluster",
        requeue_after=BOOTSTRAP_POLL,
    )


def _of_another_scheme(state: ClusterState) -> Plan | None:
    """Data on claims has the peer URLs of all members: with others they would not find each other."""
    wanted = state.desired.secured.peer
    others = [
        member.claim.name
        for member in state.members
        if member.claim is not None and member.claim.token and member.claim.has_peer_tls != wanted
    ]
    if not others:
        return None
    was, do = ("without", "remove it") if wanted else ("with", "set it")
    return Plan.hold(
        REFUSED,
        f"the claims {', '.join(others)} are of a cluster {was} spec.tls.peer: {do}, or delete the claims to "
        "begin with an empty cluster",
        requeue_after=RETRY_HELD,
    )


def authentication(state: ClusterState) -> Plan | None:
    """Record whether requests are to need a user. The passes over users carry that out."""
    if not state.persisted.is_bootstrapped:
        return None
    recorded, wanted = state.persisted.auth, state.desired.auth
    if wanted is None:
        # Without the field it remains as it is, but for what the operator itself has enabled.
        wanted = False if recorded is not None else None
    if wanted is None or recorded == AuthRecord(enabled=wanted):
        return None
    return Plan.act(
        Remember(persisted=replace(state.persisted, auth=AuthRecord(enabled=wanted))),
        reason="ChangingAuthentication",
        message=f"recording that requests are to need {'a' if wanted else 'no'} user",
        requeue_after=BOOTSTRAP_POLL,
    )


def keep(state: ClusterState) -> Plan | None:
    """Make or renew the certificates of members that are missing, or due. No restart is needed."""
    names = [name for name in _outdated(state) if name in state.by_name]
    if not names:
        return None
    actions = [KeepCertificates(name=name) for name in names]
    return _quietly(*actions, message=f"writing the certificates of {', '.join(names)}")


def publish(state: ClusterState) -> Plan | None:
    """The same for what clients need: somebody else's object of that name must not stop a repair."""
    actions: list[Action] = [
        KeepCertificates(name=name) for name in _outdated(state) if name not in state.by_name
    ]
    if not state.tls.is_published:
        actions.append(PublishAuthority())
    return _quietly(*actions, message="publishing what clients need") if actions else None


def _outdated(state: ClusterState) -> tuple[str, ...]:
    is_used = state.persisted.tls is not None and state.persisted.has_begun
    return state.tls.outdated if is_used else ()


def _quietly(*actions: Action, message: str) -> Plan:
    """Nothing that the status reports changes by it."""
    return replace(Plan.act(*actions, reason="KeepingCertificates", message=message), is_quiet=True)
