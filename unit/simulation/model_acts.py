"""What the operator's actions do in the model world.

Each action has one case in `apply`. One that meets a changed world raises `Refused`, as any refusal of the
API server or of etcd does, and the pass ends. Here are the acts on objects. Those on etcd's members are in
model_membership.py, with deletions, recoveries in model_recovery.py, and those of persistent
members in model_manual_recovery.py.
"""

from dataclasses import replace
from typing import assert_never

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AddLearner,
    AnnotateVoters,
    AppendEntry,
    ChangeStorage,
    ClearMissing,
    ConfirmClaimsLost,
    ConfirmNoAuthentication,
    CreateClientService,
    CreateMember,
    CreateMemberService,
    DeleteMember,
    DisarmCorrupt,
    DropPod,
    KeepBudget,
    MoveLeader,
    PadLog,
    Promote,
    RecreatePod,
    Remember,
    RemoveCorrupt,
    RemoveExternal,
    RemoveMember,
    ReplaceMember,
    RestoreLabels,
    SetExistingOnly,
    TakeBack,
)
from etcd_operator.controllers.etcd_cluster.decide.certificates.acts import (
    AlterAuthorities,
    CreateAuthorities,
    DropCertificates,
    KeepCertificates,
    PublishAuthority,
    RequestCertificates,
)
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    AddReader,
    CloseClients,
    ConfirmBackup,
    ConfirmLoss,
    ConfirmNothingLeft,
    ConfirmSilence,
    CreateClosedService,
    DropEmpty,
    DropFilling,
    DropSeed,
    FillSeed,
    RecoveryAction,
    ReopenClients,
    RestoreAction,
    StartSurvivor,
    TrySeedExistingOnly,
)
from etcd_operator.controllers.etcd_cluster.decide.starts import Bootstrapping, Resuming
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import Peer, Refused, Resource, World
from unit.simulation.model_choice import judge_choice, judge_record
from unit.simulation.model_in_place import judge_begin, judge_stored, restore
from unit.simulation.model_manual_recovery import recover
from unit.simulation.model_membership import Cache, assert_others_run, change, lists, take_away
from unit.simulation.model_recovery import (
    add_reader,
    assert_serves,
    confirm,
    confirm_claims_lost,
    confirm_nothing_left,
    drop_empty,
    hand_over,
    start_survivor,
)


def apply(world: World, cache: Cache, state: ClusterState, action: Action) -> set[str]:
    """Carry out one action; the kinds of objects whose caches are waited for afterwards."""
    uid = state.desired.uid
    if world.resource is None or world.resource.uid != uid:
        raise Refused("the resource is missing: what is made for it is deleted at once")
    match action:
        case Remember():
            return _remember(world, world.resource, state, action)
        case CreateClientService() | CreateMemberService() | StartSurvivor() | KeepBudget() | RestoreLabels():
            return _make(world, state, action)
        case CreateMember():
            return _create_member(world, world.resource, state, action)
        case SetExistingOnly() | AnnotateVoters() | RecreatePod() | ClearMissing():
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
            | AppendEntry()
        ):
            change(world, state, action)
        case (
            RemoveExternal()
            | TakeBack()
            | ChangeStorage()
            | CreateAuthorities()
            | RequestCertificates()
            | KeepCertificates()
            | PublishAuthority()
            | AlterAuthorities()
            | DropCertificates()
            | ConfirmNoAuthentication()
        ):
            raise AssertionError("nothing is adopted, loses its owner, changes its storage or has TLS here")
        case DeleteMember() | DropPod():
            take_away(world, cache, state, action)
        case _:
            return _recover(world, state, action)
    return set()


def _recover(
    world: World, state: ClusterState, action: RecoveryAction | RestoreAction | ConfirmClaimsLost
) -> set[str]:
    match action:
        case ConfirmClaimsLost():
            confirm_claims_lost(world, action)
            return set()
        case (
            ConfirmBackup()
            | FillSeed()
            | DropFilling()
            | CloseClients()
            | CreateClosedService()
            | ReopenClients()
        ):
            return restore(world, state, action)
        case ConfirmLoss() | ConfirmNothingLeft():
            if isinstance(action, ConfirmLoss):
                confirm(world, state, action)
            else:
                confirm_nothing_left(world, action)
            return set()
        case DropEmpty():
            drop_empty(world, state, action.name)
            return {"pods"}
        case AddReader():
            return add_reader(world, state, action)
        case TrySeedExistingOnly():
            assert_serves(world, state, action.name, action.revision)
            return set()
        case ConfirmSilence() | DropSeed():
            return recover(world, state, action)
        case _:
            return recover(world, state, action) if world.is_persistent else hand_over(world, state, action)


def _make(
    world: World,
    state: ClusterState,
    action: CreateClientService | CreateMemberService | StartSurvivor | KeepBudget | RestoreLabels,
) -> set[str]:
    uid = state.desired.uid
    match action:
        case RestoreLabels():
            world.unlabelled.discard(action.pod.uid)
            return {"pods", "unlabelled"}
        case CreateClientService():
            if "db" not in world.services:
                world.selected_token = world.services["db"] = state.desired.token
        case CreateMemberService():
            world.services.setdefault(action.name, uid)
        case StartSurvivor():
            start_survivor(world, state, action.name)
            return {"pods"}
        case KeepBudget():
            world.budget = action.min_available
            return {"budget"}
        case _:
            assert_never(action)
    return {"services"}


def _remember(world: World, resource: Resource, state: ClusterState, action: Remember) -> set[str]:
    """Only if nobody has written since it was observed; `generation` stands for the resourceVersion."""
    if resource.writes != state.desired.generation:
        raise Refused("the status was written by somebody else")
    recovery = action.persisted.recovery
    if world.is_persistent and recovery is not None and recovery.replaces:
        former = resource.persisted.recovery
        if former is None or former.generation != recovery.generation:
            judge_begin(world, state, recovery)
    judge_stored(world, resource.persisted, action.persisted)
    judge_choice(world, state, resource.persisted, action.persisted)
    judge_record(world, state, action.persisted)
    world.resource = replace(resource, persisted=action.persisted, writes=resource.writes + 1)
    return {"resource"}


def _create_member(world: World, resource: Resource, state: ClusterState, action: CreateMember) -> set[str]:
    if isinstance(action.start, Bootstrapping):
        if state.persisted.is_bootstrapped:
            world.losses.append(f"{action.name} is to begin empty although its cluster was bootstrapped")
        now = resource.persisted
        if now.is_bootstrapped or now.bootstrap != state.persisted.bootstrap:
            raise Refused("the bootstrap has ended, or begun again, since it was observed")
    if isinstance(action.start, Bootstrapping) and resource.restores:
        world.losses.append(f"{action.name} begins empty although a backup is to be restored")
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
    world: World, state: ClusterState, action: SetExistingOnly | AnnotateVoters | RecreatePod | ClearMissing
) -> set[str]:
    if isinstance(action, SetExistingOnly):
        return _set_existing_only(world, state, action)
    claim, seen = world.claims.get(action.name), state.by_name[action.name].claim
    if claim is None or seen is None or claim.uid != seen.uid:
        raise Refused("the claim is missing")
    if isinstance(action, AnnotateVoters):
        claim = replace(claim, voters=action.voters, voters_revision=action.revision)
    elif isinstance(action, RecreatePod):
        claim = replace(claim, missing_in=_remade(world, state, action.name))
    else:
        claim = replace(claim, missing_in="")
    world.claims[action.name] = claim
    return {"claims"}


def _remade(world: World, state: ClusterState, name: str) -> str:
    """The pod that is deleted, if it is still the one that was observed and does not run."""
    pod, seen = world.pods.get(name), state.by_name[name].pod
    if pod is None or seen is None or pod.uid != seen.uid or pod.is_running:
        raise Refused(f"the pod of {name} is not what it was")
    world.delete_pod(name)
    return pod.uid


def _set_existing_only(world: World, state: ClusterState, action: SetExistingOnly) -> set[str]:
    claim, peer = world.claims.get(action.name), world.peers.get(action.name)
    if claim is None:
        raise Refused("the claim is missing")
    world.claims[action.name] = replace(
        claim,
        cluster_id=action.cluster_id,
        member_id=action.member_id,
        voters=action.voters,
        voters_revision=action.revision,
        version=state.by_name[action.name].requested_version,
    )
    if peer is None:
        raise Refused("the peer is missing")
    world.peers[action.name] = replace(peer, start=Resuming(token=peer.start.token))
    return {"claims", "peers"}


def _replace(world: World, state: ClusterState, action: ReplaceMember) -> set[str]:
    """After a live check that the others still list it and exist: as `etcd_cluster.upgrade_watch` does."""
    name, member = action.name, state.by_name[action.name]
    if len(state.voters) > 1 and (member.is_healthy or (state.has_quorum and member.is_running)):
        if not lists(world, state, name):
            raise Refused(f"{name} is no member any more: not upgrading it")
        assert_others_run(world, state, name)
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
    is_annotated = member.claim is None or member.claim.version == action.version
    if member.claim is not None and not is_annotated:
        if claim is None or claim.uid != member.claim.uid:
            raise Refused(f"the claim of {name} is missing")
        world.claims[name] = replace(claim, version=action.version)
    if peer is None or peer.uid != seen.uid:
        raise Refused(f"the EtcdPeer {name} is missing")
    world.peers[name] = replace(peer, is_terminating=True, is_in_foreground=True)
    return set() if is_annotated else {"claims"}
