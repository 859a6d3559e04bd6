"""Whether the cluster that is adopted lists members of ours, recorded before that ends.

Once objects of ours exist, an answer of an external member whose list has none of ours does not count (see
`adoption.external_answers`). Then nobody could believe the removal of the last one, unless it is recorded
before.
"""

from dataclasses import replace

import msgspec

from etcd_operator.controllers.etcd_cluster.decide.actions import Action, Remember
from etcd_operator.controllers.etcd_cluster.decide.desired import PersistedState
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState


def noted(state: ClusterState, **changes: object) -> PersistedState:
    """The record with changes of the adoption, and how far its log has come by now."""
    adoption = state.persisted.adoption
    if adoption is None or not state.persisted.is_adopting:
        return state.persisted
    committed = max(adoption.committed, state.committed)
    return replace(
        state.persisted, adoption=msgspec.structs.replace(adoption, committed=committed, **changes)
    )


def before_removal(state: ClusterState, name: str) -> PersistedState:
    """The record before etcd is asked to remove a member of ours."""
    others = [member for member in state.members if member.entry is not None and member.name != name]
    return (
        state.persisted
        if others or _is_last_member_removed(state)
        else noted(state, last_member_removed=True)
    )


def after_addition(state: ClusterState) -> PersistedState:
    """The record once etcd lists a member of ours, with the peer URLs that it is to start with.

    An EtcdPeer with other ones is refused (see `decide.ownership`).
    """
    adoption = state.persisted.adoption
    if adoption is None or not state.persisted.is_adopting:
        return state.persisted
    listed = {member.id: member.entry.peer_urls for member in state.external if member.entry is not None}
    members = tuple(
        msgspec.structs.replace(member, peer_urls=listed.get(member.id, member.peer_urls))
        for member in adoption.members
    )
    is_same = members == adoption.members and not adoption.last_member_removed
    return state.persisted if is_same else noted(state, members=members, last_member_removed=False)


def remember(state: ClusterState, persisted: PersistedState) -> list[Action]:
    """The write of the record; empty if nothing changes."""
    return [] if persisted == state.persisted else [Remember(persisted=persisted)]


def _is_last_member_removed(state: ClusterState) -> bool:
    adoption = state.persisted.adoption
    return adoption is not None and adoption.last_member_removed


def way_out(state: ClusterState) -> str:
    """What a person can do whose members never come back."""
    answering = [m for m in (*state.members, *state.external) if m.answer is not None]
    if not answering or state.follows_one_leader:
        return ""
    newest = max(answering, key=lambda voter: voter.answer.committed if voter.answer is not None else 0)
    return (
        "; nothing is recovered during an adoption: restart the missing members with their data, or, if "
        f"their data is lost, restore a snapshot of {newest.name} (`etcdctl snapshot save`) to a new cluster"
    )


def unhealthy(state: ClusterState) -> list[str]:
    """The voters that are not healthy, with the reason. Answers at an endpoint may be another process's."""
    rejections = {member_id: rejection.why for member_id, rejection in state.rejected}
    return [
        f"{v.name} ({rejections.get(v.id, v.health.value)})" for v in state.all_voters if not v.is_healthy
    ]


def may_have_adopted(state: ClusterState) -> bool:
    """Whether it resumed on claims that record no bootstrap: their cluster may have been adopted.

    The API server accepts spec.adopt for such a resource (see `definitions.adoption_validations`).
    """
    bootstrap, recovery = state.persisted.bootstrap, state.persisted.recovery
    if state.persisted.adoption is not None or (recovery is not None and recovery.replaces_cluster):
        return False
    return bootstrap is not None and not bootstrap.members
