"""What each failure of a request becomes, and whether a write may have been applied."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NamespaceTerminating,
    NotFound,
    OperatorError,
    Throttled,
    Unavailable,
)
from etcd_operator.kube.client import Client, PatchKind
from etcd_operator.kube.failures import Status, failure
from etcd_operator.kube.resources import PEERS, PODS
from unit.kube.clients import A, Named, Raw, answering, client_of
from unit.kube.server import BRISK, Line
from unit.waiting import eventually

CASES: list[tuple[int, str, type[OperatorError]]] = [
    (400, "BadRequest", Invalid),
    (401, "Unauthorized", Forbidden),
    (403, "Forbidden", Forbidden),
    (404, "NotFound", NotFound),
    (405, "MethodNotAllowed", Invalid),
    (408, "Timeout", Unavailable),
    (409, "AlreadyExists", AlreadyExists),
    (409, "Conflict", Conflict),
    (410, "Expired", Gone),
    (413, "RequestEntityTooLarge", Invalid),
    (422, "Invalid", Invalid),
    (429, "TooManyRequests", Throttled),
    (500, "InternalError", Unavailable),
    (503, "ServiceUnavailable", Unavailable),
    (302, "", Unavailable),
]


@pytest.mark.parametrize(("code", "reason", "error"), CASES)
def test_a_failure_becomes_our_error_in_one_line(code: int, reason: str, error: type[OperatorError]) -> None:
    with client_of(lambda _, line: line.fail(code, reason, "two\nlines")) as (client, _):
        with pytest.raises(OperatorError) as caught:
            client.patch(PEERS, A, {}, Raw, kind=PatchKind.MERGE, subresource="status")
        assert type(caught.value) is error
        assert str(caught.value) == f"patch etcdpeers.etcd.improbable.io/status default/a: {code}: two lines"


@pytest.mark.parametrize(
    ("code", "cause", "error"),
    [
        (403, "NamespaceTerminating", NamespaceTerminating),
        (403, "Other", Forbidden),
        (409, "NamespaceTerminating", Conflict),
    ],
)
def test_a_namespace_that_is_being_deleted_is_recognized_by_the_cause(
    code: int, cause: str, error: type[OperatorError]
) -> None:
    details = {"causes": [{"reason": cause, "message": "any", "field": "metadata.namespace"}]}
    body = {"kind": "Status", "code": code, "reason": "Forbidden", "message": "any", "details": details}
    with client_of(lambda _, line: line.answer(code, body)) as (client, _):
        with pytest.raises(OperatorError) as caught:
            client.create(PODS, "default", {}, Raw)
        assert type(caught.value) is error


@pytest.mark.parametrize("verb", ["get", "create"])
def test_the_missing_right_on_secrets_is_reported_with_the_command_that_gives_it(verb: str) -> None:
    text = (
        'secrets "c-backup-tool" is forbidden: User "system:serviceaccount:etcd-operator:etcd-operator" '
        f'cannot {verb} resource "{{}}" in API group "{{}}" in the namespace "team"{{}}'
    )
    remedy = (
        "; to give the operator this right: kubectl --namespace team create rolebinding "
        "etcd-operator-secrets --clusterrole etcd-operator-secrets "
        "--serviceaccount etcd-operator:etcd-operator"
    )
    also = ': RBAC: role.rbac.authorization.k8s.io "etcd-operator" not found'
    for resource, group, end, added in (
        ("secrets", "", "", remedy),
        ("secrets", "", also, remedy),
        ("configmaps", "", "", remedy),
        ("certificates", "cert-manager.io", "", remedy),
        ("pods", "", "", ""),
    ):
        message = text.format(resource, group, end)
        error = failure("it", 403, Status(message=message))
        assert isinstance(error, Forbidden)
        assert str(error) == f"it: 403: {message}{added}"


@pytest.mark.parametrize("code", [408, 500, 502, 503, 504])
def test_a_write_that_the_server_could_not_finish_is_maybe_applied_and_a_read_never(code: int) -> None:
    with client_of(lambda _, line: line.fail(code, "")) as (client, _):
        for write in writes(client):
            with pytest.raises(Unavailable) as caught:
                write()
            assert caught.value.maybe_applied
        with pytest.raises(Unavailable) as caught:
            client.get(PODS, A, Raw)
        assert not caught.value.maybe_applied


def writes(client: Client) -> list[Callable[[], Any]]:
    return [
        lambda: client.create(PODS, "default", {}, Raw),
        lambda: client.replace(PODS, A, {}, Raw),
        lambda: client.patch(PODS, A, {}, Raw, kind=PatchKind.MERGE),
        lambda: client.delete(PODS, A),
    ]


def test_a_write_that_is_cut_off_or_times_out_is_maybe_applied_and_sent_once() -> None:
    for odd in (Line.cut, Line.hang):
        quick = replace(BRISK, read=0.1)
        with client_of(lambda _, line, odd=odd: odd(line), timeouts=quick) as (client, server):  # type: ignore[misc]
            for write in writes(client):
                with pytest.raises(Unavailable) as caught:
                    write()
                assert caught.value.maybe_applied
            eventually(lambda: len(server.asked) >= 4)
            assert len(server.asked) == 4


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        pytest.param({"Retry-After": "7"}, {}, 7.0, id="the header"),
        pytest.param({}, {"retryAfterSeconds": 3}, 3.0, id="the status"),
        pytest.param({"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}, {}, 0.0, id="a date that is over"),
        pytest.param({"Retry-After": "soon"}, {}, 1.0, id="nonsense"),
        pytest.param({}, {}, 1.0, id="nothing"),
    ],
)
def test_a_429_has_a_time_to_wait(headers: dict[str, str], details: Raw, seconds: float) -> None:
    body = {"kind": "Status", "code": 429, "details": details}
    with client_of(answering(429, body, headers)) as (client, _):
        with pytest.raises(Throttled) as caught:
            client.get(PODS, A, Raw)
        assert caught.value.retry_after == seconds


def test_an_unknown_api_is_not_found_although_its_answer_is_plain_text() -> None:
    with client_of(answering(404, b"404 page not found\n")) as (client, _), pytest.raises(NotFound) as caught:
        client.list(PEERS, Raw, namespace="x")
    assert str(caught.value) == "list etcdpeers.etcd.improbable.io x: 404: 404 page not found"


def test_an_error_page_of_a_proxy_is_cut_to_one_short_line() -> None:
    with client_of(answering(502, b"<html>\n" + b"x" * 100_000)) as (client, _):
        with pytest.raises(Unavailable) as caught:
            client.get(PODS, A, Raw)
        assert len(str(caught.value)) < 1200
        assert "\n" not in str(caught.value)


def test_an_answer_that_does_not_fit_the_type_is_invalid_and_one_without_json_is_unavailable() -> None:
    with (
        client_of(answering(200, {"metadata": 5})) as (client, _),
        pytest.raises(Invalid, match="does not fit"),
    ):
        client.get(PODS, A, Named)
    with client_of(answering(200, b"<html>")) as (client, _):
        with pytest.raises(Unavailable, match="not JSON") as caught:
            client.get(PODS, A, Named)
        assert not caught.value.maybe_applied
        with pytest.raises(Unavailable) as caught:
            client.replace(PODS, A, {}, Named)
        assert caught.value.maybe_applied
