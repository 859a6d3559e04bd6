"""What the end of etcd's log shows of why it ended, as the kubelet keeps it in the status of a pod. Pure."""

from typing import Any

import msgspec

from etcd_operator.controllers.shared.manifests.pod import ETCD_CONTAINER
from etcd_operator.decoding import from_json
from etcd_operator.kube.pod_views import ContainerStatus, Pod

QUOTED = 300
"""Characters of a report, or of etcd's log, that are quoted at most."""

NO_DATA = "cannot fetch cluster info from peer urls"
"""etcd without data, at an existing-only start or joining where it reaches no other (3.4 to 3.7, exit 1)."""

BOOTSTRAPPED = "has already been bootstrapped"
"""etcd without data, with bootstrap flags, after others reported that it was a member (3.4 to 3.7)."""

BROKEN_DATA = ("walpb: crc mismatch", "invalid database")
"""etcd that cannot read its log or its database (3.5 to 3.7, at each start; measured).

Only messages that nothing but the bytes on the disk can cause. Other damage is not recognised: a panic's
trace may fill all that the kubelet keeps of the log.
"""

NEVER_LET_IN = (
    "member count is unequal",
    "data-dir used by this member must be removed",
    "unmatched member while checking PeerURLs",
)
"""etcd that was started with an outdated list of members, on a removed member's data, or with other URLs."""

NO_RIGHTS = "permission denied"
"""The end of etcd's log where its data belongs to another user (3.5 to 3.7, at each start; measured)."""


def found_nothing(status: ContainerStatus, *, is_existing_only: bool) -> bool:
    """Whether the last process that ended reported that its data directory was empty.

    A member that joins reports so, too, when it does not reach the others; with an existing-only start
    it asks no other.
    """
    tail = failure_tail(status)
    return BOOTSTRAPPED in tail or (is_existing_only and NO_DATA in tail)


def reports(status: ContainerStatus, messages: tuple[str, ...]) -> bool:
    """Whether the last process that ended reported one of these messages, and failed."""
    tail = failure_tail(status)
    return any(message in tail for message in messages)


def failure_tail(status: ContainerStatus) -> str:
    """The log tail of the last process that ended, if it failed."""
    ending = status.state.terminated or status.last_state.terminated
    return ending.message if ending is not None and ending.exit_code != 0 else ""


def last_failure(pod: Pod) -> str:
    """Why etcd ended, from the tail of its log; empty where that shows no reason.

    Without what differs each time (times, addresses): the same reason must give the same sentence.
    """
    status = pod.container(ETCD_CONTAINER)
    ended = status.last_state.terminated if status is not None else None
    lines = ended.message.splitlines() if ended is not None else []
    panics = [line for line in lines if line.startswith("panic: ")]
    if panics:
        return panics[-1][:QUOTED]
    failures = [_failure(line) for line in lines if line.startswith("{")]
    return next((failure for failure in reversed(failures) if failure), "")[:QUOTED]


def _failure(line: str) -> str:
    """The message of one line of etcd's log, if it is one of failure."""
    try:
        entry = from_json(line, dict[str, Any])
    except msgspec.DecodeError:
        return ""
    if entry.get("level") not in ("error", "fatal", "panic"):
        return ""
    return ": ".join(str(entry[key]) for key in ("msg", "error") if entry.get(key))
