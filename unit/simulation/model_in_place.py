"""The acts of restores from EtcdBackups in the model world, and what no persistent recovery may do.

After a loss only what a person names is restored, and it has more than every survivor. In place nothing is
given up before the seed serves, nor when the request is withdrawn.
"""

from dataclasses import replace

from etcd_operator.api.recoveries import Recovery
from etcd_operator.api.shared_keys import DELETE_CLAIMS
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import (
    CloseClients,
    ConfirmBackup,
    CreateClosedService,
    DropFilling,
    FillSeed,
    ReopenClients,
    RestoreAction,
)
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import Refused, World
from unit.simulation.model_disks import Group
from unit.simulation.model_stored import CLOSED, StoredWorld


def restore(world: World, state: ClusterState, action: RestoreAction) -> set[str]:
    """Carry out one act; the kinds of objects whose caches are waited for. Raises Refused."""
    assert isinstance(world, StoredWorld), f"there are no EtcdBackups: {action}"
    match action:
        case ConfirmBackup():
            found = world.backups.get(action.name)
            if found is None or (found.uid, found.backup.sha256) != (action.uid, action.sha256):
                raise Refused(f"the EtcdBackup {action.name} is not the one that was observed")
        case FillSeed():
            return _fill(world, state, action.name)
        case DropFilling():
            drop_filling(world, state, action.name)
            return {"jobs"}
        case CloseClients():
            return _close(world, state)
        case CreateClosedService():
            if "db" not in world.services:
                world.selected_token = world.services["db"] = CLOSED
            return {"services"}
        case ReopenClients():
            return _reopen(world, state, action.name)
    return set()


def _fill(world: StoredWorld, state: ClusterState, name: str) -> set[str]:
    recovery = _recovery(state)
    claim = world.claims.get(name)
    if claim is not None and claim.token != recovery.token:
        raise Refused(f"the claim {name} is not this cluster's")
    job = world.seed_job(recovery, state.desired.uid, recovery.replaces)
    world.jobs.setdefault(recovery.token, job)
    return {"claims", "jobs"}


def drop_filling(world: World, state: ClusterState, name: str) -> None:
    """Raises Refused where the seed was found to serve."""
    assert isinstance(world, StoredWorld)
    claim, recovery = world.claims.get(name), _recovery(state)
    if claim is not None and claim.token == recovery.token and claim.cluster_id:
        raise Refused(f"{name} was found to serve")
    job = world.jobs.get(recovery.token)
    if job is not None:
        world.jobs[recovery.token] = replace(job, is_terminating=True)


def _close(world: StoredWorld, state: ClusterState) -> set[str]:
    recovery, resource = _recovery(state), world.resource
    if resource is None or resource.restore_in_place != _name(recovery):
        raise Refused("the restore is not requested any more")
    if "db" not in world.services:
        raise Refused("the Service is missing")
    world.selected_token = world.services["db"] = CLOSED
    return {"services"}


def _reopen(world: StoredWorld, state: ClusterState, seed: str) -> set[str]:
    claim = world.claims.get(seed)
    if claim is not None and claim.cluster_id not in ("", state.persisted.cluster_id):
        raise Refused(f"{seed} was found to serve")
    if "db" not in world.services:
        raise Refused("the Service is missing")
    world.selected_token = world.services["db"] = state.desired.token
    return {"services"}


def _recovery(state: ClusterState) -> Recovery:
    recovery = state.persisted.recovery
    if recovery is None or recovery.backup is None:
        raise Refused("no backup is being restored")
    return recovery


def _name(recovery: Recovery) -> str:
    """As docs/operations.md has it."""
    assert recovery.backup is not None
    source = recovery.backup.name if recovery.authority == "InPlace" else f"backup:{recovery.backup.name}"
    return f"{recovery.replaces}/{source}/{recovery.generation}"


# What must hold


def judge_begin(world: World, state: ClusterState, recovery: Recovery) -> None:
    """Add to the losses what is wrong with a recovery of persistent members that begins."""
    world.to_be_kept = set() if recovery.authority == "InPlace" else world.to_be_kept
    if recovery.authority != "InPlace":
        _judge_survivor(world, recovery, "begins")
    if recovery.backup is None:
        _judge_source(world, state, recovery)
        _judge_automatic(world, state, recovery)
    else:
        _judge_backup(world, recovery)


def _judge_survivor(world: World, recovery: Recovery, what: str) -> None:
    """Neither when a recovery begins nor when its cluster is given up may its survivor follow a leader."""
    pod = world.pods.get(recovery.source.name)
    process = world.processes.get(pod.uid) if pod is not None else None
    group = world.group_of(process) if process is not None else None
    if group is not None and group.cluster_id == recovery.replaces:
        world.losses.append(f"a recovery from {recovery.source.name} {what} while it follows a leader")


def _judge_automatic(world: World, state: ClusterState, recovery: Recovery) -> None:
    """None begins by itself where nobody asked for that, too early, or before the last one has stable."""
    resource = world.resource
    if resource is None or recovery.authority != "Automatic":
        return
    former = resource.persisted.recovery
    is_second = former is not None and former.replaces and former.is_unstable
    after = resource.recovers_after
    if after is None or is_second or state.absence.seconds < after:
        world.losses.append(f"a recovery from {recovery.source.name} begins by itself")


def _judge_source(world: World, state: ClusterState, recovery: Recovery) -> None:
    """No EtcdBackup that is known has more of the same etcd cluster."""
    claim = world.claims.get(recovery.source.name)
    disk = world.disks.get(claim.uid) if claim is not None else None
    revision = disk.revision if disk is not None else recovery.revision
    found = [each for each in state.backups.stored if each.cluster_id == recovery.replaces]
    newer = [each.name for each in found if each.revision > revision]
    if newer:
        world.losses.append(f"{recovery.source.name} at {revision} is chosen although there is {newer}")


def _judge_backup(world: World, recovery: Recovery) -> None:
    """A person has named it, and it is what the entry records."""
    backup, resource = recovery.backup, world.resource
    assert backup is not None
    assert resource is not None
    requested = resource.restore_in_place if recovery.authority == "InPlace" else resource.recover
    if recovery.authority == "Automatic" or requested.removesuffix(DELETE_CLAIMS) != _name(recovery):
        world.losses.append(f"{_name(recovery)} begins although nobody has named it")
    chosen = world.tool.made[backup.name]
    is_same = (backup.sha256, backup.time) == (chosen.sha256, chosen.report.time)
    if not is_same or recovery.revision != chosen.content.revision:
        world.losses.append(f"{recovery} is not of the backup {chosen.report}")


def judge_end(world: World, recovery: Recovery, group: Group) -> None:
    """The point of no return: what is judged right before the old cluster is given up."""
    if recovery.authority == "InPlace":
        resource = world.resource
        if resource is None or resource.restore_in_place != _name(recovery):
            world.losses.append(f"{recovery.replaces} is given up although nobody asks for it any more")
    else:
        _judge_survivor(world, recovery, "ends the old cluster")
    if isinstance(world, StoredWorld) and recovery.backup is not None:
        issued, begins = max(world.newest.values(), default=0), group.leader.disk.revision
        if begins <= issued:
            world.losses.append(f"{group.cluster_id} begins at revision {begins}, and {issued} was issued")
        if group.leader.disk.writes != world.tool.made[recovery.backup.name].content.writes:
            world.losses.append(f"{group.cluster_id} does not serve {recovery.backup.name}")


def judge_retirement(world: World, name: str) -> None:
    """Nothing of a cluster is deleted before it was given up."""
    claim = world.claims.get(name)
    disk = world.disks.get(claim.uid) if claim is not None else None
    cluster_id = disk.cluster_id if disk is not None else ""
    if cluster_id and cluster_id not in {*world.given_up, *world.replaced}:
        world.losses.append(f"{name} was retired although its cluster was not given up")


def judge_stored(world: World, before: PersistedState, after: PersistedState) -> None:
    """What is written of a restore in place while it is under way, and when it has failed."""
    former, recovery = before.recovery, after.recovery
    if former is None or recovery is None or not isinstance(world, StoredWorld):
        return
    if former.generation != recovery.generation or recovery.authority != "InPlace":
        return
    if recovery.given_up < former.given_up:
        world.losses.append(f"revision {former.given_up} was given up, and {recovery.given_up} is reported")
    if former.replaces and not recovery.replaces:
        world.go_on(former.replaces)
