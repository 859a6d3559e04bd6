"""States of ephemeral clusters that lost most of their members."""

from dataclasses import replace

from etcd_operator.api.persisted import REVISION_BUMP, Recovery
from etcd_operator.core.state import ClusterState
from unit.core.builders import (
    CLUSTER_ID,
    TOKEN,
    VERSION,
    answer,
    bootstrapped,
    changed,
    entry,
    ephemeral,
    silent,
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
    state = lost(3, 0, 1)
    reply = state.by_name["db-0002"].answer
    assert reply is not None
    return changed(state, "db-0002", answer=replace(reply, version=version))


RECOVERY = Recovery(
    generation=1,
    survivor="db-0002",
    revision=7,
    version=VERSION,
    seed="db-0003",
    token=f"{TOKEN}-1",
    replaces=CLUSTER_ID,
)


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
    state = recovering(entry=listed[0], answer=reply)
    for name in ("db-0000", "db-0001", "db-0002"):
        state = changed(state, name, entry=None)
    return replace(state, has_quorum=True)
