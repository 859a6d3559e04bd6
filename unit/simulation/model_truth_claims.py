"""Whether the reason of a plan that rests on claims is true in the model world."""

from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import World
from unit.simulation.model_disks import Disk
from unit.simulation.model_pods import Claim


def claims_of(world: World) -> dict[str, Claim]:
    """All that no recovery has given up."""
    return {name: claim for name, claim in world.claims.items() if not claim.given_up}


def claims_conflict(world: World, _state: ClusterState) -> bool:
    """They belong to several clusters, or none of them records a cluster or how one was bootstrapped."""
    claims = claims_of(world).values()
    if claims and not any(c.cluster_id or c.initial_members for c in claims):
        return True
    return len({c.token for c in claims}) > 1 or len({c.cluster_id for c in claims if c.cluster_id}) > 1


def claims_are_missing(world: World, _state: ClusterState) -> bool:
    """Of those that voted last, by the newest data that is left; before that, of the initial members."""
    claims = claims_of(world)
    disks = [disk for disk in world.existing_disks() if disk.cluster_id]
    if any(claim.cluster_id for claim in claims.values()):
        newest = max(disks, key=lambda disk: disk.committed, default=Disk())
        voters = {entry.name: entry.id for entry in newest.voters}
        left = [name for name in voters if name in claims and claims[name].member_id in ("", voters[name])]
        return len(left) < quorum(len(voters))
    if not any(claim.is_started for claim in claims.values()):
        return False
    return len(claims) < quorum(max(len(claim.initial_members) for claim in claims.values()))


def is_uncertain(world: World, state: ClusterState) -> bool:
    """An initial member's data is lost, and another one that exists may once have served."""
    bootstrap = state.persisted.bootstrap
    assert bootstrap is not None
    ended = {name for name, pod in world.pods.items() if pod.is_finished and not world.is_persistent}
    stored = world.claims if world.is_persistent else world.pods
    lost = [name for name in bootstrap.members if name not in stored or name in ended]
    return bool(lost) and len(lost) < len(bootstrap.members) and not world.groups(led=True)


def claim_is_lost(world: World, _state: ClusterState) -> bool:
    return any(world.is_claim_lost(name) for name in world.peers)


def claim_is_in_the_way(world: World, state: ClusterState) -> bool:
    """A claim of no member that nothing proves to be this cluster's, or nothing but what was given up."""
    if world.claims and not claims_of(world):
        return True
    return any(
        name not in world.peers and not claim.member_id and claim.cluster_uid != state.desired.uid
        for name, claim in claims_of(world).items()
    )
