"""What a member's metrics page tells that its gRPC port does not, or not yet.

A founder accepts connections but answers no call until it has followed a leader. Its
metrics listener answers from the first moment, and counts leaders: a process that never
saw one has never been part of a quorum, so it holds nothing that a client was promised.
"""

import http.client
import re

METRICS_PORT = 2381

_SNAPSHOTS_SAVED = re.compile(rb"^etcd_debugging_snap_save_total_duration_seconds_count (\S+)$", re.MULTILINE)
_LEADERS_SEEN = re.compile(rb"^etcd_server_leader_changes_seen_total (\S+)$", re.MULTILINE)
_MAX_PAGE = 4 * 1024 * 1024


def has_never_led(host: str, *, deadline: float = 1.0) -> bool:
    """Whether the process at `host` is alive and has not seen a leader since it started.

    False also when nothing is known: no answer within `deadline` seconds (per socket operation),
    or a page without that counter.
    """
    return _counter(host, _LEADERS_SEEN, deadline) == 0


def snapshots_saved(host: str, *, deadline: float = 1.0) -> int | None:
    """How many raft snapshots the process at `host` has saved since it started.

    None when nothing is known: see `has_never_led`.
    """
    saved = _counter(host, _SNAPSHOTS_SAVED, deadline)
    return None if saved is None else int(saved)


def _counter(host: str, line: re.Pattern[bytes], deadline: float) -> float | None:
    connection = http.client.HTTPConnection(host, METRICS_PORT, timeout=deadline)
    try:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read(_MAX_PAGE)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    found = line.search(page)
    return None if found is None else float(found.group(1))
