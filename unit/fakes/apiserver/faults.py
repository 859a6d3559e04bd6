"""What a test can make the API server do wrong, per request.

A server has two hooks, `before` and `after` applying a request: each is asked for every request
and may give a fault. The same fault means "refused" before and "done, but the client learns otherwise" after.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as it arrived; `write` counts the writes from 1, 0 is a read."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
    body: Any
    plural: str
    subresource: str
    write: int

    @property
    def is_write(self) -> bool:
        """Whether it can change objects."""
        return self.method != "GET"

    @property
    def is_watch(self) -> bool:
        """Whether it opens a watch stream."""
        return self.query.get("watch") in ("1", "true", "True")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what came of it: the code sent (0: connection cut), and whether it was applied."""

    request: Request
    code: int
    applied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer with this Status instead of the real answer; cause: the reason in its details, if any."""

    code: int
    reason: str = ""
    message: str = "made up by the test"
    retry_after: int | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection without an answer; after applying this is a lost reply."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Hold the request until `released` is set (or the server stops), then go on as if nothing was."""

    released: threading.Event = field(default_factory=threading.Event)


Fault = Answer | Cut | Stall
Hook = Callable[[Request], Fault | None]


def no_fault(_request: Request) -> None:
    """The hook of a healthy server."""


GIVES_RIGHT_ON_SECRETS = (
    "kubectl --namespace default create rolebinding etcd-operator-secrets "
    "--clusterrole etcd-operator-secrets --serviceaccount etcd-operator:etcd-operator"
)
"""The command for the operator that the hooks below refuse."""


def no_right_on_secrets(request: Request) -> Fault | None:
    """The hook of a server that lets the operator use no Secrets."""
    return _refused(request) if request.plural == "secrets" else None


def no_right_on_config_maps(request: Request) -> Fault | None:
    """The hook of a server that lets the operator use no ConfigMaps."""
    return _refused(request) if request.plural == "configmaps" else None


def _refused(request: Request) -> Fault:
    user, verb, kind = (
        "system:serviceaccount:etcd-operator:etcd-operator",
        _VERBS[request.method],
        request.plural,
    )
    what = f'User "{user}" cannot {verb} resource "{kind}" in API group "" in the namespace "default"'
    return Answer(code=403, reason="Forbidden", message=f"{kind} is forbidden: {what}")


_VERBS = {"GET": "get", "POST": "create"}


class OnWrite:
    """A hook that gives `fault` at the k-th write (from 1) of the given kind of objects, once."""

    def __init__(self, number: int, fault: Fault, *, plural: str = "") -> None:
        self._left = number
        self._fault = fault
        self._plural = plural
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Fault | None:
        """The fault when its turn has come."""
        if not request.is_write or self._plural not in ("", request.plural):
            return None
        with self._lock:
            self._left -= 1
            return self._fault if self._left == 0 else None

    @property
    def has_fired(self) -> bool:
        """Whether the write has come."""
        with self._lock:
            return self._left <= 0
