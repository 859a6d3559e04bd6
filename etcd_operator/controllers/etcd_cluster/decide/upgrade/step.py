"""A step of an upgrade: decided as a value, and made a plan in one place.

So whatever an upgrade does to a member, that it is the upgrading one is recorded first.
"""

from dataclasses import dataclass, replace

from etcd_operator.api.persisted import Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Plan, Remember, Stage
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What an upgrade does next, or waits for."""

    message: str  # as status reports it
    reason: str = "Upgrading"  # as status reports it
    action: Action | None = None  # None while the upgrade waits
    member: Member | None = None  # the upgrading member from this step on; None: the one on record
    is_held: bool = False  # something outside must change first
    pause: float = STEP  # seconds until the next observation


def planned(state: ClusterState, step: Step) -> Plan:
    """The plan that takes a step: what the step begins is recorded before its action."""
    actions = () if step.action is None else (*_record(state, step), step.action)
    return Plan(
        actions=actions,
        stage=Stage.HELD if step.is_held else Stage.WORKING,
        reason=step.reason,
        message=step.message,
        requeue_after=step.pause,
    )


def _record(state: ClusterState, step: Step) -> list[Remember]:
    """Record what a step begins, unless it is on record already or the step is a record itself.

    Another version may be desired when all members run the one before: then the upgrade begins from that.
    """
    if isinstance(step.action, Remember):
        return []
    upgrade, target = state.persisted.upgrade, state.desired.version
    begun = upgrade or Upgrade(origin=_origin(state, step.member), target=target)
    is_known = bool(state.voters) and all(voter.answer is not None for voter in state.voters)
    origin = _origin(state, step.member) if is_known else begun.origin
    name = step.member.name if step.member is not None else begun.member
    wanted = Upgrade(origin=origin, target=target, member=name, since=begun.since)
    return [] if wanted == upgrade else [Remember(persisted=replace(state.persisted, upgrade=wanted))]


def _origin(state: ClusterState, member: Member | None) -> str:
    """The version that an upgrade begins from: the lowest that runs, else the one requested of its member."""
    running = state.lowest_version
    requested = member.requested_version if member is not None else ""
    return str(running) if running is not None else requested


def waiting_for(name: str, version: str) -> str:
    """The message of all steps of one member: the same, so that none is a status write of its own."""
    return f"waiting for {name} to serve at {version}"
