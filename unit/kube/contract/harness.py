"""Speaks raw HTTP to the API server under test, so that a test reads codes and bodies as they were sent."""

import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
import urllib3

from unit.fakes.apiserver import ApiServer, Json

_DEADLINE = 60.0

CONTAINERS = [{"name": "main", "image": "example.invalid/none:1"}]


class Reply(NamedTuple):
    """Code and body as the server sent them; a plain-text body is under `text`."""

    code: int
    body: Json

    @property
    def meta(self) -> Json:
        """The metadata of the object in the body."""
        metadata: Json = self.body["metadata"]
        return metadata


class Subject:
    """One API server, a namespace of the test's own on it, and a custom resource of the test's own."""

    def __init__(
        self, pool: urllib3.PoolManager, base_url: str, headers: dict[str, str], fake: ApiServer | None
    ) -> None:
        self.fake = fake
        self.namespace = ""
        self.things = f"things{uuid.uuid4().hex[:8]}"
        self._pool, self._base_url, self._headers = pool, base_url, headers

    def url(self, plural: str, name: str = "", subresource: str = "", *, namespace: str | None = None) -> str:
        """The path of a resource in the test's namespace (or in `namespace`, "" for all)."""
        bases = {
            "leases": "/apis/coordination.k8s.io/v1",
            "replicasets": "/apis/apps/v1",
            "poddisruptionbudgets": "/apis/policy/v1",
            "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
            self.things: "/apis/contract.test/v1",
        }
        within = self.namespace if namespace is None else namespace
        middle = ["namespaces", within] if within and plural not in _CLUSTER_WIDE else []
        parts = [bases.get(plural, "/api/v1"), *middle, plural, name, subresource]
        return "/".join(part for part in parts if part)

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> Reply:
        """One request, one reply."""
        target = self._base_url + path + (f"?{urlencode(query)}" if query else "")
        headers = {**self._headers, "Content-Type": content_type}
        data = None if body is None else msgspec.json.encode(body)
        got = self._pool.request(
            method, target, body=data, headers=headers, timeout=30.0, retries=False, redirect=False
        )
        try:
            return Reply(got.status, msgspec.json.decode(got.data))
        except msgspec.DecodeError:
            return Reply(got.status, {"text": got.data.decode()})

    def create(self, plural: str, body: Json) -> Json:
        """Create an object in the test's namespace; the object as stored."""
        reply = self.call("POST", self.url(plural), body)
        assert reply.code == 201, reply
        return reply.body

    def read(self, plural: str, name: str) -> Json | None:
        """The object, or None when it is not there."""
        reply = self.call("GET", self.url(plural, name))
        assert reply.code in (200, 404), reply
        return reply.body if reply.code == 200 else None

    def patch(self, plural: str, name: str, patch: Any, form: str = "merge", subresource: str = "") -> Reply:
        """Patch an object: `form` is json, merge or strategic."""
        suffix = {"json": "json-patch", "merge": "merge-patch", "strategic": "strategic-merge-patch"}[form]
        return self.call(
            "PATCH", self.url(plural, name, subresource), patch, content_type=f"application/{suffix}+json"
        )

    def apply(self, plural: str, body: Json, manager: str = "tester") -> Reply:
        """Server-side apply, forced."""
        path = self.url(plural, body["metadata"]["name"])
        return self.call(
            "PATCH", path, body, "application/apply-patch+yaml", fieldManager=manager, force="true"
        )

    def watch(self, plural: str, **query: str) -> "Watch":
        """An open watch in the test's namespace."""
        asked = {"watch": "true", "timeoutSeconds": "20", **query}
        target = f"{self._base_url}{self.url(plural)}?{urlencode(asked)}"
        got = self._pool.request(
            "GET", target, headers=self._headers, timeout=_DEADLINE, retries=False, preload_content=False
        )
        assert got.status == 200, got.data
        return Watch(got)


class Watch(Iterator[Json]):
    """The events of one watch, until the server ends it; fails after a deadline of silence."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._lines: list[bytes] = []
        self._rest = b""

    def __next__(self) -> Json:
        while not self._lines:
            chunk = self._response.read1(1 << 16)
            if not chunk:
                raise StopIteration
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines = [line for line in lines if line.strip()]
        event: Json = msgspec.json.decode(self._lines.pop(0))
        return event

    def close(self) -> None:
        """End the watch from the client's side."""
        self._response.close()
        self._response.release_conn()


_CLUSTER_WIDE = ("namespaces", "customresourcedefinitions")


def unique(stem: str) -> str:
    """A name that no other test uses."""
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def config_map(name: str = "", **data: str) -> Json:
    """The plainest built-in object."""
    return {"metadata": {"name": name or unique("map")}, "data": data}


def pod(name: str = "", **meta: Any) -> Json:
    """A pod that no scheduler takes, so that nobody else writes to it."""
    spec = {"containers": CONTAINERS, "schedulerName": "nobody", "automountServiceAccountToken": False}
    return {"metadata": {"name": name or unique("pod"), **meta}, "spec": spec}


def owner(obj: Json, api_version: str, kind: str) -> Json:
    """An owner reference to `obj`."""
    meta = obj["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}
