"""What the operator requested from the API server, by the API server's own audit log.

Lines of the log are written within a second of the request; a count over a window is made
after the window's end.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from e2e.support.waiting import wait_until

POD = "authentication.kubernetes.io/pod-name"

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Request:
    """One request as the API server logged it."""

    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    group: str = ""
    pod: str = ""
    limit: str = ""  # of a list: how many objects at most

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.verb in WRITES

    @property
    def kind(self) -> str:
        """`patch etcdclusters/status`."""
        return f"{self.verb} {self.resource}{'/' if self.subresource else ''}{self.subresource}"


class Window:
    """The requests of one user from its making on."""

    def __init__(self, log: Path, user: str) -> None:
        self._log = log
        self._user = user
        self._offset = log.stat().st_size
        self._inode = log.stat().st_ino

    def requests(self) -> list[Request]:
        """All that is in the log by now."""
        return list(self._read())

    def writes(self, *, namespace: str = "") -> list[Request]:
        """The changes, without Events and without the leader's Lease."""
        return [
            request
            for request in self._read()
            if request.is_write
            and request.resource not in ("events", "leases")
            and (not namespace or request.namespace == namespace)
        ]

    def lists(self) -> list[Request]:
        """Lists; the watches that go on are none, nor are reads of the version after a silent one."""
        return [request for request in self._read() if request.verb == "list" and request.limit != "1"]

    def _read(self) -> Iterator[Request]:
        for path, start in self._parts():
            yield from _requests(path, self._user, start)

    def _parts(self) -> list[tuple[Path, int]]:
        """The log's file or files: it may have been renamed for a new one meanwhile."""
        if self._log.stat().st_ino == self._inode:
            return [(self._log, self._offset)]
        old = [path for path in self._log.parent.glob("audit-*.log") if path.stat().st_ino == self._inode]
        return [*((path, self._offset) for path in old), (self._log, 0)]


def wait_quiet(window: Window, *, namespace: str = "", every: float = 2.0) -> None:
    """Wait until `every` seconds pass without another write (in the namespace, if one is named)."""
    counted = -1

    def is_quiet() -> bool:
        nonlocal counted
        before, counted = counted, len(window.writes(namespace=namespace))
        return before == counted

    wait_until(is_quiet, lambda: f"writes end: {tally(window.writes(namespace=namespace))}", every=every)


def all_of(log: Path, user: str) -> Iterator[Request]:
    """Every request of a user that the log, and what was renamed for a new one, still has."""
    for path in sorted(log.parent.glob("audit*.log")):
        yield from _requests(path, user)


def _requests(path: Path, user: str, start: int = 0) -> Iterator[Request]:
    with path.open(encoding="utf-8") as lines:
        lines.seek(start)
        for line in lines:
            # The name alone first: most lines are others' and parsing them all is slow.
            if user in line and line.endswith("\n") and (found := _parsed(line, user)) is not None:
                yield found


def tally(requests: list[Request]) -> str:
    """`3 create pods, 2 patch etcdclusters/status`."""
    counts = Counter(request.kind for request in requests)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "none"


def _parsed(line: str, user: str) -> Request | None:
    entry = json.loads(line)
    if entry["user"]["username"] != user or entry["stage"] not in ("ResponseComplete", "ResponseStarted"):
        return None
    if entry["verb"] == "watch" and entry["stage"] == "ResponseComplete":
        return None
    about = entry.get("objectRef", {})
    return Request(
        verb=entry["verb"],
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=entry.get("responseStatus", {}).get("code", 0),
        group=about.get("apiGroup", ""),
        pod=next(iter(entry["user"].get("extra", {}).get(POD, [])), ""),
        limit=next(iter(parse_qs(urlsplit(entry.get("requestURI", "")).query).get("limit", [])), ""),
    )
