"""The member that is to be removed or stopped next, from which clients are kept before that.

A client that opens a connection at that moment would be refused, and a gRPC client that was refused waits for
a second or longer before it tries again.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, RemoveMember, ReplaceMember
from etcd_operator.controllers.etcd_cluster.decide.fact import fact
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import next_removal
from etcd_operator.controllers.etcd_cluster.decide.members import Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.upgrade import state_machine
from etcd_operator.controllers.etcd_cluster.decide.upgrade.step import Step


@fact
def departing(state: ClusterState) -> Member | None:
    """A voter that serves, and that is removed or stopped next if no other rule comes before that.

    None where clients would have no other member, or where peers find members by the Service for clients.
    """
    if state.desired.has_one_service:
        return None
    removal = next_removal(state)
    name = _removed(removal) if removal is not None else _stopped(state_machine.next_step(state))
    member = state.by_name.get(name)
    if member is None or member not in state.healthy_voters:
        return None
    pods = [voter.pod for voter in state.healthy_voters if voter is not member]
    return member if [pod for pod in pods if pod is not None and pod.is_routed] else None


def _removed(removal: Plan) -> str:
    return next((action.name for action in removal.actions if isinstance(action, RemoveMember)), "")


def _stopped(step: Step | None) -> str:
    """Its leadership is moved first, or it waits until the one before has been running for a while."""
    if step is None or step.is_held:
        return ""
    if isinstance(step.action, ReplaceMember):
        return step.action.name
    return step.member.name if step.member is not None else ""
