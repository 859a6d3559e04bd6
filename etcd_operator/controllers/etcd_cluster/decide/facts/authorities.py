"""What follows for the CAs and certificates of a cluster, and which members have to be started again."""

from dataclasses import replace

from etcd_operator.api.tls import PLAIN
from etcd_operator.controllers.etcd_cluster.decide.certificates import facts
from etcd_operator.controllers.etcd_cluster.decide.certificates.state import Phase, Side, Situation
from etcd_operator.controllers.etcd_cluster.decide.certificates.steps import Restart, Step, next_step
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.facts.peering import is_peering_as_recorded
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.serving import Serving
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import unhealthy


@fact
def next_steps(state: ClusterState) -> tuple[tuple[Side, Situation, Step], ...]:
    """Of each side for which something is to be done, or waited for."""
    if not state.persisted.is_bootstrapped:
        return ()
    obstacle = _obstacle(state) if state.tls.sides else ""
    found = ((side, replace(each, obstacle=obstacle)) for side, each in state.tls.sides)
    return tuple((side, each, step) for side, each in found if (step := next_step(each)) is not None)


def _obstacle(state: ClusterState) -> str:
    """Why no voter may be away."""
    if state.persisted.is_recovering:
        return "the end of the recovery"
    if state.persisted.is_adopting:
        return "the end of the adoption"
    if state.upgrading_member is not None:
        return f"{state.upgrading_member.name}, which is being restarted"
    if state.persisted.upgrade is None and not state.has_quorum:
        return "a quorum"
    return unhealthy(state)


@fact
def restarts(state: ClusterState) -> frozenset[str]:
    """The members that are to be started again now, one at a time, to load the CAs or to serve otherwise."""
    steps = (step.action for _, _, step in next_steps(state))
    return (_serving_otherwise(state) | _following(state)).union(
        name
        for action in steps
        if isinstance(action, Restart) and not action.is_forced
        for name in action.members
    )


def _following(state: ClusterState) -> frozenset[str]:
    """The members that can load the CAs in the Secrets of the user now: their volumes have followed."""
    if not all(found.is_settled for _, found in state.tls.supplied):
        return frozenset()
    return frozenset(each.name for each in state.tls.unloaded)


def _serving_otherwise(state: ClusterState) -> frozenset[str]:
    """The members that serve clients, or connect to each other, in another way than is on record."""
    if state.persisted.tls is None:
        return frozenset()
    known = (member for member in state.members if member.pod is not None and member.pod.serving is not None)
    clients = {member.name for member in known if not serves_as_recorded(state, member)}
    started = (member for member in state.members if member.peers is not None)
    return frozenset(clients | {m.name for m in started if not is_peering_as_recorded(state, m)})


def serves_as_recorded(state: ClusterState, member: Member) -> bool:
    """Whether the pod of a member serves clients as is on record."""
    secured = state.persisted.tls.of_members if state.persisted.tls is not None else PLAIN
    serving = member.pod.serving if member.pod is not None else None
    return serving is not None and serving.is_as(Serving.of(secured))


@fact
def awaited_restarts(state: ClusterState) -> str:
    """What the restarts that are left wait for; empty if none is left, or none waits."""
    upgrade = state.persisted.upgrade
    if state.tls.unkept is not None and upgrade is not None and upgrade.restart:
        return f"before members load the CAs: {state.tls.unkept.message}"
    rolling = [step for _, each, step in next_steps(state) if facts.outdated(each)]
    waiting = [step for step in rolling if step.action is None]
    return waiting[0].message if waiting and not restarts(state) else ""


def rotating(state: ClusterState) -> tuple[bool, str, str]:
    """The condition TLSRotating: whether a CA is being rotated, or members restarted; reason and message."""
    phases = [(side, each.record.phase) for side, each in state.tls.sides]
    reason = next((f"{side.title()}{phase}" for side, phase in phases if phase is not Phase.STABLE), "")
    if not reason and not _is_restarting(state):
        return False, "AsExpected", "no CA is being replaced, and no member is restarted for its TLS"
    steps = [f"{side} CA: {step.message}" for side, _, step in next_steps(state)]
    return True, reason or "Restarting", "; ".join(steps) or "members are restarted"


def _is_restarting(state: ClusterState) -> bool:
    """Whether members are restarted for their TLS, or about to be: they serve otherwise than is on record."""
    upgrade, recorded = state.persisted.upgrade, state.persisted.tls
    is_between = recorded is not None and (recorded.plain_clients or recorded.peer_mode != "Require")
    return (
        is_between
        or bool(state.tls.unloaded)
        or bool(_serving_otherwise(state))
        or (upgrade is not None and upgrade.restart)
    )
