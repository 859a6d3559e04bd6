"""What the operator's actions do in the model world: as `reconcile.act` and `reconcile.membership` do them.

Each action has one case in `apply`; one that meets a changed world raises `Refused`, as any refusal of the
API server or of etcd does, and the pass ends.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from etcd_operator.core.actions import (
    Action,
    AddLearner,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    Founding,
    KeepBudget,
    MoveLeader,
    Promote,
    Remember,
    RemoveMember,
    Resuming,
    SealMember,
)
from etcd_operator.core.members import Member
from etcd_operator.core.state import ClusterState
from unit.core.model import Peer, Resource, World
from unit.core.model_etcd import Disk, EtcdRefused, Process

Cache = Mapping[str, Any]


class Refused(Exception):
    """The API server or etcd refused, because what the action was based on has changed."""


def apply(world: World, cache: Cache, state: ClusterState, action: Action) -> set[str]:
    """Carry out one action; the kinds of objects whose caches are waited for afterwards."""
    uid = state.desired.uid
    if world.resource is None or world.resource.uid != uid:
        raise Refused("the resource is gone: what is made for it is removed at once")
    match action:
        case Remember():
            return _remember(world, world.resource, cache, action)
        case CreateClientService():
            world.services.setdefault("db", uid)
            return {"services"}
        case CreateMemberService():
            world.services.setdefault(action.name, uid)
            return {"services"}
        case KeepBudget():
            world.budget = action.min_available
            return {"budget"}
        case CreateMember():
            return _create_member(world, world.resource, action)
        case SealMember():
            return _seal(world, action)
        case AddLearner() | Promote() | MoveLeader() | RemoveMember():
            _change(world, state, action)
            return set()
        case DeleteMember():
            _delete(world, cache, state, action.name)
            return set()
        case _:
            raise NotImplementedError(f"the model knows neither snapshots nor upgrades: {action}")


def _remember(world: World, resource: Resource, cache: Cache, action: Remember) -> set[str]:
    if resource.version != cache["resource"].version:
        raise Refused("the status was written by somebody else")
    world.resource = replace(resource, record=action.record, version=resource.version + 1)
    return {"resource"}


def _create_member(world: World, resource: Resource, action: CreateMember) -> set[str]:
    if isinstance(action.start, Founding) and resource.record.is_born:
        world.founded_after_latch = True
    if world.is_persistent:
        if action.name in world.peers and world.peers[action.name].is_terminating:
            raise Refused("the former peer is being removed")
        world.peers.setdefault(action.name, Peer(uid=world.uid("peer"), start=action.start))
        return {"peers"}
    if action.name in world.pods and world.pods[action.name].is_terminating:
        raise Refused("the former pod is being removed")
    if action.name not in world.pods:
        world.create_pod(action.name, action.start)
    return {"pods"}


def _seal(world: World, action: SealMember) -> set[str]:
    claim, peer = world.claims.get(action.name), world.peers.get(action.name)
    if claim is None:
        raise Refused("the claim is gone")
    world.claims[action.name] = replace(
        claim,
        cluster_id=action.cluster_id,
        member_id=action.member_id,
        cluster_size=action.cluster_size,
    )
    if peer is None:
        raise Refused("the peer is gone")
    world.peers[action.name] = replace(peer, start=Resuming(token=peer.start.token))
    return {"claims", "peers"}


# etcd, asked as `reconcile.membership` asks it


def _change(
    world: World, state: ClusterState, action: AddLearner | Promote | MoveLeader | RemoveMember
) -> None:
    try:
        match action:
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
            case _:
                assert_never(action)
    except EtcdRefused as error:
        raise Refused(str(error)) from error


def _add(world: World, state: ClusterState, name: str) -> None:
    asked = _voter(world, state)
    if name in {entry.name for entry in world.listed(asked).values()}:
        return
    _assert_as_planned(world, state, asked)
    was_used = name in world.listed_names
    world.add_learner(asked, name)
    if was_used and not world.is_persistent:
        world.losses.append(f"the number of {name} is used again")


def _remove(world: World, state: ClusterState, action: RemoveMember) -> None:
    asked = _voter(world, state, but=action.name)
    if action.member_id in world.listed(asked):
        _assert_as_planned(world, state, asked)
        _assert_others_stay(world, state, action.name)
        world.remove(asked, action.member_id)


def _assert_others_stay(world: World, state: ClusterState, leaving: str) -> None:
    for voter in state.healthy_voters:
        seen = voter.claim if world.is_persistent else voter.pod
        if voter.name == leaving or seen is None or seen.is_terminating:
            continue
        now = world.claims.get(voter.name) if world.is_persistent else world.pods.get(voter.name)
        if now is None or now.uid != seen.uid or now.is_terminating:
            raise Refused(f"{voter.name} is going since")


def _assert_as_planned(world: World, state: ClusterState, asked: Process) -> None:
    if set(world.listed(asked)) != {entry.id for entry in state.etcd_members}:
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
    if process is None or process.is_frozen or process.is_unheard:
        raise Refused(f"{member.name} does not answer")
    return process


# deleting


def _delete(world: World, cache: Cache, state: ClusterState, name: str) -> None:
    """Only what etcd, read through a quorum, does not list."""
    try:
        listed = world.listed(_voter(world, state, but=name))
    except EtcdRefused as error:
        raise Refused(str(error)) from error
    if name in {entry.name for entry in listed.values()}:
        raise Refused(f"{name} is a member again: not deleting it")
    member = state.by_name.get(name) or Member(name=name)
    if world.is_persistent:
        _delete_persistent(world, member)
        return
    pod, seen = world.pods.get(name), member.pod
    if pod is not None and seen is not None and pod.uid == seen.uid and not seen.is_terminating:
        _judge_deletion(world, name, world.disks.get(pod.uid))
        world.delete_pod(name)
    if name in cache["services"]:
        world.services.pop(name, None)


def _delete_persistent(world: World, member: Member) -> None:
    """The peer, marked so that its claim goes with it; or what is left of one, the claim."""
    name = member.name
    peer, claim = world.peers.get(name), world.claims.get(name)
    disk = world.disks.get(claim.uid) if claim is not None else None
    if member.peer is not None:
        if peer is not None and peer.uid == member.peer.uid and not member.peer.is_terminating:
            _judge_deletion(world, name, disk)
            world.peers[name] = replace(peer, is_for_cleanup=True, is_terminating=True)
        return
    seen = member.claim
    if claim is not None and seen is not None and claim.uid == seen.uid and not seen.is_terminating:
        _judge_deletion(world, name, disk)
        world.delete_claim_gently(name)


def _judge_deletion(world: World, name: str, disk: Disk | None) -> None:
    """What is deleted is no member's, and everything acknowledged is on a voter that stays (I6)."""
    if disk is None or not disk.cluster_id:
        return
    groups = [group for group in world.groups(led=True) if group.cluster_id == disk.cluster_id]
    if any(disk.member_id in group.entries for group in groups):
        world.losses.append(f"the data of {name} was deleted although etcd lists it")
    promised = world.acknowledged.get(disk.cluster_id, set()) & disk.writes
    if not any(promised <= group.leader.disk.writes for group in groups):
        world.losses.append(f"the last copy of {sorted(promised)} was deleted with {name}")
