"""States of clusters that are upgraded, for tests."""

from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.api.persisted import Bootstrap, Upgrade
from etcd_operator.controllers.etcd_cluster.decide.actions import Remember
from etcd_operator.controllers.etcd_cluster.decide.desired import DesiredCluster
from etcd_operator.controllers.etcd_cluster.decide.members import PodProblem, quorum
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from etcd_operator.controllers.shared.decide.clusters import ordinal_of
from unit.controllers.etcd_cluster.decide.builders import (
    answering,
    bootstrapped,
    changed,
    ephemeral,
    old_claim,
    peer,
    persistent,
    pod,
    with_record,
)

OLD, NEW = "3.5.34", "3.5.35"
BOTH = pytest.mark.parametrize("cluster", [persistent(), ephemeral()], ids=["persistent", "ephemeral"])

CRASH = PodProblem(reason="CrashLoopBackOff", message="panic: it crashes")
DELETED_CLAIM = old_claim("db-0", is_terminating=True)
TERMINATING_PEER = peer("db-2", is_existing_only=True, is_terminating=True)


def at(state: ClusterState, name: str, version: str, *, requested: str = "") -> ClusterState:
    """A member that runs `version`; its objects request the same unless `requested` is given."""
    member, requested = state.by_name[name], requested or version
    return changed(
        state,
        name,
        answer=replace(member.answer, version=version) if member.answer is not None else None,
        peer=replace(member.peer, version=requested) if member.peer is not None else None,
        pod=replace(member.pod or pod(name), version=requested),
    )


def to_upgrade(
    cluster: DesiredCluster | None = None,
    *,
    runs: tuple[str, ...] = (OLD, OLD, OLD),
    wanted: str = NEW,
    initial: str = OLD,
    upgrading: str | None = None,
    **changes: Any,
) -> ClusterState:
    """A cluster bootstrapped at `initial` that runs `runs` (by number), with `wanted` as desired version.

    upgrading: the upgrading member on record; None for no upgrade under way.
    """
    cluster = cluster or ephemeral()
    state = bootstrapped(cluster, voters=len(runs))
    for member, version in zip(state.members, runs, strict=True):
        state = at(state, member.name, version)
    found = state.persisted.bootstrap
    assert found is not None
    bootstrap = Bootstrap(members=found.members, token=found.token, version=initial)
    state = on_record(state, under_way(upgrading, wanted=wanted) if upgrading is not None else None)
    persisted = replace(state.persisted, bootstrap=bootstrap)
    state = replace(state, desired=replace(state.desired, version=wanted, persisted=persisted, **changes))
    return replace(state, budget=quorum(max(state.desired.size, len(runs))))


def under_way(upgrading: str, *, wanted: str = NEW, origin: str = OLD) -> Upgrade:
    """An upgrade that began a while ago."""
    return Upgrade(origin=origin, target=wanted, member=upgrading, since="2026-01-01T00:00:00Z")


def on_record(state: ClusterState, upgrade: Upgrade | None) -> ClusterState:
    """`state` with an upgrade on record."""
    return with_record(state, upgrade=upgrade)


def desiring(state: ClusterState, version: str) -> ClusterState:
    """`state` with another desired version."""
    return replace(state, desired=replace(state.desired, version=version))


def remembered(state: ClusterState, upgrade: Upgrade | None) -> Remember:
    """The action that records an upgrade, or its end."""
    return Remember(persisted=replace(state.persisted, upgrade=upgrade))


def names(state: ClusterState) -> tuple[str, ...]:
    """The members' names by number."""
    return tuple(sorted(state.by_name, key=ordinal_of))


def led_by(state: ClusterState, name: str) -> ClusterState:
    """`state` with another leader."""
    return answering(state, *(member.name for member in state.answers), leader=f"id-{name}")


def away(**changes: Any) -> ClusterState:
    """The ephemeral upgrading member, db-0002, was stopped and does not answer yet."""
    state = at(to_upgrade(upgrading="db-0002"), "db-0002", OLD, requested=NEW)
    return changed(state, "db-0002", **{"answer": None, **changes})


def persistent_away(**changes: Any) -> ClusterState:
    """The same for a persistent one, db-2."""
    return changed(to_upgrade(persistent(), upgrading="db-2"), "db-2", answer=None, pod=None, **changes)


def crashing(state: ClusterState, *crashed: str, **changes: Any) -> ClusterState:
    """`state` with members whose processes end again and again."""
    for name in crashed:
        before = state.by_name[name].pod
        assert before is not None
        ended = replace(before, is_running=False, has_restarted=True, restarts=9, problem=CRASH)
        state = changed(state, name, answer=None, pod=ended, problem=CRASH, **changes)
    return state
