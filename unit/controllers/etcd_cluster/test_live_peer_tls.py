"""TLS between members is added to, and removed from, clusters that serve."""

from collections.abc import Callable
from typing import Any

import pytest

from unit.controllers.etcd_cluster.test_live_tls import (
    ask,
    client,
    member_names,
    mounted,
    restarts,
    running,
    schemes,
    with_secrets,
)
from unit.fakes.apiserver import Json
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, MAKERS, ephemeral
from unit.passes.disturbance import EachWrite, run_or_die

PEER: Json = {"peer": {"auto": {}}}
NONE: Json = {"peer": None}


def listed(made: Bench) -> set[str]:
    """The schemes by which members reach each other, as etcd lists them and as members listen."""
    members = made.etcd.etcd.members
    found = {url.partition(":")[0] for member in members for url in member.peer_urls}
    assert {"https" if member.listens_with_tls else "http" for member in members} == found
    return found


def claims_with_tls(made: Bench) -> set[bool]:
    stored = (claim["metadata"]["annotations"] for claim in made.api.objects.select(CLAIMS))
    return {"etcd.improbable.io/peer-tls" in annotations for annotations in stored}


@MAKERS
def test_it_is_added_and_removed_again(make: Callable[..., Any]) -> None:
    kind, body = make()
    with running(kind, body) as made:
        ask(made, kind, PEER)
        made.settle()
        assert listed(made) == {"https"}
        assert restarts(made) == 6
        assert with_secrets(made) == member_names(made)
        assert made.condition(kind, "TLSRotating")["status"] == "False"
        made.rest()
        if kind is not COREOS:
            assert claims_with_tls(made) == {True}
        ask(made, kind, None)
        made.settle()
        assert listed(made) == {"http"}
        assert "tls" not in made.status(kind)
        assert with_secrets(made) == mounted(made, kind)
        if kind is not COREOS:
            assert claims_with_tls(made) == {False}
        made.rest()


@MAKERS
def test_clients_keep_their_tls(make: Callable[..., Any]) -> None:
    kind, body = make(tls=client("Require"))
    with running(kind, body) as made:
        record = made.status(kind)["tls"]
        for tls, scheme in ((PEER, "https"), (NONE, "http")):
            ask(made, kind, {**client("Require"), **tls})
            made.settle()
            assert (listed(made), schemes(made, kind)) == ({scheme}, {"https"})
            assert with_secrets(made) == {"c-client", *member_names(made)}
            made.rest()
        assert made.status(kind)["tls"] == record


@MAKERS
def test_both_are_added_and_removed_with_the_same_restarts(make: Callable[..., Any]) -> None:
    kind, body = make()
    with running(kind, body) as made:
        for number, tls in enumerate(({**PEER, **client("Require")}, None), start=1):
            ask(made, kind, tls)
            made.settle()
            scheme = {"https" if tls else "http"}
            assert (listed(made), schemes(made, kind)) == (scheme, scheme)
            assert restarts(made) <= 6 * number
            made.rest()


@MAKERS
@pytest.mark.parametrize("add", [True, False])
def test_a_cluster_is_resized_and_loses_a_member_meanwhile(make: Callable[..., Any], add: bool) -> None:
    kind, body = make(**({} if add else {"tls": PEER}))
    size = "size" if kind is COREOS else "replicas"
    with running(kind, body) as made:
        ask(made, kind, PEER if add else None)
        made.run_until(lambda: len({m.listens_with_tls for m in made.etcd.etcd.members if m.is_running}) == 2)
        made.edit(kind, "c", {"spec": {size: 4}})
        made.delete(PODS, max(made.names(PODS)))
        made.settle()
        assert listed(made) == {"https" if add else "http"}
        assert len(made.names(PODS)) == 4


@MAKERS
@pytest.mark.parametrize("add", [True, False])
def test_it_is_reverted_in_the_middle(make: Callable[..., Any], add: bool) -> None:
    kind, body = make(**({} if add else {"tls": PEER}))
    with running(kind, body) as made:
        ask(made, kind, PEER if add else None)
        made.run_until(lambda: len({m.listens_with_tls for m in made.etcd.etcd.members if m.is_running}) == 2)
        ask(made, kind, None if add else PEER)
        made.settle()
        assert listed(made) == {"http" if add else "https"}
        made.rest()


def test_pods_of_an_earlier_operator_are_named() -> None:
    kind, body = ephemeral()
    with running(kind, body) as made:
        first, *others = sorted(made.names(PODS))
        of_peers = f"{kind.group}/listen-peer-urls"
        made.edit(PODS, first, {"metadata": {"annotations": {of_peers: None}}})
        ask(made, kind, PEER)
        made.run_until(lambda: made.reason(kind) == "TLSRefused")
        message = made.condition(kind, "Progressing")["message"]
        assert first in message
        assert not any(other in message for other in others)
        made.delete(PODS, first)
        made.settle()
        assert listed(made) == {"https"}


@pytest.mark.exhaustive
@pytest.mark.long
@MAKERS
@pytest.mark.parametrize("add", [True, False])
def test_the_operator_dies_at_any_write(make: Callable[..., Any], add: bool) -> None:
    """And the change is reverted after that."""
    writes = EachWrite()
    for write in writes:
        kind, body = make(size=2, **({} if add else {"tls": PEER}))
        with running(kind, body) as made:
            made.kill()
            ask(made, kind, PEER if add else None)
            made.start(dies_at=write)
            writes.goes_on = not run_or_die(made, made.settle)
            wanted = add
            if writes.goes_on:
                ask(made, kind, None if add else PEER)
                made.start()
                made.settle()
                wanted = not add
            assert listed(made) == {"https" if wanted else "http"}
            if wanted:
                assert with_secrets(made) == member_names(made)
            else:
                assert with_secrets(made) <= mounted(made, kind)
