"""A persistent cluster that is created again: its status is lost, and the claims record what it was.

Each claim records how its cluster was bootstrapped and, once a quorum served, who voted when that was last
known. No member that may have had data is ever started empty: members with data start from it, or the
cluster waits for a person.
"""

from collections.abc import Sequence

from etcd_operator.api.persisted import Adoption, Bootstrap, TlsRecord
from etcd_operator.api.restores import UID_ANNOTATION
from etcd_operator.controllers.etcd_cluster.decide.actions import Plan, Remember
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.facts.claims import conflict
from etcd_operator.controllers.etcd_cluster.decide.first_start import create
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.etcd_cluster.decide.status import of_another_operator
from etcd_operator.controllers.shared.decide.holds import RETRY_HELD


def resume(state: ClusterState) -> Plan | None:
    """Continue with the data on the claims of an earlier resource of this name."""
    if state.persisted.is_bootstrapped or state.persisted.bootstrap is not None:
        return None
    if any(member.pod or member.peer for member in state.members):
        return None
    claims = [member.claim for member in state.members if member.claim is not None]
    if claims:
        return _resume(
            claims, state.kept_claims, is_adopting=state.desired.adopt is not None, tls=state.persisted.tls
        )
    return _restored_data_missing(state) or _in_the_way(state)


def _restored_data_missing(state: ClusterState) -> Plan | None:
    """An EtcdRestore created the cluster to resume on its claims: it must not begin empty."""
    if not state.desired.restored_by:
        return None
    return Plan.hold(
        "RestoredDataMissing",
        f"the EtcdRestore {state.desired.restored_by} created this cluster for claims that are missing now: "
        "delete the cluster and create another EtcdRestore; or, to begin with an empty cluster, remove the "
        f"annotation {UID_ANNOTATION} from the cluster",
        requeue_after=RETRY_HELD,
    )


def _in_the_way(state: ClusterState) -> Plan | None:
    """A new cluster must not start on what an earlier one gave up."""
    names = set(state.desired.initial_member_names)
    found = [claim.name for claim in state.kept_claims if claim.name in names]
    if not found:
        return None
    return Plan.hold(
        "ClaimInTheWay",
        f"the claims {', '.join(found)} were given up by a recovery of an earlier cluster and are kept: "
        "delete them to begin with an empty cluster",
        requeue_after=RETRY_HELD,
    )


def _resume(
    claims: list[ClaimFacts], kept: Sequence[ClaimFacts], *, is_adopting: bool, tls: TlsRecord | None
) -> Plan:
    """Old claims decide: the data of a cluster that was here before is used, never overwritten.

    is_adopting: others may vote, too, and what is recorded of the voters is older (`adoption.adopt_again`).
    """
    if any(claim.is_terminating for claim in claims):
        going = ", ".join(claim.name for claim in claims if claim.is_terminating)
        return Plan.hold("ClaimTerminating", f"waiting until claims are deleted: {going}", requeue_after=1.0)
    names = ", ".join(claim.name for claim in claims)
    without_token = [claim.name for claim in claims if not claim.token]
    if without_token:
        return Plan.hold(*of_another_operator(without_token, "the claims "), requeue_after=RETRY_HELD)
    ids = {claim.cluster_id for claim in claims if claim.cluster_id}
    conflicting = conflict(claims, kept)
    if conflicting is not None:
        return conflicting
    initial_members = next((claim.initial_members for claim in claims if claim.initial_members), ())
    if not ids and not initial_members:
        # Annotated by a person, who has yet to name the members.
        foreign = [claim.name for claim in claims if not claim.cluster_uid and not claim.is_restored]
        if foreign:
            return Plan.hold(*of_another_operator(foreign, "the claims "), requeue_after=RETRY_HELD)
        return Plan.hold(
            "ClaimsConflict",
            f"the claims {names} belong to members that joined a cluster and never answered, and do not "
            "record which one: delete them to begin with an empty cluster",
            requeue_after=RETRY_HELD,
        )
    bootstrap = Bootstrap(members=initial_members, token=claims[0].token)
    if not ids:
        return _go_on(claims, bootstrap, tls)
    held = _not_adopted(claims, names, min(ids)) if is_adopting else _missing(claims)
    if held is not None:
        return held
    adoption = Adoption(members=()) if is_adopting else None
    bootstrapped = PersistedState(bootstrap=bootstrap, cluster_id=ids.pop(), adoption=adoption, tls=tls)
    message = f"resuming on the data of {names}"
    if kept:
        message += f", not on claims that were given up: {', '.join(claim.name for claim in kept)}"
    return Plan.act(Remember(persisted=bootstrapped), reason="Resuming", message=message)


def _not_adopted(claims: list[ClaimFacts], names: str, cluster_id: str) -> Plan | None:
    """Hold where the claims are of a cluster that began under this name, by a bootstrap or from a snapshot.

    Its list has no external member: on its data, the adoption in the spec would seem to have ended.
    """
    if not any(claim.initial_members or claim.is_restored for claim in claims):
        return None
    return Plan.hold(
        "AdoptionRefused",
        f"the claims {names} hold the data of the cluster {cluster_id}, which began under this name and was "
        "not adopted: to adopt the cluster in spec.adopt, give this resource another name, or delete the "
        "claims with their data; to continue with their data, remove spec.adopt",
        requeue_after=RETRY_HELD,
    )


def _missing(claims: list[ClaimFacts]) -> Plan | None:
    """Hold where fewer than half of the last recorded voters are left; a removed member is none of them.

    Not where half are: one of the others may have been removed just before that could be recorded. To start
    too few does no harm, because etcd itself knows who voted; nor does it where nothing is recorded.
    """
    newest = max(claims, key=lambda claim: claim.voters_revision)
    # Anybody can edit annotations: what is not `name=ID` is ignored, and must not end the pass.
    voters = dict(voter.split("=", 1) for voter in newest.voters if voter.find("=") > 0)
    left = [claim.name for claim in claims if _is_voter(claim, voters)]
    return _too_few(left, tuple(voters)) if len(left) * 2 < len(voters) else None


def _is_voter(claim: ClaimFacts, voters: dict[str, str]) -> bool:
    """Whether the data is that of a voter: by name, and by ID where the claim records one."""
    return claim.name in voters and claim.member_id in ("", voters[claim.name])


def _go_on(claims: list[ClaimFacts], bootstrap: Bootstrap, tls: TlsRecord | None) -> Plan:
    """Continue a bootstrap that nobody saw finish; with the members that are left, if it was started."""
    left = tuple(claim.name for claim in claims)
    if len(left) >= len(bootstrap.members):
        return create(bootstrap, bootstrap.members, tls)
    if all(claim.is_started is False for claim in claims):
        return create(bootstrap, bootstrap.members, tls)  # nothing that is left has ever run
    if any(claim.is_started for claim in claims) and len(left) >= quorum(len(bootstrap.members)):
        return create(bootstrap, left, tls)
    return _too_few(left, bootstrap.members)


def _too_few(left: Sequence[str], members: Sequence[str]) -> Plan:
    return Plan.hold(
        "ClaimsMissing",
        f"of the claims of a cluster of {', '.join(members)} only {', '.join(left) or 'none'} are left, too "
        "few for a quorum: nothing is changed; restore the missing claims. To begin with an empty cluster "
        "instead, delete the claims that are left: their data is then lost (docs/operations.md describes how "
        "to recover the data)",
        requeue_after=RETRY_HELD,
    )
