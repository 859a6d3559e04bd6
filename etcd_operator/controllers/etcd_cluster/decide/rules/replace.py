"""A member whose data cannot come back, or differs, is removed; `scale.up` adds another one.

Unreachable is not lost (I5): a member is lost only when its storage is gone, or when its own process
reports that there is no data, or none that it can read (a persistent member's in two pods, since a volume
may merely not have been mounted in the first, unless its claim is being deleted). A process that ends for
any other reason, or for an unknown one, however often, still has its data: a full disk, too little memory,
an image or a version that does not work lose nothing, and the next member may end for the same reason.
While the others have no quorum nothing is removed, because etcd would refuse it and the data may still be
needed.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    DisarmCorrupt,
    Plan,
    RemoveCorrupt,
    RemoveMember,
)
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import before_removal, remember
from etcd_operator.controllers.etcd_cluster.decide.corruption import data_corrupt
from etcd_operator.controllers.etcd_cluster.decide.facts.joining import lead_elsewhere
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import (
    remounting,
    removable,
    removable_corrupt,
)
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import CATCH_UP, RETRY_HELD
from etcd_operator.etcd.values import ANYBODY


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


def corrupt_member(state: ClusterState) -> Plan | None:
    """Remove a member whose data differs from the others', then disarm the alarm.

    etcd compares the members' data where it is configured to, and names the one that differs by an alarm.
    From then on all members refuse writes. The alarm alone removes nobody: a leader with corrupt data names
    its followers. So the others have to be a quorum of all voters, and their data has to be equal, which is
    read live right before the removal (`etcd_cluster.membership`). The alarm outlives the member: it is
    disarmed once the member is removed, after another such read; but not where a recovery restored the data
    of that member. Everything else is left to a person.
    """
    if not state.corrupt or not state.persisted.is_bootstrapped or not state.has_quorum:
        return None
    reason, message = data_corrupt(state)
    named = removable_corrupt(state)
    if named is not None:
        candidates = [voter for voter in state.healthy_voters if voter is not named]
        return Plan.act(
            *lead_elsewhere(state, named, candidates),
            *remember(state, before_removal(state, named.name)),
            RemoveCorrupt(name=named.name, member_id=named.id),
            reason=reason,
            message=message,
            requeue_after=STEP,
        )
    listed = {entry.id for entry in state.etcd_members}
    out = sorted(state.corrupt - listed - state.corrupt_sources - {ANYBODY})
    if out and not state.corrupt & (listed | {ANYBODY}):
        action = DisarmCorrupt(member_id=out[0])
        return Plan.act(action, reason=reason, message=message, requeue_after=STEP)
    return Plan.hold(reason, message, requeue_after=RETRY_HELD)
