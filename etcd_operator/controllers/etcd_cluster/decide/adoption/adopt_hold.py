"""What stops an adoption that is on record, and what a person can do about it.

Nothing is done then, not even a recovery: external members may have data that ours lack.
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.adoption import adoptable
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import unhealthy, way_out
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import remounting
from etcd_operator.controllers.etcd_cluster.decide.polling import RECHECK
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD


def hold(state: ClusterState) -> Plan | None:
    """Report what stops an adoption: nothing is done then, not even a recovery.

    Except what loses nothing and needs no quorum: `replace.remount`, which may bring one back.
    """
    if not state.persisted.is_adopting:
        return None
    if state.desired.adopt is None:
        return Plan.hold(
            "AdoptionStopped",
            "spec.adopt was removed before the adoption ended: set it again; to turn back, set it with the "
            "mode Leave",
            requeue_after=RETRY_HELD,
        )
    if not state.has_quorum or not state.all_healthy_voters:
        message = f"no quorum answers: {_problems(state)}{_disowned(state) or way_out(state)}"
        return remounting(state) or Plan.hold("QuorumLost", message, requeue_after=RECHECK)
    return None


def _disowned(state: ClusterState) -> str:
    """What a person can do where external members list none of ours, and none of ours answers.

    Somebody may have removed ours from etcd. But no answer proves that: whoever lost the data reports the
    same, and then ours have the last copies.
    """
    may_be_right = any(rejection.may_be_right for _, rejection in state.rejected)
    if state.answers or state.external or not may_be_right:
        return ""
    kind, names = state.kind, " ".join(member.name for member in state.members)
    return (
        "; if somebody removed the members of this resource from etcd, and the external members have all "
        f"data, delete what is left, so that new members join: kubectl delete {kind.kubectl_kinds} {names}; "
        f"if the external members have lost data, keep the {kind.storage_word}: they have the last copies of "
        "the data"
    )


def _problems(state: ClusterState) -> str:
    rejections = [] if state.external else [rejection.why for _, rejection in state.rejected]
    found = (", ".join(rejections), adoptable.problems_of(state), ", ".join(unhealthy(state)))
    return next(filter(None, found), "no member reports the members")
