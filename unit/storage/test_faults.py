"""Services that fail: what is repeated, what is not, what a person reads, and that nothing half is left."""

import logging
import math
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import trustme

from etcd_operator.storage.errors import AccessDenied, Stalled, StoreError, StoreFull, Transient, Unreachable
from etcd_operator.storage.protocol import Store
from etcd_operator.storage.retries import Attempts
from unit.storage.cases import SECRET, SERVICES, Case, Cases
from unit.storage.real import REAL
from unit.storage.server import (
    Fault,
    Server,
    Where,
    answers_with,
    closes,
    cuts_off,
    hangs,
    loses_reply,
    serving,
)

SEVERAL_PARTS = bytes(6 * 1024 * 1024)  # of every service
BRIEF = 0.3  # seconds without progress until a test's store gives up


@pytest.fixture(params=[*SERVICES, *(pytest.param(kind, marks=pytest.mark.stores) for kind in REAL)])
def case(request: pytest.FixtureRequest, cases: Cases) -> Case:
    return cases.fresh(request.param)


def server(case: Case) -> Server:
    assert case.server is not None
    return case.server


def names(case: Case) -> list[str]:
    return sorted(stored.name for stored in case.store.list(""))


def content(case: Case, name: str) -> bytes:
    return b"".join(case.store.read(name))


def nothing_is_left(case: Case) -> bool:
    server(case).faults = []
    return names(case) == [] and case.unfinished() == []


PASSING = {
    "500": answers_with(500, times=2),
    "503": answers_with(503, b"<Error><Code>SlowDown</Code></Error>", times=2),
    "429": answers_with(429, times=2),
    "closed": closes(times=2),
    "lost reply": loses_reply(times=2),
    "silent": hangs(times=1),
    "cut off": cuts_off(1, times=2),
}
PATIENT = 4.0  # seconds: a connection may be silent for a third of it


def at(fault: Fault, where: Where, times: float | None = None) -> Fault:
    return replace(fault, where=where, times=times or fault.times)


PUTS = [("starts", None), ("sends", None), ("finishes", None), ("finishes", 1)]  # bytes; None: three parts


@pytest.mark.parametrize("name", ["503", "closed", "lost reply", "silent"])
@pytest.mark.parametrize(("step", "size"), PUTS)
def test_a_put_survives_what_passes(case: Case, name: str, step: str, size: int | None) -> None:
    """Also if the request was carried out and only its reply was lost: the object is ours."""
    if not case.continues and step != "starts":
        pytest.skip("uploads to this emulator do not continue")
    data = case.large[:size]
    server(case).faults = [at(PASSING[name], getattr(case, step))]
    case.open("bucket", PATIENT).put("a", [data])
    assert server(case).faults[0].hits > 0
    server(case).faults = []
    assert content(case, "a") == data


@pytest.mark.parametrize("name", PASSING)
def test_a_read_survives_what_passes(case: Case, name: str) -> None:
    case.store.put("a", [case.large])
    server(case).faults = [at(PASSING[name], case.reads)]
    assert b"".join(case.open("bucket", PATIENT).read("a", 7)) == case.large[7:]
    assert server(case).faults[0].hits > 0


@pytest.mark.parametrize("name", PASSING)
def test_a_list_survives_what_passes(case: Case, name: str) -> None:
    case.store.put("a", [b"x"])
    server(case).faults = [at(PASSING[name], case.lists)]
    assert [stored.name for stored in case.open("bucket", PATIENT).list("")] == ["a"]
    assert server(case).faults[0].hits > 0


LASTING = [
    ("starts", "silent"),
    ("sends", "503"),
    ("sends", "closed"),
    ("finishes", "silent"),
    ("finishes", "503"),
]


@pytest.mark.parametrize(("step", "name"), LASTING)
def test_a_put_without_progress_ends_in_time_with_nothing_left(case: Case, step: str, name: str) -> None:
    server(case).faults = [at(PASSING[name], getattr(case, step), times=math.inf)]
    began = time.monotonic()
    with pytest.raises(Stalled, match=r"no progress for 0\.3 s"):
        case.open("bucket", BRIEF).put("a", [case.large])
    assert time.monotonic() - began < 30  # the default is 60
    assert nothing_is_left(case)


OPERATIONS: dict[str, Callable[[Store], Any]] = {
    "put": lambda store: store.put("b", [b"x"]),
    "large put": lambda store: store.put("b", [SEVERAL_PARTS]),
    "read": lambda store: list(store.read("a")),
    "list": lambda store: list(store.list("")),
    "stat": lambda store: store.stat("a"),
    "delete": lambda store: store.delete("a"),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_store_that_refuses_is_asked_once(case: Case, operation: str) -> None:
    case.store.put("a", [b"x"])
    store = case.open("bucket", 20.0)
    server(case).faults = [answers_with(403)]
    server(case).seen = []
    with pytest.raises(AccessDenied, match=r"No right to use .*//bucket/.*403.* Check the credentials"):
        OPERATIONS[operation](store)
    assert len(server(case).seen) <= 3  # a read, the request, and the end of the upload


@pytest.mark.parametrize("operation", ["put", "read", "list"])
def test_a_store_that_is_silent_is_given_up(case: Case, operation: str) -> None:
    case.store.put("a", [b"x"])
    server(case).faults = [hangs()]
    with pytest.raises(Stalled, match=r"no progress for 0\.3 s.*timed out.* Check the network"):
        OPERATIONS[operation](case.open("bucket", BRIEF))


@pytest.mark.parametrize("operation", ["put", "stat", "delete"])
def test_a_store_that_cannot_serve_is_given_up(case: Case, operation: str) -> None:
    case.store.put("a", [b"x"])
    server(case).faults = [answers_with(503)]
    with pytest.raises(Stalled, match=r"no progress for 0\.3 s: the store answered 503"):
        OPERATIONS[operation](case.open("bucket", BRIEF))
    assert len(server(case).seen) > 3


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_sdk_repeats_nothing_by_itself(
    case: Case, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failed request ends one attempt: the time limit would not bound more."""
    case.store.put("a", [b"x"])
    failed: list[int] = []

    def once(_: Attempts, request: Callable[[], Any]) -> Any:
        before = server(case).faults[0].hits
        try:
            return request()
        except Transient as failure:
            failed.append(server(case).faults[0].hits - before)
            raise failure.final from None

    monkeypatch.setattr(Attempts, "run", once)
    server(case).faults = [answers_with(503)]
    with pytest.raises(StoreError):
        OPERATIONS[operation](case.store)
    assert set(failed) == {1}


def test_a_full_store_is_reported(case: Case) -> None:
    server(case).faults = [answers_with(507, where=case.sends)]
    with pytest.raises(StoreFull, match=r"No space is left for .*//bucket/a.* raise the quota"):
        case.store.put("a", [case.large])
    assert nothing_is_left(case)


def test_a_source_that_is_slow_does_not_use_up_the_time_limit(case: Case) -> None:
    if not case.continues:
        pytest.skip("uploads to this emulator do not continue")
    limit = 2.0
    store = case.open("bucket", limit)
    pause = threading.Event()

    def chunks() -> Iterator[bytes]:
        yield case.large
        ended = time.monotonic() + 2 * limit
        while time.monotonic() < ended:
            yield b"x"
            pause.wait(0.01)

    server(case).faults = [answers_with(503, times=1, where=case.finishes)]
    store.put("a", chunks())
    assert names(case) == ["a"]


@pytest.mark.parametrize("is_replaced", [True, False])
def test_an_object_that_is_replaced_or_removed_while_it_is_read_is_not_mixed(
    case: Case, is_replaced: bool
) -> None:
    case.store.put("a", [case.large])
    server(case).faults = [cuts_off(case.part // 2, times=1, where=case.reads)]
    reading = case.store.read("a")
    next(reading)
    case.store.delete("a")
    if is_replaced:
        case.store.put("a", [case.large[::-1]])
    with pytest.raises(StoreError, match=r"was replaced or removed while it was read\. Read it again"):
        list(reading)


@pytest.mark.parametrize("size", [5, None])
def test_an_upload_that_may_only_write_needs_no_read(case: Case, size: int | None) -> None:
    server(case).faults = [answers_with(403, where=lambda r: r.method in ("GET", "HEAD"))]
    case.store.put("a", [case.large[:size]])
    server(case).faults = []
    assert content(case, "a") == case.large[:size]


def test_an_address_where_nobody_listens_is_reported(case: Case) -> None:
    """Refused connections are repeated: the store may be starting."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        store = case.at(f"127.0.0.1:{free.getsockname()[1]}", BRIEF)
        with pytest.raises(Unreachable, match=r"for 0\.3 s: Connection refused\. Check its address"):
            store.stat("a")


def test_a_host_that_does_not_exist_is_reported(case: Case) -> None:
    with pytest.raises(Unreachable, match=r"not reachable for 0\.3 s: Name or service not known"):
        case.at("no-such-host.invalid:80", BRIEF).stat("a")


def test_a_certificate_that_is_not_trusted_is_reported_at_once(case: Case) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with serving(server(case).app, context) as other:
        store = case.at(f"https://{other.address}", 20.0)
        with pytest.raises(Unreachable, match=r"a certificate that is not trusted.*Set [A-Z_]+_CA_BUNDLE"):
            store.stat("a")


def test_tls_to_a_store_without_tls_is_reported_at_once(case: Case) -> None:
    store = case.at(f"https://{server(case).address}", 20.0)
    with pytest.raises(Unreachable, match="or does not use TLS"):
        store.stat("a")


def test_no_error_and_no_log_line_has_a_secret(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    case.store.put("a", [b"x"])
    for fault in (answers_with(403), answers_with(400), answers_with(503), closes()):
        server(case).faults = [fault]
        for operation in OPERATIONS.values():
            with pytest.raises(StoreError) as caught:
                operation(case.open("bucket", BRIEF / 3))
            assert not shown(caught.value)
    assert SECRET not in caplog.text


def shown(error: BaseException) -> bool:
    """Whether a traceback of the error prints a secret."""
    return SECRET in "".join(traceback.format_exception(error))
