"""TLS of a cluster: its CAs are made and recorded before anything uses them, and its certificates are kept.

The CAs are made once, under the UID of the resource, and the IDs of their keys are in the status before the
first member is created. So a cluster never has members of two CAs: whatever the observation misses, members
are only created with the CAs on record.
"""

from dataclasses import replace
from typing import assert_never

import msgspec

from etcd_operator.api.cluster_spec import Tls, UserSecret
from etcd_operator.api.definitions.tls_validations import UNCHANGED
from etcd_operator.api.persisted import AuthRecord, TlsRecord
from etcd_operator.api.shared_keys import ROTATE_CLIENT_ANNOTATION, ROTATE_PEER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AlterAuthorities,
    CreateAuthorities,
    KeepCertificates,
    Plan,
    PublishAuthority,
    Remember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import (
    SIDES,
    Phase,
    Side,
    Situation,
    Use,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.steps import (
    UNWRITTEN,
    Alter,
    Deliver,
    Publish,
    Restart,
    Step,
    first_aid,
    for_clients,
)
from etcd_operator.controllers.etcd_cluster.decide.desired import members_of
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import next_steps
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import BOOTSTRAP_POLL, STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import RESTARTING
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD

REFUSED = "TLSRefused"

ROTATION_RECHECK = 5.0
"""Seconds between observations of a rotation that waits: volumes follow their Secrets in a minute or two."""


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
    if any(members_of(state.desired.tls).issued) and not state.tls.peer_ca:
        return _create()
    record = _recorded(state, state.desired.tls)
    return _record(state, record) if state.persisted.tls != record else None


def recall(state: ClusterState) -> Plan | None:
    """Record the TLS of a running cluster again, after an operator without TLS has written the status."""
    wanted = state.desired.tls
    if wanted is None or state.persisted.tls is not None or not state.persisted.has_begun:
        return None
    if state.tls.is_unrecorded:
        return _record(state, _recorded(state, wanted))
    members = members_of(wanted)
    if state.unseen is not None or not (members.peer or members.is_supplied):
        return None
    return Plan.hold("InvalidSpec", f"spec.tls: {UNCHANGED}")


def _recorded(state: ClusterState, tls: Tls) -> TlsRecord:
    wanted = members_of(tls)
    issues_peers, issues_clients = wanted.issued
    return TlsRecord(
        peer_ca=state.tls.peer_ca if issues_peers else "",
        client_ca=state.tls.client_ca if issues_clients else "",
        peer_secret=_keyed(state, "peer", wanted.peer_secret),
        client_secret=_keyed(state, "client", wanted.client_secret),
        operator_secret=_keyed(state, "operator", wanted.operator_secret),
        client_cert_auth=wanted.client_cert_auth,
        min_version=wanted.min_version,
        mode=wanted.mode,
    )


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
        REFUSED,
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


def _of_another_scheme(state: ClusterState) -> Plan | None:
    """Hold a cluster whose claims have peer URLs with the other scheme: members would not find each other."""
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
    """Whether each member asks clients for a certificate, or is about to: the operator is root by its own."""
    secured = state.desired.secured
    return secured.client_cert_auth and secured.is_dialed and secured.mode == "Require"


def keep(state: ClusterState) -> Plan | None:
    """What members need to reach each other: certificates that are missing or due, and a CA that is valid.

    Where they refuse each other already, they are started again, one after another, without a quorum.
    """
    if not _is_used(state):
        return None
    steps = [(side, each, step) for side, each in state.tls.sides if (step := first_aid(each)) is not None]
    is_away = any(not member.is_running or member.is_terminating for member in state.members)
    for side, each, step in steps:
        if not isinstance(step.action, Deliver) and not (isinstance(step.action, Restart) and is_away):
            return _planned(state, side, each, step)
    names = {name for _, _, step in steps if isinstance(step.action, Deliver) for name in step.action.members}
    if not names:
        return None
    actions = [KeepCertificates(name=name) for name in sorted(names)]
    return _quietly(*actions, message=f"writing the certificates of {', '.join(sorted(names))}")


def renew(state: ClusterState) -> Plan | None:
    """The certificates of members and clients, also while the cluster is paused; nothing else of TLS."""
    if not state.desired.is_paused or not state.is_fresh:
        return None
    found = next((plan for plan in (keep(state), publish(state)) if plan is not None), None)
    is_renewal = found is not None and all(isinstance(each, KeepCertificates) for each in found.actions)
    return found if is_renewal else None


def restart(state: ClusterState) -> Plan | None:
    """Start a member again whose etcd was ended for that, whatever else keeps the operator from acting."""
    stopped = [
        member
        for member in state.members
        if member.pod is not None
        and member.pod.is_restarting
        and not (member.pod.is_running or member.pod.is_terminating)
    ]
    if not stopped:
        return None
    actions = [_start_again(state, member) for member in stopped]
    return _quietly(*actions, message=f"starting {', '.join(member.name for member in stopped)} again")


def publish(state: ClusterState) -> Plan | None:
    """What clients need: somebody else's object of that name must not stop a repair."""
    if not _is_used(state):
        return None
    actions: list[Action] = []
    for _, each in state.tls.sides:
        step = for_clients(each)
        if step is not None and isinstance(step.action, Publish):
            actions.append(PublishAuthority())
        if step is not None and isinstance(step.action, Deliver):
            actions += [KeepCertificates(name=name) for name in step.action.clients]
    return _quietly(*actions, message="publishing what clients need") if actions else None


def follow(state: ClusterState) -> Plan | None:
    """Record which CAs sign by now: from then on, no earlier state of their Secret is used."""
    recorded = state.persisted.tls
    if recorded is None or not _is_used(state) or not state.tls.peer_ca:
        return None
    wanted = msgspec.structs.replace(
        recorded,
        peer_ca=recorded.peer_ca and state.tls.peer_ca,
        client_ca=recorded.client_ca and state.tls.client_ca,
    )
    if wanted == recorded:
        return None
    return Plan.act(
        Remember(persisted=replace(state.persisted, tls=wanted)),
        reason=RESTARTING,
        message="recording the CA that signs",
        requeue_after=STEP,
    )


def rotate(state: ClusterState) -> Plan | None:
    """Take the next step of a rotation, or report what it waits for.

    Restarts are `upgrade.roll`'s, and `unkept` reports what cannot be written.
    """
    for side, each, step in next_steps(state):
        is_at_rest = each.record.phase is Phase.STABLE and step.action is None and step.reason == RESTARTING
        is_left = step.reason == UNWRITTEN or isinstance(step.action, Restart)
        if not is_at_rest and not is_left:
            return _planned(state, side, each, step)
    return None


def unkept(state: ClusterState) -> Plan | None:
    """Report Secrets that cannot be read or written: the cluster serves, and is repaired all the same."""
    found = state.tls.unkept
    return Plan.hold(found.reason, found.message, requeue_after=RETRY_HELD) if found is not None else None


def unloaded(state: ClusterState) -> Plan | None:
    """Report members that have not loaded the CAs in a Secret of the user; a person starts them again.

    Whether they accept each other meanwhile depends on the order in which the user has changed the Secret.
    """
    if not state.tls.unloaded:
        return None
    found = (state.desired.secured.peer_secret, state.desired.secured.client_secret)
    by_side = dict(zip(SIDES, found, strict=True))
    sides = sorted({side for side, _ in state.tls.unloaded})
    secrets = ", ".join(secret.name for side in sides if (secret := by_side[side]) is not None)
    names = ", ".join(sorted({name for _, name in state.tls.unloaded}))
    return Plan.hold(
        "TLSInvalid",
        f"{names} were started with other CAs than Secret {secrets} has now: delete their EtcdPeers "
        "(coreos.com: their pods) one after another, each when all members are ready. Until then keep the "
        "former CAs in the Secret, and a certificate that these have signed",
        requeue_after=RETRY_HELD,
    )


def refused(state: ClusterState) -> Plan | None:
    """Report a request for a rotation where there is no such CA."""
    desired = state.desired
    issues_peers, issues_clients = desired.secured.issued
    asked = (
        (ROTATE_PEER_ANNOTATION, bool(desired.rotate_peer_ca) and not issues_peers),
        (ROTATE_CLIENT_ANNOTATION, bool(desired.rotate_client_ca) and not issues_clients),
    )
    named = next((annotation for annotation, is_wrong in asked if is_wrong), "")
    if not named:
        return None
    message = f"the annotation {named} requests a rotation, but the operator has no such CA: remove it"
    return Plan.hold(REFUSED, message)


def _planned(state: ClusterState, side: Side, found: Situation, step: Step) -> Plan | None:
    """The plan that takes a step of one side."""
    message = f"{side} CA: {step.message}"
    match step.action:
        case None if step.reason == RESTARTING:
            return Plan.wait(step.reason, message, requeue_after=ROTATION_RECHECK)
        case None:
            shown = "".join(f"; {name}: {why}" for name, why in state.tls.refusals)
            return Plan.hold(step.reason, f"{message}{shown}", requeue_after=RETRY_HELD)
        case Alter(change):
            action: Action = AlterAuthorities(
                side=side, change=change, request=found.request, version=state.tls.version
            )
        case Restart(members=names):
            action = _start_again(state, state.by_name[names[0]])
        case Publish():
            action = PublishAuthority()
        case Deliver():
            names = (*step.action.members, *step.action.clients)
            actions = [KeepCertificates(name=name) for name in names]
            return _quietly(*actions, message=message)
        case _:
            assert_never(step.action)
    return Plan.act(action, reason=step.reason, message=message, requeue_after=STEP)


def _start_again(state: ClusterState, member: Member) -> Action:
    """At the version that it has."""
    return ReplaceMember(name=member.name, version=member.requested_version or state.desired.version)


def _is_used(state: ClusterState) -> bool:
    return state.persisted.tls is not None and state.persisted.has_begun


def _quietly(*actions: Action, message: str) -> Plan:
    """A plan that the status does not report: for users of the cluster nothing changes by it."""
    return replace(Plan.act(*actions, reason="KeepingCertificates", message=message), is_quiet=True)
