"""Members that this operator made, of a resource without a status: they are taken over as they run.

The resource was deleted without them (`--cascade=orphan`) and created again, or a tool restored it
without its status. Nobody but etcd then knows who the members are. So a quorum has to answer, and etcd has
to list exactly the members that exist: what does not belong together is left to a person.
"""

from etcd_operator.api.persisted import Bootstrap
from etcd_operator.api.recoveries import is_recovery_token
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember, TakeBack
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import auth_enabled, named
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD


def take_back(state: ClusterState) -> Plan | None:
    """Own the objects that have no owner, then record the cluster ID that a quorum of the members reports."""
    if state.persisted.has_begun or not any(member.pod or member.peer for member in state.members):
        return None
    if state.requires_user:
        return Plan.hold(*auth_enabled(state), requeue_after=RETRY_HELD)
    tokens = {member.claim.token for member in state.members if member.claim is not None}
    unproven = _unproven(state, tokens)
    if unproven:
        return Plan.hold(
            "StatusMissing",
            f"members exist, but the status that records their bootstrap is missing: {unproven}",
            requeue_after=RETRY_HELD,
        )
    token = next(iter(tokens), state.desired.uid)
    (cluster_id,) = state.cluster_ids
    persisted = PersistedState(
        bootstrap=Bootstrap(members=(), token=token),
        cluster_id=cluster_id,
        next_ordinal=1 + max(member.ordinal for member in state.members),
        tls=state.persisted.tls,
    )
    # First the owners: a pod without one is none of ours once the cluster ID is on record.
    return Plan.act(
        *(TakeBack(orphan=orphan) for orphan in state.orphans if orphan.token in ("", token)),
        Remember(persisted=persisted),
        reason="TakingOver",
        message=f"taking over the cluster {cluster_id}, with the members {_names(state.members)}",
    )


def _unproven(state: ClusterState, tokens: set[str]) -> str:
    """What is not proven, and what a person can do; empty if all is."""
    others = [member for member in state.members if member.pod is not None and not member.pod.is_gated]
    if others:
        return f"another operator created the pods of {_names(others)}; see docs/migrating.md"
    if not state.has_quorum or len(state.cluster_ids) != 1:
        return _without_quorum(state)
    if state.unknown_members:
        names = named([f"{entry.name} ({entry.id})" for entry in state.unknown_members])
        return (
            f"etcd lists {names}, not created by this operator: remove them with `etcdctl member remove ID`"
        )
    unlisted = [member for member in state.members if member.entry is None]
    if unlisted:
        delete = f"kubectl delete {state.kind.kubectl_kinds} {' '.join(member.name for member in unlisted)}"
        return f"etcd does not list {_names(unlisted)}: delete their objects, with `{delete}`"
    lost = [member for member in state.members if state.kind.storage_of(member) is None]
    if lost:
        names = named([f"{member.name} ({member.id})" for member in lost])
        return (
            f"etcd lists {names} without {state.kind.storage_word}: remove them with "
            "`etcdctl member remove ID`"
        )
    (cluster_id,) = state.cluster_ids
    unlike = [member for member in state.members if not _is_own_claim(member, cluster_id)]
    if unlike or len(tokens) > 1 or "" in tokens:
        return (
            f"the claims {_names(unlike or state.members)} are not annotated as those of these members of "
            f"the cluster {cluster_id}; {_resume(state)}"
        )
    if any(is_recovery_token(state.desired.uid, token) for token in tokens):
        again = f"create it again: `kubectl delete {_resource(state)} --cascade=orphan`"
        is_secured = state.persisted.tls is not None  # with the CAs of this resource
        do = (
            "Copy its data to another cluster"
            if is_secured
            else f"Delete it without its members, and {again}"
        )
        return f"it was recovered before. {do}"
    return ""


def _is_own_claim(member: Member, cluster_id: str) -> bool:
    claim = member.claim
    if claim is None:
        return True
    return claim.cluster_id in ("", cluster_id) and claim.member_id in ("", member.id)


def _without_quorum(state: ClusterState) -> str:
    names = _names(state.members)
    return f"no quorum of {names} answers. They are taken over as soon as one does; {_resume(state)}"


def _resume(state: ClusterState) -> str:
    """What can be done instead: the cluster goes on with its claims, or begins without data."""
    desired, kind = state.desired, state.kind
    kinds = f"{kind.kubectl_runs},service,poddisruptionbudget,networkpolicy"
    delete = f"kubectl delete {kinds} --namespace {desired.namespace} --selector {desired.selector}"
    if kind.outlives_pod:
        return f"to resume on the claims instead, run `{delete}`"
    return f"if their data is lost, or not needed, run `{delete}`, and the cluster begins anew"


def _resource(state: ClusterState) -> str:
    group = state.desired.api_version.partition("/")[0]
    return f"etcdclusters.{group} {state.desired.name} --namespace {state.desired.namespace}"


def _names(members: list[Member] | tuple[Member, ...]) -> str:
    return named([member.name for member in members])
