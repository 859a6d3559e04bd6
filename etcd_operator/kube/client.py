"""Verbs on Kubernetes objects: typed in, typed out, our errors.

Promises
- Thread-safe; holds no state but the pool.
- Every request is bounded in time (`Timeouts`). Nothing is retried implicitly except a read on a dropped
  kept-alive connection (see `transport`).
- An object is decoded to the type that the caller names; `dict[str, Any]` gives plain JSON.
  msgspec reads only the fields that the type declares.
- Failures are `etcd_operator.errors`, in one line with verb, resource, object and the server's message. A
  write without a reliable response is `Unavailable(maybe_applied=True)`.
- A list is a consistent read (no `resourceVersion` is sent, so the API server reads from a quorum and never
  returns a state older than one returned before), in pages. If its continue token expires (410) it starts
  again without pages, which cannot expire.
- One object that does not fit the type does not hide the others: it is left out of the items, named in
  `unreadable`, and logged.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from importlib import metadata
from typing import Any, Generic, TypeVar

import msgspec

from etcd_operator.clock import Clock, SystemClock
from etcd_operator.decoding import read
from etcd_operator.errors import Conflict, Gone, Invalid, NotFound, OperatorError, Unavailable
from etcd_operator.keys import Key
from etcd_operator.kube.call import Call
from etcd_operator.kube.connections import Abort
from etcd_operator.kube.decode import ApiResources, ListPage, ServerVersion, Unreadable, decode_each
from etcd_operator.kube.failures import failure, parse_status
from etcd_operator.kube.resources import Resource, Selection
from etcd_operator.kube.transport import Method, Request, Response, Stream, Timeouts, Transport

T = TypeVar("T")
Sent = TypeVar("Sent", bound=Response | Stream)

OnRequest = Callable[[str, str, int, float], None]
"""`(verb, resource, HTTP status or 0 for no response, seconds)`, once for every request."""

FIELD_MANAGER = "etcd-operator"
PAGE_SIZE = 500
_LIFE_GRACE = 30.0


class PatchKind(Enum):
    """How the API server reads a patch; the value is its content type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """A collection at one moment; `unreadable` are objects that exist but do not fit the type."""

    items: tuple[T, ...]
    resource_version: str
    unreadable: tuple[Unreadable, ...] = ()

    def whole(self) -> tuple[T, ...]:
        """The items. Raises Conflict if an object cannot be read: it must not look like an absent one."""
        if self.unreadable:
            names = ", ".join(f"{each.key} ({each.error})" for each in self.unreadable)
            raise Conflict(f"objects exist that cannot be read: {names}")
        return self.items


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
    clock: Clock = field(default_factory=SystemClock)
    page_size: int = PAGE_SIZE

    def __post_init__(self) -> None:
        self._headers = {"User-Agent": user_agent(), "Accept": "application/json"}

    def get(self, resource: Resource, key: Key, decode: type[T]) -> T:
        """Read one object. `NotFound` also when the API itself is not there."""
        call = Call("get", resource, key)
        return _decode(call, self._run(call, "GET"), decode)

    def list(
        self,
        resource: Resource,
        decode: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        abort: Abort | None = None,
    ) -> Listing[T]:
        """Read a collection, consistent as of its `resource_version`; `""` is all namespaces."""
        call = Call("list", resource, Key(namespace, ""), query=_selector(label_selector), abort=abort)
        try:
            return self._list(call, decode, self.page_size)
        except Gone:
            return self._list(call, decode, 0)

    def current_version(self, selection: Selection, abort: Abort | None = None) -> str:
        """The version that a list of this collection would have now, also read from a quorum."""
        query = {**_selector(selection.label_selector), "limit": "1"}
        call = Call("list", selection.resource, Key(selection.namespace, ""), query=query, abort=abort)
        return _decode(call, self._run(call, "GET"), ListPage).metadata.resource_version

    def create(self, resource: Resource, namespace: str, body: Mapping[str, Any], decode: type[T]) -> T:
        """Write a new object. `AlreadyExists` may be caused by our own earlier attempt without a response."""
        name = str(body.get("metadata", {}).get("name", ""))
        call = Call("create", resource, Key(namespace, name), body=msgspec.json.encode(body))
        return _decode(call, self._run(call, "POST"), decode)

    def replace(self, resource: Resource, key: Key, body: Mapping[str, Any], decode: type[T]) -> T:
        """Write a whole object. `Conflict` if its `resourceVersion` is not the current one."""
        call = Call("replace", resource, key, body=msgspec.json.encode(body))
        return _decode(call, self._run(call, "PUT"), decode)

    def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        decode: type[T],
        *,
        kind: PatchKind,
        subresource: str = "",
    ) -> T:
        """Change an object. `APPLY` is forced, with the field manager `etcd-operator`."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"} if kind is PatchKind.APPLY else {}
        body = msgspec.json.encode(patch)
        call = Call("patch", resource, key, subresource=subresource, query=query, body=body)
        return _decode(call, self._run(call, "PATCH", content_type=kind.value), decode)

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
        self._run(Call("delete", resource, key, body=msgspec.json.encode(options)), "DELETE")

    def has_api(self, group_version: str, plural: str) -> bool:
        """Whether the API server serves a resource: `("coreos.com/v1", "etcdclusters")`."""
        root = "/apis/" if "/" in group_version else "/api/"
        label = f"discover {plural} in {group_version}"
        try:
            body = self._discover(root + group_version, label)
        except NotFound:
            return False
        return any(found.get("name") == plural for found in _parse(label, body, ApiResources).resources)

    def server_version(self) -> tuple[int, int]:
        """Major and minor version of the API server, as numbers (a minor of `36+` is 36)."""
        label = "read the version of the API server"
        version = _parse(label, self._discover("/version", label), ServerVersion)
        digits = [re.match(r"\d+", text) for text in (version.major, version.minor)]
        major, minor = (int(found.group()) if found else 0 for found in digits)
        return major, minor

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
            **_selector(selection.label_selector),
        }
        call = Call("watch", selection.resource, Key(selection.namespace, ""), query=query, abort=abort)
        request = self._request(call, "GET")
        life = timeout_seconds + _LIFE_GRACE
        opened = self._measured(
            call.verb,
            str(call.resource),
            lambda: self.transport.stream(request, self.timeouts, abort, life=life),
        )
        if isinstance(opened, Response):
            raise _failed(call.label, opened, is_write=False)
        return opened

    def _list(self, call: Call, kind: type[T], limit: int) -> Listing[T]:
        items: list[T] = []
        odd: list[Unreadable] = []
        query = {**call.query, "limit": str(limit)} if limit else call.query
        while True:
            page = _decode(call, self._run(replace(call, query=query), "GET"), ListPage)
            for item in decode_each(call.resource, page.items or [], kind):
                if isinstance(item, Unreadable):
                    odd.append(item)
                else:
                    items.append(item)
            if not page.metadata.continue_token:
                version = page.metadata.resource_version
                return Listing(items=tuple(items), resource_version=version, unreadable=tuple(odd))
            query = {**query, "continue": page.metadata.continue_token}

    def _run(self, call: Call, method: Method, content_type: str = "application/json") -> bytes:
        """Send the call; the body of a 2xx response, or the error that the response means."""
        request = self._request(call, method, content_type)
        return self._exchange(request, call.verb, str(call.resource), call.abort)

    def _discover(self, target: str, label: str) -> bytes:
        request = Request(method="GET", target=target, label=label, headers=self._headers)
        return self._exchange(request, "discover", "apis", None)

    def _request(self, call: Call, method: Method, content_type: str = "") -> Request:
        headers = {**self._headers, "Content-Type": content_type} if call.body is not None else self._headers
        return Request(method=method, target=call.target, label=call.label, body=call.body, headers=headers)

    def _exchange(self, request: Request, verb: str, resource: str, abort: Abort | None) -> bytes:
        response = self._measured(
            verb, resource, lambda: self.transport.exchange(request, self.timeouts, abort)
        )
        if not 200 <= response.status < 300:
            raise _failed(request.label, response, is_write=request.method != "GET")
        return response.body

    def _measured(self, verb: str, resource: str, send: Callable[[], Sent]) -> Sent:
        began, code = self.clock.monotonic(), 0
        try:
            response = send()
            code = response.status if isinstance(response, Response) else 200
            return response
        finally:
            self.on_request(verb, resource, code, self.clock.monotonic() - began)


def _selector(label_selector: str) -> dict[str, str]:
    return {"labelSelector": label_selector} if label_selector else {}


def _failed(label: str, response: Response, *, is_write: bool) -> OperatorError:
    status = parse_status(response.body)
    return failure(label, response.status, status, headers=response.headers, is_write=is_write)


def _decode(call: Call, body: bytes, kind: type[T]) -> T:
    return _parse(call.label, body, kind, is_write=call.verb not in {"get", "list"})


def _parse(label: str, body: bytes, kind: type[T], *, is_write: bool = False) -> T:
    """`Invalid` for an object that does not fit the type: a retry would return the same.

    `Unavailable` for what is no JSON at all: something between us and the API server responded.
    """
    try:
        return read(body, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"{label}: the response does not fit {kind}: {error}") from error
    except msgspec.DecodeError as error:
        raise Unavailable(f"{label}: the response is not JSON: {error}", maybe_applied=is_write) from error
