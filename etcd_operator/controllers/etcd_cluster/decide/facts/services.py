"""The Services that are missing."""

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    Action,
    CreateClientService,
    CreateMemberService,
)
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.acts import CreateClosedService
from etcd_operator.controllers.etcd_cluster.decide.recovery.ending import has_switched_over
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def missing_services(state: ClusterState) -> list[Action]:
    """The client service and, where members have their own, one for each that has a pod and is kept.

    The pod of a member that was removed from etcd's list is deleted together with its service.
    """
    actions: list[Action] = []
    if not state.has_client_service:
        actions.append(CreateClosedService() if _gives_up(state) else CreateClientService())
    if state.kind.has_member_services:
        actions += [
            CreateMemberService(name=member.name)
            for member in state.members
            if member.pod is not None and not member.has_service and _needs_service(state, member)
        ]
    return actions


def _needs_service(state: ClusterState, member: Member) -> bool:
    """Not one that was removed or given up, whose pod may run on where nobody can stop it; nor a seed."""
    is_going = member.pod is not None and member.pod.is_terminating
    recovery = state.persisted.recovery_under_way
    is_seed = recovery is not None and member.name == recovery.seed
    return belongs(state, member) and not (is_going and (member.entry is None or is_seed))


def _gives_up(state: ClusterState) -> bool:
    """Whether a restore in place has passed the point of no return: no client may reach the old members."""
    recovery = state.persisted.recovery_under_way
    return recovery is not None and recovery.is_in_place and has_switched_over(state, recovery)


def belongs(state: ClusterState, member: Member) -> bool:
    """A member that a quorum no longer lists has been removed: its data is never used again.

    Where members answer only users, nobody reports the list: what was there is created again.
    """
    return member.entry is not None or not state.has_quorum or state.requires_user
