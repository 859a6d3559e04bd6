"""What no plan may be in the model world, whatever comes of it: judged when it is made, by what is true then.

Of members that are stopped on purpose (I7, I8, I9): what serves is known from the world, and not from what
the operator sees of it. Only what it could not know is left out: no leadership can be moved from a member
that it does not reach, what such a member has agreed to is not reported, and where those that it reaches know
of no quorum there is none.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    AddLearner,
    ConfirmClaimsLost,
    DeleteMember,
    Plan,
    Promote,
    RemoveCorrupt,
    RemoveMember,
    ReplaceMember,
)
from etcd_operator.controllers.etcd_cluster.decide.members import quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.simulation.model import World
from unit.simulation.model_disks import Group, Process, minor

MEMBERSHIP = (AddLearner, Promote, RemoveMember, RemoveCorrupt)


def judge(world: World, state: ClusterState, made: Plan) -> None:
    """Add to the losses of the world what is wrong with a plan."""
    live = {name for each in made.actions if isinstance(each, ConfirmClaimsLost) for name in each.names}
    if live & set(world.claims):
        return  # all of it is refused by a live read
    changes = [action for action in made.actions if isinstance(action, MEMBERSHIP)]
    replaced = [action for action in made.actions if isinstance(action, ReplaceMember)]
    wrong = world.losses
    if len(changes) > 1 or (state.persisted.is_bootstrapped and len(changes) + len(replaced) > 1):
        wrong.append(f"more than one change of members in {made}")
    if changes and not state.has_quorum:
        wrong.append(f"a change of members without a quorum: {made}")
    removed = {action.name for action in made.actions if isinstance(action, RemoveMember)}
    if made.reason == "Replacing":
        wrong += [
            f"{name} is taken out, but its data is there" for name in removed if _has_data(world, state, name)
        ]
    touched = [*removed, *(action.name for action in replaced)]
    wrong += [
        f"clients are sent to {name}, which stops" for name in touched if _has_clients(world, state, name)
    ]
    wrong += [text for action in made.actions if (text := _verdict(world, state, action, removed))]


def _has_clients(world: World, state: ClusterState, name: str) -> bool:
    """Whether clients may be sent to a member that serves, although there is another one."""
    if not state.has_quorum:
        return False
    reached = {v.name for v in state.healthy_voters if v.name in world.pods and world.pods[v.name].is_routed}
    return name in reached and len(reached) > 1


def _has_data(world: World, state: ClusterState, name: str) -> bool:
    """Whether a member that calls its data missing has it, on a volume that was not mounted."""
    pod, claim = state.by_name[name].pod, world.claims.get(name)
    if pod is None or not pod.has_no_data or claim is None or claim.is_terminating:
        return False
    disk = world.disks.get(claim.uid)
    return disk is not None and bool(disk.cluster_id) and not disk.is_removed


def _verdict(world: World, state: ClusterState, action: Action, removed: set[str]) -> str:
    match action:
        case AddLearner():
            if any(m.entry is not None and m.entry.is_learner for m in state.members):
                return f"a second learner: {action}"
            return f"a member too many: {action}" if len(state.voters) >= state.desired.size else ""
        case DeleteMember():
            member = state.by_name.get(action.name)
            is_listed = member is not None and member.entry is not None and action.name not in removed
            return f"the objects of a member that etcd lists are deleted: {action}" if is_listed else ""
        case ReplaceMember():
            return _verdict_on_stop(world, state, action)
        case RemoveCorrupt():
            trusted = [v for v in state.healthy_voters if v.id not in state.corrupt]
            too_few = len(trusted) < state.quorum or action.name in {voter.name for voter in trusted}
            return f"only {len(trusted)} are not named: {action}" if too_few else ""
        case _:
            return ""  # takes nothing away, or is judged by what comes of it where the model carries it out


def _verdict_on_stop(world: World, state: ClusterState, action: ReplaceMember) -> str:
    """Whether a process that serves is stopped although it must not be."""
    member, upgrade = state.by_name[action.name], state.persisted.upgrade
    group, process = _serving(world, action.name)
    if group is None or process is None or is_leaving(world, process):
        return ""
    what = f"{action.name} is stopped for {action.version}"
    rest = [voter for voter in group.voters if voter is not process]
    voters = len(group.leader.disk.voters)
    has_other_reports = bool(state.answers) and not state.has_quorum
    if len(rest) < quorum(voters) and voters > 2 and not has_other_reports:
        return f"{what}, which leaves {len(rest)} of {voters} voters"
    if member.is_healthy and minor(action.version) < process.disk.minor:
        return f"{what}, which refuses its data"
    if member.is_healthy and process is group.leader and rest:
        return f"{what} although it leads"
    if upgrade is not None and upgrade.member == action.name:
        return ""
    others = [entry.name for entry in group.entries.values() if entry.name != action.name]
    staying = {other.name for other in group.up if not is_leaving(world, other)}
    away = [name for name in others if name not in staying]
    return f"{what} although {away} are away" if away else ""


def _serving(world: World, name: str) -> tuple[Group | None, Process | None]:
    """The voter of that name that a quorum follows or has as a follower, if there is one."""
    for group in world.groups(led=True):
        for process in group.voters:
            if process.name == name:
                return group, process
    return None, None


def is_leaving(world: World, process: Process) -> bool:
    """Whether the operator has already seen to it that a process is stopped."""
    peer, pod = world.peers.get(process.name), world.pods.get(process.name)
    if world.is_persistent:
        return peer is None or peer.is_terminating
    return pod is None or pod.version != process.version
