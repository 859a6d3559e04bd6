"""Verbs and what the answers mean, against a scripted server."""

from typing import Any

import msgspec
import pytest

from etcd_operator.errors import Conflict, NotFound, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.client import PatchKind
from etcd_operator.kube.decode import LARGEST
from etcd_operator.kube.resources import NODES, PEERS, PODS
from etcd_operator.kube.transport import LONGEST_RESPONSE
from etcd_operator.kube.views import Written
from unit.kube.clients import A, Meta, Named, Raw, answering, client_of
from unit.kube.server import Asked, Line, Script, listing, pod


def test_get_decodes_to_the_type_named_and_sends_its_user_agent() -> None:
    with client_of(answering(200, pod("a", 5))) as (client, server):
        assert client.get(PODS, A, Named) == Named(metadata=Meta(name="a"))
        assert client.get(PODS, A, Raw) == pod("a", 5)
        asked = server.asked[0]
        assert (asked.method, asked.path) == ("GET", "/api/v1/namespaces/default/pods/a")
        assert asked.headers["user-agent"].startswith("etcd-operator/")
        assert asked.headers["accept"] == "application/json"


def test_create_posts_to_the_collection() -> None:
    with client_of(answering(201, pod("a", 5))) as (client, server):
        client.create(PODS, "default", pod("a", 0), Raw)
        asked = server.asked[0]
        assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/default/pods")
        assert asked.json == pod("a", 0)
        assert asked.headers["content-type"] == "application/json"


def test_replace_puts_the_object() -> None:
    with client_of(answering(200, pod("a", 5))) as (client, server):
        client.replace(PODS, A, pod("a", 4), Raw)
        assert [(asked.method, asked.path) for asked in server.asked] == [
            ("PUT", "/api/v1/namespaces/default/pods/a")
        ]


@pytest.mark.parametrize(
    ("kind", "content", "query"),
    [
        (PatchKind.JSON, "application/json-patch+json", {}),
        (PatchKind.MERGE, "application/merge-patch+json", {}),
        (PatchKind.STRATEGIC, "application/strategic-merge-patch+json", {}),
        (PatchKind.APPLY, "application/apply-patch+yaml", {"fieldManager": "etcd-operator", "force": "true"}),
    ],
)
def test_a_patch_has_the_content_type_of_its_kind(
    kind: PatchKind, content: str, query: dict[str, str]
) -> None:
    body: Any = [{"op": "remove", "path": "/spec"}] if kind is PatchKind.JSON else {"spec": None}
    with client_of(answering(200)) as (client, server):
        client.patch(PODS, A, body, Raw, kind=kind, subresource="status")
        asked = server.asked[0]
        assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/default/pods/a/status")
        assert (asked.headers["content-type"], asked.query, asked.json) == (content, query, body)


def test_delete_names_exactly_the_object_that_is_meant() -> None:
    with client_of(answering(200)) as (client, server):
        client.delete(PODS, A, uid="u", resource_version="7", propagation="Foreground", grace_seconds=0)
        client.delete(NODES, Key("", "n"))
        assert server.asked[0].method == "DELETE"
        assert server.asked[0].json == {
            "propagationPolicy": "Foreground",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u", "resourceVersion": "7"},
        }
        assert server.asked[1].json == {"propagationPolicy": "Background"}


def test_a_list_is_consistent_and_selects() -> None:
    with client_of(answering(200, listing(pod("a", 5), version=9))) as (client, server):
        found = client.list(PODS, Named, namespace="default", label_selector="app=etcd,x in (a,b)")
        assert (found.items, found.resource_version) == ((Named(metadata=Meta(name="a")),), "9")
        asked = server.asked[0]
        assert asked.path == "/api/v1/namespaces/default/pods"
        assert asked.query == {"labelSelector": "app=etcd,x in (a,b)", "limit": "500"}


def test_a_list_whose_items_are_null_is_empty() -> None:
    with client_of(answering(200, {"metadata": {"resourceVersion": "9"}, "items": None})) as (client, _):
        assert client.list(PODS, Raw).items == ()


def paging(total: int, **metadata: Any) -> Script:
    def script(asked: Asked, line: Line) -> None:
        begin = int(asked.query.get("continue", "0"))
        end = min(begin + int(asked.query["limit"]), total)
        more = str(end) if end < total else ""
        pods = [pod(f"p{i}", i) for i in range(begin, end)]
        for each in pods:
            each["metadata"] |= metadata
        line.answer(200, listing(*pods, version=total, more=more))

    return script


def test_a_huge_list_is_read_in_pages() -> None:
    with client_of(paging(5000)) as (client, server):
        found = client.list(PODS, Raw, label_selector="x")
        assert [item["metadata"]["name"] for item in found.items] == [f"p{i}" for i in range(5000)]
        assert len(server.asked) == 10
        assert all(asked.query["labelSelector"] == "x" for asked in server.asked)


def test_a_list_whose_continue_token_expires_begins_again_without_pages() -> None:
    def script(asked: Asked, line: Line) -> None:
        if "continue" in asked.query:
            line.fail(410, "Expired")
        elif "limit" in asked.query:
            line.answer(200, listing(pod("stale", 1), more="token"))
        else:
            line.answer(200, listing(pod("a", 5), pod("b", 6), version=11))

    with client_of(script) as (client, server):
        found = client.list(PODS, Raw)
        assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
        assert found.resource_version == "11"
        assert len(server.asked) == 3


def test_the_pages_of_large_objects_are_smaller() -> None:
    large = paging(60, annotations={"a": "v" * 1_000_000})
    with client_of(large) as (client, server):
        found = client.list(PODS, Named)
        assert [item.metadata.name for item in found.items] == [f"p{i}" for i in range(60)]
        limits = [asked.query["limit"] for asked in server.asked]
        assert limits == ["500", "50", *["5"] * 12]


def test_a_response_without_an_end_is_not_read_whole() -> None:
    with client_of(answering(200, b"[" * (LONGEST_RESPONSE + 1))) as (client, server):
        with pytest.raises(Unavailable, match="list pods: the response is longer than 8 MiB"):
            client.list(PODS, Raw)
        assert [asked.query["limit"] for asked in server.asked] == ["500", "50", "5", "1"]


def test_only_what_is_kept_of_an_object_has_to_be_small() -> None:
    foreign = {**pod("a", 5), "spec": {"a": "v" * LARGEST}}
    large = pod("b", 6, **{f"l{number}": "v" * LARGEST for number in range(2)})
    with client_of(answering(200, listing(foreign, large))) as (client, _):
        found = client.list(PODS, Written)
        assert [item.metadata.name for item in found.items] == ["a"]
        (odd,) = found.unreadable
        assert (odd.key, odd.labels) == (Key("default", "b"), {})
        assert "it is too large" in odd.error


def test_one_odd_object_does_not_hide_the_others_in_a_list() -> None:
    odd = {"metadata": {"namespace": "default", "name": ["odd"]}}
    origin = {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}}
    numbered = {"namespace": "default", "name": "numbered", "resourceVersion": "5", **origin}
    nameless = {"metadata": numbered, "spec": 5}

    class Spec(msgspec.Struct, frozen=True):
        a: int = 0

    class WithSpec(msgspec.Struct, frozen=True):
        metadata: Meta
        spec: Spec = Spec()

    with client_of(answering(200, listing(pod("a", 5), odd, nameless, pod("b", 6)))) as (client, _):
        found = client.list(PODS, WithSpec)
        assert [item.metadata.name for item in found.items] == ["a", "b"]
        assert [each.key for each in found.unreadable] == [Key("", ""), Key("default", "numbered")]
        known = [(each.uid, each.created, each.labels) for each in found.unreadable]
        assert known == [("", "", {}), ("u", "2026-01-01T00:00:00Z", {"a": "b"})]
        with pytest.raises(Conflict, match="default/numbered"):
            found.whole()


def test_a_list_of_which_all_can_be_read_is_whole() -> None:
    with client_of(answering(200, listing(pod("a", 5)))) as (client, _):
        assert client.list(PODS, Raw).whole() == (pod("a", 5),)


def test_discovery_reports_whether_an_api_is_served() -> None:
    def script(asked: Asked, line: Line) -> None:
        if asked.path in {"/apis/coreos.com/v1", "/api/v1"}:
            line.answer(200, {"resources": [{"name": "etcdclusters"}, {"name": "etcdclusters/status"}]})
        else:
            line.answer(404, b"404 page not found")

    with client_of(script) as (client, _):
        assert client.has_api("coreos.com/v1", "etcdclusters")
        assert client.has_api("v1", "etcdclusters")
        assert not client.has_api("coreos.com/v1", "others")
        assert not client.has_api("etcd.improbable.io/v1alpha1", "etcdpeers")


@pytest.mark.parametrize(("minor", "number"), [("36", 36), ("36+", 36), ("", 0)])
def test_the_server_version_is_two_numbers(minor: str, number: int) -> None:
    with client_of(answering(200, {"major": "1", "minor": minor, "gitVersion": "v1"})) as (client, server):
        assert client.server_version() == (1, number)
        assert server.asked[0].path == "/version"


def test_each_request_is_reported_with_verb_resource_and_code() -> None:
    seen: list[tuple[str, str, int]] = []

    def report(verb: str, resource: str, code: int, seconds: float) -> None:
        assert 0 <= seconds < 5
        seen.append((verb, resource, code))

    def script(asked: Asked, line: Line) -> None:
        if asked.method == "PUT":
            line.cut()
        elif asked.method == "DELETE":
            line.fail(404, "NotFound")
        else:
            line.answer(200, {})

    with client_of(script, on_request=report) as (client, _):
        client.get(PODS, A, Raw)
        with pytest.raises(NotFound):
            client.delete(PEERS, A)
        with pytest.raises(Unavailable):
            client.replace(PODS, A, {}, Raw)
    assert seen == [
        ("get", "pods", 200),
        ("delete", "etcdpeers.etcd.improbable.io", 404),
        ("replace", "pods", 0),
    ]
