"""The end of an operator at a chosen write."""

import urllib3

from etcd_operator.kube.connections import Abort
from etcd_operator.kube.transport import Request, Response, Timeouts, Transport

ETCD_WRITES = (
    *("MemberAdd", "MemberRemove", "MemberPromote", "MoveLeader"),
    *("UserAdd", "UserDelete", "UserChangePassword", "UserGrantRole", "UserRevokeRole"),
    *("RoleAdd", "RoleDelete", "RoleGrantPermission", "RoleRevokePermission"),
)


class Died(BaseException):
    """The operator ended here; no `except Exception` may notice."""


class Mortality:
    """Ends the operator when the reply to its k-th write comes, or fails to come; 0 is never.

    Writes to the API server, Events apart, and to etcd count alike; only those whose path or method
    contains `dies_on`.
    """

    def __init__(self, dies_at: int = 0, dies_on: str = "") -> None:
        self._dies_at, self._dies_on = dies_at, dies_on
        self._writes = 0

    def wrote(self, what: str) -> None:
        """A write of ours is over."""
        if self._dies_on in what:
            self._writes += 1
            if self._writes == self._dies_at:
                raise Died

    def on_call(self, method: str, _code: str, _seconds: float) -> None:
        """A call to etcd is over."""
        if method in ETCD_WRITES:
            self.wrote(method)


class MortalTransport(Transport):
    """Reports writes."""

    def __init__(self, url: str, mortality: Mortality) -> None:
        super().__init__(pool=urllib3.PoolManager(maxsize=20), base_url=url)
        self._mortality = mortality

    def exchange(self, request: Request, timeouts: Timeouts, abort: Abort | None = None) -> Response:
        try:
            return super().exchange(request, timeouts, abort)
        finally:
            if request.is_write:
                self._mortality.wrote(request.target)
