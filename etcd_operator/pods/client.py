"""Asks the programs in the operator's own pods for their reports: the client of all their HTTP APIs.

They are backup tools, pods that restore, and readers of survivors. A deadline is for all of an answer. The
seed of a recovery asks its backup tool by this, too.
"""

import time
from http import HTTPStatus
from typing import TypeVar

import msgspec

from etcd_operator.decoding import from_json
from etcd_operator.pods.http_client import Server, call
from etcd_operator.pods.reports import Progress, RestorableBackups, SurvivorReport, ToolReport

Document = TypeVar("Document", ToolReport, RestorableBackups, Progress, SurvivorReport)

DEADLINE = 5.0
CLEANUP_DEADLINE = 30.0
SURVIVOR_DEADLINE = 2.0
"""Seconds for all of an answer."""

LONGEST_QUOTE = 300
_LARGEST = 64 * 1024


class NoReport(Exception):
    """The program gave no report; the message says why."""


class TokenRefused(NoReport):
    """The program requires another token."""


def ask(tool: Server) -> ToolReport:
    """The report of a backup tool. Raises `NoReport`."""
    return _call("GET /v1/status", tool, DEADLINE, ToolReport)


def restorable(tool: Server, cluster_id: str) -> RestorableBackups:
    """What the tool can restore, backups of the etcd cluster with this ID first. Raises `NoReport`."""
    path = f"GET /v1/restorable?clusterID={cluster_id}"
    return _call(path, tool, DEADLINE, RestorableBackups)


def progress(address: tuple[str, int]) -> Progress:
    """How far a pod that restores is; it requires no token. Raises `NoReport`."""
    return _call("GET /v1/progress", Server(address=address), DEADLINE, Progress)


def survivor(reader: Server) -> SurvivorReport:
    """What the reader of a survivor has read. Raises `NoReport`."""
    return _call("GET /v1/survivor", reader, SURVIVOR_DEADLINE, SurvivorReport)


def clean_up(tool: Server) -> ToolReport:
    """Have the tool delete all backups of its cluster; its report then. Raises `NoReport`."""
    return _call("DELETE /v1/backups", tool, CLEANUP_DEADLINE, ToolReport)


def _call(what: str, server: Server, deadline: float, kind: type[Document]) -> Document:
    try:
        status, body = call(what, server, end=time.monotonic() + deadline, largest=_LARGEST)
    except OSError as error:
        raise NoReport(error.strerror or "no answer in time") from error
    if status == HTTPStatus.UNAUTHORIZED:
        raise TokenRefused("it refuses the token of its Secret")
    if status != HTTPStatus.OK:
        quote = body[:LONGEST_QUOTE].decode("utf-8", "replace").strip()
        raise NoReport(f"it answered with {status} ({quote})" if quote else f"it answered with {status}")
    try:
        return from_json(body, kind)
    except msgspec.DecodeError as error:
        raise NoReport("its report cannot be read") from error
