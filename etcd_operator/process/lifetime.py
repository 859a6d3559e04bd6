"""What the process as a whole does: reach its API server, and end in time whatever its threads do."""

import os
import threading

import structlog

from etcd_operator.errors import RetryableError
from etcd_operator.kube.client import Client
from etcd_operator.pacing import Exponential

REACH_WAITS = Exponential(0.5, cap=5.0)
"""Between two attempts to reach the API server."""

log = structlog.get_logger()


class Reachability:
    """Waits for the API server. Exiting instead would only add the kubelet's back-off to an outage."""

    def __init__(self, client: Client, ended: threading.Event) -> None:
        self._client = client
        self._ended = ended
        self._problem = "not tried yet"

    def wait(self) -> bool:
        """Wait until the API server responds; false if the process ends first.

        Raises what waiting does not help against.
        """
        failures = 0
        while not self._ended.is_set():
            try:
                self._client.server_version()
            except RetryableError as error:
                failures += 1
                delay = REACH_WAITS.after(failures)
                self._problem = str(error)
                log.warning("api_server_not_reached", error=str(error), retry_in=delay)
                self._ended.wait(delay)
            else:
                self._problem = ""
                return not self._ended.is_set()
        return False

    def check(self) -> tuple[bool, str]:
        """Whether the API server was reached, for `/readyz`."""
        return not self._problem, self._problem or "reached"


def end_in(seconds: float, *, code: int) -> threading.Timer:
    """Exit after `seconds`, whatever threads still run, unless the timer is cancelled first."""

    def end() -> None:
        log.critical("ended_by_force", threads=[t.name for t in threading.enumerate() if not t.daemon])
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer
