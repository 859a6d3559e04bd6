"""What /healthz and /readyz answer.

/healthz fails when the process has lost a part or a part has stopped moving, so that only a restart
helps; the kubelet then makes one. It does not fail for what lies outside, such as an API server that
is away: a restart would add a cold start to the outage. /readyz is for people and rollouts.
"""

from collections.abc import Callable, Mapping, Sequence

from etcd_operator.observability.server import Check
from etcd_operator.reconcile.group import Group

STUCK_SECONDS = 300.0
"""A pass or a queue that has not moved for so long will not move any more.

The longest pass that still ends is a few requests to an API server that hangs, each within 35 s."""


def health_checks(groups: Sequence[Group], failure: Callable[[], str]) -> Mapping[str, Check]:
    """`failure` is what ends the process; empty while nothing does."""

    def threads() -> tuple[bool, str]:
        return not failure(), failure() or "running"

    def watches() -> tuple[bool, str]:
        gone = [informer.name for group in groups for informer in group.informers if informer.has_ended]
        return not gone, f"ended: {', '.join(gone)}" if gone else "running"

    def work() -> tuple[bool, str]:
        found = [controller.problem(STUCK_SECONDS) for group in groups for controller in group.controllers]
        words = "; ".join(trouble for trouble in found if trouble)
        return not words, words or "moving"

    return {"threads": threads, "watches": watches, "work": work}


def group_is_ready(group: Group) -> Check:
    """Whether the caches of a group are complete, so that it can begin to work."""

    def check() -> tuple[bool, str]:
        for informer in group.informers:
            if not informer.has_synced:
                return False, f"not listed yet: {informer.last_error or 'listing'}"
        return True, "caches are complete"

    return check
