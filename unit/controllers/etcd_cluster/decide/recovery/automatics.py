"""States of clusters that may be recovered without a person."""

from dataclasses import replace
from typing import Any

import msgspec

from etcd_operator.api.recoveries import Recovery
from etcd_operator.controllers.etcd_cluster.decide.recovery.observed import Absence
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.etcd.values import EtcdMember
from unit.controllers.etcd_cluster.decide.builders import answering, changed
from unit.controllers.etcd_cluster.decide.recovery import manual_recoveries as persistents
from unit.controllers.etcd_cluster.decide.recovery import quorum_losses as ephemerals

AFTER = 600.0
SINCE = "2026-01-01T00:00:00Z"


def automatic(state: ClusterState, seconds: float = AFTER, **changes: Any) -> ClusterState:
    """The field is set, and the loss has been counted for so long."""
    desired = replace(state.desired, recovers_after=AFTER)
    absence = Absence(seconds=seconds, since=SINCE)
    return replace(state, desired=desired, absence=absence, **changes)


def with_desired(state: ClusterState, **changes: Any) -> ClusterState:
    return replace(state, desired=replace(state.desired, **changes))


def silenced(size: int, *silent: int, gone: tuple[int, ...] = ()) -> ClusterState:
    """An ephemeral cluster in which some pods are gone, and others are there, silent, and cannot be read."""
    state = ephemerals.lost(size, *gone)
    for number in silent:
        state = changed(state, ephemerals.name_of(number), answer=None, unreadable="not started")
    return replace(state, unavailable_for=AFTER)


def former(**changes: Any) -> Recovery:
    """An earlier recovery that replaced another cluster."""
    return msgspec.structs.replace(persistents.RECOVERY, replaces="feed", **changes)


def listing(state: ClusterState, name: str) -> ClusterState:
    """One more voter, with an ID and a peer URL of its own."""
    other = EtcdMember(id="id-other", name=name, peer_urls=("http://other:2380",))
    reply = state.by_name["db-2"].answer
    assert reply is not None
    return answering(state, "db-2", members=(*reply.members, other))
