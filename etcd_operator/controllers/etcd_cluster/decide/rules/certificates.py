"""The certificates of a cluster that runs are kept, its CAs rotated; what hinders that is reported."""

from dataclasses import replace
from typing import assert_never

import msgspec

from etcd_operator.api.shared_keys import ROTATE_CLIENT_ANNOTATION, ROTATE_PEER_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan, Remember, ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    AlterAuthorities,
    KeepCertificates,
    PublishAuthority,
    RequestCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.changes import Change
from etcd_operator.controllers.etcd_cluster.decide.certificates.facts import PATIENCE
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import SIDES, Phase, Side, Situation
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
from etcd_operator.controllers.etcd_cluster.decide.facts.authorities import next_steps
from etcd_operator.controllers.etcd_cluster.decide.first_start import CREATING
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import RESTARTING
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD, TLS_INVALID, TLS_REFUSED
from etcd_operator.formats import duration_text

ROTATION_RECHECK = 5.0
"""Seconds between observations of a rotation that waits: volumes follow their Secrets in a minute or two."""

FOLLOWED_RECHECK = 30.0
"""The same for a Secret of the user, whose volumes are waited for by time."""


def keep(state: ClusterState) -> Plan | None:
    """What members need to reach each other: certificates that are missing or due, and a CA that is valid.

    Where they refuse each other already, they are started again, one after another, without a quorum.
    """
    if not _is_used(state):
        return None
    steps = [(side, each, step) for side, each in state.tls.sides if (step := first_aid(each)) is not None]
    if _is_held(state):
        steps = [found for found in steps if not isinstance(found[2].action, Restart)]
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
    """The certificates of members and clients, also while the cluster is paused; nothing else of TLS.

    And while no member is asked, because those on record have expired: what replaces them ends that.
    """
    if not _is_held(state) or not state.is_fresh:
        return None
    plans = (plan for rule in (keep, request, publish) if (plan := rule(state)) is not None)
    return next((plan for plan in plans if all(map(_is_renewal, plan.actions))), None)


def _is_held(state: ClusterState) -> bool:
    """Whether no member is to be changed."""
    return state.desired.is_paused or (state.unseen is not None and not state.unseen.is_asked)


def _is_renewal(action: Action) -> bool:
    """Also of cert-manager: it is asked, and what it has renewed, and its CA, is recorded first."""
    is_recorded = isinstance(action, AlterAuthorities) and action.change in (Change.TRUST, Change.TAKE)
    return is_recorded or isinstance(action, (KeepCertificates, RequestCertificates))


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


def request(state: ClusterState) -> Plan | None:
    """Ask cert-manager again: somebody has changed a Certificate, or the spec."""
    if not state.tls.is_unrequested:
        return None
    return _quietly(RequestCertificates(), message="asking cert-manager for certificates")


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
    steps = [
        (side, each, step)
        for side, each, step in next_steps(state)
        if not (_is_at_rest(each, step) or step.reason == UNWRITTEN or isinstance(step.action, Restart))
    ]
    # Peers do not wait for the time that clients have to load another CA.
    steps.sort(key=lambda found: found[2].action is None)
    return _planned(state, *steps[0]) if steps else None


def _is_at_rest(found: Situation, step: Step) -> bool:
    """Whether a rotation waits for something else before it begins."""
    return found.record.phase is Phase.STABLE and step.action is None and step.reason == RESTARTING


def unkept(state: ClusterState) -> Plan | None:
    """Report Secrets that cannot be read or written: the cluster serves, and is repaired all the same."""
    found = state.tls.unkept or state.tls.unissued
    if found is not None and found.reason == CREATING:
        return None
    return Plan.hold(found.reason, found.message, requeue_after=RETRY_HELD) if found is not None else None


def refusing_peers(state: ClusterState) -> Plan | None:
    """Hold while members refuse the certificate of the user: one that starts, or starts again, is alone."""
    secret = state.desired.secured.peer_secret
    names = sorted(each.name for each in state.tls.unloaded if each.is_refusing)
    if secret is None or not names:
        return None
    return Plan.hold(
        TLS_INVALID,
        f"{', '.join(names)} have loaded no CA that has signed the certificate in Secret "
        f"{secret.name}: put the former certificate and its key back, and the CAs of both in ca.crt; change "
        "the certificate when all members have been restarted",
        requeue_after=RETRY_HELD,
    )


def unloaded(state: ClusterState) -> Plan | None:
    """Report members that have not loaded the CAs in a Secret of the user; `upgrade.roll` restarts them."""
    if not state.tls.unloaded:
        return None
    found = (state.desired.secured.peer_secret, state.desired.secured.client_secret)
    named = {side: secret.name for side, secret in zip(SIDES, found, strict=True) if secret is not None}
    secrets = ", ".join(named[side] for side in sorted({each.side for each in state.tls.unloaded}))
    names = ", ".join(sorted({each.name for each in state.tls.unloaded}))
    return Plan.wait(
        RESTARTING,
        f"{names} will be restarted to load the CAs in Secret {secrets}, once volumes have followed it "
        f"({duration_text(int(PATIENCE.total_seconds()))})",
        requeue_after=FOLLOWED_RECHECK,
    )


def refused(state: ClusterState) -> Plan | None:
    """Report a request for a rotation where there is no such CA."""
    desired = state.desired
    issues_peers, issues_clients = desired.secured.signed
    asked = (
        (ROTATE_PEER_ANNOTATION, bool(desired.rotate_peer_ca) and not issues_peers),
        (ROTATE_CLIENT_ANNOTATION, bool(desired.rotate_client_ca) and not issues_clients),
    )
    named = next((annotation for annotation, is_wrong in asked if is_wrong), "")
    if not named:
        return None
    message = f"the annotation {named} requests a rotation, but the operator has no such CA: remove it"
    return Plan.hold(TLS_REFUSED, message)


def _planned(state: ClusterState, side: Side, found: Situation, step: Step) -> Plan | None:
    """The plan that takes a step of one side."""
    message = f"{side} CA: {step.message}"
    match step.action:
        case None if step.reason == RESTARTING:
            return Plan.wait(step.reason, message, requeue_after=ROTATION_RECHECK)
        case None:
            refusals = "".join(f"; {name}: {why}" for name, why in state.tls.refusals)
            return Plan.hold(step.reason, f"{message}{refusals}", requeue_after=RETRY_HELD)
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
