"""Readers of members that answer nobody, in the model world: what they report, and what is asked again."""

from dataclasses import replace

from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import AddReader, ReadMember
from etcd_operator.controllers.etcd_cluster.decide.recovery.offline import reading_of
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.pods.reports import ListedVoter, SurvivorReport
from unit.simulation.model import Refused, World
from unit.simulation.model_disks import Process
from unit.simulation.model_facts import list_of


def add_reader(world: World, state: ClusterState, action: AddReader) -> set[str]:
    """Add a container to the pod that was observed."""
    pod, seen = world.pods.get(action.name), state.by_name[action.name].pod
    if pod is None or seen is None or pod.uid != seen.uid or pod.is_terminating:
        raise Refused(f"{action.name} is not the pod that was observed")
    world.pods[action.name] = replace(pod, has_reader=True)
    return {"pods"}


def with_readings(world: World, state: ClusterState) -> ClusterState:
    """As `recovery.readings` adds them."""
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
