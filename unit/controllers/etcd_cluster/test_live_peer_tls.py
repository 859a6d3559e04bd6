"""TLS between members is added to, and removed from, clusters that serve."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from etcd_operator.controllers.etcd_cluster.decide.actions import AddLearner, ReplaceMember
from etcd_operator.controllers.etcd_cluster.manifests import options, tls_pod
from etcd_operator.errors import Conflict, OperatorError
from unit.controllers.etcd_cluster.test_acts import Acts
from unit.controllers.etcd_cluster.test_live_tls import (
    ask,
    client,
    member_names,
    mounted,
    replace_pod_without,
    restarts,
    running,
    schemes,
    with_secrets,
)
from unit.fakes.apiserver import Json, Kind
from unit.fakes.apiserver.faults import Answer, Request, no_fault
from unit.fakes.apiserver.kinds import CLAIMS, PODS
from unit.passes.bench import Bench
from unit.passes.bodies import COREOS, MAKERS, PEERS, ephemeral, persistent
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
        replace_pod_without(made, kind, "listen-peer-urls", PEER)
        assert listed(made) == {"https"}


def recorded(made: Bench, kind: Kind) -> str:
    """The mode for peers on record."""
    record = made.status(kind).get("tls", {})
    return record.get("peerMode", "Require") if "peerCA" in record else "Disabled"


@pytest.mark.parametrize("how", ["for clients", "at another version"])
@pytest.mark.parametrize("tls", [None, PEER])
def test_pods_of_an_earlier_operator_are_not_changed_by_a_restart(
    tls: Json | None, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their flags say how they connect to each other, whatever annotations they would get."""

    def former(found: options.Options) -> tuple[str, ...]:
        names = (name for name in tls_pod.NAME_OPTIONS if name in found)
        return (*options.DOWNWARD_API_OPTIONS, *options.SERVING_OPTIONS, *names)

    kind, body = ephemeral(size=2) if tls is None else ephemeral(size=2, tls=tls)
    with monkeypatch.context() as patched:
        patched.setattr("etcd_operator.controllers.etcd_cluster.manifests.ephemeral.in_place", former)
        with running(kind, body) as made:
            patched.undo()
            clients = client("Prefer") if how == "for clients" else {}
            asked = {"tls": {**clients, **(tls or {})}} if clients else {"version": "3.6.17"}
            made.edit(kind, "c", {"spec": asked})
            made.settle()
            ask(
                made, kind, {**clients, "peer": None if tls else PEER["peer"]} if clients or not tls else None
            )
            made.run_until(lambda: made.reason(kind) == "TLSRefused")
            for pod in made.api.objects.select(PODS):
                assert not [key for key in pod["metadata"]["annotations"] if "peer" in key]
            assert listed(made) == {"https" if tls else "http"}


@pytest.mark.parametrize("add", [True, False])
def test_members_whose_peers_are_deleted_listen_as_they_are_listed(add: bool) -> None:
    """At once, before they are restarted as is on record: nobody could change the list without a quorum."""
    kind, body = persistent(size=2) if add else persistent(size=2, tls=PEER)
    with running(kind, body) as made:
        ask(made, kind, PEER if add else None)
        made.run_until(lambda: recorded(made, kind) == ("Require" if add else "Dial"))
        assert listed(made) == {"http" if add else "https"}
        made.kill()
        for name in made.names(PEERS):
            made.delete(PEERS, name, propagation="Background")
        made.start()
        made.settle()
        assert listed(made) == {"https" if add else "http"}


@MAKERS
def test_members_that_are_restarted_without_a_quorum_listen_as_they_are_listed(
    make: Callable[..., Any],
) -> None:
    """As those that have refused each other's certificates."""
    kind, body = make(size=2)
    with running(kind, body) as made:
        ask(made, kind, PEER)
        made.run_until(lambda: recorded(made, kind) == "Require")
        acts = Acts(made, kind)
        silent = tuple(replace(member, answer=None) for member in acts.state.members)
        acts.state = replace(acts.state, members=silent, has_quorum=False)
        for name in sorted(member_names(made)):
            acts.act(ReplaceMember(name=name, version="3.6.16"))
        made.settle()
        assert listed(made) == {"https"}


@MAKERS
def test_the_url_of_a_member_that_cannot_be_stopped_is_put_back(make: Callable[..., Any]) -> None:
    kind, body = make(size=2)
    with running(kind, body) as made:
        ask(made, kind, PEER)
        made.run_until(lambda: recorded(made, kind) == "Require")
        acts = Acts(made, kind)

        def refusing(request: Request) -> Answer | None:
            is_stop = request.plural in ("pods", "etcdpeers") and request.is_write
            return Answer(code=403, reason="Forbidden") if is_stop else None

        made.api.before = refusing
        with pytest.raises(OperatorError):
            acts.act(ReplaceMember(name=max(member_names(made)), version="3.6.16"))
        assert "MemberUpdated" in acts.reported
        assert listed(made) == {"http"}
        made.api.before = no_fault
        made.settle()


@MAKERS
def test_a_learner_that_was_added_late_with_the_other_scheme_is_started_so(make: Callable[..., Any]) -> None:
    """etcd would not let it in with another URL than it is listed with."""
    kind, body = make(size=2, tls=PEER)
    with running(kind, body) as made:
        acts, name = Acts(made, kind), "c-0002" if kind is COREOS else "c-2"
        (example, *_) = made.etcd.etcd.members
        url = example.peer_urls[0].replace(example.name, name).replace("https", "http")
        with made.etcd.etcd.changed:
            made.etcd.etcd.add(example, (url,), is_learner=True)
        with pytest.raises(Conflict, match="was added meanwhile"):
            acts.act(AddLearner(name=name))
        made.edit(kind, "c", {"spec": {"size" if kind is COREOS else "replicas": 3}})
        made.settle()
        assert len(member_names(made)) == 3
        assert listed(made) == {"https"}


@MAKERS
def test_a_single_member_is_restarted_once_for_each_step(make: Callable[..., Any]) -> None:
    """Nobody reports how it is listed while it is stopped."""
    kind, body = make(size=1)
    with running(kind, body) as made:
        for number, tls in enumerate((PEER, None), start=1):
            ask(made, kind, tls)
            made.settle()
            assert listed(made) == {"https" if tls else "http"}
            assert restarts(made) == 2 * number


@MAKERS
def test_a_url_that_a_person_has_changed_at_the_same_host_is_replaced(make: Callable[..., Any]) -> None:
    """There may be two, or one with another port."""
    kind, body = make(size=2)
    with running(kind, body) as made:
        first, second = made.etcd.etcd.members
        (url,) = first.peer_urls
        first.peer_urls = (url, url.replace("http", "https"))
        second.peer_urls = (second.peer_urls[0].replace("2380", "12380"),)
        ask(made, kind, PEER)
        made.settle()
        assert restarts(made) <= 4
        assert [len(member.peer_urls) for member in made.etcd.etcd.members] == [1, 1]
        assert all(
            url.startswith("https") and url.endswith(":2380")
            for m in made.etcd.etcd.members
            for url in m.peer_urls
        )


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
