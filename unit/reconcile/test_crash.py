"""Crash after every write, lost replies, refused writes: exhaustive over the writes of each workflow.

Whatever happens at the k-th write, the cluster comes up as if nothing had, with one cluster ID and no
object too many, and then nothing is written at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest

from unit.fakes.apiserver import Answer, Cut, Kind
from unit.fakes.apiserver.faults import Fault
from unit.fakes.apiserver.kinds import CLAIMS
from unit.reconcile.bench import COREOS, Bench, bench, ephemeral, persistent
from unit.reconcile.expected import assert_finished
from unit.reconcile.trouble import OnNthWrite, run_or_die

Make = Callable[..., tuple[Kind, dict[str, object]]]


@dataclass(frozen=True)
class Trouble:
    """What happens at the k-th write: a fault before or after it is applied, and whether it kills."""

    before: Fault | None = None
    after: Fault | None = None
    kills: bool = False
    world_goes_on: bool = False

    def arrange(self, made: Bench, write: int) -> Callable[[], bool]:
        """Set it up and start the operator; the result tells whether the write has come."""
        hooks = [OnNthWrite(write, fault) for fault in (self.before, self.after) if fault is not None]
        if self.before is not None:
            made.api.before = hooks[0]
        if self.after is not None:
            made.api.after = hooks[-1]
        made.start(dies_at=write if self.kills else 0)
        begin = len(made.writes())
        return lambda: len(made.writes()) - begin >= write


TROUBLES = {
    "it dies after the reply": Trouble(kills=True, world_goes_on=True),
    "it dies after the reply and the world stands still": Trouble(kills=True),
    "the reply is lost and it dies": Trouble(after=Cut(), kills=True, world_goes_on=True),
    "the reply is lost and it lives on": Trouble(after=Cut()),
    "the reply is a timeout though it was applied": Trouble(after=Answer(code=504, reason="Timeout")),
    "the connection ends before it is applied": Trouble(before=Cut()),
    "it is answered with 500": Trouble(before=Answer(code=500, reason="InternalError")),
    "it is answered with 429": Trouble(before=Answer(code=429, reason="TooManyRequests", retry_after=1)),
    "it is answered with 409": Trouble(before=Answer(code=409, reason="Conflict")),
}


def survives(made: Bench, trouble: Trouble, write: int, workflow: Callable[[], object]) -> bool:
    """Go through `workflow` with trouble at one write; false when it has no such write."""
    has_come = trouble.arrange(made, write)
    workflow()
    if not run_or_die(made, made.settle):
        if trouble.world_goes_on:
            while made.step():
                pass
        made.start()
        made.settle()
    return has_come()


BY_SIZE = [
    pytest.param(size, trouble, id=f"{size}: {name}")
    for name, trouble in TROUBLES.items()
    for size in ((3,) if trouble.kills or trouble.after == Cut() else (1,))
] + [pytest.param(3, TROUBLES["it is answered with 409"], id="3: it is answered with 409")]


@pytest.mark.parametrize(("size", "trouble"), BY_SIZE)
@pytest.mark.parametrize("make", [ephemeral, persistent])
def test_a_cluster_is_created_once_whatever_happens_at_any_write(
    make: Make, size: int, trouble: Trouble
) -> None:
    kind, body = make(size=size)
    if kind is COREOS and trouble.world_goes_on:
        trouble = replace(trouble, world_goes_on=False)  # see the test after this one
    write, goes_on = 1, True
    while goes_on:
        with bench() as made:
            goes_on = survives(made, trouble, write, partial(made.create, kind, body))
            assert_finished(made, kind, size)
            write += 1
    assert write > 2 * size


def test_founders_that_meet_while_the_operator_is_dead_get_a_third_in_place_of_the_one_never_made() -> None:
    with bench() as made:
        kind, body = ephemeral(size=3)
        assert survives(made, TROUBLES["it dies after the reply"], 3, partial(made.create, kind, body))
        assert len(made.etcd.running) == 3
        made.rest()


@pytest.mark.parametrize(("size", "trouble"), BY_SIZE)
def test_a_persistent_cluster_resumes_on_its_claims_whatever_happens_at_any_write(
    size: int, trouble: Trouble
) -> None:
    kind, body = persistent(size=size)
    write, goes_on = 1, True
    while goes_on:
        with bench() as made:
            claims = deleted_with_data(made, size)
            goes_on = survives(made, trouble, write, partial(made.create, kind, body))
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
