"""Nodes that fall silent under a member that was not ready."""

from collections.abc import Callable

import pytest

from unit.fakes.apiserver import Answer
from unit.fakes.apiserver.faults import Fault, Request
from unit.fakes.apiserver.kinds import NODES, PODS
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, ephemeral
from unit.passes.expected import assert_finished

LOST = "c-0002"


def report(made: Bench, name: str, status: str, *, is_timed: bool = True) -> None:
    """What the node's controller reports of it, from now on."""
    since = made.clock.now().isoformat() if is_timed else None
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
    objects = made.api.objects
    if name not in made.names(NODES):
        objects.create(NODES, "", {"metadata": {"name": name}})
    objects.patch(NODES, "", name, {"status": {"conditions": [ready]}}, "merge", subresource="status")


def hang(made: Bench) -> str:
    """The member hangs for so long that its pod is not ready any more; the name of its node."""
    made.wait(90.0)
    made.etcd.etcd.stop(LOST)
    made.run_until(lambda: serves(made) == "False")
    return str(made.get(PODS, LOST)["spec"]["nodeName"])


def serves(made: Bench) -> str:
    """The status of its readiness gate's condition."""
    found = made.get(PODS, LOST)["status"]["conditions"]
    return str(next(c["status"] for c in found if c["type"].endswith("/member-serves")))


def is_listed(made: Bench) -> bool:
    return any(member.name == LOST for member in made.etcd.etcd.members)


def forbidding(request: Request) -> Fault | None:
    """As for an operator for one namespace."""
    is_node = request.plural == "nodes"
    return Answer(code=403, reason="Forbidden", message="not for you") if is_node else None


def test_a_member_that_was_not_ready_is_lost_with_its_node_after_a_minute() -> None:
    with bootstrapped(*ephemeral()) as made:
        node = hang(made)
        report(made, node, "True")
        made.wait(120.0)
        assert is_listed(made)
        report(made, node, "Unknown")
        made.wait(55.0)
        assert is_listed(made)
        made.wait(25.0)
        assert not is_listed(made)
        made.settle()
        assert_finished(made, COREOS, 3, (0, 1, 3))


def test_a_node_that_is_silent_since_a_time_that_nobody_wrote_is_not_lost() -> None:
    with bootstrapped(*ephemeral()) as made:
        report(made, hang(made), "Unknown", is_timed=False)
        made.wait(120.0)
        assert is_listed(made)


def no_node(_: Request) -> Fault | None:
    return None


@pytest.mark.parametrize("hook", [forbidding, no_node])
def test_of_a_node_that_cannot_be_read_nothing_is_concluded(hook: Callable[[Request], Fault | None]) -> None:
    with bootstrapped(*ephemeral()) as made:
        node = hang(made)
        if hook is forbidding:
            report(made, node, "Unknown")
        made.api.before = hook
        made.wait(120.0)
        assert is_listed(made)
        assert made.reason(COREOS) == "MemberUnhealthy"
        reads = [x for x in made.api.log if x.request.plural == "nodes"]
        assert 0 < len(reads) <= 15
