"""What the operator's actions do in the model world: as `reconcile.act` and `reconcile.membership` do them.

Each action has one case in `apply`; one that meets a changed world raises `Refused`, as any refusal of the
API server or of etcd does, and the pass ends.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, assert_never

from etcd_operator.core.actions import (
    Action,
    AddLearner,
    AnnotateVoters,
    ClearMissing,
    ConfirmLoss,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    DisarmCorrupt,
    DropPod,
    KeepBudget,
    MoveLeader,
    OpenSeed,
    PadLog,
    Promote,
    RemakePod,
    Remember,
    RemoveCorrupt,
    RemoveMember,
    ReplaceMember,
    RestoreLabels,
    RetireMember,
    SetExistingOnly,
    SetSeedExistingOnly,
)
from etcd_operator.core.members import ClaimFacts, Member, PodFacts, quorum
from etcd_operator.core.starts import Bootstrapping, Resuming
from etcd_operator.core.state import ClusterState
from unit.core.model import Peer, Resource, World
from unit.core.model_etcd import EtcdRefused
from unit.core.model_pods import Claim, Pod
from unit.core.model_raft import Disk, Process
from unit.core.model_recovery import Changed, confirm, hand_over

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
            return _remember(world, world.resource, state, action)
        case CreateClientService() | CreateMemberService() | KeepBudget() | RestoreLabels():
            return _make(world, action, uid)
        case CreateMember():
            return _create_member(world, world.resource, action)
        case SetExistingOnly() | AnnotateVoters() | RemakePod() | ClearMissing():
            return _write_down(world, state, action)
        case ReplaceMember():
            return _replace(world, state, action)
        case (
            AddLearner()
            | Promote()
            | MoveLeader()
            | RemoveMember()
            | RemoveCorrupt()
            | DisarmCorrupt()
            | PadLog()
        ):
            _change(world, state, action)
        case DeleteMember() | DropPod():
            _take_away(world, cache, state, action)
        case ConfirmLoss() | SetSeedExistingOnly() | RetireMember() | OpenSeed():
            return _recover(world, state, action)
        case _:
            raise NotImplementedError(f"the model knows of nobody who gives up persistent members: {action}")
    return set()


def _recover(
    world: World, state: ClusterState, action: ConfirmLoss | SetSeedExistingOnly | RetireMember | OpenSeed
) -> set[str]:
    try:
        if isinstance(action, ConfirmLoss):
            confirm(world, state, action)
            return set()
        return hand_over(world, state, action)
    except Changed as error:
        raise Refused(str(error)) from error


def _make(
    world: World, action: CreateClientService | CreateMemberService | KeepBudget | RestoreLabels, uid: str
) -> set[str]:
    match action:
        case RestoreLabels():
            world.unlabelled.discard(action.uid)
            return {"pods", "unlabelled"}
        case CreateClientService():
            world.services.setdefault("db", uid)
        case CreateMemberService():
            world.services.setdefault(action.name, uid)
        case KeepBudget():
            world.budget = action.min_available
            return {"budget"}
        case _:
            assert_never(action)
    return {"services"}


def _remember(world: World, resource: Resource, state: ClusterState, action: Remember) -> set[str]:
    """Only if nobody has written since it was looked at; `generation` stands for the resourceVersion."""
    if resource.writes != state.desired.generation:
        raise Refused("the status was written by somebody else")
    world.resource = replace(resource, persisted=action.persisted, writes=resource.writes + 1)
    return {"resource"}


def _create_member(world: World, resource: Resource, action: CreateMember) -> set[str]:
    if isinstance(action.start, Bootstrapping) and resource.persisted.is_bootstrapped:
        world.bootstrapped_twice = True
    version = action.version or resource.version
    if world.is_persistent:
        if action.name in world.peers and world.peers[action.name].is_terminating:
            raise Refused("the former peer is being removed")
        peer = Peer(uid=world.uid("peer"), start=action.start, version=version)
        world.peers.setdefault(action.name, peer)
        return {"peers"}
    if action.name in world.pods and world.pods[action.name].is_terminating:
        raise Refused("the former pod is being removed")
    if action.name not in world.pods:
        world.create_pod(action.name, action.start, version)
    return {"pods"}


def _write_down(
    world: World, state: ClusterState, action: SetExistingOnly | AnnotateVoters | RemakePod | ClearMissing
) -> set[str]:
    if isinstance(action, SetExistingOnly):
        return _set_existing_only(world, state, action)
    claim, seen = world.claims.get(action.name), state.by_name[action.name].claim
    if claim is None or seen is None or claim.uid != seen.uid:
        raise Refused("the claim is gone")
    if isinstance(action, AnnotateVoters):
        claim = replace(claim, voters=action.voters, voters_revision=action.revision)
    elif isinstance(action, RemakePod):
        claim = replace(claim, missing_in=_remade(world, state, action.name))
    else:
        claim = replace(claim, missing_in="")
    world.claims[action.name] = claim
    return {"claims"}


def _remade(world: World, state: ClusterState, name: str) -> str:
    """The pod that is deleted, if it is still the one that was seen and does not run."""
    pod, seen = world.pods.get(name), state.by_name[name].pod
    if pod is None or seen is None or pod.uid != seen.uid or pod.is_running:
        raise Refused(f"the pod of {name} is not what it was")
    world.delete_pod(name)
    return pod.uid


def _set_existing_only(world: World, state: ClusterState, action: SetExistingOnly) -> set[str]:
    claim, peer = world.claims.get(action.name), world.peers.get(action.name)
    if claim is None:
        raise Refused("the claim is gone")
    world.claims[action.name] = replace(
        claim,
        cluster_id=action.cluster_id,
        member_id=action.member_id,
        voters=action.voters,
        voters_revision=action.revision,
        version=state.by_name[action.name].requested_version,
    )
    if peer is None:
        raise Refused("the peer is gone")
    world.peers[action.name] = replace(peer, start=Resuming(token=peer.start.token))
    return {"claims", "peers"}


def _replace(world: World, state: ClusterState, action: ReplaceMember) -> set[str]:
    """After a live look that the others still list it and are there: as `reconcile.upgrade` does."""
    name, member = action.name, state.by_name[action.name]
    if len(state.voters) > 1 and member.is_healthy:
        if not _lists(world, state, name):
            raise Refused(f"{name} is no member any more: not upgrading it")
        _assert_others_run(world, state, name)
    if not world.is_persistent:
        pod = world.pods.get(name)
        if member.pod is None or member.pod.is_terminating or pod is None or pod.uid != member.pod.uid:
            raise Refused(f"the pod of {name} is being deleted: not upgrading it")
        world.pods[name] = replace(pod, version=action.version)
        return {"pods"}
    seen = member.peer
    if seen is None or seen.is_terminating or seen.is_for_cleanup:
        raise Refused(f"the EtcdPeer {name} is being deleted: not upgrading it")
    claim, peer = world.claims.get(name), world.peers.get(name)
    is_marked = member.claim is None or member.claim.version == action.version
    if member.claim is not None and not is_marked:
        if claim is None or claim.uid != member.claim.uid:
            raise Refused(f"the claim of {name} is gone")
        world.claims[name] = replace(claim, version=action.version)
    if peer is None or peer.uid != seen.uid:
        raise Refused(f"the EtcdPeer {name} is gone")
    world.peers[name] = replace(peer, is_terminating=True, is_in_foreground=True)
    return set() if is_marked else {"claims"}


# etcd, asked as `reconcile.membership` asks it


def _change(
    world: World,
    state: ClusterState,
    action: AddLearner | Promote | MoveLeader | RemoveMember | RemoveCorrupt | DisarmCorrupt | PadLog,
) -> None:
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
            case PadLog():
                world.pad(_voter(world, state), action.entries)
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


def _remove(world: World, state: ClusterState, action: RemoveMember | RemoveCorrupt) -> None:
    asked = _voter(world, state, but=action.name)
    if action.member_id in world.listed(asked):
        _assert_gone_as_seen(world, state, action.name)
        _assert_as_planned(world, state, asked)
        _assert_others_stay(world, state, action.name)
        world.remove(asked, action.member_id)


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
    """Every healthy voter that is not named has all that the others have, and they are a quorum."""
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


def _lists(world: World, state: ClusterState, name: str) -> bool:
    """Whether etcd lists a member now; asked of the others."""
    try:
        listed = world.listed(_voter(world, state, but=name))
    except EtcdRefused as error:
        raise Refused(str(error)) from error
    return name in {entry.name for entry in listed.values()}


def _assert_gone_as_seen(world: World, state: ClusterState, name: str) -> None:
    member = state.by_name.get(name)
    seen = state.kind.storage_of(member) if member is not None else None
    held: Mapping[str, Claim | Pod] = world.claims if world.is_persistent else world.pods
    now = held.get(name)
    if now is not None and not now.is_terminating and (seen is None or seen.uid != now.uid):
        world.unlabelled.discard(now.uid)
        raise Refused(f"what holds the data of {name} is there after all")


def _assert_others_stay(world: World, state: ClusterState, leaving: str) -> None:
    held = world.claims if world.is_persistent else world.pods
    _assert_still_there(state, leaving, state.kind.storage_of, held)


def _assert_others_run(world: World, state: ClusterState, leaving: str) -> None:
    _assert_still_there(state, leaving, lambda voter: voter.pod, world.pods)


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
            raise Refused(f"{voter.name} is going since")


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
    if process is None or process.is_frozen or process.is_unheard:
        raise Refused(f"{member.name} does not answer")
    if world.wants_user:
        raise Refused(f"{member.name} answers only users")
    return process


# deleting


def _take_away(world: World, cache: Cache, state: ClusterState, action: DeleteMember | DropPod) -> None:
    if isinstance(action, DropPod):
        _drop(world, state, action.name)
    else:
        _delete(world, cache, state, action.name)


def _delete(world: World, cache: Cache, state: ClusterState, name: str) -> None:
    """Only what etcd, read through a quorum, does not list."""
    if _lists(world, state, name):
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
