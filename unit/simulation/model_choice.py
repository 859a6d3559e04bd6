"""What a recovery of ephemeral members is begun with, judged by what is true in the model world.

Judged when its entry is written, and again when the new cluster's ID is: the source is the newest one that
could be known, and the status names it and does not hide what it lacks.
"""

from dataclasses import replace

from etcd_operator.api.recoveries import Backup as Source
from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import conditions
from unit.simulation.model import World
from unit.simulation.model_backups import Backup

PATIENCE = 30.0
"""Seconds for which a silent tool is waited for, at least, beside a survivor."""


def judge_choice(world: World, state: ClusterState, before: PersistedState, after: PersistedState) -> None:
    """Add to the losses what is wrong with the source of a recovery that begins."""
    recovery, former = after.recovery, before.recovery
    is_new = former is None or (recovery is not None and recovery.generation > former.generation)
    if world.is_persistent or recovery is None or not is_new:
        return
    seed = world.pods.get(former.seed) if former is not None and before.is_recovering else None
    if seed is not None and seed.is_routed and not seed.is_finished:
        world.losses.append(f"{seed.name} is thrown away although clients reach it")
    if not recovery.replaces:
        return  # at creation the seed chooses
    if recovery.backup is None:
        _judge_survivor(world, state, recovery)
    else:
        _judge_backup(world, recovery, recovery.backup)


def _judge_survivor(world: World, state: ClusterState, recovery: Recovery) -> None:
    """No backup that is known, or could be by now, has more of the same etcd cluster."""
    pod = world.pods.get(recovery.source.name)
    disk = world.disks.get(pod.uid) if pod is not None else None
    revision = disk.revision if disk is not None else recovery.revision
    newer = [b for b in _whole(world) if b.content.cluster_id == recovery.replaces]
    newer = [b for b in newer if b.content.revision > revision]
    tool_backups = state.tool_backups
    is_heard = tool_backups.report is not None and tool_backups.report.is_listed
    is_known = any(backup.content.revision <= tool_backups.known_revision for backup in newer)
    if tool_backups.report is not None and not tool_backups.report.is_listed:
        world.losses.append(f"{recovery.source.name} is chosen although a backup is being stored")
    if newer and (is_heard or is_known or tool_backups.waited < PATIENCE):
        names = [backup.name for backup in newer]
        world.losses.append(
            f"{recovery.source.name} with revision {revision} is chosen although there is {names}"
        )


def _judge_backup(world: World, recovery: Recovery, source: Source) -> None:
    """It was found whole, it is what the entry records, and no other one has more that was acknowledged."""
    chosen = world.tool.made[source.name]
    if source.name not in world.tool.reported:
        world.losses.append(f"{source.name} is chosen although nobody has read it")
    if (source.sha256, source.time, recovery.revision) != (
        chosen.sha256,
        chosen.report.time,
        chosen.content.revision,
    ):
        world.losses.append(f"{source} is not what the backup {chosen.report} is")
    promised = set[int]().union(*world.acknowledged.values())
    for other in _whole(world):
        missing = (promised & other.content.writes) - chosen.content.writes
        if missing:
            world.losses.append(f"{chosen.name} is chosen, and {other.name} has {sorted(missing)}, too")


def _whole(world: World) -> list[Backup]:
    kept = world.resource is not None and world.resource.keeps_backups
    return [backup for backup in world.tool.stored if kept and not backup.is_damaged]


def judge_record(world: World, state: ClusterState, after: PersistedState) -> None:
    """With the ID of a recovered cluster status names what it was begun with, and hides no loss."""
    recovery = after.recovery
    if recovery is None or after.cluster_id == state.persisted.cluster_id:
        return
    # Back at the survivor, its cluster is on record again: what that cluster was begun with is not news.
    is_back = after.cluster_id == recovery.replaces
    found = None if is_back else world.fetched.get(after.cluster_id)
    named = recovery.backup
    if found is not None and (
        named is None
        or (named.name, named.sha256, named.time) != (found.name, found.sha256, found.report.time)
        or recovery.revision != found.content.revision
    ):
        world.losses.append(f"{recovery} does not name {found.report}")
    seen = replace(state, desired=replace(state.desired, persisted=after))
    reported = {each.type: each for each in conditions(seen, Plan.settled())}.get("DataLossPossible")
    if reported is None and world.lost.get(after.cluster_id):
        world.losses.append(f"the status hides that {sorted(world.lost[after.cluster_id])} are lost")
    if reported is not None and found is not None:
        facts = (found.name, found.report.time, f"revision {found.content.revision}")
        if any(fact not in reported.message for fact in facts):
            world.losses.append(f"{reported.message} does not name {facts}")
