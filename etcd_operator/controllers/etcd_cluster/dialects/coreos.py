"""`coreos.com/v1`: ephemeral members, each a pod with its own Service."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from etcd_operator.api import coreos
from etcd_operator.api.cluster_spec import Adopt, PodTemplate
from etcd_operator.api.coreos import ClusterSpec, ClusterStatus, EtcdCluster, MembersStatus, TlsPolicy
from etcd_operator.api.coreos_backup import S3
from etcd_operator.api.definitions.adoption_validations import ALTERNATIVES
from etcd_operator.api.definitions.coreos_backup_validations import CLUSTER, RESTORE_S3
from etcd_operator.api.definitions.tls_validations import ALTERNATIVES as STATIC_ALTERNATIVES
from etcd_operator.api.definitions.tls_validations import NO_BACKUP_TOOL, NO_SELF_HOSTED, STATIC
from etcd_operator.api.meta import ObjectMeta, RawObject, merge_conditions
from etcd_operator.controllers.backup_tool.decide.policy import key_secret, wanted
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Stage
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster, RestoreFrom
from etcd_operator.controllers.etcd_cluster.decide.kinds.ephemeral import EPHEMERAL
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming, Seeding, Start
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
from etcd_operator.controllers.etcd_cluster.manifests import ephemeral, seed
from etcd_operator.controllers.shared.decide.clusters import Defaults
from etcd_operator.controllers.shared.manifests.affinity import preferred_apart
from etcd_operator.controllers.shared.manifests.urls import CLIENT_PORT, url
from etcd_operator.errors import InvalidSpec


def no_image() -> str:
    """Of a dialect that is made to render no seeds; raises RuntimeError, since that is a bug."""
    raise RuntimeError("this dialect was given no image of the operator, which a seed needs")


class CoreosDialect:
    """See `dialects.base.Dialect`. own_image: the operator's, for seeds."""

    pod_keys = coreos.POD_KEYS
    # Without the label that admits clients: a seed gets it when it serves.
    member_labels = staticmethod(ephemeral.member_selector)
    client_selector = staticmethod(ephemeral.cluster_labels)
    services = staticmethod(ephemeral.services)
    budget = staticmethod(ephemeral.budget)

    def __init__(self, defaults: Defaults, own_image: Callable[[], str] = no_image) -> None:
        self._defaults = defaults
        self._own_image = own_image

    def desired(self, cluster: EtcdCluster) -> DesiredCluster:
        """The desired state; a problem of the spec is in `problem`."""
        return desired_of(
            cluster,
            lambda: self._read_spec(cluster),
            api_version=coreos.API_VERSION,
            kind=EPHEMERAL,
            label=coreos.CLUSTER_LABEL,
            next_ordinal=cluster.status.next_ordinal,
        )

    def _read_spec(self, cluster: EtcdCluster) -> dict[str, Any]:
        spec = parse_spec(cluster.spec, ClusterSpec)
        size = spec.size if spec.size is not None else cluster.size
        if size is None or size < 1:
            raise InvalidSpec("spec.size is missing: set the number of members, like 3")
        # The default is the running version: a new default of the operator must not upgrade clusters.
        version = version_for(self._defaults, spec.version or cluster.status.current_version)
        if spec.tls_policy is not None:
            spec = _with_static(spec, spec.tls_policy)
        tls = tls_of(spec, cluster.status, version)
        if tls is not None and spec.self_hosted is not None:
            raise InvalidSpec(f"spec.tls: {NO_SELF_HOSTED}")
        client = tls.client if tls is not None else None
        if spec.backup is not None and client is not None and client.auto is None:
            raise InvalidSpec(f"spec.backup: {NO_BACKUP_TOOL}")
        return {
            "size": size,
            "repository": self._defaults.repository,
            "version": version,
            "is_paused": spec.paused,
            "pod_template": _pod_template(cluster.metadata.name, spec),
            "recovers_after": spec.recovers_after,
            "tls": tls,
            "auth": auth_of(spec),
            "network": spec.network_policy,
            "adopt": adopt_of(_adopt(spec, cluster.spec), cluster.metadata.namespace),
            # Nothing reads it later, so nothing that spec.backup is edited to can make it a problem.
            "restore": _restore(spec) if not cluster.status.cluster_id else None,
        }

    def status(self, cluster: EtcdCluster, state: ClusterState, plan: Plan, *, now: str) -> RawObject:
        """The complete status to write; values that cannot be observed keep their last value."""
        previous, desired = cluster.status, state.desired
        version = current_version(state) or previous.current_version
        names = member_names(state)
        healthy = {member.name for member in state.members if member.is_serving}
        status = ClusterStatus(
            observed_generation=desired.generation,
            phase=_phase(state, plan),
            size=_pods(state),
            selector=f"{coreos.CLUSTER_LABEL}={desired.name},{coreos.NODE_LABEL}",
            current_version=version,
            target_version=desired.version if version and desired.version != version else "",
            members=MembersStatus(
                ready=tuple(name for name in names if name in healthy),
                unready=tuple(name for name in names if name not in healthy),
            ),
            endpoints=_endpoints(state) or previous.endpoints,
            next_ordinal=state.persisted.next_ordinal,
            backup=previous.backup,
            conditions=merge_conditions(previous.conditions, conditions(state, plan), now, own=CONDITIONS),
            **persisted_fields(state.persisted, now=now),
        )
        return dict(msgspec.to_builtins(status))

    def member_host(self, cluster: DesiredCluster, name: str) -> str:
        """The name of the member's Service."""
        return ephemeral.member_host(cluster, name)

    def member_at(self, cluster: DesiredCluster, host: str) -> str:
        """The Service of a member has its name."""
        return host.removesuffix(f".{cluster.namespace}.svc") if cluster.secured.has_wildcards else host

    def client_label(self, cluster: DesiredCluster) -> str:
        """A seed that does not serve yet lacks it, and so does a member that is kept from clients."""
        del cluster
        return coreos.APP_LABEL

    def is_of_other_operator(self, pod: ObjectMeta) -> bool:
        """By the owner: all operators of this family set the same labels, ours owns what it creates."""
        owned = any(
            (o.api_version, o.kind) == (coreos.API_VERSION, "EtcdCluster") for o in pod.owner_references
        )
        return coreos.NODE_LABEL in pod.labels and not owned

    def member(self, cluster: DesiredCluster, name: str, start: Start) -> RawObject:
        """The pod. Raises TypeError for a start from existing data: an ephemeral member has none.

        For a seed whose data does not come from a running etcd it raises what `own_image` raises.
        """
        if isinstance(start, Resuming):
            raise TypeError(f"{name}: an ephemeral member cannot resume")
        if isinstance(start, Seeding):
            return seed.pod(cluster, name, start, image=self._own_image)
        return ephemeral.pod(cluster, name, start)


def _with_static(spec: ClusterSpec, policy: TlsPolicy) -> ClusterSpec:
    """With `spec.TLS` in the form of `spec.tls`. Raises InvalidSpec."""
    if spec.tls is not None or spec.adopt is not None or spec.self_hosted is not None:
        raise InvalidSpec(f"spec.TLS: {STATIC_ALTERNATIVES}")
    static = policy.static
    has_server = bool(static.member.server_secret)
    if has_server != bool(static.operator_secret) or not (has_server or static.member.peer_secret):
        raise InvalidSpec(f"spec.TLS.static: {STATIC}")
    return msgspec.structs.replace(spec, tls=policy.tls, tls_policy=None)


def _endpoints(state: ClusterState) -> tuple[str, ...]:
    """Client URLs, by the Services of the members, with the namespace so that they work in all namespaces."""
    desired = state.desired
    names = (member.name for member in state.members if member.entry is not None)
    is_secure = desired.secured.is_dialed
    return tuple(url(f"{name}.{desired.namespace}.svc", CLIENT_PORT, is_secure=is_secure) for name in names)


def _pod_template(name: str, spec: ClusterSpec) -> PodTemplate:
    template = PodTemplate(node_selector=spec.node_selector, security_context=spec.pod.security_context)
    if not spec.anti_affinity:
        return template
    members = ephemeral.members_selector(name)
    term: RawObject = {"labelSelector": members, "topologyKey": "kubernetes.io/hostname"}
    return msgspec.structs.replace(template, affinity=preferred_apart(members, [term]))


def _adopt(spec: ClusterSpec, raw: RawObject) -> Adopt | None:
    if sum(field in raw for field in ("adopt", "selfHosted", "restore")) > 1:
        raise InvalidSpec(ALTERNATIVES)
    if spec.self_hosted is None:
        return spec.adopt
    return Adopt(endpoints=(spec.self_hosted.boot_member_client_endpoint,))


def _restore(spec: ClusterSpec) -> RestoreFrom | None:
    """Raises InvalidSpec for a name that is none, and where no bucket is given."""
    if spec.restore is None:
        return None
    if not CLUSTER.fits(spec.restore.backup_cluster_name):
        raise InvalidSpec(f"spec.restore.backupClusterName: {CLUSTER.message}")
    source = RestoreFrom(cluster=spec.restore.backup_cluster_name, key_secret=key_secret(spec.backup))
    if spec.restore.storage_type != S3:
        return source
    policy = wanted(spec.backup).policy
    if policy is None or policy.s3 is None:
        raise InvalidSpec(f"spec.restore: {RESTORE_S3}")
    return replace(source, s3=policy.s3)


def _pods(state: ClusterState) -> int:
    """The number of pods; during the bootstrap, the number of initial members."""
    if not state.persisted.is_bootstrapped:
        return len(member_names(state))
    return sum(member.pod is not None for member in state.members)


def _phase(state: ClusterState, plan: Plan) -> Any:
    if state.persisted.is_bootstrapped:
        return "Running"
    return "Failed" if plan.stage is Stage.HELD and plan.reason == "InvalidSpec" else "Creating"
