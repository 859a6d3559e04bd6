"""The acts of a manual recovery in the model world: persistent members that a person gives up by name.

Until the claim of the seed names the cluster that it serves nothing is given up, and a quorum that returns
ends the recovery. From then on there is no way back: `give_up` forgives the writes that only those members
have that were silent when the recovery was confirmed, also those that they take later, and nothing else.
"""

from dataclasses import replace

from etcd_operator.api.recoveries import OfflineSurvivor
from etcd_operator.api.shared_keys import DELETE_CLAIMS
from etcd_operator.controllers.etcd_cluster.decide.members import Member, quorum
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    ConfirmSilence,
    DropSeed,
    OpenSeed,
    ReadMember,
    RetireMember,
    SetSeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import recovery_name
from etcd_operator.controllers.etcd_cluster.decide.starts import Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import ANYBODY
from unit.simulation.model import Refused, World
from unit.simulation.model_in_place import drop_filling, judge_end, judge_retirement
from unit.simulation.model_recovery import answers, assert_serves, observed_pod, read_again, survivor

ManualAction = ConfirmSilence | DropSeed | SetSeedExistingOnly | RetireMember | OpenSeed


def recover(world: World, state: ClusterState, action: ManualAction) -> set[str]:
    """Carry out one act; the kinds of objects whose caches are waited for. Raises Refused."""
    match action:
        case ConfirmSilence():
            _confirm(world, state, action)
        case DropSeed():
            _assert_may_drop(world, state, action.name)
            _judge_drop(world, action.name)
            _remove(world, state.by_name.get(action.name), keeps_claim=False)
        case SetSeedExistingOnly():
            return _set_existing_only(world, state, action)
        case RetireMember():
            assert_serves(world, state, action.seed, 0)
            return _retire(world, state, action)
        case OpenSeed():
            _open(world, state, action.name)
    return set()


def _confirm(world: World, state: ClusterState, action: ConfirmSilence) -> None:
    """No survivor follows a leader; what they have is what the recovery must keep."""
    held: set[int] = set()
    for name, uid in action.survivors:
        process = survivor(world, name, uid)
        is_other = process.disk.cluster_id != state.persisted.cluster_id
        if is_other or world.group_of(process) is not None:
            raise Refused(f"{name} follows a leader")
        held |= process.disk.writes
    for process in world.processes.values():
        if process.name in action.silent and answers(world, process):
            raise Refused(f"{process.name} answers again")
    for member in action.read:
        held |= read_again(world, state, member).disk.writes
    for process in world.processes.values():
        if process.name in action.silent and answers(world, process):
            raise Refused(f"{process.name} answers again")
    world.to_be_kept = held


def _assert_may_drop(world: World, state: ClusterState, name: str) -> None:
    """In place a person has withdrawn the request; else a quorum of the old cluster is back."""
    recovery = state.persisted.recovery
    if recovery is None or recovery.authority != "InPlace":
        _assert_old_quorum(world, state)
    if recovery is not None and recovery.stored_backup is not None:
        drop_filling(world, state, name)


def _assert_old_quorum(world: World, state: ClusterState) -> None:
    old = state.persisted.cluster_id
    for member in state.answers:
        if member.answer is not None and member.answer.cluster_id == old and member.is_healthy:
            process = world.processes.get(member.pod.uid) if member.pod is not None else None
            if process is None or not answers(world, process) or world.group_of(process) is None:
                raise Refused(f"{member.name} does not confirm a read")
            return
    raise Refused("no quorum of the old cluster answers after all")


def _judge_drop(world: World, name: str) -> None:
    claim = world.claims.get(name)
    disk = world.disks.get(claim.uid) if claim is not None else None
    if disk is not None and disk.cluster_id in world.acknowledged:
        world.losses.append(f"{name} was dropped although its cluster serves clients")


def _set_existing_only(world: World, state: ClusterState, action: SetSeedExistingOnly) -> set[str]:
    """First the peer: it starts from its data only. Then the claim: from here on there is no way back."""
    name, member, recovery = action.name, state.by_name[action.name], state.persisted.recovery
    group = assert_serves(world, state, name, action.revision)
    observed_pod(world, state, name)
    peer, claim = world.peers.get(name), world.claims.get(name)
    if recovery is None or member.peer is None or member.claim is None:
        raise Refused(f"{name} has no peer or no claim")
    if not member.claim.cluster_id and recovery.authority != "InPlace":
        _assert_leaderless(world, state, name)
    if peer is None or claim is None or (peer.uid, claim.uid) != (member.peer.uid, member.claim.uid):
        raise Refused(f"the objects of {name} are not those that were observed")
    member_id = group.leader.disk.member_id
    world.peers[name] = replace(peer, start=Resuming(token=recovery.token))
    world.claims[name] = replace(
        claim,
        cluster_id=group.cluster_id,
        member_id=member_id,
        voters=(f"{name}={member_id}",),
        voters_revision=1,
        version=recovery.version,
    )
    if not member.claim.cluster_id:
        judge_end(world, recovery, group)
    if not member.claim.cluster_id and recovery.authority != "InPlace":
        _judge_choice(world, state)
    world.give_up(group)
    return {"peers", "claims"}


def _judge_choice(world: World, state: ClusterState) -> None:
    """What answers at the point of no return is kept, and is no quorum that awaits its leader."""
    old = state.persisted.cluster_id
    found = [p for p in world.processes.values() if answers(world, p) and p.disk.cluster_id == old]
    for process in found:
        peer, named = world.peers.get(process.name), process.disk.corrupt & {process.disk.member_id, ANYBODY}
        stays = process.name in world.pods and peer is not None and not peer.is_terminating
        if stays and not named and not process.disk.is_learner:
            world.to_be_kept |= process.disk.writes
    for group in world.groups(led=False):
        there = [voter for voter in group.voters if voter in found]
        if group.cluster_id == old and len(there) >= quorum(len(group.leader.disk.voters)):
            world.losses.append(f"{old} is given up although {[p.name for p in there]} may elect a leader")


def _assert_leaderless(world: World, state: ClusterState, seed: str) -> None:
    """The last check before there is no way back: the old cluster is as it was when that was planned."""
    for member in state.answers:
        process = world.processes.get(member.pod.uid) if member.pod is not None else None
        if member.name == seed:
            continue
        if process is None or not answers(world, process) or world.group_of(process) is not None:
            raise Refused(f"{member.name} follows a leader again, or does not answer")
        if process.revision > member.revision:
            raise Refused(f"{member.name} has newer data")
    silent = {member.name for member in state.members if member.answer is None} - {seed}
    for process in world.processes.values():
        is_old = process.disk.cluster_id == state.persisted.cluster_id and not process.disk.is_learner
        if process.name in silent and is_old and answers(world, process):
            raise Refused(f"{process.name} answers again")
    source = state.persisted.recovery.source if state.persisted.recovery is not None else None
    found = state.by_name.get(source.name) if isinstance(source, OfflineSurvivor) else None
    if not isinstance(source, OfflineSurvivor) or found is None or found.answer is not None or not found.pod:
        return
    if found.pod.reader is not None and not found.pod.is_terminating:
        read_again(world, state, ReadMember(name=found.name, uid=found.pod.uid, sha256=source.sha256))


def _retire(world: World, state: ClusterState, action: RetireMember) -> set[str]:
    member, recovery = state.by_name[action.name], state.persisted.recovery
    judge_retirement(world, action.name)
    if not action.keeps_data:
        _judge_deletion(world, action.name)
    elif member.claim is not None and recovery is not None:
        claim = world.claims.get(action.name)
        if claim is None or claim.uid != member.claim.uid:
            raise Refused(f"the claim of {action.name} is not the one that was observed")
        world.claims[action.name] = replace(claim, given_up=recovery_name(recovery))
    _remove(world, member, keeps_claim=action.keeps_data)
    return {"claims"} if action.keeps_data else set()


def _judge_deletion(world: World, name: str) -> None:
    """A claim is deleted only with an attempt that never served, or when the annotation asks for it."""
    claim, resource = world.claims.get(name), world.resource
    disk = world.disks.get(claim.uid) if claim is not None else None
    if claim is None or claim.given_up or disk is None or not disk.cluster_id or resource is None:
        return
    if disk.cluster_id in world.replaced:
        return
    if disk.cluster_id not in world.given_up:
        world.losses.append(f"the claim {name} was deleted although its cluster was not given up")
    if not resource.recover.endswith(DELETE_CLAIMS):
        world.losses.append(f"the claim {name} was deleted although nobody asked for it")


def _remove(world: World, member: Member | None, *, keeps_claim: bool) -> None:
    """The peer, with the finalizer that deletes its claim unless that is kept; without a peer the claim."""
    if member is None:
        return
    name, peer, claim = member.name, world.peers.get(member.name), world.claims.get(member.name)
    if member.peer is not None and not member.peer.is_terminating:
        if peer is None or peer.uid != member.peer.uid:
            raise Refused(f"the EtcdPeer {name} is not the one that was observed")
        is_for_cleanup = peer.is_for_cleanup or not keeps_claim
        world.peers[name] = replace(peer, is_for_cleanup=is_for_cleanup, is_terminating=True)
    elif keeps_claim:
        return
    elif member.peer is None and member.claim is not None and not member.claim.is_terminating:
        is_same = claim is not None and claim.uid == member.claim.uid
        world.delete_claim_gently(name if is_same else "")


def _open(world: World, state: ClusterState, name: str) -> None:
    """Clients find the members of the new cluster from now on: the Service selects by the token."""
    recovery = state.persisted.recovery
    if "db" not in world.services or recovery is None:
        raise Refused("the Service is missing")
    seen, pod = state.by_name[name].pod, world.pods.get(name)
    if seen is not None and pod is not None and pod.uid == seen.uid:
        world.pods[name] = replace(pod, is_routed=True)
    world.selected_token = world.services["db"] = recovery.token
