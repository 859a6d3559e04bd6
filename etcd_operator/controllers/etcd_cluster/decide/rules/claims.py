"""What is recorded on the claims of members once a quorum has served: who they are, and who votes.

Claims outlive the resource and its status: a cluster that is created again learns from them how many
of its members have to be present (`rules.resume`).
"""

from etcd_operator.controllers.etcd_cluster.decide.actions import (
    AnnotateVoters,
    ClearMissing,
    Plan,
    SetExistingOnly,
    Stage,
)
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts, Member
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def set_existing_only(state: ClusterState) -> Plan | None:
    """From now on members refuse to start without their data, and claims record who votes.

    While a recovery is under way there are members of two clusters; `SetSeedExistingOnly` is for its seed.
    """
    if not state.persisted.is_bootstrapped or state.persisted.is_recovering:
        return None
    voters, revision = _voters(state)
    made = (_set_existing_only(state, member, voters, revision) for member in state.members)
    sets_existing_only = [action for action in made if action is not None]
    annotations = _annotations(state, voters, revision, {action.name for action in sets_existing_only})
    cleared = [ClearMissing(name=m.name) for m in state.members if _has_its_data(m)]
    if not sets_existing_only and not annotations and not cleared:
        return None
    return Plan(
        actions=(*sets_existing_only, *annotations, *cleared),
        stage=Stage.WORKING,
        reason="SettingExistingOnly",
        message="protecting members against empty volumes",
        is_quiet=True,
    )


def _voters(state: ClusterState) -> tuple[tuple[str, ...], int]:
    """Who votes now, as `name=ID`, and the revision under which that is written.

    It is that of the claims that record it already, or else one beyond all others. The newest revision
    counts: an interrupted change is on some of the claims only.
    """
    voters = tuple(f"{voter.name}={voter.id}" for voter in state.voters)
    claims = [member.claim for member in state.members if member.claim is not None]
    newest = max((claim.voters_revision for claim in claims), default=0)
    is_known = any((claim.voters_revision, claim.voters) == (newest, voters) for claim in claims)
    return voters, newest if is_known else newest + 1


def _has_its_data(member: Member) -> bool:
    return member.is_healthy and member.claim is not None and bool(member.claim.missing_in)


def _annotations(
    state: ClusterState, voters: tuple[str, ...], revision: int, done: set[str]
) -> list[AnnotateVoters]:
    """For the claims of voters that record other voters than a quorum reports now."""
    if not state.has_quorum or state.unknown_members or state.external:
        return []
    return [
        AnnotateVoters(name=voter.name, voters=voters, revision=revision)
        for voter in state.voters
        if voter.name not in done and _names_others(voter.claim, voters)
    ]


def _names_others(claim: ClaimFacts | None, voters: tuple[str, ...]) -> bool:
    if claim is None or claim.is_terminating or not claim.member_id:
        return False
    return claim.voters != voters


def _set_existing_only(
    state: ClusterState, member: Member, voters: tuple[str, ...], revision: int
) -> SetExistingOnly | None:
    """Only for a member that has answered: one that never started would refuse for ever.

    The others are always fewer than a quorum, so they cannot bootstrap anything. A peer that was created
    again in between is existing-only from the start, but its claim has no annotations yet.
    """
    if member.peer is None or member.answer is None:
        return None
    if member.peer.is_existing_only and (member.claim is None or _identifies_itself(state, member)):
        return None
    return SetExistingOnly(
        name=member.name,
        cluster_id=state.persisted.cluster_id,
        member_id=member.answer.member_id,
        voters=voters,
        revision=revision,
    )


def _identifies_itself(state: ClusterState, member: Member) -> bool:
    """Whether a claim records its member, and the version that runs on it.

    An upgrade that was interrupted, and then taken back, may have left another version: the EtcdPeer would be
    made again at that one. While an upgrade is on record, the version is the one to start next.
    """
    claim, requested = member.claim, member.requested_version
    if claim is None or not claim.member_id:
        return False
    is_settled = state.persisted.upgrade is None and member.serves_requested_version
    return not is_settled or claim.version in ("", requested)
