"""The acts of a recovery in the model world: what is made sure live before anything is done, and then done.

A seed takes its data from a survivor, as the only member of a new cluster (`Pods._fetch`, `Raft._inherit`).
What was promised to clients and is not in it is forgiven only if no voter is left that has it; the old
cluster never serves again, and nothing of it is deleted but what the new one has.
"""

from dataclasses import replace

from etcd_operator.core.actions import ConfirmLoss, OpenSeed, RetireMember, SetSeedExistingOnly
from etcd_operator.core.members import quorum
from etcd_operator.core.state import ClusterState
from unit.core.model import World
from unit.core.model_raft import Disk, Process


class Changed(Exception):
    """The world is not as the plan saw it."""


def confirm(world: World, state: ClusterState, action: ConfirmLoss) -> None:
    """The lost pods are not there, and no survivor knows of voters that could still elect a leader."""
    if world.wants_user:
        raise Changed("members answer only users")
    for name in action.gone:
        pod = world.pods.get(name)
        if pod is not None and not pod.is_finished:
            raise Changed(f"{name} is there after all")
    for name, uid in action.survivors:
        pod, process = world.pods.get(name), world.processes.get(uid)
        if pod is None or pod.uid != uid or pod.is_terminating or not _tells(process):
            raise Changed(f"{name} is not what it was")
        assert process is not None
        voters = [entry.name for entry in process.disk.voters]
        is_other = process.disk.cluster_id != state.persisted.cluster_id
        if is_other or sum(voter not in action.gone for voter in voters) >= quorum(len(voters)):
            raise Changed(f"{name} knows of voters that may still elect a leader")


def hand_over(
    world: World, state: ClusterState, action: SetSeedExistingOnly | RetireMember | OpenSeed
) -> set[str]:
    """From the old cluster to a seed that serves; the kinds of objects whose caches are waited for."""
    match action:
        case SetSeedExistingOnly():
            _assert_serves(world, state, action.name, action.revision)
            _assert_seen(world, state, action.name)
        case RetireMember():
            _assert_serves(world, state, action.seed, 0)
            _retire(world, state, action.name)
            return set()
        case OpenSeed():
            _assert_seen(world, state, action.name)
            world.pods[action.name] = replace(world.pods[action.name], is_opened=True)
    return {"pods"}


def _assert_serves(world: World, state: ClusterState, name: str, revision: int) -> None:
    """A linearizable read at the seed: it leads a cluster of its own, with all that was to be saved."""
    pod, recovery = state.by_name[name].pod, state.persisted.recovery
    process = world.processes.get(pod.uid) if pod is not None else None
    is_heard = process is not None and _tells(process) and not world.wants_user
    group = world.group_of(process) if process is not None and is_heard else None
    if group is None or recovery is None:
        raise Changed(f"{name} does not answer")
    names = [entry.name for entry in group.entries.values()]
    if group.cluster_id == recovery.replaces or names != [name] or group.leader.disk.revision < revision:
        raise Changed(f"{name} does not serve the recovered data")


def _assert_seen(world: World, state: ClusterState, name: str) -> None:
    pod, seen = world.pods.get(name), state.by_name[name].pod
    if pod is None or seen is None or pod.uid != seen.uid:
        raise Changed(f"{name} is not the pod that was seen")


def _retire(world: World, state: ClusterState, name: str) -> None:
    member, pod = state.by_name[name], world.pods.get(name)
    seen = member.pod
    if pod is not None and seen is not None and not seen.is_terminating:
        if pod.uid != seen.uid:
            raise Changed(f"{name} is another pod")
        if not pod.is_finished:
            _judge(world, name, world.disks.get(pod.uid))
        world.delete_pod(name)
    if member.has_service:
        world.services.pop(name, None)


def _judge(world: World, name: str, disk: Disk | None) -> None:
    """What is deleted is of a cluster that was given up, and its promises are kept elsewhere (I6)."""
    if disk is None or not disk.cluster_id or disk.is_learner:
        return
    if disk.cluster_id not in world.given_up:
        world.losses.append(f"{name} was retired although its cluster was not given up")
        return
    served: set[int] = set()
    for group in world.groups(led=True):
        served |= group.leader.disk.writes
    missing = (world.given_up[disk.cluster_id] & disk.writes) - served
    if missing:
        world.losses.append(f"the last copy of {sorted(missing)} was retired with {name}")


def _tells(process: Process | None) -> bool:
    """Whether it answers the operator, and tells its list."""
    return process is not None and process.has_led and not process.is_frozen and not process.is_unheard
