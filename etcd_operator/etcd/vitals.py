"""What a member's HTTP listener reports that its gRPC port does not, or not yet.

An initial member accepts connections but answers no call until it has followed a leader. Its
metrics listener answers from the first moment, and counts leaders: a process that never
saw one has never been part of a quorum, so it holds nothing that a client was promised.

`read` fetches pages of several members at once. To read another page, or another fact of one:
a field of `Vitals`, and a line in `_PARSERS` (and `PORTS`).
"""

import re
import socket
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple


class Page(Enum):
    """A page that members serve; the value is its path."""

    METRICS = "/metrics"


class Reading(NamedTuple):
    """One page of the member whose client endpoint this is (`host:port`)."""

    endpoint: str
    page: Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What the process at one endpoint reported; None where it did not, or was not asked.

    leaders_seen: changes of leader since it started; 0 means that it has never followed one.
    snapshots_saved: raft snapshots saved since it started.
    cluster_version: the version that its cluster has agreed on, such as 3.6.0.
    """

    leaders_seen: int | None = None
    snapshots_saved: int | None = None
    cluster_version: str | None = None


PORTS = {Page.METRICS: 2381}
NOTHING = Vitals()


def _line(name: str) -> re.Pattern[bytes]:
    """A counter's line, to its end: a page may be cut off anywhere."""
    return re.compile(rf"^{name} (\d+(?:\.\d+)?(?:e\+\d\d)?)\n".encode(), re.MULTILINE)


_SNAPSHOTS_SAVED = _line("etcd_debugging_snap_save_total_duration_seconds_count")
_LEADERS_SEEN = _line("etcd_server_leader_changes_seen_total")
_CLUSTER_VERSION = re.compile(rb'^etcd_cluster_version\{cluster_version="(\d+\.\d+)"\} 1\n', re.MULTILINE)
"""Versions that were agreed on before stay on the page, with 0."""
_OK = re.compile(rb"HTTP/1\.[01] 200 ")
_CHUNK = 1 << 16
_MAX_PAGE = 4 * 1024 * 1024


def read(readings: Collection[Reading], *, deadline: float = 1.0) -> dict[str, Vitals]:
    """The vitals of each endpoint named, within `deadline` seconds in total.

    A page that is not complete by then, or that makes no sense, reports nothing.
    """
    end = time.monotonic() + deadline
    found: dict[str, Vitals] = {}
    for reading, page in zip(readings, _pages(readings, end), strict=True):
        known = found.get(reading.endpoint, NOTHING)
        found[reading.endpoint] = _PARSERS[reading.page](known, page) if page is not None else known
    return found


def _pages(readings: Collection[Reading], end: float) -> Iterable[bytes | None]:
    """The bodies, in order. All are fetched at once, so that one that hangs hides no other."""
    if len(readings) < 2:
        return [_fetch(reading, end) for reading in readings]
    with ThreadPoolExecutor(len(readings), thread_name_prefix="vitals") as threads:
        return list(threads.map(lambda reading: _fetch(reading, end), readings))


def _fetch(reading: Reading, end: float) -> bytes | None:
    """The body of a 200; None for another answer, for too much, and when time is over.

    HTTP/1.0 by hand, whose bodies end with the connection: `http.client` limits each read of the
    socket, but not all of them together.
    """
    host = reading.endpoint.rpartition(":")[0]
    address = (host.strip("[]"), PORTS[reading.page])
    try:
        with socket.create_connection(address, timeout=_left(end)) as sock:
            sock.sendall(f"GET {reading.page.value} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            answer = _all_of(sock, end)
    except OSError:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if _OK.match(head) else None


def _all_of(sock: socket.socket, end: float) -> bytes:
    """What comes until the other side closes; nothing when that is too late or too much."""
    answer = bytearray()
    while len(answer) <= _MAX_PAGE and time.monotonic() < end:
        sock.settimeout(_left(end))
        chunk = sock.recv(_CHUNK)
        if not chunk:
            return bytes(answer)
        answer += chunk
    return b""


def _left(end: float) -> float:
    """Seconds until `end`; never 0, which would mean not to wait at all."""
    return max(end - time.monotonic(), 0.001)


def _from_metrics(known: Vitals, page: bytes) -> Vitals:
    return replace(
        known,
        leaders_seen=_counter(_LEADERS_SEEN, page),
        snapshots_saved=_counter(_SNAPSHOTS_SAVED, page),
        cluster_version=_cluster_version(page),
    )


def _cluster_version(page: bytes) -> str | None:
    """As etcd's `/version` has it: the patch version of a cluster is always 0."""
    found = _CLUSTER_VERSION.search(page)
    return None if found is None else f"{found.group(1).decode()}.0"


def _counter(line: re.Pattern[bytes], page: bytes) -> int | None:
    found = line.search(page)
    return None if found is None else int(float(found.group(1)))


_PARSERS: dict[Page, Callable[[Vitals, bytes], Vitals]] = {Page.METRICS: _from_metrics}
