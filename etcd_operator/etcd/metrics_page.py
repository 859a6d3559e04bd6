"""Reads the metrics pages of members: what they report by HTTP and not, or not yet, by gRPC.

An initial member accepts connections but answers no call until it has followed a leader. Its
metrics listener answers from the first moment, and counts leaders: a process that never
saw one has never been part of a quorum, so it holds nothing that a client was promised.
"""

import re
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from etcd_operator.etcd.values import UNREAD, MetricsPage
from etcd_operator.pods.contract import METRICS_PORT
from etcd_operator.pods.http_client import Server, call


def _line(name: str) -> re.Pattern[bytes]:
    """A counter's line, to its end: a page may be cut off anywhere."""
    return re.compile(rf"^{name} (\d{{1,20}}(?:\.\d{{1,20}})?(?:e\+\d\d)?)\n".encode(), re.MULTILINE)


_SNAPSHOTS_SAVED = _line("etcd_debugging_snap_save_total_duration_seconds_count")
_LEADERS_SEEN = _line("etcd_server_leader_changes_seen_total")
_AUTH_REVISION = _line("etcd_debugging_auth_revision")
_CLUSTER_VERSION = re.compile(
    rb'^etcd_cluster_version\{cluster_version="(\d{1,9}\.\d{1,9})"\} 1\n', re.MULTILINE
)
"""Versions that were agreed on before remain on the page, with 0."""
_MAX_PAGE = 1024 * 1024


def read(endpoints: Collection[str], *, deadline: float = 1.0) -> dict[str, MetricsPage]:
    """The metrics page of each member at these client endpoints (`host:port`), within `deadline` seconds.

    A page that is not complete by then, or that makes no sense, reports nothing.
    """
    return dict(zip(endpoints, _pages(endpoints, time.monotonic() + deadline), strict=True))


def _pages(endpoints: Collection[str], end: float) -> Iterable[MetricsPage]:
    """In order. All are read at once, so that one that hangs hides no other."""
    if len(endpoints) < 2:
        return [_page(endpoint, end) for endpoint in endpoints]
    with ThreadPoolExecutor(len(endpoints), thread_name_prefix="metrics-page") as threads:
        return list(threads.map(lambda endpoint: _page(endpoint, end), endpoints))


def _page(endpoint: str, end: float) -> MetricsPage:
    body = _fetch(endpoint, end)
    return UNREAD if body is None else parsed(body)


def parsed(body: bytes) -> MetricsPage:
    """What a page reports; what makes no sense reports nothing."""
    return MetricsPage(
        leaders_seen=_counter(_LEADERS_SEEN, body),
        snapshots_saved=_counter(_SNAPSHOTS_SAVED, body),
        cluster_version=_cluster_version(body),
        auth_revision=_counter(_AUTH_REVISION, body),
    )


def _fetch(endpoint: str, end: float) -> bytes | None:
    """The body of a 200; None for another reply, for one that is too long, and when time is over."""
    server = Server(address=(endpoint.rpartition(":")[0], METRICS_PORT))
    try:
        status, body = call("GET /metrics", server, end=end, largest=_MAX_PAGE)
    except OSError:
        return None
    return body if status == HTTPStatus.OK else None


def _cluster_version(page: bytes) -> str | None:
    """As etcd's `/version` has it: the patch version of a cluster is always 0."""
    found = _CLUSTER_VERSION.search(page)
    return None if found is None else f"{found.group(1).decode()}.0"


def _counter(line: re.Pattern[bytes], page: bytes) -> int | None:
    found = line.search(page)
    return None if found is None else int(float(found.group(1)))
