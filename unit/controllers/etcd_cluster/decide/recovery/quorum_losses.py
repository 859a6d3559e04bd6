"""States of ephemeral clusters that lost most of their members."""

from dataclasses import replace

from etcd_operator.api.recoveries import REVISION_BUMP
from etcd_operator.controllers.etcd_cluster.decide.state import ClusterState
from unit.controllers.etcd_cluster.decide.builders import (
    answer,
    answering,
    bootstrapped,
    changed,
    entry,
    ephemeral,
    first_recovery,
    silent,
    unlisted,
    with_record,
)

NEW_ID = "feed"


def name_of(number: int) -> str:
    return f"db-{number:04d}"


def lost(size: int, *gone: int, revisions: dict[int, int] | None = None) -> ClusterState:
    """Some pods are gone; the others answer, each with its own list, without a leader."""
    state = replace(bootstrapped(ephemeral(size=size)), has_quorum=False)
    listed = tuple(entry(name_of(number)) for number in range(size))
    for number in range(size):
        if number in gone:
            state = changed(state, name_of(number), pod=None, answer=None)
            continue
        reply = answer(name_of(number), listed, leader="", revision=(revisions or {}).get(number, 7))
        state = changed(state, name_of(number), answer=reply)
    return state


def survived_at(version: str) -> ClusterState:
    """One of three is left, and runs `version`."""
    return answering(lost(3, 0, 1), "db-0002", version=version)


RECOVERY = first_recovery("db-0003", "db-0002")


def recovering(*, is_made: bool = True, **seed: object) -> ClusterState:
    """Two of three are lost and a recovery is under way; the seed's pod runs by default."""
    state = lost(3, 0, 1)
    state = with_record(state, recovery=RECOVERY, next_ordinal=4 if is_made else 3)
    if not is_made:
        return state
    made = replace(silent(state.desired, "db-0003"), **seed)  # type: ignore[arg-type]
    return replace(state, members=(*state.members, made))


def serving(revision: int = 7 + REVISION_BUMP, *others: str) -> ClusterState:
    """As `recovering`, and the seed leads a cluster of its own."""
    listed = tuple(entry(name) for name in ("db-0003", *others))
    reply = answer("db-0003", listed, cluster_id=NEW_ID, revision=revision)
    state = unlisted(recovering(entry=listed[0], answer=reply), "db-0000", "db-0001", "db-0002")
    return replace(state, has_quorum=True)
