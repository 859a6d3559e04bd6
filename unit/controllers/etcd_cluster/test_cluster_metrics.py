"""What metrics show of clusters, as passes find it."""

from collections.abc import Callable

import pytest

from etcd_operator.keys import Key
from etcd_operator.object_metrics import ClusterMetrics
from unit.controllers.etcd_cluster.test_adopt import Make, joined
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.faults import Answer, Fault, Request, no_fault
from unit.passes.bench import Bench, bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, ephemeral, persistent
from unit.passes.manual_recoveries import ask, silence_two

SERVES = ClusterMetrics(is_available=True)
BOTH = pytest.mark.parametrize("asked", [ephemeral(), persistent()], ids=["ephemeral", "persistent"])


def shown(made: Bench) -> dict[tuple[str, Key], ClusterMetrics]:
    assert made.operator is not None
    return made.operator.cluster_metrics


def metrics(made: Bench, kind: Kind = IMPROBABLE) -> ClusterMetrics | None:
    return shown(made).get((kind.group, Key("default", "c")))


def lost(reason: str) -> ClusterMetrics:
    return ClusterMetrics(is_available=False, held=reason)


def thaw_two(made: Bench) -> None:
    for name in ("c-0", "c-1"):
        made.etcd.etcd.thaw(name)


@BOTH
def test_a_cluster_is_shown_by_its_group_until_its_deletion_begins(asked: tuple[Kind, Json]) -> None:
    kind, body = asked
    with bench() as made:
        made.start()
        made.create(kind, body)
        made.run_until(lambda: metrics(made, kind) is not None)
        assert metrics(made, kind) == ClusterMetrics(is_available=None, working="Creating"), "never served"
        made.settle()
        assert shown(made) == {(kind.group, Key("default", "c")): SERVES}
        made.edit(kind, "c", {"metadata": {"finalizers": ["example.com/hangs"]}})
        made.delete(kind, "c")
        made.run_until(lambda: not shown(made))
        made.edit(kind, "c", {"metadata": {"finalizers": []}})
        made.wait(30.0)
        assert not shown(made)


def test_a_cluster_that_is_deleted_at_once_is_shown_no_more() -> None:
    with bootstrapped(*persistent(size=1)) as made:
        made.delete(IMPROBABLE, "c")
        made.run_until(lambda: not shown(made))


def test_a_lost_quorum_that_waits_for_a_person_and_returns() -> None:
    with bootstrapped(*persistent()) as made:
        silence_two(made)
        assert metrics(made) == lost("QuorumLost")
        made.restart()
        assert not shown(made)
        made.run_until(lambda: metrics(made) == lost("QuorumLost"))
        ask(made, "yes")
        made.run_until(lambda: metrics(made) == lost("RecoveryRefused"))
        ask(made, None)
        thaw_two(made)
        made.run_until(lambda: metrics(made) == SERVES)
        made.settle()
        made.rest()


@MAKERS
def test_an_adopted_cluster_that_loses_its_quorum_is_not_hidden(make: Make) -> None:
    """External members are in it until the end, but do not serve then either."""
    with joined(make) as (made, theirs, kind):
        serving = ClusterMetrics(is_available=True, working="Joined")
        assert metrics(made, kind) == serving
        for member in theirs.etcd.members:
            theirs.etcd.freeze(member.name)
        made.run_until(lambda: metrics(made, kind) == lost("QuorumLost"))
        for member in theirs.etcd.members:
            theirs.etcd.thaw(member.name)
        made.run_until(lambda: metrics(made, kind) == serving)


def refusing_status(code: int, reason: str) -> Callable[[Request], Fault | None]:
    """Writes of the status of clusters fail."""

    def hook(request: Request) -> Fault | None:
        is_meant = request.is_write and request.plural == "etcdclusters" and request.subresource == "status"
        return Answer(code=code, reason=reason) if is_meant else None

    return hook


def test_metrics_show_what_the_status_cannot() -> None:
    """The API server takes no status: the quorum is lost all the same."""
    with bootstrapped(*ephemeral(), alone=True) as made:
        made.api.before = refusing_status(403, "Forbidden")
        for name in ("c-0000", "c-0001"):
            made.etcd.etcd.freeze(name)
        made.run_until(lambda: metrics(made, COREOS) == lost("QuorumLost"))
        assert made.condition(COREOS, "Available")["status"] == "True"
        made.api.before = no_fault
        for name in ("c-0000", "c-0001"):
            made.etcd.etcd.thaw(name)
        made.settle()
        assert metrics(made, COREOS) == SERVES
