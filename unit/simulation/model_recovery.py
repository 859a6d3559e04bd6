"""The acts of an automatic recovery (of ephemeral members) in the model world, and what both kinds share.

A seed takes its data from a survivor, as the only member of a new cluster (`Pods._fetch`). What was promised
to clients and is not in it is forgiven only if no voter is left that has it; the old cluster never serves
again, and nothing of it is deleted but what the new one has. Manual recovery: model_manual_recovery.py.
"""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.actions import ConfirmClaimsLost
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    AddReader,
    ConfirmLoss,
    ConfirmNothingLeft,
    OpenSeed,
    ReadMember,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import reading_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.reports import ListedVoter, SurvivorReport
from unit.simulation.model import Refused, World
from unit.simulation.model_disks import Disk, Group, Process
from unit.simulation.model_facts import list_of
from unit.simulation.model_pods import Pod


def confirm(world: World, state: ClusterState, action: ConfirmLoss) -> None:
    """The lost pods do not exist, and no survivor lists voters that could still elect a leader."""
    if world.requires_user:
        raise Refused("members answer only users")
    for name in action.gone:
        pod = world.pods.get(name)
        if pod is not None and not pod.is_finished:
            raise Refused(f"{name} exists after all")
    for name, uid in action.survivors:
        process = survivor(world, name, uid)
        voters = [entry.name for entry in process.disk.voters]
        is_other = process.disk.cluster_id != state.persisted.cluster_id
        if is_other or sum(voter not in action.gone for voter in voters) >= quorum(len(voters)):
            raise Refused(f"{name} lists voters that may still elect a leader")
        if action.below and process.name not in action.corrupt and process.revision >= action.below:
            raise Refused(f"{name} has all that the backup has")
    for member in action.read:
        process = read_again(world, state, member)
        voters = [entry.name for entry in process.disk.voters]
        if sum(voter not in action.gone for voter in voters) >= quorum(len(voters)):
            raise Refused(f"{member.name} lists voters that may still elect a leader")
        if action.below and process.name not in action.corrupt and process.disk.revision >= action.below:
            raise Refused(f"{member.name} has all that the backup has")


def confirm_nothing_left(world: World, action: ConfirmNothingLeft) -> None:
    """No pod is left but those that have ended."""
    for name, pod in world.pods.items():
        if not pod.is_finished and name != action.kept:
            raise Refused(f"{name} still exists")


def confirm_claims_lost(world: World, action: ConfirmClaimsLost) -> None:
    """None of these members has a claim."""
    if any(name in world.claims for name in action.names):
        raise Refused("a claim exists after all")


def hand_over(
    world: World, state: ClusterState, action: SetSeedExistingOnly | RetireMember | OpenSeed
) -> set[str]:
    """From the old cluster to a seed that serves; the kinds of objects whose caches are waited for."""
    match action:
        case SetSeedExistingOnly():
            assert_serves(world, state, action.name, action.revision)
            observed_pod(world, state, action.name)
        case RetireMember():
            assert_serves(world, state, action.seed, 0)
            if action.keeps_data:
                _stop_survivor(world, state, action.name)
                return {"pods"}
            _retire(world, state, action.name)
            return set()
        case OpenSeed():
            pod = observed_pod(world, state, action.name)
            world.pods[action.name] = replace(pod, is_routed=True)
    return {"pods"}


def survivor(world: World, name: str, uid: str) -> Process:
    """The process of a survivor, if its pod is the one that was observed and it answers."""
    pod, process = world.pods.get(name), world.processes.get(uid)
    if pod is None or pod.uid != uid or pod.is_terminating or process is None or not answers(world, process):
        raise Refused(f"{name} is not what it was")
    return process


def answers(world: World, process: Process) -> bool:
    """Whether a process answers the operator."""
    return process.has_led and not (process.is_frozen or process.is_unreachable or world.requires_user)


def assert_serves(world: World, state: ClusterState, name: str, revision: int) -> Group:
    """A linearizable read at the seed: it leads a cluster of its own, with all that was to be saved."""
    member, recovery = state.by_name.get(name), state.persisted.recovery
    pod = member.pod if member is not None else None
    process = world.processes.get(pod.uid) if pod is not None else None
    group = world.group_of(process) if process is not None and answers(world, process) else None
    if group is None or recovery is None:
        raise Refused(f"{name} does not answer")
    names = [entry.name for entry in group.entries.values()]
    if group.cluster_id == recovery.replaces or names != [name] or group.leader.disk.revision < revision:
        raise Refused(f"{name} does not serve the recovered data")
    return group


def observed_pod(world: World, state: ClusterState, name: str) -> Pod:
    """The pod of a member, if it is the one that was observed."""
    pod, seen = world.pods.get(name), state.by_name[name].pod
    if pod is None or seen is None or pod.uid != seen.uid:
        raise Refused(f"{name} is not the pod that was observed")
    return pod


def drop_empty(world: World, state: ClusterState, name: str) -> None:
    """Delete the pod of a member that has never joined."""
    pod = observed_pod(world, state, name)
    if not pod.never_joined:
        raise Refused(f"{name} may have data")
    assert world.disks.get(pod.uid, Disk()).is_empty, f"{name} has data"
    world.delete_pod(name)


def _stop_survivor(world: World, state: ClusterState, name: str) -> None:
    if name in world.pods and state.by_name[name].pod is not None:
        world.pods[name] = replace(observed_pod(world, state, name), is_routed=False, has_etcd=False)
        world.kill(name)


def start_survivor(world: World, state: ClusterState, name: str) -> None:
    """Its container gets the image of etcd back."""
    world.pods[name] = replace(observed_pod(world, state, name), has_etcd=True)


def _retire(world: World, state: ClusterState, name: str) -> None:
    member, pod = state.by_name[name], world.pods.get(name)
    seen = member.pod
    if pod is not None and seen is not None and not seen.is_terminating:
        if pod.uid != seen.uid:
            raise Refused(f"{name} is another pod")
        if not pod.is_finished:
            _judge(world, name, world.disks.get(pod.uid))
        if state.persisted.recovery is not None and name == state.persisted.recovery.source.name:
            world.losses.append(f"{name} was retired although only the seed has its data")
        world.delete_pod(name)
    if member.has_service:
        world.services.pop(name, None)


def _judge(world: World, name: str, disk: Disk | None) -> None:
    """What is deleted belongs to a cluster that was given up, and its promises are kept elsewhere (I6)."""
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


def add_reader(world: World, state: ClusterState, action: AddReader) -> set[str]:
    """Add a container to the pod that was observed."""
    pod, seen = world.pods.get(action.name), state.by_name[action.name].pod
    if pod is None or seen is None or pod.uid != seen.uid or pod.is_terminating:
        raise Refused(f"{action.name} is not the pod that was observed")
    world.pods[action.name] = replace(pod, has_reader=True)
    return {"pods"}


def with_readings(world: World, state: ClusterState) -> ClusterState:
    """As `recovery.readers` adds them."""
    if state.has_quorum or not state.persisted.is_bootstrapped:
        return state
    return replace(state, members=tuple(_with_reading(world, member) for member in state.members))


def _with_reading(world: World, member: Member) -> Member:
    pod = member.pod
    if pod is None or pod.reader is None or member.answer is not None or member.refusal is not None:
        return member
    process = world.processes.get(pod.uid)
    if process is None:
        return member
    if not _is_readable(process):
        return replace(member, unreadable="it does not report, or follows a leader")
    disk = process.disk
    listed = (
        ListedVoter(id=each.id, name=each.name, peer_urls=each.peer_urls, is_learner=each.is_learner)
        for each in list_of(disk)
    )
    report = SurvivorReport(
        cluster_id=disk.cluster_id,
        member_id=disk.member_id,
        committed=disk.committed,
        revision=disk.revision,
        sha256=process.sha256,
        members=tuple(listed),
    )
    return replace(member, reading=reading_of(report, member))


def read_again(world: World, state: ClusterState, member: ReadMember) -> Process:
    """The process of a member whose data is as it was read. Raises Refused."""
    pod, process = world.pods.get(member.name), world.processes.get(member.uid)
    if pod is None or pod.uid != member.uid or pod.is_terminating or process is None:
        raise Refused(f"{member.name} is not what it was")
    is_other = process.disk.cluster_id != state.persisted.cluster_id
    if not _is_readable(process) or is_other or process.sha256 != member.sha256:
        raise Refused(f"the data of {member.name} has changed since it was read")
    return process


def _is_readable(process: Process) -> bool:
    return not (process.has_led or process.is_frozen or process.is_unreachable or process.unapplied)
