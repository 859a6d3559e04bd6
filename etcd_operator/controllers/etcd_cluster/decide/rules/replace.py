"""A member whose data cannot come back is removed; `scale.up` adds another one.

Unreachable is not lost (I5): a member is lost only when its storage is gone, or when its own process
reports that there is no data, or none that it can read (a persistent member's in two pods, since a volume
may merely not have been mounted in the first, unless its claim is being deleted). A process that ends for
any other reason, or for an unknown one, however often, still has its data: a full disk, too little memory,
an image or a version that does not work lose nothing, and the next member may end for the same reason.
While the others have no quorum nothing is removed, because etcd would refuse it and the data may still be
needed.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import before_removal, remember
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import remounting, removable
from etcd_operator.controllers.etcd_cluster.decide.membership_actions import RemoveMember
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import CATCH_UP


def lost_member(state: ClusterState) -> Plan | None:
    """Remove a voter whose data is gone, while the others keep quorum without it."""
    lost = removable(state)
    if lost is None:
        return None
    return Plan.act(
        *remember(state, before_removal(state, lost.name)),
        RemoveMember(name=lost.name, member_id=lost.id),
        reason="Replacing",
        message=f"{lost.name} lost its data: removing it, so that another member can replace it",
        requeue_after=CATCH_UP,
    )


def remount(state: ClusterState) -> Plan | None:
    """Recreate the pod that is the first to report missing data."""
    return remounting(state)
