"""Crash after every write, lost replies, refused writes: exhaustive over the writes of each workflow.

Whatever happens at the k-th write, the cluster comes up as if nothing had, with one cluster ID and no
object too many, and then nothing is written at all.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from unit.fakes.apiserver import Cut, Kind
from unit.fakes.apiserver.kinds import CLAIMS
from unit.passes.bench import Bench, bench
from unit.passes.bodies import COREOS, ephemeral, persistent
from unit.passes.disturbance import DISTURBANCES, Disturbance, survives
from unit.passes.expected import assert_finished

Make = Callable[..., tuple[Kind, dict[str, object]]]


WORST = {"it dies after the reply", "the reply is lost and it dies"}
BY_SIZE = [
    pytest.param(
        size,
        disturbance,
        id=f"{size}: {name}",
        marks=[pytest.mark.long] if size == 3 and name not in WORST else [],
    )
    for name, disturbance in DISTURBANCES.items()
    for size in (
        (3,) if disturbance.kills else (1, 3) if disturbance.after == Cut() or "409" in name else (1,)
    )
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("size", "disturbance"), BY_SIZE)
@pytest.mark.parametrize("make", [ephemeral, persistent])
def test_a_cluster_is_created_once_whatever_happens_at_any_write(
    make: Make, size: int, disturbance: Disturbance
) -> None:
    kind, body = make(size=size)
    if kind is COREOS and disturbance.world_goes_on:
        disturbance = replace(disturbance, world_goes_on=False)  # see the test after this one
    write, goes_on = 1, True
    while goes_on:
        with bench(only=(kind.group,)) as made:
            goes_on = survives(made, disturbance, write, partial(made.create, kind, body))
            assert_finished(made, kind, size)
            write += 1
    assert write > 2 * size


def test_initial_members_that_meet_while_the_operator_is_dead_get_a_third_for_the_one_never_made() -> None:
    with bench() as made:
        kind, body = ephemeral(size=3)
        assert survives(made, DISTURBANCES["it dies after the reply"], 3, partial(made.create, kind, body))
        assert len(made.etcd.running) == 3
        made.rest()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("size", "disturbance"), BY_SIZE)
def test_a_persistent_cluster_resumes_on_its_claims_whatever_happens_at_any_write(
    size: int, disturbance: Disturbance
) -> None:
    kind, body = persistent(size=size)
    write, goes_on = 1, True
    while goes_on:
        with bench(only=(kind.group,)) as made:
            claims = deleted_with_data(made, size)
            goes_on = survives(made, disturbance, write, partial(made.create, kind, body))
            assert {c["metadata"]["uid"] for c in made.api.objects.select(CLAIMS)} == claims
            assert made.etcd.etcd.keys == {b"key": (b"value", 2)}
            assert_finished(made, kind, size)
            write += 1
    assert write > 2 * size


def deleted_with_data(made: Bench, size: int) -> set[str]:
    """A persistent cluster that was created, written to and deleted; the uids of its claims, which stay."""
    kind, body = persistent(size=size)
    made.start()
    made.create(kind, body)
    made.settle()
    made.etcd.put(b"key", b"value")
    made.delete(kind, "c")
    made.drain()
    made.kill()
    assert made.objects() == {
        "services": [], "pods": [], "peers": [], "sets": [], "claims": [f"c-{n}" for n in range(size)]
    }  # fmt: skip
    return {str(claim["metadata"]["uid"]) for claim in made.api.objects.select(CLAIMS)}
