"""Claims of one name that hold the data of several etcd clusters: which is which, and what a person can do.

Mostly one of them was made for a recovery or a restore in place, and the EtcdCluster was deleted before that
had ended: only its status knew what was under way.
"""

from collections.abc import Iterable, Sequence

from etcd_operator.api.shared_keys import GIVEN_UP_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.recovery.entry import cluster_id_in
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD

ClaimGroup = list[ClaimFacts]
"""The claims of one etcd cluster."""


def conflict(claims: Sequence[ClaimFacts], kept: Sequence[ClaimFacts]) -> Plan | None:
    """Hold where claims are of different origin. kept: those that a recovery has given up."""
    groups = _by_cluster(claims)
    if len(groups) < 2:
        return _copied(copies(claims))
    whose = "; ".join(map(_whose, groups))
    return Plan.hold(
        "ClaimsConflict",
        f"the claims hold data of different clusters ({whose}): nothing is changed; {_step(groups, kept)}",
        requeue_after=RETRY_HELD,
    )


def copies(claims: Sequence[ClaimFacts]) -> list[ClaimFacts]:
    """Claims with the ID of a member that has another name, by the newest record of the voters.

    Two processes with the ID of one member must never meet.
    """
    newest = max(claims, key=lambda claim: claim.voters_revision, default=None)
    voters = newest.voters if newest is not None else ()
    names = {member_id: name for name, _, member_id in (voter.partition("=") for voter in voters)}
    return [claim for claim in claims if names.get(claim.member_id, claim.name) != claim.name]


def is_copy(members: Iterable[Member], claim: ClaimFacts | None) -> bool:
    """Whether it is such a claim among those of all members."""
    return claim in copies([member.claim for member in members if member.claim is not None])


def _copied(found: Sequence[ClaimFacts]) -> Plan | None:
    if not found:
        return None
    return Plan.hold(
        "ClaimsConflict",
        f"the claims {_names(found)} hold copies of the data of members with other names, according to the "
        "member IDs in their annotations: nothing is changed; delete the copies once the claims with the "
        "names of those members exist",
        requeue_after=RETRY_HELD,
    )


def _by_cluster(claims: Sequence[ClaimFacts]) -> list[ClaimGroup]:
    """By token and cluster ID; one that does not record its cluster yet is of its token's."""
    groups: dict[tuple[str, str], ClaimGroup] = {}
    for claim in claims:
        ids = {other.cluster_id for other in claims if other.token == claim.token and other.cluster_id}
        cluster_id = claim.cluster_id or min(ids, default="")
        groups.setdefault((claim.token, cluster_id), []).append(claim)
    return list(groups.values())


def _whose(group: ClaimGroup) -> str:
    found = next((claim.cluster_id for claim in group if claim.cluster_id), "")
    return f"{_names(group)} of {f'the etcd cluster {found}' if found else 'a cluster that never served'}"


def _step(groups: list[ClaimGroup], kept: Sequence[ClaimFacts]) -> str:
    seed = _seed(groups)
    if seed is None:
        return "delete the claims that do not belong to this cluster"
    others = [claim for group in groups for claim in group if claim is not seed]
    step = (
        f"{seed.name} was created by a recovery or a restore in place that had not ended: to continue with "
        f"the other claims, {_taken_back(others, kept)}delete the claim {seed.name}"
    )
    if not seed.cluster_id:
        return step
    which = f"the {'claim' if len(others) == 1 else 'claims'} {_names(others)}"
    return (
        f"{step}; to continue with the restored data, delete {which}, with the data from before the restore"
    )


def _taken_back(others: list[ClaimFacts], kept: Sequence[ClaimFacts]) -> str:
    """Members of their cluster had been given up by then: without them it may have no quorum."""
    ids = {claim.cluster_id for claim in others}
    given_up = [claim for claim in kept if cluster_id_in(claim.given_up_by) in ids]
    if not given_up:
        return ""
    return f"remove the annotation {GIVEN_UP_ANNOTATION} from {_names(given_up)}, then "


def _seed(groups: list[ClaimGroup]) -> ClaimFacts | None:
    """The claim of a seed whose members have not joined yet: it has a number that none had before."""
    last = max(groups, key=lambda group: max(ordinal_of(claim.name) for claim in group))
    return last[0] if len(last) == 1 and last[0].is_restored else None


def _names(claims: Iterable[ClaimFacts]) -> str:
    return ", ".join(claim.name for claim in claims)
