"""A member whose data differs from the others' is removed; `scale.up` adds another one.

etcd compares the members' data where it is configured to, and names the one that differs by an alarm. From
then on all members refuse writes. The alarm alone removes nobody: a leader with corrupt data names its
followers. So the others have to be a quorum of all voters, and their data has to be equal, which is read
live right before the removal (`etcd_cluster.membership`). The alarm outlives the member: it is disarmed
once the member is removed, after another such read. Everything else is left to a person.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import before_removal, remember
from etcd_operator.controllers.etcd_cluster.decide.facts.removal import lead_elsewhere
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import removable_corrupt
from etcd_operator.controllers.etcd_cluster.decide.membership_actions import DisarmCorrupt, RemoveCorrupt
from etcd_operator.controllers.etcd_cluster.decide.polling import STEP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import data_corrupt
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD
from etcd_operator.etcd.values import ANYBODY


def replace(state: ClusterState) -> Plan | None:
    """Remove the member that is named, then disarm the alarm; or report what has to be decided."""
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
    out = sorted(state.corrupt - listed - {ANYBODY})
    if out and not state.corrupt & (listed | {ANYBODY}):
        action = DisarmCorrupt(member_id=out[0])
        return Plan.act(action, reason=reason, message=message, requeue_after=STEP)
    return Plan.hold(reason, message, requeue_after=RETRY_HELD)
