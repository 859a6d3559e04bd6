"""Whether the reason of a plan that rests on EtcdBackups is true in the model world."""

from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import World
from unit.simulation.model_stored import StoredWorld


def newer_backups(world: World, cluster_id: str, revision: int) -> list[str]:
    """The EtcdBackups of this etcd cluster that have more than its survivors."""
    if not isinstance(world, StoredWorld):
        return []
    contents = {name: stored.backup.content for name, stored in world.backups.items()}
    return [n for n, disk in contents.items() if disk.cluster_id == cluster_id and disk.revision > revision]


def is_restore_refused_rightly(world: World, state: ClusterState) -> bool:
    """The cluster goes on, and the annotation names no restore that could begin now."""
    if not isinstance(world, StoredWorld) or world.resource is None or not _goes_on(world, state):
        return False
    former, asked = state.persisted.recovery, world.resource.restore_in_place
    generation = former.generation + 1 if former is not None else 1
    names = {f"{state.persisted.cluster_id}/{name}/{generation}" for name in world.backups}
    return bool(asked) and asked not in names


def has_restore_failed(world: World, state: ClusterState) -> bool:
    """The cluster goes on as it was."""
    former = state.persisted.recovery
    return former is not None and bool(former.failure) and not former.replaces and _goes_on(world, state)


def _goes_on(world: World, state: ClusterState) -> bool:
    """The cluster on record serves: clients reach it."""
    groups = [group for group in world.groups(led=True) if group.cluster_id == state.persisted.cluster_id]
    return any(world.takes_clients(process) for group in groups for process in group.up)
