"""Crashes and faults at every write of an adoption: it ends the same way, and no member leaves early."""

from functools import partial

import pytest

from unit.controllers.etcd_cluster.test_adopt import Make, adopt, assert_adopted
from unit.fakes.etcd.cluster import FakeEtcdCluster
from unit.passes.bench import bench
from unit.passes.bodies import MAKERS, ephemeral, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, survives, survives_lag
from unit.passes.expected import assert_finished
from unit.passes.externals import externals, is_external

WORST = "the reply is lost and it dies"
CASES = [
    pytest.param(
        make,
        disturbance,
        id=f"{make.__name__}-{name}",
        marks=[pytest.mark.long] if make is persistent and name != WORST else [],
    )
    for make in (ephemeral, persistent)
    for name, disturbance in DISTURBANCES.items()
    if disturbance.kills or "409" in name
]


def watch(etcd: FakeEtcdCluster) -> list[str]:
    """Notes each external member that is removed while ours are no healthy quorum of the rest."""
    early: list[str] = []
    seen = {member.id for member in etcd.members if is_external(member)}

    def check(_method: str, applied: bool) -> None:
        left = {member.id for member in etcd.members if is_external(member)}
        if applied and len(left) < len(seen):
            ours = [m for m in etcd.voters if not is_external(m) and m.is_alive]
            if len(ours) <= len(etcd.voters) // 2:
                early.append(f"{len(ours)} of ours among {len(etcd.voters)}")
            seen.intersection_update(left)

    etcd.on_write = check
    return early


@pytest.mark.exhaustive
@pytest.mark.parametrize(("make", "disturbance"), CASES)
def test_an_adoption_ends_the_same_whatever_happens_at_any_write(
    make: Make, disturbance: Disturbance
) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bench() as made:
            theirs = externals(made, 1)
            early = watch(theirs.etcd) if disturbance.kills and disturbance.after is None else []
            kind, body = make(size=1, adopt=adopt(theirs), version="3.6.16")
            goes_on = survives(made, disturbance, write, partial(made.create, kind, body))
            assert not early
            assert_adopted(made, kind, theirs, 1)
            write += 1
    assert write > 8


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "skips", [False, pytest.param(True, marks=pytest.mark.long)], ids=["late", "listed anew"]
)
@MAKERS
def test_an_adoption_on_views_that_lag_ends_the_same(make: Make, skips: bool) -> None:
    write, goes_on = 1, True
    while goes_on:
        with bench() as made:
            theirs = externals(made, 1)
            kind, body = make(size=1, adopt=adopt(theirs), version="3.6.16")
            made.create(kind, body)
            done = partial(made.is_settled, kind, "c")
            goes_on = survives_lag(made, write, done, skips=skips)
            assert_adopted(made, kind, theirs, 1)
            write += 1
    assert write > 8


@pytest.mark.parametrize("write", [1, 4, 9])
@MAKERS
def test_an_operator_that_dies_during_an_adoption_continues_it(make: Make, write: int) -> None:
    with bench() as made:
        theirs = externals(made)
        early = watch(theirs.etcd)
        kind, body = make(adopt=adopt(theirs), version="3.6.16")
        disturbance = DISTURBANCES["it dies after the reply"]
        assert survives(made, disturbance, write, partial(made.create, kind, body))
        assert not early
        assert_finished(made, kind, 3)
