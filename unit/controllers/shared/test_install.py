"""The operator's own definitions, applied to a fake API server that fails on the way."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3
from structlog.testing import capture_logs

from etcd_operator.api.definitions.crd import crds
from etcd_operator.api.definitions.policies import policies
from etcd_operator.controllers.shared.install import DELAYS, REFUSED_DELAY, Installer
from etcd_operator.kube.client import Client
from etcd_operator.kube.transport import Timeouts, Transport
from unit.fakes.apiserver import ApiServer, Cut
from unit.fakes.apiserver.faults import Answer, Fault, Request
from unit.fakes.apiserver.kinds import CRDS

PATIENT = Timeouts(connect=30.0, read=30.0, total=60.0, silence=30.0)
"""Longer than a busy machine takes to answer: a write that is tried again is counted."""

NAMES = sorted(body["metadata"]["name"] for body in (*crds(), *policies()))
PEERS = "etcdpeers.etcd.improbable.io"
FAULTS: dict[str, Fault] = {
    "503": Answer(code=503),
    "429": Answer(code=429, retry_after=7),
    "403": Answer(code=403, reason="Forbidden"),
    "422": Answer(code=422, reason="Invalid"),
    "cut off": Cut(),
}


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer(custom=()) as one:
        yield one


class Pauses(list[float]):
    """A wait that takes no time: `then` happens in the middle of it, and stop is asked for after `most`."""

    def __init__(self, then: Callable[[int], None] = lambda _: None, *, most: int = 100) -> None:
        self._then, self._most = then, most

    def __call__(self, seconds: float) -> bool:
        self.append(seconds)
        self._then(len(self))
        return len(self) >= self._most


Make = Callable[[Pauses], Installer]


@pytest.fixture
def installer(api: ApiServer) -> Iterator[Make]:
    with urllib3.PoolManager() as pool:
        client = Client(Transport(pool=pool, base_url=api.url), timeouts=PATIENT)
        yield lambda pauses: Installer(client, wait=pauses, random=lambda: 0.0)


def applied(api: ApiServer) -> list[str]:
    """Names of the definitions that are there, each as often as it was applied."""
    return sorted(w.request.path.rpartition("/")[2] for w in api.writes if w.applied)


def is_applied_to(request: Request, name: str) -> bool:
    return request.is_write and request.path.endswith(f"/{name}")


def test_all_definitions_are_applied_once(api: ApiServer, installer: Make) -> None:
    pauses = Pauses()
    one = installer(pauses)
    assert one.check() == (False, "not applied yet")
    assert one.try_all()
    one.try_until_done()
    assert applied(api) == NAMES
    assert one.check() == (True, "applied")
    assert not pauses


def test_a_definition_of_before_kubernetes_1_16_can_be_replaced(api: ApiServer, installer: Make) -> None:
    """There `preserveUnknownFields: true` is stored, with which the API server refuses defaults."""
    sent: list[Any] = []

    def note(request: Request) -> Fault | None:
        if request.is_write and "customresourcedefinitions" in request.path:
            sent.append(request.body["spec"]["preserveUnknownFields"])
        return None

    api.before = note
    assert installer(Pauses()).try_all()
    assert sent == [False] * len(crds())


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("number", [1, 2, 4, 7, 12])
def test_whatever_request_fails_once_all_definitions_are_applied_in_the_end(
    api: ApiServer, installer: Make, name: str, number: int
) -> None:
    """The requests are writes, and before those of policies the question whether their kind is served."""
    asked: list[Request] = []

    def fail_once(request: Request) -> Fault | None:
        asked.append(request)
        return FAULTS[name] if len(asked) == number else None

    api.before = fail_once
    pauses = Pauses()
    one = installer(pauses)
    is_done = one.try_all()
    one.try_until_done()
    assert applied(api) == NAMES
    assert one.check() == (True, "applied")
    pause = {"429": 7.0, "403": REFUSED_DELAY, "422": REFUSED_DELAY}.get(name, DELAYS.first)
    is_read_again = name == "cut off" and not asked[number - 1].is_write  # by the transport
    assert (is_done, pauses) == ((True, []) if is_read_again else (False, [pause]))


def test_one_definition_that_is_refused_keeps_no_other_from_being_applied(
    api: ApiServer, installer: Make
) -> None:
    api.before = lambda request: (
        Answer(code=403, reason="Forbidden") if is_applied_to(request, PEERS) else None
    )
    pauses = Pauses(most=3)
    one = installer(pauses)
    with capture_logs() as logs:
        assert not one.try_all()
        assert applied(api) == [name for name in NAMES if name != PEERS]
        one.try_until_done()
    assert pauses == [REFUSED_DELAY] * 3
    is_ready, words = one.check()
    assert is_ready  # somebody else may have installed it; if nobody has, the caches report it
    assert PEERS in words
    assert [line["definition"] for line in logs if line["log_level"] == "warning"] == [
        f"CustomResourceDefinition {PEERS}"
    ]


def test_a_right_that_is_given_later_is_used_and_reported(api: ApiServer, installer: Make) -> None:
    refused = [True]
    api.before = lambda request: Answer(code=403) if refused and is_applied_to(request, PEERS) else None
    one = installer(Pauses(lambda count: refused.clear() if count == 2 else None))
    with capture_logs() as logs:
        one.try_all()
        one.try_until_done()
    assert applied(api) == NAMES
    assert [line["event"] for line in logs] == ["definition_not_applied", "definition_applied"]


def test_an_api_server_that_cannot_is_asked_again_with_growing_pauses(
    api: ApiServer, installer: Make
) -> None:
    api.before = lambda request: Answer(code=503) if is_applied_to(request, PEERS) else None
    pauses = Pauses(most=8)
    one = installer(pauses)
    one.try_all()
    one.try_until_done()
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, *[DELAYS.cap] * 3]
    is_ready, words = one.check()
    assert not is_ready
    assert PEERS in words


def test_a_server_that_is_away_is_asked_once_in_each_round(api: ApiServer, installer: Make) -> None:
    """Each request to one that hangs takes its whole deadline."""
    api.before = lambda _: Cut()
    one = installer(Pauses(most=2))
    one.try_all()
    one.try_until_done()
    tries = [w for w in api.writes if not w.applied]
    assert len(tries) == 2
    api.before = lambda _: None
    assert one.try_all()
    assert applied(api) == NAMES


def test_policies_that_an_older_api_server_does_not_know_are_left_out(
    api: ApiServer, installer: Make
) -> None:
    mutating = [kind for kind in api.objects.kinds.all() if kind.plural.startswith("mutating")]
    for kind in mutating:
        api.objects.kinds.withdraw(kind)
    one = installer(Pauses())
    with capture_logs() as logs:
        assert one.try_all()
    assert len(applied(api)) == len(NAMES) - len(logs) < len(NAMES)
    assert {line["event"] for line in logs} == {"policy_not_supported"}
    assert CRDS in api.objects.kinds.all()
