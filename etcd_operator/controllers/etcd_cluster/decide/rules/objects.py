"""Objects that members need: services, peers; and the labels by which their pods are found."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    Plan,
    RestoreLabels,
)
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.recovery_actions import CreateClosedService
from etcd_operator.controllers.etcd_cluster.decide.recovery.seed import was_found_to_serve
from etcd_operator.controllers.etcd_cluster.decide.rules.conflicting_claims import is_copy
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining, Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.skew import joining_version

LABELS_RECHECK = 0.1
"""Seconds until pods are observed again whose labels were restored: by then the caches have them."""


def restore_labels(state: ClusterState) -> Plan | None:
    """Restore the labels of pods before anything is concluded from the absence of a pod.

    A pod without its labels is in no cache under its cluster's name: it would count as lost. And a ReplicaSet
    releases such a pod and creates another one on the same claim; once the labels are restored, it adopts the
    pod again and deletes the younger of the two.
    """
    if not state.unlabelled:
        return None
    names = ", ".join(pod.member for pod in state.unlabelled)
    return Plan.act(
        *(RestoreLabels(pod=pod) for pod in state.unlabelled),
        reason="Repairing",
        message=f"restoring the labels of the pods of {names}",
        requeue_after=LABELS_RECHECK,
    )


def repair(state: ClusterState) -> Plan | None:
    """Create again what was deleted of a bootstrapped cluster; its data is where it was."""
    if not state.persisted.is_bootstrapped:
        return None
    actions = [*missing_services(state), *_missing_peers(state)]
    if not actions:
        return None
    if state.persisted.upgrade is not None:
        # Part of the upgrade, which status reports: two more writes for each member add nothing.
        return replace(Plan.act(*actions, reason="Upgrading", message="restarting a member"), is_quiet=True)
    return Plan.act(*actions, reason="Repairing", message="creating missing objects again")


def missing_services(state: ClusterState) -> list[Action]:
    """The client service and, where members have their own, one for each that has a pod and is kept.

    The pod of a member that was removed from etcd's list is deleted together with its service.
    """
    actions: list[Action] = []
    if not state.has_client_service:
        actions.append(CreateClosedService() if _gives_up(state) else CreateClientService())
    if state.kind.has_member_services:
        actions += [
            CreateMemberService(name=member.name)
            for member in state.members
            if member.pod is not None and not member.has_service and _needs_service(state, member)
        ]
    return actions


def _needs_service(state: ClusterState, member: Member) -> bool:
    """Not one that was removed or given up, whose pod may run on where nobody can stop it."""
    is_going = member.pod is not None and member.pod.is_terminating
    return _belongs(state, member) and (member.entry is not None or not is_going)


def _gives_up(state: ClusterState) -> bool:
    """Whether a restore in place has passed the point of no return: no client may reach the old members."""
    recovery = state.persisted.recovery_under_way
    if recovery is None or not recovery.in_place:
        return False
    seed = state.by_name.get(recovery.seed)
    return seed is not None and was_found_to_serve(seed.claim, recovery)


def _missing_peers(state: ClusterState) -> list[Action]:
    return [
        CreateMember(
            name=member.name,
            start=_start(state, member),
            version=_resumed_version(state, member),
        )
        for member in state.members
        if member.peer is None and _has_data(state, member) and _belongs(state, member)
    ]


def _start(state: ClusterState, member: Member) -> Resuming | Joining:
    """From its data; a learner that has never started has none."""
    token, entry = _token(state, member), member.entry
    if entry is None or not entry.is_learner or entry.name:
        return Resuming(token=token)
    return joining(state, member.name, token)


def joining(state: ClusterState, name: str, token: str) -> Joining:
    """How a new member starts: with all that etcd lists, and itself."""
    others = (m.name for m in state.members if m.entry is not None and m.name != name)
    entries = (member.entry for member in state.external if member.entry is not None)
    external = tuple((entry.id, url) for entry in entries for url in entry.peer_urls)
    return Joining(members=(*others, name), token=token, external=external)


def _token(state: ClusterState, member: Member) -> str:
    """That of the etcd cluster whose data is on the claim: there are two while one is recovered."""
    recorded = member.claim.token if member.claim is not None else ""
    return recorded or state.desired.token


def _resumed_version(state: ClusterState, member: Member) -> str:
    """The version that the data on a claim was last meant for: never one that is merely requested."""
    recorded = member.claim.version if member.claim is not None else ""
    return recorded or joining_version(state)


def _has_data(state: ClusterState, member: Member) -> bool:
    claim = member.claim
    if claim is None or claim.is_terminating or state.is_attempt(claim):
        return False
    return member.entry is not None or _is_known(state, claim)


def _is_known(state: ClusterState, claim: ClaimFacts) -> bool:
    """Whether a claim was made for this etcd cluster; while nobody reports the list, only that proves it.

    A copy of a member's volume under a free number must not run beside the member itself. A claim that only a
    person has annotated may be left over, and nobody knows which version ran on it: see `rules.take_over`.
    """
    if not (claim.cluster_uid or claim.cluster_id or claim.initial_members) or is_copy(state.members, claim):
        return False
    recovery, tokens = state.persisted.recovery_under_way, {state.desired.token}
    if recovery is not None:
        tokens.add(recovery.token)
    return bool(claim.token) and claim.token in tokens


def _belongs(state: ClusterState, member: Member) -> bool:
    """A member that a quorum no longer lists has been removed: its data is never used again.

    Where members answer only users, nobody reports the list: what was there is created again.
    """
    return member.entry is not None or not state.has_quorum or state.requires_user
