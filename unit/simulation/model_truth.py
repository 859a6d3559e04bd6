"""Whether the reason of a plan that rests is true in the model world."""

from etcd_operator.api.shared_keys import DELETE_CLAIMS
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import recovery_name
from etcd_operator.controllers.etcd_cluster.decide.starts import Joining
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.etcd.values import ANYBODY
from unit.simulation.model import World
from unit.simulation.model_disks import UNPULLABLE, Disk, Entry, is_reachable
from unit.simulation.model_stored import has_restore_failed, is_restore_refused_rightly, newer_backups
from unit.simulation.model_truth_claims import (
    claim_is_in_the_way,
    claim_is_lost,
    claims_are_missing,
    claims_conflict,
    claims_of,
    is_uncertain,
)


def is_true(world: World, state: ClusterState, made: Plan) -> bool:
    """Judged from the world alone; an unknown reason is not true."""
    check = _CHECKS.get(made.reason)
    return check is not None and check(world, state)


def waits_in_vain(world: World, state: ClusterState, made: Plan) -> bool:
    """Whether a seed waits for a survivor that does not answer: only a person can give it up."""
    recovery = state.persisted.recovery
    if made.reason != "Recovering" or recovery is None or recovery.seed not in world.pods:
        return False
    if recovery.backup is not None:
        return False
    return not world.pods[recovery.seed].has_fetched and recovery.source.name not in _responding(world)


def story(world: World, state: ClusterState, made: Plan) -> str:
    """What was found at the end, for failures."""
    objects = {
        "pods": [*world.pods.values(), *world.going.values()],
        "peers": world.peers,
        "claims": world.claims,
        "services": sorted(world.services),
        "budget": world.budget,
        "processes": [(p.name, p.version, p.disk.member_id, p.disk.minor) for p in world.processes.values()],
        "desired": (state.desired.size, state.desired.version, state.desired.recover),
        "found bad": sorted(world.releases.found_bad),
        "persisted": state.persisted,
        "lists": [list(group.entries.values()) for group in world.groups(led=True)],
    }
    lines = "\n".join(f"{word}: {found}" for word, found in objects.items())
    return f"{made.stage.name} {made.reason}: {made.message} {made.actions}\n{lines}"


def _is_settled(world: World, state: ClusterState) -> bool:
    """One quorum of exactly the desired size, all voters, and no object too many or too few."""
    groups = world.groups(led=True)
    if len(groups) != 1 or groups[0].cluster_id != state.persisted.cluster_id:
        return False
    (group,) = groups
    serving = sorted(process.name for process in group.up)
    listed = sorted(entry.name for entry in group.leader.disk.voters)
    is_whole = serving == listed and len(group.entries) == len(listed) == state.desired.size
    is_whole = is_whole and _runs(world) == {state.desired.version} and state.persisted.upgrade is None
    is_whole = is_whole and all(world.takes_clients(process) for process in group.up)
    if world.is_persistent:
        services = {"db"}
        is_whole = is_whole and sorted(world.peers) == serving == _own_claims(world)
    else:
        services = {"db", *serving}
    has_pods = sorted(world.pods) == serving and not world.going
    is_protected = world.budget == quorum(state.desired.size)
    return is_whole and has_pods and is_protected and set(world.services) == services


def _runs(world: World) -> set[str]:
    """All versions that processes are of, or would be of next."""
    asked = {found.version for found in (world.peers if world.is_persistent else world.pods).values()}
    return asked | {process.version for process in world.processes.values()}


def _own_claims(world: World) -> list[str]:
    """Claims but those without annotations, which could be anybody's, and those that are given up."""
    return sorted(name for name, claim in claims_of(world).items() if claim.member_id)


def _lacks_a_quorum(world: World, state: ClusterState) -> bool:
    """No quorum serves, and too little is left of those that would have to form it, or too few can run.

    Where no person has to be asked, one that is left cannot report what it has, or takes itself as electable,
    or an alarm names all that are left.
    """
    serving = [group for group in world.groups(led=True) if group.cluster_id not in world.replaced]
    if serving or _can_serve_again(world, state):
        return False
    if world.is_persistent or not set(_by_member(world)) <= _responding(world):
        return True
    disks = list(_by_member(world).values())
    if all(disk.corrupt & {disk.member_id, ANYBODY} for disk in disks):
        return True
    return any(_left(disk.voters, disks) >= quorum(len(disk.voters)) for disk in disks)


def _responding(world: World) -> set[str]:
    """Members that report what they know: not before a leader was seen, and not as a learner."""
    return {p.name for p in world.processes.values() if p.has_led and not p.disk.is_learner}


def _is_refused_rightly(world: World, state: ClusterState) -> bool:
    """The annotation names neither the last recovery nor the one that could be made now."""
    asked, former = state.desired.recover.removesuffix(DELETE_CLAIMS), state.persisted.recovery
    if any(group.cluster_id == state.persisted.cluster_id for group in world.groups(led=True)):
        return bool(asked) and (former is None or asked != recovery_name(former))
    generation = former.generation + 1 if former is not None else 1
    survivor = _best_survivor(world, state)
    cluster_id, least = state.persisted.cluster_id, _by_member(world).get(survivor, Disk()).revision
    sources = [f"backup:{name}" for name in newer_backups(world, cluster_id, least)] or [survivor]
    names = {f"{cluster_id}/{source}/{generation}" for source in sources if source}
    return bool(asked) and _lacks_a_quorum(world, state) and asked not in names


def _best_survivor(world: World, state: ClusterState) -> str:
    """Who has the newest data of those that answer, or were read, and remain; empty for nobody."""

    def newest(name: str) -> tuple[int, int, int]:
        disk = found[name]
        return disk.revision, disk.committed, -ordinal_of(name)

    parts = (world.pods, world.peers, claims_of(world))
    kept = {name for name in world.pods if all(name in part for part in parts)}
    kept = {
        name for name in kept if not (world.peers[name].is_terminating or world.claims[name].is_terminating)
    }
    known = _responding(world) | {m.name for m in state.members if m.reading is not None}
    found = {
        p.name: p.disk for p in world.processes.values() if p.name in known & kept and not p.disk.is_learner
    }
    found = {n: disk for n, disk in found.items() if disk.cluster_id == state.persisted.cluster_id}
    return max(found, key=newest, default="")


def _has_nothing(world: World, state: ClusterState) -> bool:
    if newer_backups(world, state.persisted.cluster_id, 0):
        return False
    kept = world.resource is not None and world.resource.keeps_backups
    whole = {backup.content.cluster_id for backup in world.tool.stored if not backup.is_damaged}
    if kept and whole & _own_ids(state, whole):
        return False
    return not any(disk.cluster_id == state.persisted.cluster_id for disk in world.existing_disks())


def _own_ids(state: ClusterState, found: set[str]) -> set[str]:
    """Of these cluster IDs those that this resource had, as its status records it."""
    recovery = state.persisted.recovery
    if recovery is not None and not recovery.replaces:
        return found  # it began with one of them
    former = (recovery.replaces, *recovery.former) if recovery is not None else ()
    return {state.persisted.cluster_id, *former}


def _can_serve_again(world: World, state: ClusterState) -> bool:
    stopped = _cannot_run(world)
    disks = [d for d in world.existing_disks() if d.cluster_id and not d.is_removed]
    able = [disk for name, disk in _by_member(world).items() if name not in stopped]
    if world.is_persistent:  # what was given up, and seeds that never served, are disks, too
        disks = [disk for disk in disks if disk.cluster_id == state.persisted.cluster_id]
    last = max(disks, key=lambda disk: disk.committed, default=None)
    return last is not None and _left(last.voters, able) >= quorum(len(last.voters))


def _left(voters: list[Entry], disks: list[Disk]) -> int:
    return len({entry.id for entry in voters} & {disk.member_id for disk in disks})


def _by_member(world: World) -> dict[str, Disk]:
    stored = claims_of(world) if world.is_persistent else world.pods
    found = {name: world.disks.get(storage.uid) for name, storage in stored.items()}
    return {n: d for n, d in found.items() if d is not None and any(d is e for e in world.existing_disks())}


def _cannot_run(world: World) -> set[str]:
    """Members whose processes cannot run, at the desired version or for good, or never with their data."""
    asked = world.peers if world.is_persistent else world.pods
    disks = _by_member(world)
    ended = {
        name
        for name, pod in world.pods.items()
        if pod.is_finished
        or pod.cannot_restore
        or pod.cannot_fetch
        or (pod.is_unmounted and _loses_its_claim(world, name))
        or (pod.has_no_data and name in world.claims and world.claims[name].is_restored)
    }
    return ended | {
        name
        for name, found in asked.items()
        if found.version in UNPULLABLE or world.releases.complaint(found.version, disks.get(name, Disk()))
    }


def _loses_its_claim(world: World, name: str) -> bool:
    """No other pod can use a claim that is being deleted."""
    claim = world.claims.get(name)
    return claim is not None and claim.is_terminating


def _one_cannot_run(world: World, _state: ClusterState) -> bool:
    return bool(_cannot_run(world))


def _upgrading_member_cannot_run(world: World, state: ClusterState) -> bool:
    """At its version, or because it joins and there are no others any more."""
    upgrade = state.persisted.upgrade
    if upgrade is None:
        return False
    asked = (world.peers if world.is_persistent else world.pods).get(upgrade.member)
    is_joining = asked is not None and isinstance(asked.start, Joining)
    return upgrade.member in _cannot_run(world) or (is_joining and not world.groups(led=True))


def _is_unreachable(world: World, state: ClusterState) -> bool:
    """etcd does not go from the versions that run to the desired one."""
    running = {process.version for process in world.processes.values()}
    return not all(is_reachable(version, state.desired.version) for version in running)


def _must_wait(world: World, state: ClusterState) -> bool:
    """Somebody does not run, or would take the only copy of data with it."""
    is_going = any(claim.is_terminating for claim in world.claims.values()) and len(state.voters) <= 2
    return is_going or bool(_cannot_run(world))


def _too_few_agree(world: World, state: ClusterState) -> bool:
    """The named members leave no quorum of others, or what is named is the data that a recovery restored."""
    restored = state.persisted.recovery.corrupt_sources if state.persisted.recovery is not None else ()
    for group in world.groups(led=True):
        named, voters = group.leader.disk.corrupt, group.leader.disk.voters
        rest = [process for process in group.voters if process.disk.member_id not in named]
        is_listed = any(entry.id in named for entry in group.entries.values())
        too_few = is_listed and len(rest) < quorum(len(voters))
        if ANYBODY in named or too_few or named & {*restored}:
            return True
    return False


_CHECKS = {
    "DataCorrupt": _too_few_agree,
    "ClaimLost": claim_is_lost,
    "Settled": _is_settled,
    "QuorumLost": _lacks_a_quorum,
    "ClaimsConflict": claims_conflict,
    "ClaimsMissing": claims_are_missing,
    "ClaimInTheWay": claim_is_in_the_way,
    "BootstrapUncertain": is_uncertain,
    "CrashLoopBackOff": _one_cannot_run,
    "ErrImagePull": _one_cannot_run,
    "Evicted": _one_cannot_run,
    "MemberUnhealthy": _one_cannot_run,
    "NoBackup": _has_nothing,
    "QuorumAtRisk": _one_cannot_run,
    "RecoveryRefused": _is_refused_rightly,
    "RestoreFailed": has_restore_failed,
    "RestoreRefused": is_restore_refused_rightly,
    "UpgradeBlocked": _upgrading_member_cannot_run,
    "UpgradeRefused": _is_unreachable,
    "UpgradeWaiting": _must_wait,
}
