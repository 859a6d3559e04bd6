"""The checks of /healthz and /readyz, and the wait for the API server at the start.

/healthz fails if a part of the process has ended or makes no progress, so that only a restart helps; the
kubelet then restarts it. It does not fail for external causes, such as an API server that is down: a restart
would add a cold start to the outage. /readyz is for people and rollouts.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

import structlog

from etcd_operator.controllers.shared.groups import Group
from etcd_operator.errors import RetryableError
from etcd_operator.kube.client import Client
from etcd_operator.observability.server import HealthCheck
from etcd_operator.pacing import Exponential

STALL_SECONDS = 300.0
"""A pass or a queue without progress for so long will not recover.

The longest pass that still ends is a few requests to an API server that hangs, each within 35 s."""

BEHIND_SECONDS = 60.0
"""A restart of the API server takes less."""

REACH_WAITS = Exponential(0.5, cap=5.0)
"""Between two attempts to reach the API server."""

log = structlog.get_logger()


def health_checks(groups: Sequence[Group], failure: Callable[[], str]) -> Mapping[str, HealthCheck]:
    """`failure` returns the reason why the process ends; empty while it does not."""

    def threads() -> tuple[bool, str]:
        return not failure(), failure() or "running"

    def watches() -> tuple[bool, str]:
        informers = (each for group in groups for each in (*group.informers, *group.optional))
        ended = [informer.name for informer in dict.fromkeys(informers) if informer.has_ended]
        return not ended, f"ended: {', '.join(ended)}" if ended else "running"

    def work() -> tuple[bool, str]:
        found = [controller.problem(STALL_SECONDS) for group in groups for controller in group.controllers]
        problems = "; ".join(problem for problem in found if problem)
        return not problems, problems or "in progress"

    return {"threads": threads, "watches": watches, "work": work}


def group_is_ready(group: Group) -> HealthCheck:
    """Whether the caches of a group are complete and follow the API server, so that it can work.

    A rollout must not wait for an optional group: the former operator leads until it is complete.
    """

    def check() -> tuple[bool, str]:
        if (missing := group.missing) is not None:
            return True, f"does nothing without {missing.resource}: {missing.reflector.last_error}"
        for informer in group.informers:
            error, seconds = informer.reflector.last_error, informer.reflector.failing_for
            if not informer.has_synced:
                return False, f"not listed yet: {error or 'listing'}"
            if seconds > BEHIND_SECONDS:
                return False, f"not watched for {seconds:.0f} s: {error}"
        if (awaited := group.awaited) is not None:
            why = awaited.reflector.last_error or "listing"
            return False, f"waiting for {awaited.resource} of another group: {why}"
        return True, "caches are complete"

    return check


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
