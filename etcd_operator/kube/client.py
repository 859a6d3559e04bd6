"""Verbs on Kubernetes objects: typed in, typed out, our errors.

Promises
- Thread-safe; holds no state but the pool, and how far our clock is from that of the API server.
- Every request is bounded in time (`Timeouts`). Nothing is retried implicitly except a read on a dropped
  kept-alive connection (see `transport`).
- An object is decoded to the type that the caller names; `dict[str, Any]` gives plain JSON.
  msgspec reads only the fields that the type declares.
- Failures are `etcd_operator.errors`, in one line with verb, resource, object and the server's message. A
  write without a reliable response is `Unavailable(maybe_applied=True)`.
- A list is a consistent read (no `resourceVersion` is sent, so the API server reads from a quorum and never
  returns a state older than one returned before), in pages (see `listing`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from enum import Enum
from importlib import metadata
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from etcd_operator.clock import Clock
from etcd_operator.decoding import read
from etcd_operator.errors import Invalid, NotFound, OperatorError, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.decode import ApiResources, ListPage, ServerVersion
from etcd_operator.kube.failures import failure, parse_status
from etcd_operator.kube.listing import Listing, read_all
from etcd_operator.kube.resources import Resource, Selection
from etcd_operator.kube.server_clock import ServerClock
from etcd_operator.kube.transport import Request, Response, Stream, Timeouts, Transport, Verb

T = TypeVar("T")
Sent = TypeVar("Sent", bound=Response | Stream)

OnRequest = Callable[[str, str, int, float], None]
"""`(verb, resource, HTTP status or 0 for no response, seconds)`, once for every request."""

FIELD_MANAGER = "etcd-operator"

_LIFE_GRACE = 30.0


class PatchKind(Enum):
    """How the API server reads a patch; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


def user_agent() -> str:
    """`etcd-operator/<version>`; the API server also derives the field manager of updates from it."""
    try:
        return f"etcd-operator/{metadata.version('etcd-operator')}"
    except metadata.PackageNotFoundError:  # run from a source tree
        return "etcd-operator/unknown"


@dataclass(eq=False)
class Client:
    """The verbs. `on_request` is called once for each request, for metrics; it must not raise."""

    transport: Transport
    _: KW_ONLY
    timeouts: Timeouts = field(default_factory=Timeouts)
    on_request: OnRequest = lambda *_: None
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self._headers = {"User-Agent": user_agent(), "Accept": "application/json"}
        self._server_clock = ServerClock(self.clock)

    def get(self, resource: Resource, key: Key, decode: type[T]) -> T:
        """Read one object. `NotFound` also when the API itself is not there."""
        return self._object(self._request("get", resource, key), decode)

    def list(
        self,
        resource: Resource,
        decode: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        abort: Abort | None = None,
    ) -> Listing[T]:
        """Read a collection, consistent as of its `resource_version`; `""` is all namespaces."""
        selection = Selection(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )

        def page(query: Mapping[str, str]) -> ListPage:
            return self._object(self._collection("list", selection, query), ListPage, abort)

        return read_all(page, resource, decode)

    def current_version(self, selection: Selection, abort: Abort | None = None) -> str:
        """The version that a list of this collection would have now, also read from a quorum."""
        request = self._collection("list", selection, {"limit": "1"})
        return self._object(request, ListPage, abort).metadata.resource_version

    def create(self, resource: Resource, namespace: str, body: Mapping[str, Any], decode: type[T]) -> T:
        """Write a new object. `AlreadyExists` may be caused by our own earlier attempt without a response."""
        key = Key(namespace, str(body.get("metadata", {}).get("name", "")))
        return self._object(self._request("create", resource, key, body=body), decode)

    def replace(self, resource: Resource, key: Key, body: Mapping[str, Any], decode: type[T]) -> T:
        """Write a whole object. `Conflict` if its `resourceVersion` is not the current one."""
        return self._object(self._request("replace", resource, key, body=body), decode)

    def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        decode: type[T],
        *,
        kind: PatchKind,
        subresource: str = "",
        is_dry_run: bool = False,
    ) -> T:
        """Change an object. `APPLY` is forced, with the field manager `etcd-operator`.

        is_dry_run: the change passes admission and validation, and is not stored.
        """
        query = {"fieldManager": FIELD_MANAGER, "force": "true"} if kind is PatchKind.APPLY else {}
        query |= {"dryRun": "All"} if is_dry_run else {}
        request = self._request(
            "patch", resource, key, subresource, query=query, body=patch, content_type=kind.value
        )
        return self._object(request, decode)

    def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
        grace_seconds: int | None = None,
    ) -> None:
        """Request the deletion of exactly this object: `Conflict` if uid or version differ."""
        named = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {"propagationPolicy": propagation}
        if preconditions := {name: value for name, value in named.items() if value}:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        self._exchange(self._request("delete", resource, key, body=options))

    def has_api(self, group_version: str, plural: str) -> bool:
        """Whether the API server serves a resource: `("coreos.com/v1", "etcdclusters")`."""
        root = "/apis/" if "/" in group_version else "/api/"
        request = self._discovery(root + group_version, f"discover {plural} in {group_version}")
        try:
            found = self._object(request, ApiResources)
        except NotFound:
            return False
        return any(each.get("name") == plural for each in found.resources)

    def server_version(self) -> tuple[int, int]:
        """Major and minor version of the API server, as numbers (a minor of `36+` is 36)."""
        version = self._object(
            self._discovery("/version", "read the version of the API server"), ServerVersion
        )
        digits = [re.match(r"\d+", text) for text in (version.major, version.minor)]
        major, minor = (int(found.group()) if found else 0 for found in digits)
        return major, minor

    def clock_offset(self) -> timedelta:
        """How far our clock is ahead of that of the API server, as far as its newest answer shows."""
        return self._server_clock.offset()

    def open_watch(
        self, selection: Selection, *, resource_version: str, timeout_seconds: int, abort: Abort
    ) -> Stream:
        """Open a stream of changes after `resource_version`, with bookmarks. For `watch.Watch`.

        timeout_seconds: when the server is to end it; where it does not, this side does, a little later.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        request = self._collection("watch", selection, query)
        life = timeout_seconds + _LIFE_GRACE
        opened = self._measured(
            request, lambda: self.transport.stream(request, self.timeouts, abort, life=life)
        )
        if isinstance(opened, Response):
            raise _failed(request, opened)
        return opened

    def _collection(self, verb: Verb, selection: Selection, query: Mapping[str, str]) -> Request:
        if selection.label_selector:
            query = {**query, "labelSelector": selection.label_selector}
        if selection.field_selector:
            query = {**query, "fieldSelector": selection.field_selector}
        return self._request(verb, selection.resource, Key(selection.namespace, ""), query=query)

    def _request(
        self,
        verb: Verb,
        resource: Resource,
        key: Key,
        subresource: str = "",
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Request:
        # a create is sent to the collection
        path = resource.path(key.namespace, "" if verb == "create" else key.name, subresource)
        what = f"{resource}/{subresource}" if subresource else str(resource)
        return Request(
            verb=verb,
            resource=str(resource),
            target=f"{path}?{urlencode(query)}" if query else path,
            label=f"{verb} {what} {key}".rstrip(" /"),
            body=msgspec.json.encode(body) if body is not None else None,
            headers=self._headers if body is None else {**self._headers, "Content-Type": content_type},
        )

    def _discovery(self, target: str, label: str) -> Request:
        return Request(verb="discover", resource="apis", target=target, label=label, headers=self._headers)

    def _object(self, request: Request, kind: type[T], abort: Abort | None = None) -> T:
        return _parse(request, self._exchange(request, abort), kind)

    def _exchange(self, request: Request, abort: Abort | None = None) -> bytes:
        """Send the request; the body of a 2xx response, or the error that the response means."""
        response = self._measured(request, lambda: self.transport.exchange(request, self.timeouts, abort))
        if not 200 <= response.status < 300:
            raise _failed(request, response)
        return response.body

    def _measured(self, request: Request, send: Callable[[], Sent]) -> Sent:
        began, code = self.clock.monotonic(), 0
        try:
            response = send()
            code = 200
            if isinstance(response, Response):
                code = response.status
                self._server_clock.saw(response.headers, self.clock.monotonic() - began)
            return response
        finally:
            self.on_request(request.verb, request.resource, code, self.clock.monotonic() - began)


def _failed(request: Request, response: Response) -> OperatorError:
    status = parse_status(response.body)
    return failure(
        request.label, response.status, status, headers=response.headers, is_write=request.is_write
    )


def _parse(request: Request, body: bytes, kind: type[T]) -> T:
    """`Invalid` for an object that does not fit the type: a retry would return the same.

    `Unavailable` for what is no JSON at all: something between us and the API server responded.
    """
    try:
        return read(body, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"{request.label}: the response does not fit {kind}: {error}") from error
    except msgspec.DecodeError as error:
        text = f"{request.label}: the response is not JSON: {error}"
        raise Unavailable(text, maybe_applied=request.is_write) from error
