"""A persistent resource that was created again in the middle of an adoption finds the external members again.

    resume on the claims -> ours start with their data -> those that etcd lists are matched with the endpoints
    -> a quorum follows one leader -> they are recorded, and the adoption goes on, or has ended

The claims record which etcd cluster it is, and which IDs ours have in it, but not whether the adoption had
ended. Until that is known nothing is changed and nothing is recovered. Which answers count: see
`adoption.external_answers`. Nothing is done either while an adoption that is on record cannot go on: external
members may have data that ours lack.
"""

from dataclasses import replace

from etcd_operator.api.persisted import AdoptedMember, Adoption
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.adoption import adoptable
from etcd_operator.controllers.etcd_cluster.decide.adoption.adopt_record import (
    may_have_adopted,
    unhealthy,
    way_out,
)
from etcd_operator.controllers.etcd_cluster.decide.adoption.external_answers import ids_on_claims
from etcd_operator.controllers.etcd_cluster.decide.desired import Adopt
from etcd_operator.controllers.etcd_cluster.decide.facts.voters import remounting
from etcd_operator.controllers.etcd_cluster.decide.polling import RECHECK, STEP
from etcd_operator.controllers.etcd_cluster.decide.replies import Answer
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD

UNKNOWN = (
    "this resource was created again, and no quorum reports whether the adoption in spec.adopt had ended"
)
ENDED = "; if the adoption had ended before, remove spec.adopt"


def known_again(state: ClusterState) -> Plan | None:
    """Record the external members that are left, or that none is, or report why neither is known."""
    if not state.persisted.is_adoption_unclear:
        return _put_back(state)
    asked = state.desired.adopt
    if asked is None:
        return _record(state, None, "Resuming", "no adoption continues: spec.adopt was removed")
    why = _unclear(state)
    if why:
        return remounting(state) or Plan.hold("AdoptionUnclear", why, requeue_after=RECHECK)
    if not state.external:
        message = "etcd lists no external member: the adoption had ended"
        return _record(state, Adoption(members=(), finished=True), "Adopted", message)
    adoption = Adoption(members=_members(state, asked), committed=state.committed)
    message = f"continuing the adoption, with {len(state.external)} external members"
    return _record(state, adoption, "Adopting", message)


def _record(state: ClusterState, adoption: Adoption | None, reason: str, message: str) -> Plan:
    remember = Remember(persisted=replace(state.persisted, adoption=adoption))
    return Plan.act(remember, reason=reason, message=message, requeue_after=STEP)


def refused(state: ClusterState) -> Plan | None:
    """Report that spec.adopt has no effect on a cluster whose members are all of this resource."""
    if state.desired.adopt is None or state.persisted.adoption is not None:
        return None
    return Plan.hold(
        "AdoptionRefused",
        "etcd lists only members of this resource, so spec.adopt has no effect: remove it; to adopt another "
        "cluster, create another resource",
        requeue_after=RETRY_HELD,
    )


def _put_back(state: ClusterState) -> Plan | None:
    """spec.adopt was missing in the resource that was created again, and was set later.

    Without a quorum nobody may list the external members: they are asked for before a recovery is considered.
    """
    persisted = state.persisted
    if state.desired.adopt is None or persisted.adoption is not None or persisted.is_recovering:
        return None
    is_unlisted = not state.has_quorum and may_have_adopted(state)
    if not (state.unknown_members or is_unlisted) or not any(ids_on_claims(state.desired, state.members)):
        return None
    return _record(
        state,
        Adoption(members=()),
        "Adopting",
        "looking for the external members at the endpoints in spec.adopt",
    )


def _members(state: ClusterState, asked: Adopt) -> tuple[AdoptedMember, ...]:
    """Those that etcd lists. What else spec.adopt names has been removed from etcd, so nobody turns back."""
    left = tuple(
        AdoptedMember(id=member.id, endpoint=member.endpoint, peer_urls=member.entry.peer_urls)
        for member in state.external
        if member.entry is not None
    )
    known = {member.endpoint for member in left}
    gone = (at for at in asked.endpoints if at not in known)
    return (*left, *(AdoptedMember(id="", endpoint=at, peer_urls=(), removed=True) for at in gone))


def _unclear(state: ClusterState) -> str:
    """Why it is not known which external members are left, and what to do; empty if it is."""
    if state.unknown_members:
        return _unmatched(state)
    if not state.has_quorum or not state.all_voters or (state.external and not state.follows_one_leader):
        return f"{UNKNOWN}{_problems(state)}{_next_step(state)}"
    answered = [reply.member_id for _, reply in state.endpoints if isinstance(reply, Answer)]
    if len({*answered}) < len(answered):
        return "several endpoints in spec.adopt lead to the same member: name each member once"
    return "" if state.external else _of_another_cluster(state)


def _of_another_cluster(state: ClusterState) -> str:
    """Where members of another cluster answer: it may be the one to adopt, and not that of the claims."""
    others = [
        at for at, reply in state.endpoints if isinstance(reply, Answer) and not _is_of_claims(state, reply)
    ]
    if not others:
        return ""
    return (
        f"the claims of this resource hold the data of the cluster {state.persisted.cluster_id}, which lists "
        f"no external member, and members of another cluster answer at {', '.join(others)}{ENDED}; to adopt "
        "the cluster of those members, create a resource with another name, or first delete this one and its "
        "claims, with their data"
    )


def _unmatched(state: ClusterState) -> str:
    """etcd lists members that are not ours, and that do not answer at the endpoints."""
    listed = ", ".join(f"{entry.name} ({entry.id})" for entry in state.unknown_members)
    ids = " or ".join(entry.id for entry in state.unknown_members)
    message = (
        f"this resource was created again during an adoption, and etcd lists {listed}, for which no endpoint "
        f"in spec.adopt answers{_problems(state)}: restart these members with their data, or correct the "
        "endpoints"
    )
    if not state.has_quorum:
        return f"{message}{way_out(state)}"
    return f"{message}; if a member never comes back, remove it: etcdctl member remove {ids}"


def _problems(state: ClusterState) -> str:
    silent = [at for at, reply in state.endpoints if not isinstance(reply, Answer)]
    found = [rejection.why for _, rejection in state.rejected]
    found += [f"{member.named} does not answer" for member in state.members if member.answer is None]
    found += [f"no member responds at {', '.join(silent)}"] if silent else []
    return f" ({'; '.join(found)})" if found else ""


def _next_step(state: ClusterState) -> str:
    """Nothing is deleted: the copies of the data here may be the last ones."""
    if not state.external and _disown_us(state):
        return (
            ": if the external members have all of their data, the members of this resource were removed "
            "from etcd: delete this resource and its claims, and create it again. If not, the claims have "
            f"the last copies of the data{ENDED}"
        )
    ended = "" if state.external else ENDED  # those are listed
    return f"{ended}{way_out(state) or '; restart the missing members with their data'}"


def _disown_us(state: ClusterState) -> bool:
    """Whether members of this cluster answer at the endpoints, and none of ours is in their lists."""
    return any(isinstance(reply, Answer) and _is_of_claims(state, reply) for _, reply in state.endpoints)


def _is_of_claims(state: ClusterState, answer: Answer) -> bool:
    """Whether it is that of a member of the cluster that the claims record."""
    return answer.cluster_id == state.persisted.cluster_id


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
    if state.unconsented and state.desired.adopt.mode != "Leave":
        return Plan.hold("AdoptionRefused", state.unconsented, requeue_after=RECHECK)
    if not state.has_quorum or not state.all_healthy_voters:
        message = f"no quorum answers: {_why_no_quorum(state)}{_disowned(state) or way_out(state)}"
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


def _why_no_quorum(state: ClusterState) -> str:
    rejections = [] if state.external else [rejection.why for _, rejection in state.rejected]
    found = (", ".join(rejections), adoptable.problems_of(state), ", ".join(unhealthy(state)))
    return next(filter(None, found), "no member reports the members")
