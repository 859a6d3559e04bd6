"""A write that fails: the reason is reported, and everything else is written nevertheless."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from etcd_operator.controllers.etcd_peer.act import PeerActor
from unit.controllers.etcd_cluster.test_protect import gate_of
from unit.fakes.apiserver import Answer, Json, Kind
from unit.fakes.apiserver.faults import Cut, Fault, Request
from unit.fakes.apiserver.kinds import CLAIMS, PODS, REPLICA_SETS
from unit.passes.bench import bench, bootstrapped
from unit.passes.bodies import COREOS, IMPROBABLE, MAKERS, PEERS, ephemeral, persistent
from unit.passes.expected import assert_finished

WEBHOOK = 'Internal error occurred: failed calling webhook "images.example.com": no endpoints available'
FAULTS: dict[str, Fault] = {
    "500": Answer(code=500, reason="InternalError", message=WEBHOOK),
    "503": Answer(code=503, reason="ServiceUnavailable", message=WEBHOOK),
    "504": Answer(code=504, reason="Timeout", message=WEBHOOK),
    "429": Answer(code=429, reason="TooManyRequests", message=WEBHOOK, retry_after=1),
    "404": Answer(code=404, reason="NotFound", message=WEBHOOK),
    "409": Answer(code=409, reason="Conflict", message=WEBHOOK),
}


def failing(fault: Fault | Callable[[], Fault], *plurals: str) -> Callable[[Request], Fault | None]:
    """Give `fault` for each creation of these kinds."""

    def hook(request: Request) -> Fault | None:
        if request.method != "POST" or request.plural not in plurals:
            return None
        return fault() if callable(fault) else fault

    return hook


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_member_that_hangs_is_reported_apart_although_pods_cannot_be_made(fault: Fault) -> None:
    """Or an eviction passes that costs the quorum: three of five are left, one of which hangs."""
    with bootstrapped(*ephemeral(size=5)) as made:
        made.api.before = failing(fault, "pods")
        made.delete(PODS, "c-0004")
        made.run_until(lambda: any(member.is_learner for member in made.etcd.etcd.members))
        made.etcd.etcd.freeze("c-0001")
        made.run_until(lambda: gate_of(made, "c-0001") == "False")
        made.run_until(lambda: made.reason(COREOS) == "RequestFailed")
        assert WEBHOOK in made.condition(COREOS, "Degraded")["message"]
        assert "create pods default/c-0005" in made.condition(COREOS, "Degraded")["message"]
        assert made.status(COREOS)["members"]["unready"] == ["c-0001", "c-0005"]
        made.etcd.etcd.thaw("c-0001")
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, COREOS, 5, (0, 1, 2, 3, 5))


@pytest.mark.parametrize(
    ("make", "plural"),
    [
        (ephemeral, "pods"),
        (ephemeral, "services"),
        (ephemeral, "poddisruptionbudgets"),
        (persistent, "etcdpeers"),
        (persistent, "services"),
        (persistent, "persistentvolumeclaims"),
        (persistent, "replicasets"),
    ],
)
def test_a_creation_that_fails_again_and_again_is_reported_in_the_servers_words(
    make: Callable[..., tuple[Kind, Json]], plural: str
) -> None:
    with bench() as made:
        kind, body = make()
        made.api.before = failing(FAULTS["500"], plural)
        made.create(kind, body)
        made.start()
        made.run_until(lambda: made.reason(kind) == "RequestFailed")
        message = made.condition(kind, "Degraded")["message"]
        assert WEBHOOK in message
        assert f"create {plural}" in message.replace(".policy", "").replace(".apps", "")
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, kind, 3)


@MAKERS
@pytest.mark.parametrize("name", ["500", "409", "429"])
def test_what_one_more_try_resolves_is_not_reported(make: Callable[..., Any], name: str) -> None:
    with bench() as made:
        kind, body = make()
        seen: list[Request] = []
        hook = failing(FAULTS[name], "services")

        def once(request: Request) -> Fault | None:
            fault = hook(request) if not seen else None
            seen.extend([request] if fault is not None else [])
            return fault

        made.api.before = once
        made.create(kind, body)
        made.start()
        made.settle()
        assert len(seen) == 1
        assert not [event for event in made.events() if event["type"] == "Warning"]
        assert_finished(made, kind, 3)


def test_a_message_that_differs_each_time_is_not_written_each_time() -> None:
    """Each status write wakes the cluster, which tries again at once: that would be a loop."""
    numbers = count(1)

    def refused() -> Fault:
        port, colours = next(numbers), ["red", "green", "blue", "grey"]
        return Answer(code=500, message=f"dial tcp 10.0.0.1:{40000 + port}: {colours[port % 4]}")

    with bootstrapped(*ephemeral()) as made:
        made.api.before = failing(refused, "pods")
        made.delete(PODS, "c-0001")
        made.run_until(lambda: made.reason(COREOS) == "RequestFailed")
        before = len(made.writes())
        made.wait(60.0)
        written = [w.request for w in made.writes()[before:] if w.request.plural == "etcdclusters"]
        assert len(written) <= 8, "one in ten seconds, and one when the members' health was seen"
        assert len(written) < next(numbers) / 2


@MAKERS
def test_a_status_that_cannot_be_written_keeps_no_condition_of_a_pod_from_being_written(
    make: Callable[..., Any],
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        plural = "etcdclusters"

        def broken(request: Request) -> Fault | None:
            return Cut() if request.is_write and request.plural == plural else None

        name, before = made.etcd.running[1], made.status(kind)
        made.api.before = broken
        made.etcd.etcd.freeze(name)
        made.run_until(lambda: gate_of(made, name) == "False")
        assert made.status(kind) == before
        made.api.before = lambda _: None
        made.run_until(lambda: made.status(kind) != before)
        made.etcd.etcd.thaw(name)
        made.settle()


def test_a_condition_of_a_pod_that_cannot_be_written_keeps_no_other_one_from_being_written() -> None:
    with bootstrapped(*ephemeral(size=5)) as made:

        def broken(request: Request) -> Fault | None:
            is_first = request.path.endswith("/c-0000/status")
            return Answer(code=500) if request.is_write and is_first else None

        made.api.before = broken
        for name in ("c-0000", "c-0004"):
            made.etcd.etcd.freeze(name)
        made.run_until(lambda: gate_of(made, "c-0004") == "False")
        assert gate_of(made, "c-0000") == "True"
        made.api.before = lambda _: None
        made.run_until(lambda: gate_of(made, "c-0000") == "False")


@MAKERS
@pytest.mark.parametrize(
    ("code", "kind_of_error", "reason"),
    [(403, "Forbidden", "Forbidden"), (422, "Invalid", "Refused"), (500, "InternalError", "RequestFailed")],
)
def test_conditions_of_pods_that_cannot_be_written_are_reported(
    make: Callable[..., Any], code: int, kind_of_error: str, reason: str
) -> None:
    """A member that hangs would seem to serve for ever, or one that serves not to."""
    kind, body = make()
    with bootstrapped(kind, body) as made:

        def refused(request: Request) -> Fault | None:
            is_mark = (request.plural, request.subresource, request.method) == ("pods", "status", "PATCH")
            fault = Answer(code=code, reason=kind_of_error, message=WEBHOOK)
            return fault if is_mark and "strategic" in request.content_type else None

        name = made.etcd.running[1]
        made.etcd.etcd.freeze(name)
        made.run_until(lambda: gate_of(made, name) == "False")
        made.api.before = refused
        made.etcd.etcd.thaw(name)
        made.run_until(lambda: made.reason(kind) == reason)
        assert WEBHOOK in made.condition(kind, "Degraded")["message"]
        made.wait(20.0)
        before = len([w for w in made.writes() if w.applied])
        made.wait(60.0)
        assert len([w for w in made.writes() if w.applied]) == before
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, kind, 3)


def test_the_status_of_one_peer_that_cannot_be_written_keeps_no_other_one_from_being_written() -> None:
    with bootstrapped(*persistent()) as made:

        def broken(request: Request) -> Fault | None:
            return Answer(code=500) if request.is_write and request.path.endswith("/c-0/status") else None

        def available(name: str) -> str:
            return str(made.get(PEERS, name)["status"]["conditions"][0]["status"])

        made.api.before = broken
        for name in ("c-0", "c-2"):
            made.etcd.etcd.freeze(name)
        made.run_until(lambda: available("c-2") == "False")
        assert available("c-0") == "True"
        made.api.before = lambda _: None
        made.run_until(lambda: available("c-0") == "False")


def test_a_claim_that_cannot_be_made_is_reported_of_the_cluster_that_grows() -> None:
    with bootstrapped(*persistent()) as made:
        made.api.before = failing(FAULTS["500"], "persistentvolumeclaims")
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 4}})
        made.run_until(lambda: made.reason(IMPROBABLE) == "RequestFailed")
        assert WEBHOOK in made.condition(IMPROBABLE, "Degraded")["message"]
        assert made.names(CLAIMS) == ["c-0", "c-1", "c-2"]
        made.api.before = lambda _: None
        made.settle()
        assert_finished(made, IMPROBABLE, 4, (0, 1, 2, 3))


def test_a_bug_in_an_act_is_reported_and_harms_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with bootstrapped(*ephemeral()) as made:
        assert made.operator is not None
        controller: Any = next(g for g in made.operator.groups if g.name == COREOS.group).controllers[0]
        actor = controller.reconcile.__self__.actor
        monkeypatch.setattr(type(actor), "_write", lambda *_: dict[str, str]()["no such key"])
        made.delete(PODS, "c-0001")
        with pytest.raises(AssertionError, match="panicked"):
            made.run_until(lambda: False)
        assert made.reason(COREOS) == "InternalError"
        assert "KeyError" in made.condition(COREOS, "Degraded")["message"]


def test_a_bug_in_the_pass_of_a_peer_is_reported_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with bootstrapped(*persistent()) as made:
        monkeypatch.setattr(PeerActor, "_create_claim", lambda *_: dict[str, str]()["no such key"])
        made.edit(IMPROBABLE, "c", {"spec": {"replicas": 4}})
        with pytest.raises(AssertionError, match="panicked"):
            made.run_until(lambda: False)
        made.run_until(lambda: made.reason(IMPROBABLE) == "InternalError", turns=5)
        assert "KeyError" in made.condition(IMPROBABLE, "Degraded")["message"]


@pytest.mark.parametrize(("cluster", "lost"), [(ephemeral(), PODS), (persistent(), REPLICA_SETS)])
def test_who_may_not_act_reports_nothing_either(cluster: tuple[Kind, Json], lost: Kind) -> None:
    """Passes that began while this process led: of clusters, and of the peers whose ReplicaSets are gone."""
    with bootstrapped(*cluster) as made:
        assert made.operator is not None
        made.operator.leads = False
        made.delete(lost, made.names(lost)[1])
        before = len(made.writes())
        made.wait(30.0)
        assert len(made.writes()) == before
        made.operator.leads = True
        made.run_until(lambda: len(made.names(lost)) == 3)
