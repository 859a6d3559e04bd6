"""Writes that the caches do not show yet, or never will."""

from collections.abc import Callable
from typing import Any

import pytest

from etcd_operator.clock import Clock
from etcd_operator.controllers.shared.groups import REFUSED_SECONDS, Group
from etcd_operator.controllers.shared.writes import LATE, Expectations
from etcd_operator.errors import Forbidden, NotFound, OperatorError
from etcd_operator.keys import Key
from etcd_operator.kube import resources
from etcd_operator.kube.informer import Informer
from etcd_operator.kube.resources import Selection
from etcd_operator.process.health import BEHIND_SECONDS, group_is_ready
from unit.fakes.apiserver import Answer, Kind
from unit.fakes.apiserver.faults import Fault, Request, no_fault
from unit.fakes.apiserver.kinds import PODS
from unit.kube.things import LeapClock, Thing, thing
from unit.passes.bench import Bench, bootstrapped
from unit.passes.bodies import COREOS, PEERS, ephemeral, persistent
from unit.passes.expected import assert_finished

CLUSTER, A = Key("default", "c"), Key("default", "a")


def informer_at(version: int) -> Informer[Thing]:
    """One that is not started; its store has all up to that version."""
    selection = Selection(resource=resources.PODS)
    informer: Informer[Thing] = Informer(None, selection, Thing, on_crash=lambda *_: None)  # type: ignore[arg-type]
    informer.store.replace([thing("a", version - 5)], str(version))
    return informer


def test_a_write_is_waited_for_until_the_cache_shows_it() -> None:
    informer, expectations = informer_at(1000), Expectations(LeapClock())
    expectations.wrote(CLUSTER, informer, A, "1001")
    assert not expectations.are_met(CLUSTER)
    informer.store.advance("1001")
    assert expectations.are_met(CLUSTER)


def test_a_list_that_begins_after_a_write_shows_it_whatever_its_version() -> None:
    """The API server's etcd is restored from a backup: its versions go back, below the write's."""
    informer, expectations = informer_at(1000), Expectations(LeapClock())
    reflector = informer.reflector
    reflector.lists_begun = 2  # the second list began before the write
    expectations.wrote(CLUSTER, informer, A, "1001")
    informer.store.replace([thing("a", 495)], "500")
    reflector.lists_stored = 2
    assert not expectations.are_met(CLUSTER)
    reflector.lists_begun = reflector.lists_stored = 3
    assert expectations.are_met(CLUSTER)


def test_a_cache_that_does_not_follow_is_named_after_half_a_minute() -> None:
    clock = LeapClock()
    informer, expectations = informer_at(1000), Expectations(clock)
    expectations.wrote(CLUSTER, informer, A, "1001")
    clock.leapt += LATE - 1.0
    assert not expectations.are_met(CLUSTER)
    assert expectations.late(CLUSTER) == ()
    clock.leapt += 2.0
    assert expectations.late(CLUSTER) == ("pods (no events arrive)",)
    informer.reflector.last_error = Forbidden("watch pods: 403: no")
    assert expectations.late(CLUSTER) == ("pods (watch pods: 403: no)",)
    assert expectations.late(Key("default", "other")) == ()


def test_a_cache_that_has_not_followed_for_a_minute_fails_the_check_of_its_group() -> None:
    informer = informer_at(1000)
    group = Group(name="group", informers=(informer,), controllers=(), others=())
    informer._synced.set()
    assert group_is_ready(group)() == (True, "caches are complete")
    informer.reflector.last_error = Forbidden("watch pods: 403: no")
    for seconds, is_ready in ((BEHIND_SECONDS - 10.0, True), (BEHIND_SECONDS + 10.0, False)):
        informer.reflector._failing_since = Clock().monotonic() - seconds
        assert group_is_ready(group)()[0] is is_ready
    assert "s: watch pods: 403: no" in group_is_ready(group)()[1]


@pytest.mark.parametrize("error", [Forbidden("list pods: 403: no"), NotFound("list pods: 404: no")])
@pytest.mark.parametrize("is_optional", [False, True])
def test_an_optional_group_without_its_kinds_does_not_hold_up_a_rollout(
    error: OperatorError, *, is_optional: bool
) -> None:
    """A new operator has the rights and definitions of the former one until its own are applied."""
    informer = informer_at(1000)
    group = Group(name="g", informers=(informer,), controllers=(), others=(), is_optional=is_optional)
    assert not group_is_ready(group)()[0]
    informer.reflector.last_error = error
    informer.reflector._failing_since = Clock().monotonic()
    assert group_is_ready(group)()[0] is (is_optional and isinstance(error, NotFound))
    informer.reflector._failing_since -= REFUSED_SECONDS + 1.0
    is_ready, why = group_is_ready(group)()
    assert is_ready is is_optional
    assert str(error) in why


def forbid(made: Bench, kind: Kind) -> None:
    """Objects of this kind may be written, but neither listed nor watched."""

    def refuse(request: Request) -> Fault | None:
        is_read = (
            request.plural == kind.plural and not request.is_write and request.path.endswith(kind.plural)
        )
        return Answer(code=403, reason="Forbidden", message="not for you") if is_read else None

    made.api.before = refuse
    for stream in made.api.watches:
        if stream.kind == kind:
            stream.drop()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("make", "written"), [(ephemeral, PODS), (persistent, PEERS)])
def test_a_kind_that_may_not_be_watched_is_reported_and_stops_no_status(
    make: Callable[..., tuple[Kind, Any]], written: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, body = make()
    with bootstrapped(kind, body) as made:
        with monkeypatch.context() as patched:
            patched.setattr(type(made.operator), "_shows_the_view", lambda *_: True)
            forbid(made, written)
            made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 4}})
            made.wait(LATE + 15.0)
            assert made.reason(kind) == "CacheBehind"
            assert "403: not for you" in made.condition(kind, "Degraded")["message"]
            assert made.condition(kind, "Available")["status"] == "True"
            for member in list(made.etcd.running):
                made.etcd.etcd.freeze(member)
            made.wait(60.0)
            assert made.condition(kind, "Available")["status"] == "Unknown"
            assert made.reason(kind) == "CacheBehind"
        for member in list(made.etcd.running):
            made.etcd.etcd.thaw(member)
        made.api.before = no_fault
        made.settle()
        assert_finished(made, kind, 4, (0, 1, 2, 3))
