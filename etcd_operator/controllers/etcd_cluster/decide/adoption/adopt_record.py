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
