"""TLS for clients is added to, and removed from, clusters that serve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from unit.controllers.etcd_cluster.test_tls import secrets, served, world
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.faults import no_right_on_secrets
from unit.fakes.apiserver.kinds import PODS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, MAKERS, ephemeral, persistent
from unit.passes.disturbance import EachWrite, run_or_die

PEER: Json = {"peer": {"auto": {}}}
NONE: Json = {"client": None}


def client(mode: str, **settings: Any) -> Json:
    return {"client": {"auto": {}, "mode": mode, **settings}}


OPEN, CLOSED = (client("Require", clientCertAuth=asks) for asks in (False, True))


@contextmanager
def running(kind: Kind, body: Json) -> Iterator[Bench]:
    """A cluster with a key, which it keeps."""
    with world(kind.group) as made:
        made.start()
        made.create(kind, body)
        made.settle()
        made.etcd.put(b"key", b"value")
        former = made.etcd.etcd.cluster_id
        yield made
        assert made.etcd.etcd.cluster_id == former
        assert made.etcd.etcd.keys[b"key"][0] == b"value"


def ask(made: Bench, kind: Kind, tls: Json | None) -> None:
    made.edit(kind, "c", {"spec": {"tls": tls}})


def schemes(made: Bench, kind: Kind) -> set[str]:
    return {urlsplit(url).scheme for url in made.status(kind)["endpoints"]}


def restarts(made: Bench) -> int:
    return sum(event["count"] for event in made.events() if event["reason"] == "MemberRestarted")


def with_secrets(made: Bench) -> set[str]:
    return {name.removesuffix("-tls") for name in secrets(made)}


def asking(made: Bench, kind: Kind) -> set[bool]:
    """Whether members ask clients for a certificate."""
    annotations = (made.get(PODS, name)["metadata"]["annotations"] for name in made.names(PODS))
    return {found[f"{kind.group}/client-cert-auth"] == "true" for found in annotations}


def mounted(made: Bench, kind: Kind) -> set[str]:
    """The members without TLS whose pods have a Secret all the same: their containers start again with it."""
    return member_names(made) if kind is COREOS else set()


def member_names(made: Bench) -> set[str]:
    return {member.name for member in made.etcd.etcd.members}


@MAKERS
@pytest.mark.parametrize("end", [None, client("Disabled")])
def test_it_is_added_and_removed_again(make: Callable[..., Any], end: Json | None) -> None:
    kind, body = make()
    with running(kind, body) as made:
        for number, mode in enumerate(("Prefer", "Require"), start=1):
            ask(made, kind, client(mode))
            made.settle()
            assert schemes(made, kind) == {"https"}
            assert served(made, kind.group) == {("https" if mode == "Require" else "http,https", "")}
            assert restarts(made) == 3 * number
            assert with_secrets(made) == {"c-client", *member_names(made)}
            made.rest()
        ask(made, kind, end)
        made.settle()
        assert schemes(made, kind) == {"http"}
        assert "tls" not in made.status(kind)
        assert with_secrets(made) == mounted(made, kind)
        made.rest()


@MAKERS
def test_clients_are_asked_for_certificates_or_not_while_the_cluster_runs(make: Callable[..., Any]) -> None:
    """The certificate for clients is there as long as any member asks for one."""
    kind, body = make(tls=CLOSED)
    with running(kind, body) as made:
        for number, (tls, asks) in enumerate(((OPEN, False), (CLOSED, True)), start=1):
            ask(made, kind, tls)
            made.run_until(lambda: len(asking(made, kind)) == 2)
            assert "c-client" in with_secrets(made)
            made.settle()
            assert asking(made, kind) == {asks}
            assert with_secrets(made) == {*(["c-client"] if asks else []), *member_names(made)}
            assert restarts(made) == 3 * number
            made.rest()


@MAKERS
def test_cipher_suites_are_chosen_while_the_cluster_runs(make: Callable[..., Any]) -> None:
    kind, body = make(size=2, tls=CLOSED)
    with running(kind, body) as made:
        for number, suites in enumerate((["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"], None), start=1):
            ask(made, kind, {"client": {"cipherSuites": suites}})
            made.settle()
            annotations = [made.get(PODS, name)["metadata"]["annotations"] for name in made.names(PODS)]
            found = {each[f"{kind.group}/cipher-suites"] for each in annotations}
            assert found == {",".join(suites or ())}
            assert restarts(made) == 2 * number
            made.rest()


def test_the_certificate_for_clients_is_there_while_the_cluster_is_paused() -> None:
    """So clients can be changed before members ask for it."""
    kind, body = ephemeral(size=1, tls=OPEN)
    with running(kind, body) as made:
        made.edit(kind, "c", {"spec": {"paused": True, "tls": CLOSED}})
        made.run_until(lambda: "c-client" in with_secrets(made))
        made.edit(kind, "c", {"spec": {"paused": False}})
        made.settle()
        assert asking(made, kind) == {True}


def test_a_secret_that_a_pod_needs_goes_with_the_member() -> None:
    """When TLS has been removed: the member is removed, or is lost and replaced."""
    kind, body = ephemeral(tls=client("Require"))
    with running(kind, body) as made:
        ask(made, kind, None)
        made.settle()
        assert with_secrets(made) == member_names(made)
        made.delete(PODS, min(made.names(PODS)))
        made.settle()
        made.edit(kind, "c", {"spec": {"size": 2}})
        made.settle()
        assert len(with_secrets(made)) == 1
        assert with_secrets(made) < member_names(made)
        made.rest()


def test_members_are_removed_without_a_right_on_secrets() -> None:
    kind, body = ephemeral(size=2)
    with running(kind, body) as made:
        made.api.before = no_right_on_secrets
        made.edit(kind, "c", {"spec": {"size": 1}})
        made.settle()


@MAKERS
def test_members_keep_their_tls_among_themselves(make: Callable[..., Any]) -> None:
    kind, body = make(tls=PEER)
    with running(kind, body) as made:
        record = made.status(kind)["tls"]
        ask(made, kind, {**PEER, **client("Require")})
        made.settle()
        assert schemes(made, kind) == {"https"}
        assert with_secrets(made) == {"c-client", *member_names(made)}
        made.rest()
        ask(made, kind, {**PEER, **NONE})
        made.settle()
        assert schemes(made, kind) == {"http"}
        assert made.status(kind)["tls"] == record
        assert with_secrets(made) == member_names(made)
        made.rest()


@MAKERS
@pytest.mark.parametrize("tls", [{}, PEER])
def test_whoever_waits_as_documented_finds_tls(make: Callable[..., Any], tls: Json) -> None:
    """The commands of docs/tls.md: first for the mode, then for the condition."""
    kind, body = make(**({"tls": tls} if tls else {}))
    with running(kind, body) as made:
        ask(made, kind, {**tls, **client("Prefer")})
        made.run_until(lambda: made.status(kind).get("tls", {}).get("mode") == "Prefer")
        made.run_until(lambda: made.condition(kind, "TLSRotating").get("status") == "False")
        assert schemes(made, kind) == {"https"}
        assert served(made, kind.group) == {("http,https", "")}


@MAKERS
def test_a_cluster_is_resized_and_loses_a_member_meanwhile(make: Callable[..., Any]) -> None:
    kind, body = make()
    size = "size" if kind is COREOS else "replicas"
    with running(kind, body) as made:
        for tls, count in ((client("Require"), 4), (None, 3)):
            ask(made, kind, tls)
            made.run_until(lambda: made.condition(kind, "TLSRotating").get("status") == "True")
            made.edit(kind, "c", {"spec": {size: count}})
            made.delete(PODS, min(made.names(PODS)))
            made.settle()
            assert schemes(made, kind) == {"https" if tls else "http"}
            assert len(made.names(PODS)) == count


def replace_pod_without(made: Bench, kind: Kind, option: str, tls: Json) -> None:
    """A pod of an earlier operator is named, and nothing is begun before it is replaced."""
    first, *others = sorted(made.names(PODS))
    made.edit(PODS, first, {"metadata": {"annotations": {f"{kind.group}/{option}": None}}})
    ask(made, kind, tls)
    made.run_until(lambda: made.reason(kind) == "TLSRefused")
    message = made.condition(kind, "Progressing")["message"]
    assert first in message
    assert not any(other in message for other in others)
    made.delete(PODS, first)
    made.settle()


def test_pods_of_an_earlier_operator_are_named() -> None:
    kind, body = ephemeral()
    with running(kind, body) as made:
        replace_pod_without(made, kind, "listen-client-urls", client("Prefer"))
        assert schemes(made, kind) == {"https"}


def test_a_pod_of_the_first_builds_with_tls_keeps_it_until_it_is_replaced() -> None:
    """It may be restarted for another mode, and has a flag with the URL that it advertises."""
    kind, body = ephemeral(tls=client("Require"))
    with running(kind, body) as made:
        first, of_flag = min(made.names(PODS)), f"{kind.group}/advertise-client-urls"
        asks, suites = f"{kind.group}/client-cert-auth", f"{kind.group}/cipher-suites"
        (container,) = made.get(PODS, first)["spec"]["containers"]
        container["command"].append(f"--advertise-client-urls=https://{first}:2379")
        container["command"].append("--client-cert-auth=true")
        fixed = (of_flag, asks, suites)
        container["env"] = [each for each in container["env"] if not any(key in str(each) for key in fixed)]
        annotations = dict.fromkeys(fixed)
        change = {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}
        made.edit(PODS, first, change)
        ask(made, kind, client("Prefer"))
        made.settle()
        assert of_flag not in made.get(PODS, first)["metadata"]["annotations"]
        ask(made, kind, None)
        made.run_until(lambda: made.reason(kind) == "TLSRefused")
        assert first in made.condition(kind, "Progressing")["message"]
        assert served(made, kind.group) == {("http,https", "")}
        made.delete(PODS, first)
        made.settle()
        assert schemes(made, kind) == {"http"}


def test_certificates_are_asked_for_while_requests_need_a_user() -> None:
    kind, body = persistent(size=1, tls=CLOSED)
    with running(kind, body) as made:
        made.etcd.etcd.auth.is_enabled = True
        ask(made, kind, OPEN)
        made.run_until(lambda: made.reason(kind) == "AuthEnabled")
        assert "clientCertAuth" in made.condition(kind, "Progressing")["message"]
        made.wait(60.0)
        assert asking(made, kind) == {True}
        made.etcd.etcd.auth.is_enabled = False
        made.settle()
        assert asking(made, kind) == {False}


def test_it_is_not_removed_while_requests_need_a_user() -> None:
    kind, body = persistent(size=1, tls=client("Require"))
    with running(kind, body) as made:
        made.etcd.etcd.auth.is_enabled = True
        ask(made, kind, None)
        made.run_until(lambda: made.reason(kind) == "AuthEnabled")
        assert served(made, kind.group) == {("http,https", "")}
        assert schemes(made, kind) == {"https"}
        made.etcd.etcd.auth.is_enabled = False
        made.settle()
        assert schemes(made, kind) == {"http"}


@pytest.mark.exhaustive
@MAKERS
@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (None, client("Require")),
        (client("Require"), None),
        (CLOSED, OPEN),
        (OPEN, CLOSED),
    ],
)
def test_the_operator_dies_at_any_write(
    make: Callable[..., Any], begin: Json | None, end: Json | None
) -> None:
    """And the change is reverted after that."""
    writes = EachWrite()
    for write in writes:
        kind, body = make(size=1, **({"tls": begin} if begin else {}))
        with running(kind, body) as made:
            made.kill()
            ask(made, kind, end)
            made.start(dies_at=write)
            writes.goes_on = not run_or_die(made, made.settle)
            wanted = end
            if writes.goes_on:
                ask(made, kind, begin)
                made.start()
                made.settle()
                wanted = begin
            assert schemes(made, kind) == {"https" if wanted else "http"}
            if wanted is not None:
                assert asking(made, kind) == {wanted != OPEN}
                of_clients = {"c-client"} if wanted != OPEN else set()
                assert with_secrets(made) == {*of_clients, *member_names(made)}
            else:
                assert with_secrets(made) <= mounted(made, kind)
