"""States of persistent clusters that are recovered on request."""

from dataclasses import replace
from typing import Any

from etcd_operator.api.recoveries import REVISION_BUMP
from etcd_operator.controllers.etcd_cluster.decide.members import ClaimFacts
from etcd_operator.controllers.etcd_cluster.decide.recovery.requested import SILENCE
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    CLUSTER_ID,
    NAMES,
    TOKEN,
    answer,
    bootstrapped,
    changed,
    claim,
    entry,
    first_recovery,
    persistent,
    silent,
    unlisted,
    with_record,
)

NEW_ID = "feed"
NAME = f"{CLUSTER_ID}/db-2/1"

RECOVERY = first_recovery("db-3", "db-2", authority="Requested")


def lost(size: int = 3, *gone: int, asked: str = "", **changes: Any) -> ClusterState:
    """Some members are silent (by default a majority, the first ones); the others follow no leader."""
    silents = gone or tuple(range(size // 2 + 1))
    state = replace(
        bootstrapped(persistent(size=size, recover=asked)), has_quorum=False, unavailable_for=SILENCE
    )
    listed = tuple(entry(f"db-{number}") for number in range(size))
    for number in range(size):
        reply = answer(f"db-{number}", listed, leader="", revision=7)
        state = changed(state, f"db-{number}", answer=None if number in silents else reply)
    return replace(state, **changes)


def recovering(state: ClusterState | None = None, **seed: Any) -> ClusterState:
    """A recovery is under way; its seed runs and is silent by default."""
    state = state or lost(asked=NAME)
    state = with_record(state, recovery=RECOVERY)
    parts = {"claim": claim("db-3", token=f"{TOKEN}-1"), "has_replica_set": True, **seed}
    return replace(state, members=(*state.members, silent(state.desired, "db-3", **parts)))


def served(revision: int = 7 + REVISION_BUMP, **seed: Any) -> ClusterState:
    """As `recovering`, and the seed leads a cluster of its own."""
    listed = (entry("db-3"),)
    reply = answer("db-3", listed, cluster_id=NEW_ID, revision=revision)
    state = unlisted(recovering(entry=listed[0], answer=reply, **seed), *NAMES)
    return replace(state, has_quorum=True)


def existing_only_claim() -> ClaimFacts:
    return claim("db-3", token=f"{TOKEN}-1", cluster_id=NEW_ID, member_id="id-db-3", voters=("db-3=id-db-3",))
