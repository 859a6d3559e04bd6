"""A cluster whose passes fail is tried less and less often, whatever its passes write and wait for."""

import pytest

from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.faults import Answer, Fault, Request
from unit.passes.bench import Bench, bench
from unit.passes.bodies import ephemeral, persistent

CAP = 30.0
PAUSE = 1.0
QUIET = 300.0


def refuse_pods(request: Request) -> Fault | None:
    """As an admission webhook that is down."""
    is_pod = request.is_write and request.plural in ("pods", "etcdpeers")
    return Answer(code=500, reason="InternalError") if is_pod else None


def tries(made: Bench) -> int:
    return sum(refuse_pods(write.request) is not None for write in made.writes())


def fail(made: Bench, kind: Kind, body: Json) -> None:
    """A cluster of one member that grows while no member can be made."""
    made.start()
    made.create(kind, body)
    made.settle()
    made.api.before = refuse_pods
    size = "size" if "size" in body["spec"] else "replicas"
    made.edit(kind, "c", {"spec": {size: 3}})
    made.wait(60.0)


@pytest.mark.parametrize(("kind", "body"), [ephemeral(size=1), persistent(size=1)], ids=["pods", "peers"])
def test_a_cluster_that_goes_on_failing_comes_to_the_longest_wait(kind: Kind, body: Json) -> None:
    with bench() as made:
        fail(made, kind, body)
        before = tries(made)
        made.wait(QUIET)
        assert QUIET / CAP <= tries(made) - before <= 2 * QUIET / (CAP / 2)


@pytest.mark.parametrize(("kind", "body"), [ephemeral(size=1), persistent(size=1)], ids=["pods", "peers"])
def test_a_failing_cluster_is_tried_at_once_when_something_else_is_asked(kind: Kind, body: Json) -> None:
    with bench() as made:
        fail(made, kind, body)
        before = -1
        while tries(made) > before:  # nothing brings the next try forward in the second after a failure
            before = tries(made)
            made.wait(PAUSE)
        began = made.clock.monotonic()
        made.edit(kind, "c", {"metadata": {"annotations": {"by": "hand"}}})
        made.run_until(lambda: tries(made) > before)
        assert made.clock.monotonic() - began < 0.1
