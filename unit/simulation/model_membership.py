"""Changes of etcd's members in the model world: checked and requested as `etcd_cluster.membership` does it.

`asked` is the process that a request goes to. What etcd itself refuses is in model_etcd.py.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, assert_never

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AddLearner,
    AppendEntry,
    DeleteMember,
    DisarmCorrupt,
    DropPod,
    MoveLeader,
    PadLog,
    Promote,
    RemoveCorrupt,
    RemoveMember,
)
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member, PodFacts, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import Refused, World
from unit.simulation.model_disks import Disk, Process
from unit.simulation.model_etcd import EtcdRefused
from unit.simulation.model_pods import Claim, Pod

MembershipAction = (
    AddLearner | Promote | MoveLeader | RemoveMember | RemoveCorrupt | DisarmCorrupt | PadLog | AppendEntry
)


def change(world: World, state: ClusterState, action: MembershipAction) -> None:
    """Carry out one change. Raises Refused."""
    try:
        match action:
            case RemoveCorrupt():
                _assert_corrupt(world, state, action.member_id)
                _remove(world, state, action)
            case DisarmCorrupt():
                _disarm(world, state, action.member_id)
            case AddLearner():
                _add(world, state, action.name)
            case Promote():
                world.promote(_voter(world, state), action.member_id)
            case MoveLeader():
                if state.leader is None:
                    raise Refused("no leader is known")
                world.move_leader(_process(world, state.leader), action.member_id)
            case RemoveMember():
                _remove(world, state, action)
            case PadLog() | AppendEntry():
                _append(world, state, action)
            case _:
                assert_never(action)
    except EtcdRefused as error:
        raise Refused(str(error)) from error


def _append(world: World, state: ClusterState, action: PadLog | AppendEntry) -> None:
    if isinstance(action, PadLog):
        world.pad(_voter(world, state), action.entries)
    else:
        with suppress(EtcdRefused, Refused):
            world.pad(_voter(world, state), 1)


def lists(world: World, state: ClusterState, name: str) -> bool:
    """Whether etcd lists a member now, read through another member. Raises Refused without a quorum."""
    try:
        listed = world.listed(_voter(world, state, but=name))
    except EtcdRefused as error:
        raise Refused(str(error)) from error
    return name in {entry.name for entry in listed.values()}


def assert_others_run(world: World, state: ClusterState, leaving: str) -> None:
    """The pods of all other healthy voters are those that were observed. Raises Refused."""
    _assert_still_there(state, leaving, lambda voter: voter.pod, world.pods)


def _add(world: World, state: ClusterState, name: str) -> None:
    asked = _voter(world, state)
    if name in {entry.name for entry in world.listed(asked).values()}:
        return
    _assert_as_planned(world, state, asked)
    was_used = name in world.listed_names
    world.add_learner(asked, name)
    if was_used and not world.is_persistent:
        world.losses.append(f"the number of {name} is used again")


def _remove(world: World, state: ClusterState, action: RemoveMember | RemoveCorrupt) -> None:
    asked = _voter(world, state, but=action.name)
    if action.member_id in world.listed(asked):
        _assert_missing_as_observed(world, state, action.name)
        _assert_as_planned(world, state, asked)
        _assert_others_are_kept(world, state, action.name)
        _assert_leads_as_planned(world, state, asked, action.member_id)
        world.remove(asked, action.member_id)


def _assert_leads_as_planned(world: World, state: ClusterState, asked: Process, member_id: str) -> None:
    known = {member.answer.leader for member in state.members if member.answer is not None}
    group = world.group_of(asked)
    if member_id not in known and group is not None and group.leader.disk.member_id == member_id:
        raise Refused("it leads now")


def _assert_corrupt(world: World, state: ClusterState, member_id: str) -> None:
    group = world.group_of(_process(world, _trusted(state)[-1]))
    if group is None or member_id not in group.leader.disk.corrupt:
        raise Refused("no alarm names it")
    _assert_equal(world, state)


def _disarm(world: World, state: ClusterState, member_id: str) -> None:
    _assert_equal(world, state)
    asked = _voter(world, state)
    if member_id in world.listed(asked):
        raise Refused("it is a member again")
    world.disarm(asked, member_id)


def _assert_equal(world: World, state: ClusterState) -> None:
    """Every healthy voter that no alarm names has all that the others have, and they are a quorum."""
    asked = [_process(world, voter) for voter in _trusted(state)]
    listed = world.listed(asked[-1]).values()
    revision = max(process.disk.revision for process in asked)
    if len(asked) < quorum(sum(not entry.is_learner for entry in listed)):
        raise Refused("too few are left to agree")
    if any(process.disk.revision < revision for process in asked):
        raise Refused("required revision is a future revision")


def _trusted(state: ClusterState) -> list[Member]:
    trusted = [voter for voter in state.healthy_voters if voter.id not in state.corrupt]
    if not trusted:
        raise Refused("no healthy voter to ask")
    return trusted


def _assert_missing_as_observed(world: World, state: ClusterState, name: str) -> None:
    member = state.by_name.get(name)
    seen = state.kind.storage_of(member) if member is not None else None
    stored: Mapping[str, Claim | Pod] = world.claims if world.is_persistent else world.pods
    now = stored.get(name)
    if now is not None and not now.is_terminating and (seen is None or seen.uid != now.uid):
        world.unlabelled.discard(now.uid)
        raise Refused(f"the storage of {name} exists after all")


def _assert_others_are_kept(world: World, state: ClusterState, leaving: str) -> None:
    stored = world.claims if world.is_persistent else world.pods
    _assert_still_there(state, leaving, state.kind.storage_of, stored)


def _assert_still_there(
    state: ClusterState,
    leaving: str,
    part: Callable[[Member], PodFacts | ClaimFacts | None],
    there: Mapping[str, Claim | Pod],
) -> None:
    for voter in state.healthy_voters:
        seen, now = part(voter), there.get(voter.name)
        if voter.name == leaving or seen is None or seen.is_terminating:
            continue
        if now is None or now.uid != seen.uid or now.is_terminating:
            raise Refused(f"{voter.name} has been deleted since")


def _assert_as_planned(world: World, state: ClusterState, asked: Process) -> None:
    planned = {(entry.id, entry.is_learner) for entry in state.etcd_members}
    if {(entry.id, entry.is_learner) for entry in world.listed(asked).values()} != planned:
        raise Refused("the members have changed since")


def _voter(world: World, state: ClusterState, but: str = "") -> Process:
    """A healthy voter, the leader first."""
    able = [voter for voter in state.healthy_voters if voter.name != but]
    able.sort(key=lambda voter: voter is not state.leader)
    if not able:
        raise Refused("no healthy voter to ask")
    return _process(world, able[0])


def _process(world: World, member: Member) -> Process:
    process = world.processes.get(member.pod.uid) if member.pod is not None else None
    if process is None or process.is_frozen or process.is_unreachable:
        raise Refused(f"{member.name} does not answer")
    if world.requires_user:
        raise Refused(f"{member.name} answers only users")
    return process


Cache = Mapping[str, Any]
"""What the operator sees, by kind of object."""


def take_away(world: World, cache: Cache, state: ClusterState, action: DeleteMember | DropPod) -> None:
    """Delete the objects of a member. Raises Refused."""
    if isinstance(action, DropPod):
        _drop(world, state, action.name)
    else:
        _delete(world, cache, state, action.name)


def _delete(world: World, cache: Cache, state: ClusterState, name: str) -> None:
    """Only what etcd, read through a quorum, does not list."""
    if lists(world, state, name):
        raise Refused(f"{name} is a member again: not deleting it")
    member = state.by_name.get(name) or Member(name=name)
    if world.is_persistent:
        _delete_persistent(world, member)
        return
    pod, seen = world.pods.get(name), member.pod
    if pod is not None and seen is not None and pod.uid == seen.uid and not seen.is_terminating:
        disk = world.disks.get(pod.uid)
        if disk is not None and disk.cluster_id in world.given_up:
            _judge_copies(world, state, name, disk)
        else:
            _judge_deletion(world, name, disk)
        world.delete_pod(name)
    if name in cache["services"]:
        world.services.pop(name, None)


def _judge_copies(world: World, state: ClusterState, name: str, disk: Disk) -> None:
    """A member of a lost cluster is deleted only once two voters have its data (or one of one) (I6).

    A pod that has ended for good never runs again: its data cannot be read, and is no copy.
    """
    if world.pods[name].is_finished:
        return
    promised = world.given_up[disk.cluster_id] & disk.writes
    voters = [process for group in world.groups(led=True) for process in group.voters]
    having = [voter.name for voter in voters if promised <= voter.disk.writes]
    if len(having) < min(2, state.desired.size):
        world.losses.append(f"{name} was deleted while only {having} have its data")


def _drop(world: World, state: ClusterState, name: str) -> None:
    """A pod that has ended for good; with the last data directory go all promises."""
    pod, seen = world.pods.get(name), state.by_name[name].pod
    if pod is None or seen is None or pod.uid != seen.uid:
        raise Refused(f"{name} is another pod")
    if not pod.is_finished:
        world.losses.append(f"{name} was removed although it may run again")
    world.remove_pod(name)
    if not any(disk.cluster_id for disk in world.existing_disks()):
        world.acknowledged.clear()


def _delete_persistent(world: World, member: Member) -> None:
    """The peer, with the finalizer that deletes its claim; without a peer the claim itself."""
    name = member.name
    peer, claim = world.peers.get(name), world.claims.get(name)
    disk = world.disks.get(claim.uid) if claim is not None and not claim.given_up else None
    if member.peer is not None:
        if peer is not None and peer.uid == member.peer.uid and not member.peer.is_terminating:
            _judge_deletion(world, name, disk)
            world.peers[name] = replace(peer, is_for_cleanup=True, is_terminating=True)
        return
    seen = member.claim
    if claim is not None and seen is not None and claim.uid == seen.uid and not seen.is_terminating:
        if claim.given_up:
            world.losses.append(f"the claim {name} was deleted although it is to be kept")
        _judge_deletion(world, name, disk)
        world.delete_claim_gently(name)


def _judge_deletion(world: World, name: str, disk: Disk | None) -> None:
    """What is deleted is no member's, and everything acknowledged is on a voter that is kept (I6)."""
    if disk is None or not disk.cluster_id:
        return
    groups = [group for group in world.groups(led=True) if group.cluster_id == disk.cluster_id]
    if any(disk.member_id in group.entries for group in groups):
        world.losses.append(f"the data of {name} was deleted although etcd lists it")
    promised = world.acknowledged.get(disk.cluster_id, set()) & disk.writes
    if not any(promised <= group.leader.disk.writes for group in groups):
        world.losses.append(f"the last copy of {sorted(promised)} was deleted with {name}")
