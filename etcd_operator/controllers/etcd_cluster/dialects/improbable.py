"""`etcd.improbable.io/v1alpha1`: persistent members, with names under a headless Service."""

from typing import Any

import msgspec

from etcd_operator.api import improbable
from etcd_operator.api.cluster_spec import PodTemplate
from etcd_operator.api.improbable import ClusterSpec, ClusterStatus, EtcdCluster, MemberStatus
from etcd_operator.api.meta import ObjectMeta, RawObject, merge_conditions
from etcd_operator.api.restores import RESTORED_FROM_LABEL, UID_ANNOTATION
from etcd_operator.api.shared_keys import PEER_LABEL, RECOVER_ANNOTATION, RESTORE_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.kinds.persistent import PERSISTENT
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import (
    CONDITIONS,
    conditions,
    current_version,
    member_names,
)
from etcd_operator.controllers.etcd_cluster.dialects.base import (
    adopt_of,
    desired_of,
    parse_spec,
    persisted_fields,
    version_for,
)
from etcd_operator.controllers.etcd_cluster.dialects.tls import auth_of, tls_of
from etcd_operator.controllers.etcd_cluster.manifests import persistent, persistent_services
from etcd_operator.controllers.shared.decide.clusters import Defaults
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, url
from etcd_operator.errors import InvalidSpec
from etcd_operator.etcd.values import EtcdMember

LONGEST_REQUEST = 320
"""Characters of the annotations `recover` and `restore`: longer than any name, short enough for a message."""

RESERVED = "reserved for the operator"


class ImprobableDialect:
    """See `dialects.base.Dialect`."""

    pod_keys = improbable.POD_KEYS
    client_label = staticmethod(persistent_services.client_label)
    client_selector = staticmethod(persistent_services.client_selector)
    services = staticmethod(persistent_services.services)
    budget = staticmethod(persistent.budget)
    member = staticmethod(persistent.peer)

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults

    def desired(self, cluster: EtcdCluster) -> DesiredCluster:
        """The desired state; a problem of the spec is in `problem`."""
        return desired_of(
            cluster,
            lambda: self._read_spec(cluster),
            api_version=improbable.API_VERSION,
            kind=PERSISTENT,
            label=improbable.CLUSTER_LABEL,
            cluster_version=cluster.status.cluster_version,
        )

    def _read_spec(self, cluster: EtcdCluster) -> dict[str, Any]:
        spec = parse_spec(cluster.spec, ClusterSpec)
        version = version_for(self._defaults, spec.version)
        for field, names in reserved_names(spec.pod_template).items():
            if names:
                raise InvalidSpec(f"spec.podTemplate.metadata.{field}: {RESERVED}: remove {', '.join(names)}")
        if spec.affinity and spec.pod_template.affinity:
            raise InvalidSpec("spec.affinity and spec.podTemplate.affinity are alternatives: set one of them")
        template = spec.pod_template
        if spec.affinity:
            template = msgspec.structs.replace(template, affinity=spec.affinity)
        return {
            "size": spec.replicas,
            "repository": self._defaults.repository,
            "version": version,
            "is_paused": _is_paused(cluster),
            "recover": _requested(cluster, RECOVER_ANNOTATION),
            "restore_in_place": _requested(cluster, RESTORE_ANNOTATION),
            "restored_by": _restored_by(cluster),
            "recovers_after": spec.recovers_after,
            "tls": tls_of(spec, cluster.status, version),
            "auth": auth_of(spec),
            "network": spec.network_policy,
            "pod_template": template,
            "adopt": adopt_of(spec.adopt, cluster.metadata.namespace),
            "claim_template": spec.storage.volume_claim_template,
        }

    def status(self, cluster: EtcdCluster, state: ClusterState, plan: Plan, *, now: str) -> RawObject:
        """The complete status to write; values that cannot be observed keep their last value."""
        previous, desired = cluster.status, state.desired
        members = _members(state) or _last_known(previous.members, state)
        leader = state.leader
        theirs = _external_ids(state)
        status = ClusterStatus(
            observed_generation=desired.generation,
            replicas=_peers(state),
            ready_replicas=len(state.serving),
            selector=f"{improbable.CLUSTER_LABEL}={desired.name}",
            members=members,
            leader=leader.name if leader is not None else "",
            cluster_version=state.cluster_version or previous.cluster_version,
            current_version=current_version(state) or previous.current_version,
            kept_claims=tuple(claim.name for claim in state.kept_claims),
            endpoints=tuple(
                url(self.member_host(desired, member.name), CLIENT_PORT, is_secure=desired.secured.is_dialed)
                for member in members
                if member.id not in theirs
            ),
            conditions=merge_conditions(previous.conditions, conditions(state, plan), now, own=CONDITIONS),
            **persisted_fields(state.persisted, now=now),
        )
        return dict(msgspec.to_builtins(status))

    def member_host(self, cluster: DesiredCluster, name: str) -> str:
        """`my-cluster-0.my-cluster-peer.NAMESPACE.svc`."""
        return persistent_services.member_host(cluster.name, cluster.namespace, name, cluster.token)

    def member_at(self, cluster: DesiredCluster, host: str) -> str:
        """The first label of the host name, if the host is that of a member."""
        return persistent_services.member_at(cluster.name, cluster.namespace, host)

    def member_labels(self, cluster: DesiredCluster, name: str) -> dict[str, str]:
        """The labels that the ReplicaSet of the member selects by, too."""
        return persistent.member_labels(cluster.name, name)

    def is_of_other_operator(self, pod: ObjectMeta) -> bool:
        """By the label of the token, which only ours have, and those that a person handed over."""
        return PEER_LABEL in pod.labels and improbable.TOKEN_LABEL not in pod.labels


def _is_paused(cluster: EtcdCluster) -> bool:
    """Raises InvalidSpec for a value that the policy refuses: whoever set it may want nothing to change."""
    value = cluster.metadata.annotations.get(improbable.PAUSED_ANNOTATION, "false")
    if value not in ("true", "false"):
        name, form = improbable.PAUSED_ANNOTATION, improbable.PAUSED_FORM
        raise InvalidSpec(f'metadata.annotations: {name} {form}, not "{value[:LONGEST_REQUEST]}"')
    return value == "true"


def _restored_by(cluster: EtcdCluster) -> str:
    """The name of the EtcdRestore, or its UID where the label with the name was removed."""
    uid = cluster.metadata.annotations.get(UID_ANNOTATION, "")
    return uid and cluster.metadata.labels.get(RESTORED_FROM_LABEL, uid)


def _requested(cluster: EtcdCluster, annotation: str) -> str:
    return cluster.metadata.annotations.get(annotation, "")[:LONGEST_REQUEST]


def _peers(state: ClusterState) -> int:
    """The number of EtcdPeers; during the bootstrap, the number of initial members."""
    if not state.persisted.is_bootstrapped:
        return len(member_names(state))
    return sum(member.peer is not None for member in state.members)


def reserved_names(template: PodTemplate) -> dict[str, list[str]]:
    """The names in a pod template that only the operator may set, by field of its metadata."""
    metadata = template.metadata
    found = {
        field: sorted(name for name in names if name.startswith(improbable.RESERVED_PREFIX))
        for field, names in (("annotations", metadata.annotations), ("labels", metadata.labels))
    }
    found["labels"] += [name for name in improbable.RESERVED_LABELS if name in metadata.labels]
    return found


def _members(state: ClusterState) -> tuple[MemberStatus, ...]:
    """The members as etcd lists them, by name; a member that has not started has none."""
    leader = state.leader
    return tuple(
        _member(state, entry, is_leader=leader is not None and leader.entry == entry)
        for entry in sorted(state.etcd_members, key=lambda entry: (entry.name, entry.id))
    )


def _external_ids(state: ClusterState) -> set[str]:
    """The IDs of members that serve elsewhere, also while nobody lists them."""
    adoption = state.persisted.adoption
    recorded = adoption.members if adoption is not None else ()
    return {*(member.id for member in state.external), *(member.id for member in recorded)}


def _last_known(members: tuple[MemberStatus, ...], state: ClusterState) -> tuple[MemberStatus, ...]:
    """The members as last reported; whether each serves is known even if etcd requires authentication."""
    if not state.requires_user:
        return members
    serving = {member.name for member in state.serving}
    return tuple(msgspec.structs.replace(member, healthy=member.name in serving) for member in members)


def _member(state: ClusterState, entry: EtcdMember, *, is_leader: bool) -> MemberStatus:
    known = (*state.members, *state.external)
    member = next((m for m in known if m.entry is not None and m.entry.id == entry.id), None)
    answer = member.answer if member is not None else None
    return MemberStatus(
        name=entry.name or (member.name if member is not None else ""),
        id=entry.id,
        role="Learner" if entry.is_learner else "Leader" if is_leader else "Voter",
        healthy=member is not None and member.is_healthy,
        version=answer.version if answer is not None else "",
    )
