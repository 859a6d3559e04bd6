"""What runs only in the process that leads: the controllers of each group, and the quorum checks."""

import threading
from collections.abc import Callable, Sequence

import structlog

from etcd_operator.controllers.etcd_cluster.observe.quorum_check import QUORUM_CHECK_SECONDS
from etcd_operator.controllers.shared.groups import Group
from etcd_operator.engine.threads import Loop, OnCrash

log = structlog.get_logger()

CACHE_CHECK_SECONDS = 0.5
"""At most so long until a starter notices that the process ends."""


class LeaderThreads:
    """One starter for each group, and the thread of the quorum checks.

    `defined` is set once the definitions were applied, `ended` when the process is to end.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        defined: threading.Event,
        ended: threading.Event,
        may_act: Callable[[], bool],
        on_crash: OnCrash,
    ) -> None:
        self._groups = groups
        self._defined, self._ended = defined, ended
        self._may_act = may_act
        self._loops = [Loop(f"{group.name}-starter", self._starter(group), on_crash) for group in groups]
        self._loops.append(Loop("quorum-checks", self._check_quorums, on_crash))

    def start(self) -> None:
        """Called once, when this process leads for the first time."""
        for loop in self._loops:
            loop.start()

    def stop(self, left: Callable[[float], float]) -> list[str]:
        """Stop the controllers; what did not end in time. `left` limits each wait to what remains."""
        late = [c.name for group in self._groups for c in group.controllers if not c.stop(left(10.0))]
        return late + [loop.name for loop in self._loops if not loop.join(left(2.0))]

    def _starter(self, group: Group) -> Callable[[], None]:
        def start() -> None:
            """Start the controllers once the group's caches are complete and the others' clusters are known.

            Not before the definitions were applied: an older one would drop fields that we write.
            """
            while not self._ended.is_set():
                if self._defined.is_set() and group.has_synced and group.awaited is None:
                    for controller in group.controllers:
                        controller.start()
                    unknown = [str(other.resource) for other in group.others if not other.has_synced]
                    log.info("group_started", group=group.name, unknown=unknown)
                    return
                waiting = next((i for i in (*group.informers, *group.others) if not i.has_synced), None)
                if waiting is not None:
                    waiting.wait_synced(CACHE_CHECK_SECONDS)
                else:
                    self._defined.wait(CACHE_CHECK_SECONDS)

        return start

    def _check_quorums(self) -> None:
        """Check the quorum of all clusters until the end, whenever this process leads."""
        while not self._ended.wait(QUORUM_CHECK_SECONDS):
            if self._may_act():
                for group in self._groups:
                    for check in group.checks:
                        check()
