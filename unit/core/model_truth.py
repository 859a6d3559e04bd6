"""Whether the reason of a plan that rests is true in the model world."""

from etcd_operator.core.actions import Plan
from etcd_operator.core.members import quorum
from etcd_operator.core.state import ClusterState
from unit.core.model import World


def is_true(world: World, state: ClusterState, made: Plan) -> bool:
    """Judged from the world alone; an unknown reason is not true."""
    check = _CHECKS.get(made.reason)
    return check is not None and check(world, state)


def _is_settled(world: World, state: ClusterState) -> bool:
    bootstrap = state.record.bootstrap
    assert bootstrap is not None
    members = world.peers if world.is_persistent else world.pods
    serving = {process.name for up in world.groups(led=True) for process in up}
    return "db" in world.services and serving == set(bootstrap.members) == set(members)


def _lacks_a_member(world: World, state: ClusterState) -> bool:
    return not _is_settled(world, state)


def _lacks_a_quorum(world: World, _state: ClusterState) -> bool:
    return not world.groups(led=True)


def _refuses_to_start(world: World, _state: ClusterState) -> bool:
    return any(pod.trouble is not None for pod in world.pods.values())


def _claims_conflict(world: World, _state: ClusterState) -> bool:
    claims = world.claims.values()
    return len({c.token for c in claims}) > 1 or len({c.cluster_id for c in claims if c.cluster_id}) > 1


def _claims_are_missing(world: World, _state: ClusterState) -> bool:
    claims = list(world.claims.values())
    size = max((claim.cluster_size for claim in claims), default=0)
    needed = quorum(size) if size else len(claims[0].founders)
    return 0 < len(claims) < needed


def _is_uncertain(world: World, state: ClusterState) -> bool:
    """A founder's data is gone, and another one that is there may once have served."""
    bootstrap = state.record.bootstrap
    assert bootstrap is not None
    holders = world.claims if world.is_persistent else world.pods
    lost = [name for name in bootstrap.members if name not in holders]
    return bool(lost) and len(lost) < len(bootstrap.members) and not world.groups(led=True)


def _claim_is_lost(world: World, _state: ClusterState) -> bool:
    return any(world.is_claim_lost(name) for name in world.peers)


_CHECKS = {
    "ClaimLost": _claim_is_lost,
    "Settled": _is_settled,
    "MemberUnhealthy": _lacks_a_member,
    "QuorumLost": _lacks_a_quorum,
    "CrashLoopBackOff": _refuses_to_start,
    "ClaimsConflict": _claims_conflict,
    "ClaimsMissing": _claims_are_missing,
    "BirthUncertain": _is_uncertain,
}
