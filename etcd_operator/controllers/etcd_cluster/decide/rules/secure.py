"""TLS of a cluster is made and recorded before anything uses it, and so is authentication.

The CAs are made once, under the UID of the resource, and the IDs of their keys are in the status before the
first member is created. So a cluster never has members of two CAs: whatever the observation misses, members
are only created with the CAs on record.
"""

from dataclasses import replace

import msgspec

from etcd_operator.api.definitions.tls_validations import UNCHANGED
from etcd_operator.api.persisted import AuthRecord, TlsRecord
from etcd_operator.api.tls import MemberTls, Tls, UserSecret
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    CreateAuthorities,
    RequestCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import SIDES, Side, Use
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.etcd_cluster.decide.first_start import CREATING
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL, STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD, TLS_REFUSED


def begin(state: ClusterState) -> Plan | None:
    """Record the TLS of a new cluster, after its CAs are made."""
    if state.persisted.has_begun:
        return None
    held = _of_another_scheme(state)
    if held is not None:
        return held
    if state.desired.tls is None:
        return _record(state, None) if state.persisted.tls is not None else None
    if state.persisted.tls is None:
        held = _of_others(state)
        if held is not None:
            return held
    wanted = members_of(state.desired.tls)
    if any(wanted.issued) and not state.tls.peer_ca:
        return _issue(state) or _create()
    if any(wanted.issued) and state.tls.issued != _elsewhere(wanted):
        return _made_otherwise()
    record = _as_stored(state, _recorded(state, state.desired.tls))
    return _record(state, record) if state.persisted.tls != record else None


def _elsewhere(wanted: MemberTls) -> frozenset[Side]:
    """The sides whose certificates cert-manager issues."""
    by_side = zip(SIDES, (wanted.peer_issuer, wanted.client_issuer), strict=True)
    return frozenset(side for side, issuer in by_side if issuer is not None)


def _issue(state: ClusterState) -> Plan | None:
    """Ask cert-manager, and wait for what it issues: nothing is made before."""
    if state.tls.is_unrequested:
        return Plan.act(
            RequestCertificates(),
            reason=CREATING,
            message="asking cert-manager for certificates",
            requeue_after=BOOTSTRAP_POLL,
        )
    found = state.tls.unissued
    if found is None:
        return None
    if found.reason == CREATING:
        return Plan.wait(CREATING, f"waiting for cert-manager: {found.message}", requeue_after=STEP)
    return Plan.hold(found.reason, found.message, requeue_after=RETRY_HELD)


def _made_otherwise() -> Plan:
    return Plan.hold(
        TLS_REFUSED,
        "the source of certificates was changed while the cluster was created: restore it, or create the "
        "cluster again",
        requeue_after=RETRY_HELD,
    )


def recall(state: ClusterState) -> Plan | None:
    """Record the TLS of a running cluster again, after an operator without TLS has written the status."""
    wanted = state.desired.tls
    if wanted is None or state.persisted.tls is not None or not state.persisted.has_begun:
        return None
    if state.tls.is_unrecorded:
        return _record(state, _as_served(state, _recorded(state, wanted)))
    if state.unseen is not None or not members_of(wanted).is_supplied:
        return None
    return Plan.hold("InvalidSpec", f"spec.tls: {UNCHANGED}")


def _as_served(state: ClusterState, record: TlsRecord) -> TlsRecord:
    """As the members were started: the record may have been lost between TLS and none."""
    peers = {member.peers for member in state.members} - {None, "Disabled"}
    if record.peer_secret is None and peers and (peers != {"Require"} or not record.peer_ca):
        record = msgspec.structs.replace(record, peer_ca=state.tls.peer_ca, peer_mode="Dial")
    modes = {member.pod.serving.mode for member in state.members if member.pod and member.pod.serving}
    if record.client_ca and modes & {"Disabled", "Prefer"}:
        return msgspec.structs.replace(record, mode="Prefer", plain_clients="Disabled" in modes)
    return record


def _recorded(state: ClusterState, tls: Tls) -> TlsRecord:
    wanted = members_of(tls)
    issues_peers, issues_clients = wanted.issued
    record = TlsRecord(
        peer_ca=state.tls.peer_ca if issues_peers else "",
        client_ca=state.tls.client_ca if issues_clients else "",
        peer_secret=_keyed(state, "peer", wanted.peer_secret),
        client_secret=_keyed(state, "client", wanted.client_secret),
        operator_secret=_keyed(state, "operator", wanted.operator_secret),
        peer_issuer=wanted.peer_issuer,
        client_issuer=wanted.client_issuer,
        mode=wanted.mode,
    )
    return record.serving_as(wanted)


def _keyed(state: ClusterState, use: Use, secret: UserSecret | None) -> UserSecret | None:
    """The Secret of the user, with the keys that it has."""
    found = dict(state.tls.supplied).get(use)
    if secret is None or found is None:
        return secret
    return msgspec.structs.replace(secret, keys=found.keys)


def _of_others(state: ClusterState) -> Plan | None:
    """Hold where members run already: they have other certificates."""
    running = [member.name for member in state.members if member.pod or member.peer]
    if not running:
        return None
    return Plan.hold(
        TLS_REFUSED,
        f"{', '.join(running)} run, and were not created with the CAs of this resource: members of "
        "another resource cannot be taken over with spec.tls yet. Remove spec.tls if they use no TLS, or "
        "copy their data, and delete them: their CAs are kept in the operator's namespace until then",
        requeue_after=RETRY_HELD,
    )


def _create() -> Plan:
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


def _as_stored(state: ClusterState, record: TlsRecord) -> TlsRecord:
    """With the scheme of the peer URLs in the data of most members: once these serve, it is changed."""
    stored = [claim.has_peer_tls for claim in _claims(state)]
    if not record.peer_ca or not stored or sum(stored) * 2 > len(stored):
        return record
    return msgspec.structs.replace(record, peer_mode="Dial")


def _claims(state: ClusterState) -> list[ClaimFacts]:
    """Those with data of a cluster."""
    claims = (member.claim for member in state.members)
    return [claim for claim in claims if claim is not None and claim.token]


def _of_another_scheme(state: ClusterState) -> Plan | None:
    """Hold a cluster whose claims have peer URLs with the other scheme: members would not find each other.

    Certificates that the operator issues make up for it: all members get them.
    """
    secured = state.desired.secured
    if secured.issued[0]:
        return None
    others = [claim.name for claim in _claims(state) if claim.has_peer_tls != secured.peer]
    if not others:
        return None
    was, do = ("without", "remove it, or use auto: {}") if secured.peer else ("with", "set it")
    return Plan.hold(
        TLS_REFUSED,
        f"the claims {', '.join(others)} are of a cluster {was} spec.tls.peer: {do}, or delete the claims to "
        "begin with an empty cluster",
        requeue_after=RETRY_HELD,
    )


def authentication(state: ClusterState) -> Plan | None:
    """Record whether requests are to need a user. The passes over users carry that out."""
    recorded, wanted = state.persisted.auth, state.desired.auth
    if wanted is None:
        # Without the field authentication remains as it is, unless the operator itself has enabled it.
        wanted = False if recorded is not None else None
    if wanted is None or recorded == AuthRecord(enabled=wanted) or (wanted and not _needs_certificate(state)):
        return None
    return Plan.act(
        Remember(persisted=replace(state.persisted, auth=AuthRecord(enabled=wanted))),
        reason="ChangingAuthentication",
        message=f"recording that requests are to need {'a' if wanted else 'no'} user",
        requeue_after=BOOTSTRAP_POLL,
    )


def _needs_certificate(state: ClusterState) -> bool:
    """Whether each member asks clients for a certificate: the operator is root by its own.

    One that serves clients without TLS, too, is about to cease.
    """
    secured = state.desired.secured
    found = (member.pod.serving for member in state.members if member.pod is not None)
    if any(serving is not None and serving.client_cert_auth is False for serving in found):
        return False
    return secured.client_cert_auth and secured.is_dialed and secured.mode == "Require"
