"""Objects that members need: services, peers; and the labels by which their pods are found."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.actions import Action, CreateMember, Plan, RestoreLabels
from etcd_operator.controllers.etcd_cluster.decide.facts.claims import is_copy
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import joining
from etcd_operator.controllers.etcd_cluster.decide.facts.services import belongs, missing_services
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
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


def _missing_peers(state: ClusterState) -> list[Action]:
    return [
        CreateMember(
            name=member.name,
            start=_start(state, member),
            version=_resumed_version(state, member),
        )
        for member in state.members
        if member.peer is None and _has_data(state, member) and belongs(state, member)
    ]


def _start(state: ClusterState, member: Member) -> Resuming | Joining:
    """From its data; a learner that has never started has none."""
    token, entry = _token(state, member), member.entry
    if entry is None or not entry.is_learner or entry.name:
        return Resuming(token=token)
    return joining(state, member.name, token)


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
