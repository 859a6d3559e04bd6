"""What a member's metrics page tells while its gRPC port still says nothing.

A founder accepts connections but answers no call until it has followed a leader. Its
metrics listener answers from the first moment, and counts leaders: a process that never
saw one has never been part of a quorum, so it holds nothing that a client was promised.
"""

import http.client
import re

METRICS_PORT = 2381

_LEADERS_SEEN = re.compile(rb"^etcd_server_leader_changes_seen_total (\S+)$", re.MULTILINE)
_MAX_PAGE = 4 * 1024 * 1024


def has_never_led(host: str, *, deadline: float = 1.0) -> bool:
    """Whether the process at `host` is alive and has not seen a leader since it started.

    False also when nothing is known: no answer within `deadline` seconds (per socket operation),
    or a page without that counter.
    """
    connection = http.client.HTTPConnection(host, METRICS_PORT, timeout=deadline)
    try:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read(_MAX_PAGE)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    seen = _LEADERS_SEEN.search(page)
    return seen is not None and float(seen.group(1)) == 0
