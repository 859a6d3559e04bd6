"""Deletions in the model world: what is checked before them, and what must not be lost by them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from etcd_operator.controllers.etcd_cluster.decide.actions import DeleteMember, DropPod
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import Refused, World
from unit.simulation.model_disks import Disk
from unit.simulation.model_membership import lists

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
        _judge_deletion(world, name, world.disks.get(pod.uid))
        world.delete_pod(name)
    if name in cache["services"]:
        world.services.pop(name, None)


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
